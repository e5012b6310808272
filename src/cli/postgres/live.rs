//! Whether a server lives on a cluster, and what dead ones left behind.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{fs::MetadataExt, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{sys::signal::Signal, unistd::Pid};

/// A running server's socket answers at once; one that hangs is not ready.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// What a server wrote about itself into `postmaster.pid`. It outlives the server after a crash, so it proves nothing alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Postmaster {
    pub(super) pid: u32,
    pub(super) socket: Socket,
    ready: bool,
}

/// A server's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) dir: PathBuf,
    pub(super) port: u16,
}

impl Postmaster {
    /// The server that says it is ready and answers on its socket, if there is one.
    pub(super) fn ready(cluster: &Path) -> Option<Self> {
        let text = fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
        Self::parse(&text).filter(|server| server.ready && server.socket.answers())
    }

    /// Line 1 is the process id, 4 the port, 5 the socket's folder, 8 the state. Absent lines come while the server starts.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let line = |number: usize| lines.get(number - 1).copied().filter(|line| !line.is_empty());
        Some(Self {
            pid: line(1)?.parse().ok()?,
            socket: Socket { port: line(4)?.parse().ok()?, dir: line(5)?.into() },
            ready: line(8) == Some("ready"),
        })
    }

    /// Asks the server for a fast shutdown: open transactions are rolled back, everything committed is kept.
    pub(super) fn interrupt(&self) {
        signal(self.pid, Signal::SIGINT);
    }
}

impl Socket {
    /// Whether a server behind this socket takes connections. A connect alone does not tell: the kernel accepts for a server
    /// that still starts, already stops or is stuck. So this opens a session and looks at the first answer.
    fn answers(&self) -> bool {
        let path = self.dir.join(format!(".s.PGSQL.{}", self.port));
        UnixStream::connect(path)
            .and_then(|mut stream| {
                stream.set_read_timeout(Some(ANSWER_LIMIT))?;
                stream.write_all(&session_request())?;
                let mut answer = [0; 256];
                let length = stream.read(&mut answer)?;
                let _ = stream.write_all(b"X\0\0\0\x04"); // goodbye, so that the server's log stays quiet
                Ok(takes_connections(&answer[..length]))
            })
            .unwrap_or(false)
    }
}

fn session_request() -> Vec<u8> {
    const PROTOCOL: [u8; 4] = [0, 3, 0, 0];
    const PARAMETERS: &[u8] = b"user\0postgres\0database\0postgres\0\0";
    let length = u32::try_from(4 + PROTOCOL.len() + PARAMETERS.len()).unwrap_or_default();
    [&length.to_be_bytes(), &PROTOCOL, PARAMETERS].concat()
}

/// `R` is about authentication: a session begins. Of the errors only 57P03 (starting up, shutting down) means not now; others,
/// such as too many connections, come from a server that works.
fn takes_connections(answer: &[u8]) -> bool {
    match answer.first() {
        Some(b'R') => true,
        Some(b'E') => !answer.windows(6).any(|field| field == b"C57P03"),
        _ => false,
    }
}

/// Sends a signal; a process that is gone needs none.
pub(super) fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        let _ = nix::sys::signal::kill(Pid::from_raw(pid), signal);
    }
}

/// Removes what a killed server left, if it is certain that no process works in the cluster. Postgres clears its own leftovers
/// too, but only if the old process id is free: a zombie that nobody reaps, or a stranger that got the number after a reboot,
/// would block the start for good. Callers hold the data folder's lock.
pub(super) fn clear_leftovers(cluster: &Path, socket: &Path) {
    if surely_unused(cluster) {
        let _ = fs::remove_file(cluster.join("postmaster.pid"));
        let _ = fs::remove_file(socket);
        let _ = fs::remove_file(socket.with_added_extension("lock"));
    }
}

/// Every process of a server has the cluster as its current folder, and runs under the cluster's owner.
fn surely_unused(cluster: &Path) -> bool {
    let (Ok(meta), Ok(processes)) = (fs::metadata(cluster), fs::read_dir("/proc")) else {
        return false; // without /proc there is no certainty
    };
    processes
        .flatten()
        .filter(|process| process.metadata().is_ok_and(|of| of.uid() == meta.uid()))
        .all(|process| !may_work_in(&process.path(), cluster))
}

fn may_work_in(process: &Path, cluster: &Path) -> bool {
    match fs::read_link(process.join("cwd")) {
        Ok(folder) => folder == cluster,
        // In some containers not even root may look; then any live process that is called like the server counts as one.
        Err(_) => fs::read_to_string(process.join("stat")).is_ok_and(|stat| is_live_server(&stat)),
    }
}

/// Reads `1234 (postgres) S …`; `Z` is a zombie, `X` is dead.
fn is_live_server(stat: &str) -> bool {
    let Some((before, after)) = stat.rsplit_once(')') else {
        return false;
    };
    let name = before.split_once('(').map_or("", |(_, name)| name);
    name.starts_with("post") && !after.trim_start().starts_with(['Z', 'X'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "812\n/data/pg\n1764500000\n5432\n/data/socket\n\n 5432001  3\nready   \n";

    #[test]
    fn the_pid_file_is_read_whole_and_in_the_making() {
        let server = Postmaster::parse(FILE).unwrap();
        let dir = PathBuf::from("/data/socket");
        assert_eq!((server.pid, server.ready), (812, true));
        assert_eq!(server.socket, Socket { dir, port: 5432 });
        assert!(!Postmaster::parse(&FILE.replace("ready", "stopping")).unwrap().ready);
        let started: Vec<&str> = FILE.lines().take(5).collect();
        assert!(!Postmaster::parse(&started.join("\n")).unwrap().ready);
        assert_eq!(Postmaster::parse("812\n/data/pg\n"), None);
        assert_eq!(Postmaster::parse(""), None);
    }

    #[test]
    fn only_a_server_that_takes_connections_counts() {
        assert!(takes_connections(b"R\0\0\0\x08\0\0\0\0"));
        assert!(takes_connections(b"E\0\0\0\x40SFATAL\0VFATAL\0C53300\0Msorry\0\0"));
        assert!(!takes_connections(b"E\0\0\0\x40SFATAL\0VFATAL\0C57P03\0Mstarting\0\0"));
        assert!(!takes_connections(b""));
    }

    #[test]
    fn zombies_and_strangers_are_no_servers() {
        assert!(is_live_server("812 (postgres) S 1 812"));
        assert!(!is_live_server("812 (postgres) Z 1 812"));
        assert!(!is_live_server("812 (vim) S 1 812"));
        assert!(!is_live_server(""));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_stale_pid_file_goes_even_if_the_number_lives_again() {
        let cluster = tempfile::tempdir().unwrap();
        let cluster = fs::canonicalize(cluster.path()).unwrap();
        let pid_file = cluster.join("postmaster.pid");
        let socket = cluster.join(".s.PGSQL.5432");
        let lock = cluster.join(".s.PGSQL.5432.lock");
        for file in [&socket, &lock] {
            fs::write(file, "").unwrap();
        }
        fs::write(&pid_file, FILE.replace("812", &std::process::id().to_string())).unwrap();

        let mut worker = std::process::Command::new("sleep").arg("60").current_dir(&cluster).spawn().unwrap();
        clear_leftovers(&cluster, &socket);
        assert!(pid_file.exists(), "a process works in the cluster");

        worker.kill().unwrap(); // and not yet reaped: a zombie
        while !fs::read_to_string(format!("/proc/{}/stat", worker.id())).unwrap().contains(") Z") {
            std::thread::yield_now();
        }
        clear_leftovers(&cluster, &socket);
        assert!(!pid_file.exists() && !socket.exists() && !lock.exists());
        worker.wait().unwrap();
    }
}
