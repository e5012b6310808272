//! The command line: one documented struct per command. The only reader of the environment.
//!
//! Every setting is a flag and a variable, except for secrets: a command line can be read by everybody on the machine, so a
//! secret comes from its variable, or from a file that is named by the variable's `_FILE` twin or by a flag. An empty
//! variable counts as one that is not set. What the texts mean is [`settings`](crate::settings)' matter.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::cli::postgres::{Search, default_data_dir};
use crate::cli::{keys, tenants};
use crate::egress::Policy;
use crate::settings::{self, Handed, Problems, database_url, number};
use crate::store::MasterKey;

const LISTEN: &str = "127.0.0.1:8080";
const CONNECTIONS: &str = "20";
const CACHED_TENANTS: &str = "10000";
/// Shorter than the 30 s that orchestrators give before they kill.
const GRACE_MS: &str = "25000";
const EGRESS_PORTS: &str = "443,8443";
const PLAIN_HTTP: &str = "false";
const MIGRATE: &str = "true";
const LOG_FORMAT: &str = "text";

const MISSING_DATABASE: &str = "the URL of the Postgres to use, postgres://user:password@host:5432/database";
const MISSING_MASTER_KEY: &str =
    "32 random bytes in base 64, made once and kept, such as by `head -c 32 /dev/urandom | base64`";

const SECRETS: &str = "\
Secrets are read from the environment, or from files, and never from the command line:
  DATABASE_URL         postgres://user:password@host:5432/database
  TOOLHOOK_MASTER_KEY  32 bytes in base 64 (make one: head -c 32 /dev/urandom | base64)";
const DATABASE_SECRET: &str = "\
The database's URL is read from the environment (DATABASE_URL, postgres://user:password@host:5432/database)
or from a file, and never from the command line.";
const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 bad usage or configuration.";
const DEV: &str = "\
With DATABASE_URL set, that database is used and none is started. Otherwise a private Postgres runs from the
binaries on this machine (PG_BINDIR names their folder, else PATH and the usual places are searched).

DIR/credentials.json holds {\"base_url\", \"operator_key\", \"demo_key\"} of the process that started last.
A second `toolhook dev` on the same DIR (with another --listen) uses the Postgres of the first, and takes it
over when the first ends.";

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
    /// Bring the database's schema up to date
    Migrate(Migrate),
    /// Make, list and revoke API keys
    Keys(Keys),
    /// Make, list and remove tenants
    Tenants(Tenants),
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

/// `toolhook serve`.
#[derive(Debug, Args)]
#[command(after_help = SECRETS)]
pub struct Serve {
    #[command(flatten)]
    database: Database,
    /// A file that holds the master key, instead of `TOOLHOOK_MASTER_KEY`: what seals header values and signing secrets
    #[arg(long, env = "TOOLHOOK_MASTER_KEY_FILE", value_name = "FILE", help_heading = "Secrets")]
    master_key_file: Option<String>,
    /// Address ranges (CIDRs, separated by commas) that webhooks may be in although they are not public
    #[arg(long, env = "TOOLHOOK_EGRESS_ALLOW", value_name = "CIDRS", default_value = "", hide_default_value = true)]
    egress_allow: String,
    /// The ports that a webhook's URL may name, separated by commas, or `any`
    #[arg(long, env = "TOOLHOOK_EGRESS_PORTS", value_name = "PORTS", default_value = EGRESS_PORTS)]
    egress_ports: String,
    /// Whether a webhook's URL may be http: instead of https: (true, false)
    #[arg(long, env = "TOOLHOOK_EGRESS_PLAIN_HTTP", value_name = "BOOL", default_value = PLAIN_HTTP)]
    egress_plain_http: String,
    /// Whether to bring the schema up to date before serving (true, false)
    #[arg(long, env = "TOOLHOOK_MIGRATE", value_name = "BOOL", default_value = MIGRATE)]
    migrate: String,
    /// The same as --migrate=false
    #[arg(long)]
    no_migrate: bool,
    #[command(flatten)]
    serving: Serving,
}

/// `toolhook dev`.
#[derive(Debug, Args)]
#[command(after_help = DEV)]
pub struct Dev {
    /// Where to keep the data: /var/lib/toolhook for root, else ~/.local/share/toolhook (`XDG_DATA_HOME` is heeded)
    #[arg(long, env = "TOOLHOOK_DATA_DIR", value_name = "DIR")]
    data_dir: Option<String>,
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    serving: Serving,
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
}

#[derive(Debug, Args)]
struct Serving {
    /// Host and port to listen on; port 0 takes a free one
    #[arg(long, env = "TOOLHOOK_LISTEN", value_name = "HOST:PORT", default_value = LISTEN)]
    listen: String,
    /// The most tenants whose tools are kept in memory
    #[arg(long, env = "TOOLHOOK_CACHED_TENANTS", value_name = "N", default_value = CACHED_TENANTS)]
    cached_tenants: String,
    /// How long running calls may take after SIGTERM or Ctrl-C, in milliseconds; a second signal ends at once
    #[arg(long, env = "TOOLHOOK_SHUTDOWN_GRACE_MS", value_name = "MS", default_value = GRACE_MS)]
    shutdown_grace_ms: String,
}

/// `toolhook migrate`.
#[derive(Debug, Args)]
#[command(after_help = DATABASE_SECRET)]
pub struct Migrate {
    #[command(flatten)]
    place: Place,
}

/// `toolhook keys`.
#[derive(Debug, Args)]
#[command(after_help = DATABASE_SECRET)]
pub struct Keys {
    /// What to do with keys.
    #[command(subcommand)]
    pub action: keys::Action,
    #[command(flatten)]
    place: Place,
}

/// `toolhook tenants`.
#[derive(Debug, Args)]
#[command(after_help = DATABASE_SECRET)]
pub struct Tenants {
    /// What to do with tenants.
    #[command(subcommand)]
    pub action: tenants::Action,
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

impl Serve {
    /// Checks it.
    pub fn check(self, problems: &mut Problems) -> Option<settings::Serve> {
        let url = problems.secret(self.database.place.handed(), MISSING_DATABASE, database_url);
        let connections = self.database.connections(problems);
        let master_key =
            Handed { name: "TOOLHOOK_MASTER_KEY", value: variable("TOOLHOOK_MASTER_KEY"), file: self.master_key_file };
        let master_key = problems.secret(master_key, MISSING_MASTER_KEY, |text| {
            MasterKey::parse(text).map_err(|problem| format!("{problem}: {MISSING_MASTER_KEY}"))
        });
        let allow = problems.read("TOOLHOOK_EGRESS_ALLOW", &self.egress_allow, settings::ranges);
        let ports = problems.read("TOOLHOOK_EGRESS_PORTS", given(&self.egress_ports, EGRESS_PORTS), settings::ports);
        let plain_http = given(&self.egress_plain_http, PLAIN_HTTP);
        let plain_http = problems.read("TOOLHOOK_EGRESS_PLAIN_HTTP", plain_http, settings::switch);
        let migrate = problems.read("TOOLHOOK_MIGRATE", given(&self.migrate, MIGRATE), settings::switch);
        let serving = self.serving.check(problems);
        Some(settings::Serve {
            database: settings::Database { url: url?, connections: connections? },
            master_key: master_key?,
            egress: Policy { allow: allow?, plain_http: plain_http?, ports: ports? },
            migrate: migrate? && !self.no_migrate,
            serving: serving?,
        })
    }
}

impl Dev {
    /// Checks it.
    pub fn check(self, problems: &mut Problems) -> Option<settings::Dev> {
        let url = problems.optional_secret(self.database.place.handed(), database_url);
        let connections = self.database.connections(problems);
        let serving = self.serving.check(problems);
        let data_home = variable("XDG_DATA_HOME").map(PathBuf::from);
        let home = variable("HOME").map(PathBuf::from);
        let default = || default_data_dir(data_home.as_deref(), home.as_deref());
        Some(settings::Dev {
            database_url: url?,
            connections: connections?,
            data_dir: self.data_dir.filter(|dir| !dir.is_empty()).map_or_else(default, PathBuf::from),
            search: Search {
                bindir: variable("PG_BINDIR").filter(|dir| !dir.is_empty()).map(PathBuf::from),
                path: std::env::split_paths(&variable("PATH").unwrap_or_default()).collect(),
            },
            serving: serving?,
        })
    }
}

impl Serving {
    fn check(&self, problems: &mut Problems) -> Option<settings::Serving> {
        const LONGEST_GRACE_MS: u64 = 3_600_000;
        let listen = problems.read("TOOLHOOK_LISTEN", given(&self.listen, LISTEN), settings::listen);
        let cached_tenants = given(&self.cached_tenants, CACHED_TENANTS);
        let cached_tenants = problems.read("TOOLHOOK_CACHED_TENANTS", cached_tenants, number(1, 10_000_000));
        let grace = given(&self.shutdown_grace_ms, GRACE_MS);
        let grace = problems.read("TOOLHOOK_SHUTDOWN_GRACE_MS", grace, number(0, LONGEST_GRACE_MS));
        Some(settings::Serving {
            listen: listen?,
            cached_tenants: cached_tenants?,
            grace: Duration::from_millis(grace?),
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
        let url = problems.secret(self.handed(), MISSING_DATABASE, database_url)?;
        Some(settings::Database { url, connections: 1 })
    }
}

impl Migrate {
    /// Checks it.
    pub fn check(&self, problems: &mut Problems) -> Option<settings::Database> {
        self.place.check(problems)
    }
}

impl Keys {
    /// Checks it.
    pub fn check(&self, problems: &mut Problems) -> Option<settings::Database> {
        self.action.check(problems);
        self.place.check(problems)
    }
}

impl Tenants {
    /// Checks it.
    pub fn check(&self, problems: &mut Problems) -> Option<settings::Database> {
        self.place.check(problems)
    }
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
        assert!(problems.finish(Some(())).is_ok());
    }
}
