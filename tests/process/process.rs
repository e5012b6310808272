//! Starts the binary with a clean environment, and looks at what it does.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use toolhook::cli::postgres::{EmbeddedPostgres, Options, Search};

use crate::http::{Answer, send};

/// Nothing here takes as long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// A folder of a test's own: in memory where there is such a folder, since these tests are about processes, not disks.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        Self::within(if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() })
    }

    /// One in this folder.
    pub(crate) fn within(parent: PathBuf) -> Self {
        let dir = tempfile::Builder::new().prefix("toolhook-process-").tempdir_in(parent).unwrap();
        // As root, Postgres runs under another account, which has to pass through.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        Self(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The data folder of `toolhook dev`, not yet there.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path().join("data")
    }

    /// A Postgres without a schema, for `toolhook serve` and the commands.
    pub(crate) fn postgres(&self) -> EmbeddedPostgres {
        self.postgres_that(false)
    }

    /// The same; `durable`: one that may be killed and loses nothing.
    pub(crate) fn postgres_that(&self, durable: bool) -> EmbeddedPostgres {
        EmbeddedPostgres::start(&Options {
            search: Search {
                bindir: variable("PG_BINDIR").map(PathBuf::from),
                path: variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
            },
            data_dir: self.path().join("postgres"),
            durable,
            template: None,
            log_statements: false,
        })
        .unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "stands in for the configuration")]
pub(crate) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// The binary with these arguments, and nothing of our environment but what finds Postgres.
pub(crate) fn toolhook(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolhook"));
    command.args(arguments).env_clear().current_dir("/").stdin(Stdio::null());
    for name in ["PATH", "PG_BINDIR"] {
        if let Some(value) = variable(name) {
            command.env(name, value);
        }
    }
    command
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn finish(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    /// Holds it against a code, and its complaint against the parts that it must have.
    pub(crate) fn complains(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        for part in parts {
            assert!(self.err.contains(part), "{part} is missing from:\n{}", self.err);
        }
        assert!(!self.err.contains("hunter2"), "a secret is shown:\n{}", self.err);
    }
}

/// A running server. It is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    /// Where it answers.
    pub(crate) base_url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts `toolhook dev` on a data folder and waits until it is ready.
    pub(crate) fn dev(scratch: &Scratch) -> Self {
        Self::start(scratch, toolhook(&["dev", "--listen", "127.0.0.1:0"]).arg("--data-dir").arg(scratch.data_dir()))
    }

    /// Starts a server that listens on port 0, and waits until it is ready.
    pub(crate) fn start(scratch: &Scratch, command: &mut Command) -> Self {
        let mut server = Self::spawn(scratch, command);
        let began = Instant::now();
        server.base_url = loop {
            if let Some(url) = server.announced() {
                break url;
            }
            server.must_live(began);
        };
        while server.get("", "/readyz").is_none_or(|answer| answer.status != 200) {
            server.must_live(began);
        }
        server
    }

    /// Starts it, and does not wait.
    pub(crate) fn spawn(scratch: &Scratch, command: &mut Command) -> Self {
        let number = fs::read_dir(scratch.path()).unwrap().count();
        let (out, err) = (scratch.path().join(format!("{number}.out")), scratch.path().join(format!("{number}.err")));
        let (stdout, stderr) = (File::create(&out).unwrap(), File::create(&err).unwrap());
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        Self { child, out, err, base_url: String::new() }
    }

    /// `dev` says a URL on standard output, `serve` logs an address.
    fn announced(&self) -> Option<String> {
        let word = |text: &str, after: &str| Some(text.split_once(after)?.1.split_whitespace().next()?.to_owned());
        word(&self.printed(), "for development, at ")
            .or_else(|| Some(format!("http://{}", word(&self.logged(), "ready address=")?)))
    }

    fn must_live(&mut self, began: Instant) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none() && began.elapsed() < PATIENCE, "not ready ({ended:?}):\n{}", self.logged());
        std::thread::sleep(POLL);
    }

    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    pub(crate) fn logged(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "does not end:\n{}", self.logged());
            std::thread::sleep(POLL);
        }
    }

    /// Asks it to end, which it has to do well.
    pub(crate) fn stop(mut self, signal: Signal) {
        self.signal(signal);
        let status = self.ended();
        assert_eq!(status.code(), Some(0), "{}", self.logged());
    }

    /// A GET; nothing if there is no answer.
    pub(crate) fn get(&self, key: &str, path: &str) -> Option<Answer> {
        send(&self.base_url, key, "GET", path, None).ok()
    }

    /// A request that has to be answered with this status.
    pub(crate) fn expect(&self, status: u16, key: &str, request: (&str, &str), body: Option<&Value>) -> Value {
        let answer = send(&self.base_url, key, request.0, request.1, body).unwrap();
        assert_eq!(answer.status, status, "{request:?}: {}\n{}", answer.body, self.logged());
        answer.body
    }
}

/// `credentials.json`.
pub(crate) struct Credentials {
    pub(crate) base_url: String,
    pub(crate) operator_key: String,
    pub(crate) demo_key: String,
}

impl Credentials {
    pub(crate) fn read(data_dir: &Path) -> Self {
        let text = fs::read_to_string(data_dir.join("credentials.json")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value.as_object().unwrap().len(), 3, "{text}");
        let field = |name: &str| value[name].as_str().unwrap().to_owned();
        Self { base_url: field("base_url"), operator_key: field("operator_key"), demo_key: field("demo_key") }
    }
}

/// The process ids of a data folder's Postgres.
pub(crate) fn postgres_of(data_dir: &Path) -> Vec<String> {
    let cluster = data_dir.join("pg");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let works_there = |process: &Path| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == cluster);
    processes
        .filter(|process| works_there(&process.path()))
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Waits until nothing of a data folder's Postgres is left.
pub(crate) fn postgres_is_gone(data_dir: &Path) {
    let began = Instant::now();
    while !postgres_of(data_dir).is_empty() {
        assert!(began.elapsed() < PATIENCE, "still there: {:?}", postgres_of(data_dir));
        std::thread::sleep(POLL);
    }
}

/// A tool as a body, run by a webhook on this machine.
pub(crate) fn tool(name: &str, url: &str) -> Value {
    serde_json::json!({
        "name": name,
        "description": "Says something",
        "input_schema": {"type": "object", "properties": {}},
        "handler": {"kind": "webhook", "url": url}
    })
}
