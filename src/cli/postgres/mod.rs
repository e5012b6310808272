//! A private Postgres from the binaries that the machine has, for `toolhook dev` and for the tests.
//!
//! The lock on `postgres.lock` in the data folder is the whole protocol between processes: who holds it owns the server and
//! stops it; everybody else waits for that server to be ready and uses it. A server without an owner is an orphan and is
//! stopped before a new one starts. On Linux the kernel ends the server when its owner dies, so a `kill -9` leaves none.
//!
//! Everything here blocks; from async code, call it through `spawn_blocking`.

mod account;
mod cluster;
mod error;
mod find;
mod folders;
mod live;
mod server;

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

pub use error::StartError;
pub use find::{PassedOver, Search};
pub use folders::{default_data_dir, make_data_dir};

use account::command;
use folders::Folders;
use live::{Postmaster, Socket};
use server::{Launch, Server};

/// How long the owner of a data folder may take until its server is ready (a first start, a recovery), seen from a second process.
const OWNER_LIMIT: Duration = Duration::from_mins(2);
/// How long an orphan may take to shut down.
const ORPHAN_LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const PORT: u16 = 5432;

/// How to start a private Postgres.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to look for the binaries.
    pub search: Search,
    /// The data folder. The cluster, the log and the lock go into it by names of their own; other files may live beside them.
    pub data_dir: PathBuf,
    /// Whether a committed row must survive a loss of power, or a `kill -9` of the server itself. Without it, everything is
    /// faster, and a `kill -9` of the owner still loses nothing: the server then shuts down in order.
    pub durable: bool,
    /// A cluster that `initdb` made and no server runs on, to be copied instead of running `initdb` again (10 times as fast).
    pub template: Option<PathBuf>,
    /// Whether to log each statement, for tests that count queries.
    pub log_statements: bool,
}

/// A running private Postgres. Dropping it stops the server, if it was started here.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    server: Option<Server>,
    pid: u32,
    socket: Socket,
    log: PathBuf,
}

impl EmbeddedPostgres {
    /// Starts the server of a data folder, or adopts the one that another process runs there. Returns once it takes
    /// connections: after about 0.1 s, or 1–3 s when the cluster has to be made first.
    pub fn start(options: &Options) -> Result<Self, StartError> {
        let folders = Folders::prepare(&options.data_dir)?;
        let lock = folders.lock_file()?;
        let began = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Self::own(options, &folders, lock),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(StartError::io("lock", &folders.data_dir)(error));
                }
            }
            if let Some(found) = Postmaster::ready(&folders.cluster) {
                return Ok(Self { server: None, pid: found.pid, socket: found.socket, log: folders.log });
            }
            if began.elapsed() > OWNER_LIMIT {
                return Err(StartError::InUse { data_dir: folders.data_dir, seconds: OWNER_LIMIT.as_secs() });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn own(options: &Options, folders: &Folders, lock: File) -> Result<Self, StartError> {
        stop_orphan(&folders.cluster);
        let template = options.template.as_deref();
        let major = find::major_of(&folders.cluster).or_else(|| find::major_of(template?));
        let found = find::find(&options.search, |bindir| probe(bindir, folders)).choose(&folders.cluster, major)?;
        cluster::ensure(folders, &found.bindir, template, options.durable)?;
        let socket = Socket { dir: folders.make_socket_dir()?, port: PORT };
        let launch = Launch {
            program: found.bindir.join("postgres"),
            cluster: folders.cluster.clone(),
            socket: socket.clone(),
            log: folders.log.clone(),
            account: folders.account,
            durable: options.durable,
            log_statements: options.log_statements,
        };
        let server = Server::start(launch, folders.new_log()?, lock)?;
        Ok(Self { pid: server.pid, server: Some(server), socket, log: folders.log.clone() })
    }

    /// The connection URL of a database on this server, for the superuser `postgres`. A fresh server has one called `postgres`.
    pub fn url(&self, database: &str) -> String {
        // Every part that the environment could fill in otherwise (PGPORT, PGSSLMODE) is said here.
        let parameters = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("host", &self.socket.dir.to_string_lossy())
            .append_pair("sslmode", "disable")
            .finish();
        let port = self.socket.port;
        format!("postgres://postgres@localhost:{port}/{database}?{parameters}")
    }

    /// Whether another process owns the server: it then ends when that process does, and not with this value.
    pub fn adopted(&self) -> bool {
        self.server.is_none()
    }

    /// The server's log, from its last start on.
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Stops the server if it was started here, and waits until it has ended. Sessions that are still open are closed.
    pub fn stop(self) {
        drop(self);
    }
}

/// Stops a server that nobody owns, on systems where the kernel does not. We hold the lock, so its owner is dead.
fn stop_orphan(cluster: &Path) {
    let began = Instant::now();
    while let Some(orphan) = Postmaster::ready(cluster) {
        if began.elapsed() > ORPHAN_LIMIT {
            return; // the start that follows says what is wrong
        }
        orphan.interrupt();
        thread::sleep(POLL_INTERVAL);
    }
}

/// Runs `postgres -V` under the account of the server.
fn probe(bindir: &Path, folders: &Folders) -> Result<String, String> {
    let answer = command(&bindir.join("postgres"), folders.account)
        .arg("-V")
        .output()
        .map_err(|error| format!("`postgres -V` does not run: {error}"))?;
    if answer.status.success() {
        return Ok(String::from_utf8_lossy(&answer.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&answer.stderr);
    let first = complaint.lines().next().unwrap_or_default();
    Err(format!("`postgres -V` failed ({}): {first}", answer.status))
}
