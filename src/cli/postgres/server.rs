//! The server's process, from its start to its end, in the hands of one thread.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use super::{
    account::{Account, command, end_with_this_thread},
    error::StartError,
    live::{Postmaster, Socket, clear_leftovers, signal},
};

/// A start after a crash replays the log of writes first, which takes as long as it takes; a server that is silent for this long hangs.
const READY_LIMIT: Duration = Duration::from_mins(2);
/// How long processes of a server that was killed may take to leave.
const LEAVING_LIMIT: Duration = Duration::from_secs(30);
/// How often the thread looks whether the server is still there.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What to run.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) cluster: PathBuf,
    pub(super) socket: Socket,
    pub(super) log: PathBuf,
    pub(super) account: Option<Account>,
    pub(super) durable: bool,
    pub(super) log_statements: bool,
}

/// A server that we started. Dropping it stops the server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) pid: u32,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the server and waits until it takes connections. `lock` is held until the server has ended.
    pub(super) fn start(launch: Launch, log: File, lock: File) -> Result<Self, StartError> {
        let (started, wait_for_start) = mpsc::channel();
        let (stop, wait_for_stop) = mpsc::channel();
        // The parent-death signal follows the thread that forked, so one thread forks and stays until the server has ended.
        let thread = thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(move || {
                own(&launch, &log, &started, &wait_for_stop);
                drop(lock);
            })
            .map_err(StartError::io("make a thread for", "postgres"))?;
        let pid = wait_for_start.recv().unwrap_or_else(|_| {
            let ended = std::io::Error::other("its thread ended");
            Err(StartError::io("start", "postgres")(ended))
        })?;
        Ok(Self { pid, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take()); // the thread waits for this end of the channel to go
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn own(launch: &Launch, log: &File, started: &Sender<Result<u32, StartError>>, stop: &Receiver<()>) {
    let mut child = match start(launch, log) {
        Ok(child) => child,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(child.id()));
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(WATCH_INTERVAL) {
        // Reaped at once, for a zombie's process id would look alive to the next start.
        if let Ok(Some(status)) = child.try_wait() {
            let log = launch.log.display();
            tracing::error!(%status, %log, "the embedded Postgres ended by itself");
            return;
        }
    }
    shut_down(&mut child);
    let _ = fs::remove_dir(&launch.socket.dir);
}

/// Tries again while processes of an earlier server are still on their way out.
fn start(launch: &Launch, log: &File) -> Result<Child, StartError> {
    let began = Instant::now();
    loop {
        let socket = launch.socket.dir.join(super::folders::SOCKET);
        clear_leftovers(&launch.cluster, &socket);
        match start_once(launch, log) {
            Err(StartError::Exited { log, .. }) if began.elapsed() < LEAVING_LIMIT && is_occupied(&log) => {
                thread::sleep(POLL_INTERVAL * 20);
            }
            result => return result,
        }
    }
}

/// "lock file … already exists", "pre-existing shared memory block … is still in use".
fn is_occupied(log: &str) -> bool {
    log.contains("already exists") || log.contains("still in use")
}

fn start_once(launch: &Launch, log: &File) -> Result<Child, StartError> {
    let io = |doing| StartError::io(doing, &launch.program);
    let start_of_log = log.metadata().map_or(0, |meta| meta.len());
    let mut command = launch.command();
    command.stdout(log.try_clone().map_err(io("log for"))?);
    command.stderr(log.try_clone().map_err(io("log for"))?);
    let mut child = command.spawn().map_err(io("run"))?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(io("wait for"))? {
            let log = tail(&launch.log, start_of_log);
            return Err(StartError::Exited { status, log });
        }
        // An old pid file says "ready" too: it has to be our child's.
        if Postmaster::ready(&launch.cluster).is_some_and(|server| server.pid == child.id()) {
            return Ok(child);
        }
        if began.elapsed() > READY_LIMIT {
            shut_down(&mut child);
            return Err(StartError::TimedOut { seconds: READY_LIMIT.as_secs(), log: launch.log.clone() });
        }
        thread::sleep(POLL_INTERVAL);
    }
}

impl Launch {
    fn command(&self) -> Command {
        let mut command = command(&self.program, self.account);
        command.arg("-D").arg(&self.cluster);
        command.arg("-k").arg(&self.socket.dir);
        command.arg("-p").arg(self.socket.port.to_string());
        let mut set = |settings: &[&str]| {
            for setting in settings {
                command.arg("-c").arg(setting);
            }
        };
        set(&["listen_addresses=", "unix_socket_permissions=0700", "max_connections=200", "logging_collector=off"]);
        if !self.durable {
            set(&[
                "fsync=off",
                "synchronous_commit=off",
                "full_page_writes=off",
                "autovacuum=off",
                "wal_level=minimal",
                "max_wal_senders=0",
            ]);
        }
        if self.log_statements {
            set(&["log_statement=all"]);
        }
        // A group of its own: Ctrl-C in the terminal then reaches us alone, and we stop the server after our last query.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        end_with_this_thread(&mut command);
        command
    }
}

/// Fast shutdown first; each step that follows is less polite, and none loses a committed row.
fn shut_down(child: &mut Child) -> Option<ExitStatus> {
    let steps = [
        (Signal::SIGINT, Duration::from_secs(30)),
        (Signal::SIGQUIT, Duration::from_secs(10)),
        (Signal::SIGKILL, Duration::from_secs(10)),
    ];
    for (step, patience) in steps {
        signal(child.id(), step);
        let began = Instant::now();
        while began.elapsed() < patience {
            match child.try_wait() {
                Ok(None) => thread::sleep(POLL_INTERVAL),
                Ok(Some(status)) => return Some(status),
                Err(_) => return None,
            }
        }
    }
    None
}

/// The log from `start` on, at most its last 8 KiB.
fn tail(log: &Path, start: u64) -> String {
    const LONGEST: u64 = 8 * 1024;
    let read = || {
        let mut file = File::open(log)?;
        let start = start.max(file.metadata()?.len().saturating_sub(LONGEST));
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_default()
}
