//! The database: there, new enough, ours to use, with the schema and the master key that belong together.

use std::time::Instant;

use time::{Duration, OffsetDateTime};

use super::Finding;
use crate::cli::{database, failure::causes, keys::moment};
use crate::config::settings::Serve;
use crate::store::inspection::{self, Role, Schema, Server};
use crate::store::{Store, StoreError};

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
    let store = match database::connect(&settings.database.url, 2, &settings.master_key).await {
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
        findings.push(Finding::fail("database", causes(&error), "look into the database's own log"));
        Vec::new()
    });
    store.close().await;
    webhooks
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
    findings.push(clocks(server.now - (before + took / 2)));
    findings.push(role(&inspection::role(store).await?, settings.migrate));
    let schema = inspection::schema(store).await?;
    findings.push(migrations(schema, settings.migrate));
    if matches!(schema, Schema::Behind(_)) {
        return Ok(Vec::new()); // the tables that follow may not be there
    }
    findings.push(master_key(inspection::sealed(store).await?));
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

fn clocks(ahead: Duration) -> Finding {
    const ABOUT: &str = "clocks";
    let (apart, todo) = (ahead.abs(), "set both clocks by NTP; webhooks refuse signatures of another time");
    let found = format!("{:.1} s between this machine and the database", apart.as_seconds_f64());
    if apart > WORST_SKEW {
        return Finding::fail(ABOUT, found, todo);
    }
    if apart > SKEW { Finding::warn(ABOUT, found, todo) } else { Finding::ok(ABOUT, found) }
}

fn role(role: &Role, migrates: bool) -> Finding {
    const ABOUT: &str = "role";
    let name = &role.name;
    if !role.closed_tables.is_empty() {
        let found = format!("{name} may not read and write {}", role.closed_tables.join(", "));
        return Finding::fail(
            ABOUT,
            found,
            format!("grant it to {name}, or let the role that owns the tables run `toolhook migrate`"),
        );
    }
    if migrates && !role.may_create {
        let found = format!("{name} may not make tables, and `serve` brings the schema up to date");
        return Finding::fail(ABOUT, found, "migrate with a role that may, and serve with TOOLHOOK_MIGRATE=false");
    }
    if role.unbounded {
        let found = format!("{name} is a superuser, or passes row-level security");
        return Finding::warn(ABOUT, found, "make a role for the service that has its tables and nothing else");
    }
    Finding::ok(ABOUT, format!("{name} has what it needs, and no more"))
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

fn master_key((opened, closed): (usize, usize)) -> Finding {
    const ABOUT: &str = "master key";
    match (opened, closed) {
        (0, 0) => Finding::ok(ABOUT, "nothing is sealed yet that it could open"),
        (_, 0) => Finding::ok(ABOUT, format!("opens the newest stored secrets ({opened} of {opened})")),
        _ => Finding::fail(
            ABOUT,
            format!("does not open {closed} of {} stored secrets", opened + closed),
            "set TOOLHOOK_MASTER_KEY to the key that sealed them: without it, their webhooks cannot be called",
        ),
    }
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
