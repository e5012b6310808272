//! Three replicas on one Postgres, and what is done to them.

use std::collections::HashMap;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use toolhook::cli::postgres::EmbeddedPostgres;

use crate::http::{Answer, send};
use crate::process::{Scratch, Server, finish, toolhook};
use crate::receiver::Receiver;

const REPLICAS: usize = 3;
const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// How long a call may take; also what a lease lasts, with a second more.
const TIMEOUT_MS: u32 = 3_000;
/// Every call that was accepted has ended by then.
const REST: Duration = Duration::from_secs(35);

/// The service: replicas at fixed addresses.
pub(crate) struct Fleet {
    scratch: Scratch,
    postgres: Mutex<Option<EmbeddedPostgres>>,
    database_url: String,
    replicas: Vec<Mutex<Option<Server>>>,
    /// Where the replicas are, whether or not they live just now.
    pub(crate) urls: Vec<String>,
    /// An editor's key.
    pub(crate) key: String,
}

/// What was done to it.
#[derive(Default)]
pub(crate) struct Blows {
    pub(crate) killed: u32,
    pub(crate) restarted: u32,
    pub(crate) crashed: u32,
}

impl Fleet {
    /// Starts everything, and makes the tools `charge`, which must not run twice, and `look_up`, which may.
    pub(crate) fn start(receiver: &Receiver) -> Self {
        let scratch = Scratch::new();
        let postgres = scratch.postgres_that(true);
        let database_url = postgres.url("postgres");
        let run = |arguments: &[&str]| {
            let ended = finish(toolhook(arguments).env("DATABASE_URL", &database_url));
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            ended.out.trim().to_owned()
        };
        run(&["migrate"]);
        run(&["tenants", "create", "bank"]);
        let key = run(&["keys", "create", "--role", "editor", "--tenant", "bank"]);
        let operator = run(&["keys", "create", "--role", "operator"]);
        let addresses: Vec<String> = (0..REPLICAS).map(|_| free_address()).collect();
        let fleet = Self {
            postgres: Mutex::new(Some(postgres)),
            replicas: addresses.iter().map(|_| Mutex::new(None)).collect(),
            urls: addresses.iter().map(|address| format!("http://{address}")).collect(),
            scratch,
            database_url,
            key,
        };
        for replica in 0..REPLICAS {
            fleet.revive(replica);
        }
        fleet.prepare(&operator, receiver);
        fleet
    }

    fn prepare(&self, operator: &str, receiver: &Receiver) {
        let made = |key: &str, method: &str, path: &str, body: Value| {
            let answer = send(&self.urls[0], key, method, path, Some(&body)).unwrap();
            assert!((200..300).contains(&answer.status), "{}", answer.text);
        };
        // What is tried here is not the limits.
        let limits = json!({"limits": {"calls_per_second": 100_000, "concurrent_calls": 10_000}});
        made(operator, "PUT", "/v1/tenants/bank", limits);
        for (name, idempotent) in [("charge", false), ("look_up", true)] {
            let tool = json!({
                "name": name, "description": "Has an effect",
                "input_schema": {"type": "object", "properties": {"effect": {"type": "string"}}, "required": ["effect"]},
                "handler": {"kind": "webhook", "url": receiver.url, "timeout_ms": TIMEOUT_MS},
                "annotations": {"idempotent": idempotent}
            });
            made(&self.key, "POST", "/v1/tools", tool);
        }
    }

    fn command(&self, replica: usize) -> Command {
        let mut command = toolhook(&["serve", "--listen", self.urls[replica].trim_start_matches("http://")]);
        command.env("DATABASE_URL", &self.database_url).env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
        command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true");
        command.env("TOOLHOOK_EGRESS_PORTS", "any").env("TOOLHOOK_LEASE_GRACE_MS", "1000");
        command.env("TOOLHOOK_LOG", "warn,toolhook::cli=info");
        command
    }

    fn revive(&self, replica: usize) {
        *self.replicas[replica].lock().unwrap() = Some(Server::start(&self.scratch, &mut self.command(replica)));
    }

    /// Kills and restarts until it is over; then all is well again.
    pub(crate) fn torment(&self, seed: u64, over: &AtomicBool) -> Blows {
        let (mut dice, mut blows) = (fastrand::Rng::with_seed(seed.wrapping_add(1)), Blows::default());
        while !over.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(dice.u64(100..700)));
            match dice.u32(0..10) {
                0 => {
                    self.restart_postgres(None);
                    blows.restarted += 1;
                }
                1 => {
                    self.restart_postgres(Some(Signal::SIGQUIT));
                    blows.crashed += 1;
                }
                _ => {
                    let replica = dice.usize(0..REPLICAS);
                    drop(self.replicas[replica].lock().unwrap().take()); // by SIGKILL
                    sleep(Duration::from_millis(dice.u64(0..300)));
                    self.revive(replica);
                    blows.killed += 1;
                }
            }
        }
        blows
    }

    fn restart_postgres(&self, signal: Option<Signal>) {
        let mut postgres = self.postgres.lock().unwrap();
        if let Some(running) = postgres.take() {
            if let Some(signal) = signal {
                kill(Pid::from_raw(running.pid().try_into().unwrap()), signal).unwrap();
            }
            running.stop();
        }
        *postgres = Some(self.scratch.postgres_that(true));
    }

    /// The whole log by the calls' ids, once nothing in it runs any more, or it should not.
    pub(crate) fn log_at_rest(&self) -> HashMap<String, Value> {
        let began = Instant::now();
        loop {
            let log = self.log();
            if began.elapsed() > REST || log.values().all(|call| call["status"] != "running") {
                return log;
            }
            sleep(Duration::from_millis(250));
        }
    }

    fn log(&self) -> HashMap<String, Value> {
        let (mut log, mut cursor) = (HashMap::new(), String::new());
        loop {
            let answer = self.page(&cursor);
            for call in answer.body["data"].as_array().unwrap() {
                log.insert(call["id"].as_str().unwrap().to_owned(), call.clone());
            }
            match answer.body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return log,
            }
        }
    }

    /// A page of the log; the last blow may still be felt.
    fn page(&self, cursor: &str) -> Answer {
        let began = Instant::now();
        loop {
            let answer = send(&self.urls[0], &self.key, "GET", &format!("/v1/calls?limit=200{cursor}"), None).unwrap();
            if answer.status == 200 {
                return answer;
            }
            assert!(answer.status == 503 && began.elapsed() < REST, "{}", answer.text);
            sleep(Duration::from_millis(100));
        }
    }
}

/// An address that nobody has just now.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
