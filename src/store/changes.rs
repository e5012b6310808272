//! News of changed tenants, from whichever replica changed them.
//!
//! A notification is a hint and comes at once, on a connection of its own; it may be lost. Asking is the truth and needs nothing
//! but the pool: each row of a tenant says which transaction changed it last.

use super::{Store, StoreError};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::PgListener;
use std::time::Duration;
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

/// Where the trigger on `tenants` tells of changes.
const CHANNEL: &str = "toolhook_changes";
/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(2);

/// A tenant whose tools, handlers or limits changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whose.
    pub tenant: Uuid,
    /// The version that they have now; the greatest there is, if the tenant is gone.
    pub version: i64,
}

/// A connection that hears of changes.
pub struct Listener {
    session: PgListener,
    /// Cancelled when the database is another server.
    moved: CancellationToken,
}

impl Listener {
    /// Connects. The URL has to lead to Postgres itself, or to a pooler that keeps sessions.
    pub async fn connect(store: &Store, url: &SecretString) -> Result<Self, StoreError> {
        let moved = store.availability.moved();
        let url = SecretString::from(named(url.expose_secret()));
        let connect = async {
            let mut listener = PgListener::connect(url.expose_secret()).await?;
            // A new connection has missed something, which its user has to know.
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await?;
            Ok::<_, sqlx::Error>(listener)
        };
        let connected = tokio::time::timeout(CONNECTING, connect).await;
        Ok(Self { session: connected.map_err(|_| StoreError::away())??, moved })
    }

    /// The next change; `None` if the connection was lost or leads to a server that is no longer the one, and perhaps changes with it.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            let heard = self.moved.run_until_cancelled(self.session.try_recv()).await?.ok()??;
            if let Some(change) = read(heard.payload()) {
                return Some(change);
            }
            tracing::warn!("a notification that cannot be read");
        }
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Listener")
    }
}

/// The URL of a session that says what it is for.
fn named(url: &str) -> String {
    let Ok(mut named) = Url::parse(url) else { return url.to_owned() };
    named.query_pairs_mut().append_pair("application_name", "toolhook listener");
    named.into()
}

fn read(payload: &str) -> Option<Change> {
    let (tenant, version) = payload.split_once(' ')?;
    Some(Change { tenant: tenant.parse().ok()?, version: version.parse().ok()? })
}

/// Up to where changes are known: a transaction's number, on the server that gave it. One that takes another's place may not
/// know its last numbers, and give them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    transaction: i64,
    server: OffsetDateTime,
}

/// The mark of this moment, for somebody who knows nothing older.
pub async fn mark(store: &Store) -> Result<Mark, StoreError> {
    let mark = sqlx::query_as!(
        Mark,
        r#"select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "transaction!",
             pg_postmaster_start_time() as "server!""#
    );
    let ask = async {
        let mut asking = store.system().await?;
        let mark = mark.fetch_one(&mut *asking).await?;
        asking.commit().await?;
        Ok(mark)
    };
    store.noticing(ask).await
}

/// What was committed since a mark, and the mark to ask with the next time. Some of it may have been told before. Fails if the
/// server is not the one that gave the mark.
pub async fn since(store: &Store, mark: Mark) -> Result<(Vec<Change>, Mark), StoreError> {
    let rows = sqlx::query!(
        r#"select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "mark!", pg_postmaster_start_time() as "server!",
             id as "id?", registry_version as "version?"
           from (select 1) as once left join tenants on changed_in >= $1::text::xid8"#,
        mark.transaction.to_string()
    );
    let ask = async {
        let mut asking = store.system().await?;
        let rows = rows.fetch_all(&mut *asking).await?;
        asking.commit().await?;
        Ok(rows)
    };
    let rows = store.noticing(ask).await?;
    let next = rows.first().map_or(mark, |row| Mark { transaction: row.mark, server: row.server });
    if next.server != mark.server {
        return Err(StoreError::Behind);
    }
    let change = |(tenant, version)| Change { tenant, version };
    Ok((rows.into_iter().filter_map(|row| row.id.zip(row.version)).map(change).collect(), next))
}

/// The versions that these tenants have now. One that is gone is not among them.
pub async fn versions(store: &Store, tenants: &[Uuid]) -> Result<Vec<Change>, StoreError> {
    let rows = sqlx::query!("select id, registry_version from tenants where id = any($1)", tenants);
    let ask = async {
        let mut asking = store.system().await?;
        let rows = rows.fetch_all(&mut *asking).await?;
        asking.commit().await?;
        Ok(rows)
    };
    let rows = store.noticing(ask).await?;
    Ok(rows.into_iter().map(|row| Change { tenant: row.id, version: row.registry_version }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload() {
        let change = Change { tenant: Uuid::from_u128(7), version: 42 };
        assert_eq!(read("00000000-0000-0000-0000-000000000007 42"), Some(change));
        for odd in ["", "7", "00000000-0000-0000-0000-000000000007 x", "x 42"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
