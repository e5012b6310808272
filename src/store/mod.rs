//! Postgres, and the only room that says `sqlx`.
//!
//! A public function is one business fact in one transaction, and its first argument is whose fact it is: there is no
//! finder without a tenant but the operator's. Every transaction takes a role as it begins: `scoped` sees one tenant's rows,
//! `system` serves all tenants (`scope.rs`). "Not found" is `None`. Which constraint refused a write decides what the
//! conflict is, never the text of an error.

pub mod audit;
mod availability;
mod call_append;
mod callback_token;
pub mod calls;
pub mod changes;
pub mod claims;
mod error;
pub mod handlers;
pub mod inspection;
mod json;
pub mod keys;
mod page;
pub mod pending;
mod pending_notes;
pub mod registry;
pub mod retention;
pub mod rotation;
mod scope;
mod seal;
mod session;
pub mod tenants;
mod tool_row;
pub mod tool_versions;
pub mod tools;
pub mod walls;
mod writer;

pub use audit::Change;
use availability::Availability;
pub use callback_token::{CallbackToken, UntrustedToken};
pub use error::{Conflict, StoreError};
pub use json::Json;
pub use page::{Page, PageRequest};
use scope::Doors;
pub use seal::{MasterKey, Vault};
pub use session::Statements;
pub use tool_row::BrokenRow;
pub use writer::Writer;

use crate::domain::SharedSchemas;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The migrations, in the binary.
static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// How long a request waits for a connection. Short: when Postgres is away, callers are to hear it at once.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(1);

/// The records in which the pool says how long somebody waited for a connection: their target, and the field with the seconds.
pub const WAITS: (&str, &str) = ("sqlx::pool::acquire", "acquired_after_secs");
/// The database, with the keys that open its sealed columns and the schemas that its tools share. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    doors: Doors,
    vault: Arc<Vault>,
    availability: Arc<Availability>,
    schemas: SharedSchemas,
}

/// The pool at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// Those that are at work.
    pub used: usize,
    /// Those that wait for work.
    pub idle: usize,
    /// The most that there may be.
    pub most: u32,
}

impl Store {
    /// Connects. `url` is a `postgres://` URL; `connections` bounds the pool.
    pub async fn connect(url: &str, connections: u32, vault: Vault) -> Result<Self, StoreError> {
        Self::connect_with(url, connections, Statements::Prepared, vault).await
    }

    /// The same, and says how statements are sent.
    pub async fn connect_with(
        url: &str,
        connections: u32,
        statements: Statements,
        vault: Vault,
    ) -> Result<Self, StoreError> {
        let options = statements.over(PgConnectOptions::from_str(url)?.application_name("toolhook"));
        let availability = Availability::of(options.clone());
        match Doors::open(options.clone(), connections, statements, Arc::clone(&availability)).await {
            Ok(doors) => Ok(Self { doors, vault: Arc::new(vault), availability, schemas: SharedSchemas::default() }),
            Err(sqlx::Error::PoolTimedOut) => Err(Self::refusal(&options).await.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Why there is no connection: the pool tries for a while and then only says that time ran out.
    async fn refusal(options: &PgConnectOptions) -> sqlx::Error {
        match tokio::time::timeout(ACQUIRE_TIMEOUT, PgConnection::connect_with(options)).await {
            Ok(Err(error)) => error,
            Ok(Ok(_)) => sqlx::Error::PoolTimedOut,
            Err(_) => std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time").into(),
        }
    }

    /// Brings the schema up to date. Several replicas may do it at once: an advisory lock makes them take turns.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        MIGRATIONS.run(self.bare().await?.bare()).await.map_err(StoreError::Migration)
    }

    /// Whether the schema is the one that this binary was built for, or a later one.
    pub async fn is_migrated(&self) -> Result<bool, StoreError> {
        let newest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
        let mut login = self.as_login().await?;
        // A login that only takes roles may read it once the roles are there.
        let known = sqlx::query_scalar!(
            "select coalesce(has_table_privilege(to_regclass('public._sqlx_migrations'), 'select'), false)"
        );
        let known = known.fetch_one(&mut *login).await? == Some(true);
        let applied = sqlx::query_scalar!("select max(version) from _sqlx_migrations where success");
        let applied = if known { applied.fetch_one(&mut *login).await? } else { None };
        login.commit().await?;
        Ok(applied.is_some_and(|applied| applied >= newest))
    }

    /// Whether the database answers and takes writes. Asked while it is known to be away, it says so at once.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.noticing(async {
            let mut session = self.bare().await?;
            let server = session.server().await?;
            self.availability.met(&server);
            if server.takes_writes {
                return Ok(());
            }
            session.close_on_drop();
            Err(StoreError::Away)
        })
        .await
    }

    /// Whether a connection stays one from one transaction to the next, as migrations need it.
    pub fn keeps_sessions(&self) -> bool {
        self.doors.keeps_sessions()
    }

    /// The compiled schemas of the tools that were read.
    pub const fn schemas(&self) -> &SharedSchemas {
        &self.schemas
    }

    /// How the pool is used now.
    pub fn connections(&self) -> Connections {
        self.doors.connections()
    }

    /// Closes the connections, once what runs on them has ended.
    pub async fn close(&self) {
        self.doors.close().await;
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Store")
    }
}
