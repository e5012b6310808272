//! What the commands need to know, checked.

use std::{path::PathBuf, time::Duration};

use secrecy::SecretString;
use tracing_subscriber::EnvFilter;
use url::Url;

use crate::egress::{Policy, Roots};
use crate::execution::{CallLog, CrashPoint, Limiting};
use crate::http::Bounds;
use crate::store::{MasterKey, Statements};

/// How `toolhook serve` runs.
pub struct Serve {
    /// The database.
    pub database: Database,
    /// The database for the listener that hears of changes; none for the same URL.
    pub listen_url: Option<SecretString>,
    /// What opens the sealed columns.
    pub master_keys: MasterKeys,
    /// Where webhooks may be.
    pub egress: Policy,
    /// Whom to trust about webhooks' servers, beside the system's authorities.
    pub egress_roots: Roots,
    /// Whether to bring the schema up to date first.
    pub migrate: bool,
    /// How to serve.
    pub serving: Serving,
}

/// The master keys.
pub struct MasterKeys {
    /// The one that seals.
    pub current: MasterKey,
    /// Those that only open what they have sealed, or what other replicas seal with them already.
    pub previous: Vec<MasterKey>,
}

/// What `toolhook rotate-master-key` works on.
pub struct Rotate {
    /// The database.
    pub database: Database,
    /// Its keys.
    pub master_keys: MasterKeys,
}

/// How `toolhook dev` runs.
#[derive(Debug)]
pub struct Dev {
    /// The database that was given; none for the embedded one.
    pub database_url: Option<SecretString>,
    /// The most connections to the database.
    pub connections: u32,
    /// How statements are sent to the one that was given.
    pub statements: Statements,
    /// Where credentials, master key and the embedded database are kept; none for the usual place.
    pub data_dir: Option<PathBuf>,
    /// What the system says about places.
    pub places: Places,
    /// How to serve.
    pub serving: Serving,
}

/// What both servers have in common.
#[derive(Debug)]
pub struct Serving {
    /// Host and port to listen on; port 0 for a free one.
    pub listen: String,
    /// The most tenants whose tools are kept in memory.
    pub cached_tenants: u64,
    /// When a call's record has to be in the database.
    pub call_log: CallLog,
    /// How much longer than its calls may take a claimed request belongs to this process.
    pub lease_grace: Duration,
    /// Where to die, for tests.
    pub crash_at: Option<CrashPoint>,
    /// How long running calls may take after a signal to stop.
    pub grace: Duration,
    /// How long to go on serving before that, without being ready.
    pub delay: Duration,
    /// How long lists are served from memory while the database is away.
    pub stale_lists: Duration,
    /// What calls may take.
    pub limiting: Limiting,
    /// Where webhooks reach this service; none if nobody said.
    pub public_url: Option<Url>,
    /// What connections are held to.
    pub listener: Listener,
    /// Where operators look.
    pub telemetry: Telemetry,
}

/// What connections are held to.
#[derive(Debug)]
pub struct Listener {
    /// How many there are, and how long each may take.
    pub bounds: Bounds,
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
    /// How many bad keys an address may send in a minute; 0 for any number.
    pub bad_keys_per_minute: u32,
}

/// Where operators look.
#[derive(Debug)]
pub struct Telemetry {
    /// Host and port for the metrics alone; none if they are on the main port.
    pub metrics_listen: Option<String>,
    /// The collector's URL for traces; none for no traces.
    pub traces: Option<Url>,
}

/// A database to connect to.
#[derive(Debug)]
pub struct Database {
    /// A `postgres://` URL.
    pub url: SecretString,
    /// The most connections.
    pub connections: u32,
    /// How statements are sent.
    pub statements: Statements,
}

/// How to log.
#[derive(Debug)]
pub struct Logging {
    /// Which records.
    pub filter: EnvFilter,
    /// One JSON object a line instead of text.
    pub json: bool,
}

/// What the environment says about where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of the binaries of Postgres (`PG_BINDIR`).
    pub postgres: Option<PathBuf>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// The folder for programs' data (`XDG_DATA_HOME`).
    pub data_home: Option<PathBuf>,
    /// The home folder.
    pub home: Option<PathBuf>,
}
