//! Two servers on one database: one that lets webhooks be anywhere, and one with production's rules.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhook::cli::postgres::EmbeddedPostgres;

use crate::http::{Answer, send_text, send_with};
use crate::process::{Scratch, Server, finish, toolhook};
use crate::receiver::Receiver;
use crate::tls::Authority;

pub(crate) const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// An answer after which the connection is kept.
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";

/// What tests of one target share while one of them runs. When the last one ends, the processes do.
pub(crate) struct Stage {
    /// Lets webhooks be at every address, by http too, and trusts [`Stage::authority`].
    pub(crate) open: Server,
    /// Has the defaults.
    pub(crate) strict: Server,
    pub(crate) operator: String,
    /// What both servers' environment names as the proxy for everything.
    pub(crate) proxy: Receiver,
    pub(crate) authority: Authority,
    postgres: EmbeddedPostgres,
    pub(crate) scratch: Scratch,
}

static SHARED: Mutex<Weak<Stage>> = Mutex::new(Weak::new());

/// The stage, put up if nobody uses it.
pub(crate) fn stage() -> Arc<Stage> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let stage = Arc::new(Stage::put_up());
        *shared = Arc::downgrade(&stage);
        stage
    })
}

impl Stage {
    fn put_up() -> Self {
        let scratch = Scratch::new();
        let postgres = scratch.postgres();
        let database = postgres.url("postgres");
        let authority = Authority::new();
        let roots = scratch.path().join("roots.pem");
        fs::write(&roots, authority.pem()).unwrap();
        let proxy = Receiver::answering(OK);
        let through = |command: &mut Command| {
            for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
                command.env(name, proxy.url());
            }
        };
        let mut open = serve(&database, "127.0.0.1:0");
        everywhere(&mut open).env("TOOLHOOK_EGRESS_CA_FILE", roots).env("TOOLHOOK_METRICS_LISTEN", "127.0.0.1:0");
        through(&mut open);
        let open = Server::start(&scratch, &mut open);
        let mut strict = serve(&database, "127.0.0.1:0");
        through(&mut strict);
        let strict = Server::start(&scratch, &mut strict);
        let made = finish(toolhook(&["keys", "create", "--role", "operator"]).env("DATABASE_URL", &database));
        let operator = made.out.trim().to_owned();
        Self { open, strict, operator, proxy, authority, postgres, scratch }
    }

    pub(crate) fn database(&self) -> String {
        self.postgres.url("postgres")
    }
}

/// `toolhook serve`.
pub(crate) fn serve(database: &str, listen: &str) -> Command {
    let mut command = toolhook(&["serve", "--listen", listen]);
    command.env("DATABASE_URL", database).env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
    command
}

/// Lets webhooks be anywhere.
pub(crate) fn everywhere(command: &mut Command) -> &mut Command {
    command
        .env("TOOLHOOK_EGRESS_ALLOW", "0.0.0.0/0,::/0")
        .env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true")
        .env("TOOLHOOK_EGRESS_PORTS", "any")
}

/// A tenant of a test's own.
pub(crate) struct Tenant {
    pub(crate) stage: Arc<Stage>,
    pub(crate) name: String,
    /// An admin's.
    pub(crate) key: String,
}

impl Tenant {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let stage = stage();
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::SeqCst));
        let key = admit(&stage.open, &stage.operator, &name);
        Self { stage, name, key }
    }

    /// A request to the open server.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_of(&self.stage.open, method, path, body)
    }

    pub(crate) fn ask_of(&self, server: &Server, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_in_words(server, method, path, &body.to_string())
    }

    /// A request whose body is given as its text.
    pub(crate) fn ask_in_words(&self, server: &Server, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.key);
        send_text(&server.base_url, &[("authorization", &bearer)], method, path, body).unwrap()
    }

    /// Makes a tool that is run by a webhook there, or replaces it.
    pub(crate) fn tool(&self, name: &str, handler: &Value) {
        let answer = self.ask("PUT", &format!("/v1/tools/{name}"), &tool(name, handler));
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
    }

    /// Calls a tool by the open server.
    pub(crate) fn call(&self, name: &str, input: &Value) -> Value {
        self.call_by(&self.stage.open, name, input)
    }

    pub(crate) fn call_by(&self, server: &Server, name: &str, input: &Value) -> Value {
        let answer = self.ask_of(server, "POST", &format!("/v1/tools/{name}/calls"), &json!({ "input": input }));
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.body
    }

    /// Makes a tool whose webhook is this receiver, and calls it once.
    pub(crate) fn try_out(&self, name: &str, url: &str, timeout_ms: u32) -> Value {
        self.tool(name, &json!({"kind": "webhook", "url": url, "timeout_ms": timeout_ms, "max_attempts": 1}));
        self.call(name, &json!({}))
    }
}

/// Makes a tenant, and an admin's key for it.
pub(crate) fn admit(server: &Server, operator: &str, tenant: &str) -> String {
    server.expect(201, operator, ("PUT", &format!("/v1/tenants/{tenant}")), Some(&json!({})));
    key(server, operator, tenant, "admin")
}

/// Makes a key of a role.
pub(crate) fn key(server: &Server, operator: &str, tenant: &str, role: &str) -> String {
    let bearer = format!("Bearer {operator}");
    let headers = [("authorization", bearer.as_str()), ("toolhook-tenant", tenant)];
    let made = send_with(&server.base_url, &headers, "POST", "/v1/keys", Some(&json!({ "role": role }))).unwrap();
    assert_eq!(made.status, 201, "{}", made.text);
    made.body["key"].as_str().unwrap().to_owned()
}

/// A tool as a body. Its input may be any object.
pub(crate) fn tool(name: &str, handler: &Value) -> Value {
    json!({"name": name, "description": "For a check", "input_schema": {"type": "object"}, "handler": handler})
}

/// A webhook that is never called.
pub(crate) fn somewhere() -> Value {
    json!({"kind": "webhook", "url": "https://hooks.example.com/run"})
}

/// The most memory that a server has held so far, in MiB.
pub(crate) fn peak_memory(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
}

/// What a call came to, in short: its status and its error's code.
pub(crate) fn outcome(call: &Value) -> (&str, &str) {
    (call["status"].as_str().unwrap(), call["error"]["code"].as_str().unwrap_or_default())
}

/// Sends bytes as they are, and reads until the other side closes.
pub(crate) fn exchange(base_url: &str, bytes: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect(base_url.strip_prefix("http://").unwrap())?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(bytes)?;
    let mut answer = Vec::new();
    io::Read::read_to_end(&mut stream, &mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A POST as bytes.
pub(crate) fn written(key: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    write!(text, "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nconnection: close\r\n").unwrap();
    write!(text, "content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len()).unwrap();
    [text.as_bytes(), body].concat()
}

pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
