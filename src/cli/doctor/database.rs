//! The database: there, new enough, ours to use, with the schema and the master key that belong together.

use std::time::Instant;

use time::{Duration, OffsetDateTime};

use super::Finding;
use crate::cli::{Failure, database, failure::causes, keys::moment};
use crate::config::settings::{Database, Serve};
use crate::store::inspection::{self, Login, Schema, Server};
use crate::store::rotation::{self, KeyUse};
use crate::store::walls::{self, Breach};
use crate::store::{Statements, Store, StoreError};

/// The oldest Postgres that is tested.
const OLDEST: i32 = 140_000;
/// How far the clocks may be apart: leases are on the database's clock, signatures and expiries on ours.
const SKEW: Duration = Duration::seconds(2);
/// Receivers of webhooks refuse signatures that are five minutes off.
const WORST_SKEW: Duration = Duration::seconds(60);
/// How long before its end a key is worth a warning.
const SOON: Duration = Duration::days(14);
/// How long an answer may take that crosses no ocean.
const SLOW_MS: u128 = 50;

/// Looks at it, and answers the URLs of some webhooks.
pub(super) async fn look(settings: &Serve, findings: &mut Vec<Finding>) -> Vec<String> {
    let connections = settings.database.connections;
    let store = match connected(settings).await {
        Ok(store) => store,
        Err(failure) => {
            findings.push(Finding::fail(
                "database",
                failure.to_string(),
                "mend this first; what is in it could not be looked at",
            ));
            return Vec::new();
        }
    };
    let looked = within(&store, settings, connections, findings).await;
    let webhooks = looked.unwrap_or_else(|error| {
        let todo = if error.is_from_pooler() { database::POOLER } else { "look into the database's own log" };
        findings.push(Finding::fail("database", causes(&error), todo));
        Vec::new()
    });
    store.close().await;
    webhooks
}

async fn connected(settings: &Serve) -> Result<Store, Failure> {
    let keys = &settings.master_keys;
    let Database { url, statements, .. } = &settings.database;
    let database = Database { url: url.clone(), connections: 2, statements: *statements };
    database::connect_with(&database, keys).await
}

async fn within(
    store: &Store,
    settings: &Serve,
    connections: u32,
    findings: &mut Vec<Finding>,
) -> Result<Vec<String>, StoreError> {
    let (before, began) = (OffsetDateTime::now_utc(), Instant::now());
    let server = inspection::server(store).await?;
    let took = began.elapsed();
    findings.push(version(&server, took.as_millis()));
    findings.push(pool(&server, connections));
    findings.extend(pooler(settings));
    findings.push(clocks(server.now - (before + took / 2)));
    let (login, schema) = (inspection::login(store).await?, inspection::schema(store).await?);
    let behind = matches!(schema, Schema::Behind(_));
    findings.push(role(&login, settings.migrate && behind));
    findings.push(migrations(schema, settings.migrate));
    if behind {
        return Ok(Vec::new()); // the tables that follow may not be there
    }
    let breaches = walls::breaches(store).await?;
    findings.extend(tenant_walls(&breaches));
    if breaches.iter().any(|breach| matches!(breach, Breach::NoRole(_) | Breach::NotTaken(_))) {
        return Ok(Vec::new()); // and nothing can be read
    }
    findings.push(master_key(inspection::sealed(store).await?, &rotation::uses(store).await?));
    findings.push(keys(store).await?);
    inspection::webhooks(store).await
}

fn version(server: &Server, ms: u128) -> Finding {
    const ABOUT: &str = "database";
    let Server { version_number, version, standby, .. } = server;
    if *standby {
        let found = format!("Postgres {version} is a standby, which takes no writes");
        return Finding::fail(ABOUT, found, "name the primary in DATABASE_URL");
    }
    let found = format!("Postgres {version} answers in {ms} ms");
    if *version_number < OLDEST {
        return Finding::fail(ABOUT, found, "use Postgres 14 or newer");
    }
    if ms > SLOW_MS {
        return Finding::warn(ABOUT, found, "put the service nearer to it: every call waits for it twice");
    }
    Finding::ok(ABOUT, found)
}

fn pool(server: &Server, connections: u32) -> Finding {
    const ABOUT: &str = "connections";
    let most = u32::try_from(server.most_connections).unwrap_or_default();
    let found = format!("a replica takes at most {connections} of the server's {most}");
    if connections >= most {
        let todo = "lower TOOLHOOK_DATABASE_CONNECTIONS, or raise max_connections: replicas, and you, need some too";
        return Finding::fail(ABOUT, found, todo);
    }
    if connections > most / 2 {
        return Finding::warn(ABOUT, found, "a second replica does not fit; lower TOOLHOOK_DATABASE_CONNECTIONS");
    }
    Finding::ok(ABOUT, found)
}

fn pooler(settings: &Serve) -> Option<Finding> {
    const ABOUT: &str = "pooler";
    let listens = settings.listen_url.is_some();
    let found = "statements are sent without a name, for a pooler in front of Postgres";
    match settings.database.statements {
        Statements::Prepared => None,
        Statements::Unnamed if listens => Some(Finding::ok(ABOUT, found)),
        Statements::Unnamed => {
            let found = format!("{found}; replicas see each other's changes after a second");
            Some(Finding::warn(
                ABOUT,
                found,
                "set TOOLHOOK_LISTEN_DATABASE_URL to a URL past it, to have them seen at once",
            ))
        }
    }
}

fn clocks(ahead: Duration) -> Finding {
    const ABOUT: &str = "clocks";
    let (apart, todo) = (ahead.abs(), "set both clocks by NTP; webhooks refuse signatures of another time");
    let found = format!("{:.1} s between this machine and the database", apart.as_seconds_f64());
    if apart > WORST_SKEW {
        return Finding::fail(ABOUT, found, todo);
    }
    if apart > SKEW { Finding::warn(ABOUT, found, todo) } else { Finding::ok(ABOUT, found) }
}

fn role(login: &Login, migrates: bool) -> Finding {
    const ABOUT: &str = "role";
    const PLAIN: &str =
        "serve with a login that owns nothing and only takes toolhook_app and toolhook_system (docs/security.md)";
    let name = &login.name;
    if migrates && !login.may_create {
        let found = format!("{name} may not make tables, and `serve` brings the schema up to date");
        return Finding::fail(ABOUT, found, "run `toolhook migrate` with the login that owns the tables");
    }
    if login.unbounded {
        let found =
            format!("{name} is a superuser, or passes row-level security: only the service's own care keeps it inside");
        return Finding::warn(ABOUT, found, PLAIN);
    }
    if login.owner {
        let found = format!("{name} owns the tables, and can open them: only the service's own care keeps it inside");
        return Finding::warn(ABOUT, found, PLAIN);
    }
    if !login.open_tables.is_empty() {
        let found = format!("{name} may read {} without taking a role", login.open_tables.join(", "));
        return Finding::warn(
            ABOUT,
            found,
            format!("run `alter role {name} noinherit`, and revoke what was granted to it"),
        );
    }
    Finding::ok(ABOUT, format!("{name} sees nothing by itself"))
}

/// What is wrong with the walls, each by itself.
fn tenant_walls(breaches: &[Breach]) -> Vec<Finding> {
    const ABOUT: &str = "tenants";
    if breaches.is_empty() {
        return vec![Finding::ok(ABOUT, "row-level security keeps them apart")];
    }
    let told = |breach: &Breach| {
        let text = breach.to_string();
        let (found, todo) = text.split_once(": ").unwrap_or((&text, "see docs/security.md"));
        Finding::fail(ABOUT, found, todo)
    };
    breaches.iter().map(told).collect()
}

fn migrations(schema: Schema, migrates: bool) -> Finding {
    const ABOUT: &str = "schema";
    match schema {
        Schema::UpToDate => Finding::ok(ABOUT, "up to date"),
        Schema::Ahead => Finding::warn(ABOUT, "newer than this program", "bring the program up to date as well"),
        Schema::Behind(count) => {
            let found = format!("{count} migrations are to be made");
            let todo = "run `toolhook migrate`";
            if migrates {
                Finding::warn(
                    ABOUT,
                    found,
                    format!("{todo}, or let `serve` do it; then look again, for secrets and keys"),
                )
            } else {
                Finding::fail(ABOUT, found, todo)
            }
        }
    }
}

fn master_key((opened, closed): (usize, usize), uses: &[KeyUse]) -> Finding {
    const ABOUT: &str = "master key";
    let count = |which: fn(&KeyUse) -> bool| uses.iter().filter(|key| which(key)).map(|key| key.values).sum::<i64>();
    let (all, unknown, previous) = (count(|_| true), count(|key| !key.known), count(|key| key.known && !key.current));
    if unknown > 0 {
        return Finding::fail(
            ABOUT,
            format!("does not open {unknown} of {all} stored secrets: they are sealed with {}", names(uses)),
            "set TOOLHOOK_MASTER_KEY to the key that sealed them, or name it in TOOLHOOK_PREVIOUS_MASTER_KEYS: without it, their \
             webhooks cannot be called",
        );
    }
    if closed > 0 {
        let found = format!("{closed} of the newest {} stored secrets were changed or moved", opened + closed);
        return Finding::fail(ABOUT, found, "restore them, or let their tenants set them again");
    }
    if previous > 0 {
        let found = format!("opens all {all} stored secrets, {previous} of them with a previous key");
        return Finding::warn(ABOUT, found, "run `toolhook rotate-master-key` once every replica has the new key");
    }
    match opened {
        0 => Finding::ok(ABOUT, "nothing is sealed yet that it could open"),
        _ => Finding::ok(ABOUT, format!("opens the newest stored secrets ({opened} of {opened})")),
    }
}

fn names(uses: &[KeyUse]) -> String {
    let unknown = uses.iter().filter(|key| !key.known).map(|key| key.key.as_str());
    unknown.collect::<Vec<_>>().join(", ")
}

async fn keys(store: &Store) -> Result<Finding, StoreError> {
    const ABOUT: &str = "keys";
    if !inspection::has_operator(store).await? {
        let todo =
            "make one with `toolhook keys create --role operator`, unless tenants are only made on the command line";
        return Ok(Finding::warn(ABOUT, "no operator has a key", todo));
    }
    let ending = inspection::expiring(store, OffsetDateTime::now_utc() + SOON).await?;
    if ending.is_empty() {
        return Ok(Finding::ok(ABOUT, "none ends within 14 days"));
    }
    let one = |key: &inspection::Expiring| {
        let whose = key.tenant.as_deref().unwrap_or("an operator");
        format!("{} of {whose} at {}", key.id, moment(key.expires_at))
    };
    let list: Vec<String> = ending.iter().map(one).collect();
    Ok(Finding::warn(
        ABOUT,
        format!("these end soon, or have just ended: {}", list.join(", ")),
        "make new ones in time",
    ))
}
