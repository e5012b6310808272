//! Getting at the database that the operator named.

use secrecy::ExposeSecret;
use url::Url;

use super::{Failure, failure::causes};
use crate::config::settings::{Database, MasterKeys};
use crate::store::{MasterKey, Store, Vault, inspection, rotation, walls};

/// What to do where answers look as if a pooler gave them.
pub(super) const POOLER: &str = "This looks like a pooler that keeps no connection longer than a transaction: set \
     TOOLHOOK_PREPARED_STATEMENTS=false, and TOOLHOOK_LISTEN_DATABASE_URL to a URL past it.";

/// Connects, or says what to check.
pub(super) async fn connect(database: &Database, vault: Vault) -> Result<Store, Failure> {
    let url = database.url.expose_secret();
    let connected = Box::pin(Store::connect_with(url, database.connections, database.statements, vault)).await;
    connected.map_err(|error| {
        let check = if error.is_from_pooler() {
            POOLER
        } else {
            "Check that Postgres runs there and can be reached from here, and that host, port, user, password and database in \
             DATABASE_URL are right."
        };
        Failure::Failed(format!("cannot use the database {}: {}. {check}", without_secrets(url), causes(&error)))
    })
}

/// Connects with the keys of the sealed columns.
pub(super) async fn connect_with(database: &Database, keys: &MasterKeys) -> Result<Store, Failure> {
    connect(database, Vault::with(&keys.current, &keys.previous)).await
}

/// Brings the schema up to date. A schema that is newer than this program is left alone, so that an old replica can still
/// start while new ones take over.
pub(super) async fn migrate(store: &Store) -> Result<bool, Failure> {
    if store.is_migrated().await? {
        return Ok(false);
    }
    let login = inspection::login(store).await?;
    if !store.keeps_sessions() {
        return Err(Failure::Failed(
            "the database's schema is older than this program, or not there yet, and migrations need a connection of their own: \
             run `toolhook migrate` with a DATABASE_URL that leads to Postgres itself, and --prepared-statements=true"
                .to_owned(),
        ));
    }
    if !login.may_create {
        return Err(Failure::Failed(format!(
            "the database's schema is older than this program, or not there yet, and {} may not change it: run `toolhook \
             migrate` with the login that owns the tables",
            login.name
        )));
    }
    store.migrate().await?;
    Ok(true)
}

/// Refuses to work on a schema that is older than this program.
pub(super) async fn require_schema(store: &Store) -> Result<(), Failure> {
    if store.is_migrated().await? {
        return Ok(());
    }
    Err(Failure::Failed(
        "the database's schema is older than this program, or not there yet: run `toolhook migrate`".to_owned(),
    ))
}

/// Refuses to work where the database would not keep tenants apart by itself.
pub(super) async fn require_walls(store: &Store) -> Result<(), Failure> {
    let breaches = walls::breaches(store).await?;
    if breaches.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = breaches.iter().map(|breach| format!("\n  - {breach}")).collect();
    Err(Failure::Failed(format!("the database does not keep tenants apart as it has to:{}", list.concat())))
}

/// Refuses to work without a master key that stored secrets are sealed with: tools with a webhook would be gone for their
/// agents, behind probes that say that all is well.
pub(super) async fn require_master_key(store: &Store) -> Result<(), Failure> {
    let uses = rotation::uses(store).await?;
    let unknown: Vec<String> =
        uses.iter().filter(|key| !key.known).map(|key| format!("{} with {}", key.values, key.key)).collect();
    if !unknown.is_empty() {
        return Err(Failure::Failed(format!(
            "this is not the master key that all of the database's stored secrets are sealed with ({}): give the one that was \
             used until now in TOOLHOOK_MASTER_KEY or, while the key is being changed, in TOOLHOOK_PREVIOUS_MASTER_KEYS",
            unknown.join(", ")
        )));
    }
    match inspection::sealed(store).await? {
        (0, closed) if closed > 0 => Err(Failure::Failed(
            "the database's stored secrets were changed or moved: none of the newest opens with the master key that is named \
             in them"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Connects for a command that reads and writes no sealed column, so that its operator needs no master key.
pub(super) async fn open(database: &Database) -> Result<Store, Failure> {
    let no_key = MasterKey::from_random([0; 32]);
    connect(database, Vault::new(&no_key)).await
}

/// The URL as it may be shown: who, where, which. Parameters can hold a password as well; of them only the socket's folder is shown.
fn without_secrets(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return "in DATABASE_URL".to_owned();
    };
    let socket = url.query_pairs().find(|(name, _)| name == "host").map(|(_, folder)| folder.into_owned());
    url.set_query(None);
    let _ = url.set_password(None); // fails only where there is no host, and so no password
    match socket {
        Some(folder) => format!("{url} (socket in {folder})"),
        None => url.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://u:hunter2@db:5432/x",
            "postgres://u@db/x?password=hunter2",
            "postgres://u:hunter2@localhost/x?host=/run/postgresql&password=hunter2",
            "hunter2",
        ] {
            let shown = without_secrets(url);
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert!(without_secrets("postgres://u@localhost/x?host=/run/pg").contains("/run/pg"));
    }
}
