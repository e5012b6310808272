//! A primary and its standby, with one address in front of them.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use sqlx::{Connection as _, PgConnection, Row as _};

use crate::process::{Scratch, variable};

const PATIENCE: Duration = Duration::from_secs(30);

/// What becomes of a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its process is killed, and the system closes its connections.
    Dies,
    /// The same, and nobody hears of it.
    Vanishes,
}

/// The programs of a Postgres, and the account that runs them.
struct Installation {
    bin: PathBuf,
    account: Option<User>,
}

impl Installation {
    /// None, with a line that says so, where there is nothing to copy a primary with.
    fn find() -> Option<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
        folders.sort();
        folders.extend(variable("PATH").iter().flat_map(std::env::split_paths));
        let folders = variable("PG_BINDIR").map_or(folders, |folder| vec![PathBuf::from(folder)]);
        let needed = ["postgres", "initdb", "pg_basebackup", "pg_ctl"];
        let bin = folders.into_iter().rev().find(|bin| needed.iter().all(|program| bin.join(program).exists()));
        if bin.is_none() {
            eprintln!("skipped: no pg_basebackup beside postgres");
        }
        let account = geteuid().is_root().then(|| User::from_name("postgres").unwrap().unwrap());
        Some(Self { bin: bin?, account })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.env_clear().env("LC_ALL", "C").env("TZ", "UTC").env("PATH", "/usr/bin:/bin").current_dir("/");
        command.stdin(Stdio::null());
        if let Some(account) = &self.account {
            command.uid(account.uid.as_raw()).gid(account.gid.as_raw());
        }
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let output = self.command(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// One server. It is killed when this is dropped.
struct Node {
    child: Child,
    data: PathBuf,
    port: u16,
}

impl Drop for Node {
    fn drop(&mut self) {
        // What is left of it notices that it is gone.
        let _ = kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGQUIT);
        let _ = self.child.wait();
    }
}

impl Node {
    fn start(installation: &Installation, data: PathBuf, sockets: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = File::create(data.with_extension("log")).unwrap();
        let mut command = installation.command("postgres");
        command.arg("-D").arg(&data).arg("-k").arg(sockets).arg("-p").arg(port.to_string());
        for setting in ["listen_addresses=127.0.0.1", "fsync=off", "max_connections=200", "logging_collector=off"] {
            command.arg("-c").arg(setting);
        }
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let node = Self { child, data, port };
        let began = Instant::now();
        while node.ask("select 1::text").is_none() {
            assert!(began.elapsed() < PATIENCE, "{}", node.log());
            thread::sleep(Duration::from_millis(20));
        }
        node
    }

    fn log(&self) -> String {
        fs::read_to_string(self.data.with_extension("log")).unwrap()
    }

    /// Changes a setting of this server alone.
    fn set(&self, setting: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.url()).await.unwrap();
            for statement in [format!("alter system set {setting}"), "select pg_reload_conf()".to_owned()] {
                sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
            }
        });
    }

    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The first text of an answer; nothing if there is none.
    fn ask(&self, question: &'static str) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.url()).await.ok()?;
            let row = sqlx::raw_sql(question).fetch_one(&mut connection).await.ok()?;
            row.try_get(0).ok()
        })
    }
}

/// A primary, a standby that has everything before it is acknowledged, and a relay that says who of them is the database.
pub(crate) struct Pair {
    installation: Installation,
    primary: Option<Node>,
    standby: Node,
    relay: Relay,
}

impl Pair {
    /// Starts both, and leads the address to the primary; nothing if this machine has not what it takes.
    pub(crate) fn start(scratch: &Scratch) -> Option<Self> {
        let installation = Installation::find()?;
        let folder = scratch.path().join("pair");
        fs::create_dir(&folder).unwrap();
        if let Some(account) = &installation.account {
            chown(&folder, Some(account.uid.as_raw()), Some(account.gid.as_raw())).unwrap();
        }
        let (first, second) = (folder.join("first"), folder.join("second"));
        let data = |path: &Path| path.to_str().unwrap().to_owned();
        installation.run("initdb", &["-D", &data(&first), "-A", "trust", "-U", "postgres", "--no-sync"]);
        let primary = Node::start(&installation, first, &folder);
        let (port, target) = (primary.port.to_string(), data(&second));
        let from = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres"];
        installation.run(
            "pg_basebackup",
            &[&["-D", &target, "-R", "-X", "stream", "-c", "fast", "--no-sync"], &from[..]].concat(),
        );
        let standby = Node::start(&installation, second, &folder);
        for setting in ["synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'"] {
            primary.set(setting);
        }
        let began = Instant::now();
        let synchronous = "select coalesce(max(sync_state), '') from pg_stat_replication";
        while primary.ask(synchronous).as_deref() != Some("sync") {
            assert!(began.elapsed() < PATIENCE, "{}{}", primary.log(), standby.log());
            thread::sleep(Duration::from_millis(20));
        }
        let relay = Relay::start(primary.port);
        Some(Self { installation, primary: Some(primary), standby, relay })
    }

    /// The address.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.relay.port)
    }

    /// Kills the primary. From now on the address leads to the standby, which is still one.
    pub(crate) fn lose_primary(&mut self, fate: Fate) {
        self.relay.lead_to(self.standby.port, fate);
        let mut primary = self.primary.take().unwrap();
        primary.child.kill().unwrap();
        primary.child.wait().unwrap();
        if fate == Fate::Dies {
            self.relay.cut();
        }
    }

    /// How many listeners the new primary has.
    pub(crate) fn listeners(&self) -> usize {
        let count = "select count(*)::text from pg_stat_activity where application_name = 'toolhook listener'";
        self.standby.ask(count).unwrap().parse().unwrap()
    }

    /// Makes the standby the primary.
    pub(crate) fn promote(&self) {
        self.installation.run("pg_ctl", &["-D", self.standby.data.to_str().unwrap(), "-w", "promote"]);
    }
}

/// Hands connections on to the server that it leads to when they come.
struct Relay {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    target: AtomicU16,
    /// How many connections there were when it was led elsewhere.
    old: AtomicUsize,
    /// Connections before this one carry nothing any more, and stay open.
    dark: AtomicUsize,
    /// Both ends of all connections, so that none is closed before it is to be.
    ends: Mutex<Vec<[TcpStream; 2]>>,
}

impl Relay {
    fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { target: target.into(), ..Shared::default() });
        let relay = Self { port, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut ends = shared.ends.lock().unwrap();
                let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target.load(Ordering::SeqCst))) else {
                    continue;
                };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                let clone = |stream: &TcpStream| stream.try_clone().unwrap();
                for (from, to) in [(clone(&client), clone(&server)), (clone(&server), clone(&client))] {
                    let (shared, number) = (Arc::clone(&shared), ends.len());
                    thread::spawn(move || shared.carry(number, from, to));
                }
                ends.push([client, server]);
            }
        });
        relay
    }

    fn lead_to(&self, port: u16, fate: Fate) {
        let ends = self.shared.ends.lock().unwrap();
        self.shared.target.store(port, Ordering::SeqCst);
        self.shared.old.store(ends.len(), Ordering::SeqCst);
        if fate == Fate::Vanishes {
            self.shared.dark.store(ends.len(), Ordering::SeqCst);
        }
    }

    /// Closes the connections to the server that it led to before.
    fn cut(&self) {
        let ends = self.shared.ends.lock().unwrap();
        for stream in ends[..self.shared.old.load(Ordering::SeqCst)].iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn carry(&self, number: usize, mut from: TcpStream, mut to: TcpStream) {
        let is_dark = || number < self.dark.load(Ordering::SeqCst);
        let mut part = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut part) {
            if !is_dark() && to.write_all(&part[..length]).is_err() {
                break;
            }
        }
        if !is_dark() {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        }
    }
}
