//! `toolhook serve`.

use clap::Args;

use super::master_keys::MasterKeys;
use super::problems::{Handed, Problems, database_url, ports, ranges, roots, switch};
use super::{Database, MISSING_DATABASE, Serving, given, settings, variable};
use crate::egress::{Policy, Roots};

const EGRESS_PORTS: &str = "443,8443";
const PLAIN_HTTP: &str = "false";
const MIGRATE: &str = "true";
const SECRETS: &str = "\
Secrets are read from the environment, or from files, and never from the command line:
  DATABASE_URL         postgres://user:password@host:5432/database
  TOOLHOOK_LISTEN_DATABASE_URL
                       the same database past a pooler, for the listener that hears of changes on other replicas
                       (default: DATABASE_URL; with --prepared-statements=false none: changes are asked for each second)
  TOOLHOOK_MASTER_KEY  32 bytes in base 64 (make one: head -c 32 /dev/urandom | base64)
  TOOLHOOK_PREVIOUS_MASTER_KEYS  more of them, separated by commas, while the master key is being changed";

/// `toolhook serve`.
#[derive(Debug, Args)]
#[command(after_help = SECRETS)]
pub struct Serve {
    #[command(flatten)]
    database: Database,
    /// A file that holds the listener's URL, instead of `TOOLHOOK_LISTEN_DATABASE_URL`
    #[arg(long, env = "TOOLHOOK_LISTEN_DATABASE_URL_FILE", value_name = "FILE", help_heading = "Secrets")]
    listen_database_url_file: Option<String>,
    #[command(flatten)]
    master_keys: MasterKeys,
    /// Address ranges (CIDRs, separated by commas) that webhooks may be in although they are not public
    #[arg(long, env = "TOOLHOOK_EGRESS_ALLOW", value_name = "CIDRS", default_value = "", hide_default_value = true)]
    egress_allow: String,
    /// The ports that a webhook's URL may name, separated by commas, or `any`
    #[arg(long, env = "TOOLHOOK_EGRESS_PORTS", value_name = "PORTS", default_value = EGRESS_PORTS)]
    egress_ports: String,
    /// Whether a webhook's URL may be http: instead of https: (true, false)
    #[arg(long, env = "TOOLHOOK_EGRESS_PLAIN_HTTP", value_name = "BOOL", default_value = PLAIN_HTTP)]
    egress_plain_http: String,
    /// A file with certificates (PEM) of authorities that webhooks' servers may have theirs from, beside the system's
    #[arg(long, env = "TOOLHOOK_EGRESS_CA_FILE", value_name = "FILE", default_value = "", hide_default_value = true)]
    egress_ca_file: String,
    /// Whether to bring the schema up to date before serving (true, false)
    #[arg(long, env = "TOOLHOOK_MIGRATE", value_name = "BOOL", default_value = MIGRATE)]
    migrate: String,
    /// The same as --migrate=false
    #[arg(long)]
    no_migrate: bool,
    #[command(flatten)]
    serving: Serving,
}

impl Serve {
    /// Checks it.
    pub fn check(self, problems: &mut Problems) -> Option<settings::Serve> {
        let url = problems.secret(self.database.place.handed(), MISSING_DATABASE, database_url);
        let connections = self.database.connections(problems);
        let statements = self.database.place.statements(problems);
        let listen = Handed {
            name: "TOOLHOOK_LISTEN_DATABASE_URL",
            value: variable("TOOLHOOK_LISTEN_DATABASE_URL"),
            file: self.listen_database_url_file,
        };
        let listen = problems.optional_secret(listen, database_url);
        let master_keys = self.master_keys.check(problems);
        let allow = problems.read("TOOLHOOK_EGRESS_ALLOW", &self.egress_allow, ranges);
        let ports = problems.read("TOOLHOOK_EGRESS_PORTS", given(&self.egress_ports, EGRESS_PORTS), ports);
        let plain_http = given(&self.egress_plain_http, PLAIN_HTTP);
        let plain_http = problems.read("TOOLHOOK_EGRESS_PLAIN_HTTP", plain_http, switch);
        let egress_roots = match self.egress_ca_file.trim() {
            "" => Some(Roots::default()),
            file => problems.read("TOOLHOOK_EGRESS_CA_FILE", file, roots),
        };
        let migrate = problems.read("TOOLHOOK_MIGRATE", given(&self.migrate, MIGRATE), switch);
        let serving = self.serving.check(problems);
        Some(settings::Serve {
            database: settings::Database { url: url?, connections: connections?, statements: statements? },
            listen_url: listen?,
            master_keys: master_keys?,
            egress: Policy { allow: allow?, plain_http: plain_http?, ports: ports? },
            egress_roots: egress_roots?,
            migrate: migrate? && !self.no_migrate,
            serving: serving?,
        })
    }
}
