//! The command line: one documented struct per command. The only reader of the environment.
//!
//! Every setting is a flag and a variable, except for secrets: a command line can be read by everybody on the machine, so a
//! secret comes from its variable, or from a file that is named by the variable's `_FILE` twin or by a flag. An empty
//! variable counts as one that is not set. What comes out is [`settings`], or
//! all [`Problems`] at once.

pub mod audit;
mod dev;
pub mod keys;
mod limits;
mod listener;
mod master_keys;
mod problems;
mod rotate;
mod serve;
pub mod settings;
mod telemetry;
pub mod tenants;

use std::{ffi::OsString, time::Duration};

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

pub use audit::Audit;
pub use dev::Dev;
pub use keys::Keys;
pub use problems::Problems;
pub use rotate::Rotate;
pub use serve::Serve;
pub use tenants::Tenants;

use crate::execution::{CallLog, CrashPoint};
use crate::store::Statements;
use problems::{Handed, database_url, number, switch};

const LISTEN: &str = "127.0.0.1:8080";
const CONNECTIONS: &str = "20";
const PREPARED_STATEMENTS: &str = "true";
const CACHED_TENANTS: &str = "10000";
const CALL_LOG: &str = "durable";
const LEASE_GRACE_MS: &str = "10000";
/// Shorter than the 30 s that orchestrators give before they kill.
const GRACE_MS: &str = "25000";
const DELAY_MS: &str = "0";
const STALE_LISTS_MS: &str = "900000";
const LOG_FORMAT: &str = "text";

const MISSING_DATABASE: &str = "the URL of the Postgres to use, postgres://user:password@host:5432/database";

const DATABASE_SECRET: &str = "\
The database's URL is read from the environment (DATABASE_URL, postgres://user:password@host:5432/database)
or from a file, and never from the command line.";
const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 bad usage or configuration.";

/// Gives a product's tenants tools for their AI agents: tools as data, run by webhooks, for every model provider.
#[derive(Debug, Parser)]
#[command(name = "toolhook", version, after_help = EXIT_CODES)]
pub struct Toolhook {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How to log.
    #[command(flatten)]
    pub logging: Logging,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service in production
    Serve(Box<Serve>),
    /// Run the service on this machine to try it: embedded Postgres, a demo tenant, webhooks on loopback
    Dev(Box<Dev>),
    /// Check a deployment with the settings of `serve`, and say what to do; changes nothing
    Doctor(Box<Serve>),
    /// Bring the database's schema up to date
    Migrate(Migrate),
    /// Seal every stored secret with the current master key
    RotateMasterKey(Rotate),
    /// Make, list and revoke API keys
    Keys(Keys),
    /// Make, list and remove tenants
    Tenants(Tenants),
    /// Check the audit trail
    Audit(Audit),
}

/// How to log.
#[derive(Debug, Args)]
pub struct Logging {
    /// Which records to log, as `level` or `target=level`, separated by commas; the default is `info`
    /// for the servers, `warn` for the other commands
    #[arg(long = "log", global = true, env = "TOOLHOOK_LOG", value_name = "FILTER", help_heading = "Logging")]
    filter: Option<String>,
    /// How to write them, on standard error: text, or json (one object a line)
    #[arg(long = "log-format", global = true, env = "TOOLHOOK_LOG_FORMAT", value_name = "text|json")]
    #[arg(default_value = LOG_FORMAT, help_heading = "Logging")]
    format: String,
}

#[derive(Debug, Args)]
struct Database {
    #[command(flatten)]
    place: Place,
    /// The most connections to the database
    #[arg(long, env = "TOOLHOOK_DATABASE_CONNECTIONS", value_name = "N", default_value = CONNECTIONS)]
    database_connections: String,
}

#[derive(Debug, Args)]
struct Place {
    /// A file that holds the database's URL, instead of `DATABASE_URL`
    #[arg(long, global = true, env = "DATABASE_URL_FILE", value_name = "FILE", help_heading = "Secrets")]
    database_url_file: Option<String>,
    /// Whether statements are prepared once for each connection; `false` behind a pooler that keeps no connection longer than a
    /// transaction, such as PgBouncer in transaction mode (true, false)
    #[arg(long, global = true, env = "TOOLHOOK_PREPARED_STATEMENTS", value_name = "BOOL", default_value = PREPARED_STATEMENTS)]
    prepared_statements: String,
}

#[derive(Debug, Args)]
struct Serving {
    /// Host and port to listen on; port 0 takes a free one
    #[arg(long, env = "TOOLHOOK_LISTEN", value_name = "HOST:PORT", default_value = LISTEN)]
    listen: String,
    /// The most tenants whose tools are kept in memory
    #[arg(long, env = "TOOLHOOK_CACHED_TENANTS", value_name = "N", default_value = CACHED_TENANTS)]
    cached_tenants: String,
    /// When a call's record has to be in the database: before the answer (durable), or soon after (relaxed)
    #[arg(long, env = "TOOLHOOK_CALL_LOG", value_name = "durable|relaxed", default_value = CALL_LOG)]
    call_log: String,
    /// How long after its last moment a request with an Idempotency-Key is given up if its process died, in milliseconds
    #[arg(long, env = "TOOLHOOK_LEASE_GRACE_MS", value_name = "MS", default_value = LEASE_GRACE_MS)]
    lease_grace_ms: String,
    /// How long running calls may take after SIGTERM or Ctrl-C, in milliseconds; a second signal ends at once
    #[arg(long, env = "TOOLHOOK_SHUTDOWN_GRACE_MS", value_name = "MS", default_value = GRACE_MS)]
    shutdown_grace_ms: String,
    /// How long to go on serving after the signal, with /readyz saying no, in milliseconds: what a load balancer takes to notice
    #[arg(long, env = "TOOLHOOK_SHUTDOWN_DELAY_MS", value_name = "MS", default_value = DELAY_MS)]
    shutdown_delay_ms: String,
    /// How long tool lists are served from memory while the database is away, in milliseconds
    #[arg(long, env = "TOOLHOOK_STALE_LISTS_MS", value_name = "MS", default_value = STALE_LISTS_MS)]
    stale_lists_ms: String,
    /// Where webhooks reach this service, such as <https://tools.example.com>: asynchronous handlers report to URLs below it, and
    /// without it there are none; `dev` takes its own address
    #[arg(long, env = "TOOLHOOK_PUBLIC_URL", value_name = "URL", default_value = "", hide_default_value = true)]
    public_url: String,
    #[command(flatten)]
    limits: limits::Limits,
    #[command(flatten)]
    listener: listener::Listener,
    #[command(flatten)]
    telemetry: telemetry::Telemetry,
}

/// `toolhook migrate`.
#[derive(Debug, Args)]
#[command(after_help = DATABASE_SECRET)]
pub struct Migrate {
    #[command(flatten)]
    place: Place,
}

impl Logging {
    /// Checks it; where no filter was given, `default` is the filter.
    pub fn check(&self, default: &str, problems: &mut Problems) -> Option<settings::Logging> {
        let filter = given(self.filter.as_deref().unwrap_or_default(), default);
        let filter = problems.read("TOOLHOOK_LOG", filter, |text| {
            EnvFilter::try_new(text).map_err(|error| format!("is `{text}`: {error}"))
        });
        let json = problems.read("TOOLHOOK_LOG_FORMAT", given(&self.format, LOG_FORMAT), |text| match text {
            "text" => Ok(false),
            "json" => Ok(true),
            _ => Err(format!("is `{text}`: expected text or json")),
        });
        Some(settings::Logging { filter: filter?, json: json? })
    }
}

impl Serving {
    fn check(&self, problems: &mut Problems) -> Option<settings::Serving> {
        const LONGEST_MS: u64 = 3_600_000;
        const DAY_MS: u64 = 86_400_000;
        let listen = problems.read("TOOLHOOK_LISTEN", given(&self.listen, LISTEN), problems::listen);
        let cached_tenants = given(&self.cached_tenants, CACHED_TENANTS);
        let cached_tenants = problems.read("TOOLHOOK_CACHED_TENANTS", cached_tenants, number(1, 10_000_000));
        let call_log = problems.read("TOOLHOOK_CALL_LOG", given(&self.call_log, CALL_LOG), |text| match text {
            "durable" => Ok(CallLog::Durable),
            "relaxed" => Ok(CallLog::Relaxed),
            _ => Err(format!("is `{text}`: expected durable or relaxed")),
        });
        let lease_grace = given(&self.lease_grace_ms, LEASE_GRACE_MS);
        let lease_grace = problems.read("TOOLHOOK_LEASE_GRACE_MS", lease_grace, number(100, 600_000));
        let grace = given(&self.shutdown_grace_ms, GRACE_MS);
        let grace = problems.read("TOOLHOOK_SHUTDOWN_GRACE_MS", grace, number(0, LONGEST_MS));
        let delay = given(&self.shutdown_delay_ms, DELAY_MS);
        let delay = problems.read("TOOLHOOK_SHUTDOWN_DELAY_MS", delay, number(0, LONGEST_MS));
        let stale_lists = given(&self.stale_lists_ms, STALE_LISTS_MS);
        let stale_lists = problems.read("TOOLHOOK_STALE_LISTS_MS", stale_lists, number(0, DAY_MS));
        let limiting = self.limits.check(problems);
        let public_url = match self.public_url.trim() {
            "" => Some(None),
            url => problems.read("TOOLHOOK_PUBLIC_URL", url, problems::public_url).map(Some),
        };
        let listener = self.listener.check(problems);
        let telemetry = self.telemetry.check(problems);
        Some(settings::Serving {
            listen: listen?,
            cached_tenants: cached_tenants?,
            call_log: call_log?,
            lease_grace: Duration::from_millis(lease_grace?),
            crash_at: crash_at(problems),
            grace: Duration::from_millis(grace?),
            delay: Duration::from_millis(delay?),
            stale_lists: Duration::from_millis(stale_lists?),
            limiting: limiting?,
            public_url: public_url?,
            listener: listener?,
            telemetry: telemetry?,
        })
    }
}

impl Database {
    fn connections(&self, problems: &mut Problems) -> Option<u32> {
        let connections = given(&self.database_connections, CONNECTIONS);
        problems.read("TOOLHOOK_DATABASE_CONNECTIONS", connections, number(2, 10_000))
    }
}

impl Place {
    fn handed(&self) -> Handed {
        Handed { name: "DATABASE_URL", value: variable("DATABASE_URL"), file: self.database_url_file.clone() }
    }

    /// Checks it, for a command that does one thing.
    fn check(&self, problems: &mut Problems) -> Option<settings::Database> {
        let url = problems.secret(self.handed(), MISSING_DATABASE, database_url);
        let statements = self.statements(problems);
        Some(settings::Database { url: url?, connections: 1, statements: statements? })
    }

    fn statements(&self, problems: &mut Problems) -> Option<Statements> {
        let prepared = given(&self.prepared_statements, PREPARED_STATEMENTS);
        let prepared = problems.read("TOOLHOOK_PREPARED_STATEMENTS", prepared, switch)?;
        Some(if prepared { Statements::Prepared } else { Statements::Unnamed })
    }
}

impl Migrate {
    /// Checks it.
    pub fn check(&self, problems: &mut Problems) -> Option<settings::Database> {
        self.place.check(problems)
    }
}

/// Where to die, for tests of what a crash leaves behind; no build for production looks for it.
fn crash_at(problems: &mut Problems) -> Option<CrashPoint> {
    let asked = variable("TOOLHOOK_CRASH_AT").filter(|_| cfg!(debug_assertions))?;
    problems.read("TOOLHOOK_CRASH_AT", &asked.to_string_lossy(), |text| {
        let point = CrashPoint::ALL.into_iter().find(|point| point.as_str() == text);
        point.ok_or_else(|| format!("is `{text}`, which is no such point"))
    })
}

/// The text, or the default where an empty variable hides it.
fn given<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.trim().is_empty() { default } else { text }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Toolhook::command().debug_assert();
    }

    #[test]
    fn every_default_is_one_that_checks() {
        let Ok(Toolhook { command: Command::Dev(dev), logging }) = Toolhook::try_parse_from(["toolhook", "dev"]) else {
            panic!("`toolhook dev` does not parse");
        };
        let mut problems = Problems::default();
        assert!(logging.check("info", &mut problems).is_some());
        assert!(dev.serving.check(&mut problems).is_some());
        assert!(dev.database.connections(&mut problems).is_some());
        assert!(dev.database.place.statements(&mut problems).is_some());
        assert!(problems.finish(Some(())).is_ok());
    }
}
