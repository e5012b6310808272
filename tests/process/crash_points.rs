//! A replica dies, is held still or is stopped while it runs a request with an idempotency key: what the others make of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use toolhook::cli::postgres::EmbeddedPostgres;

use crate::http::{Answer, send_with};
use crate::process::{Credentials, Scratch, Server, tool, toolhook};

/// What the webhook does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Takes the connection and reads nothing.
    Deaf,
    /// Reads the request and does not answer.
    Mute,
    /// Answers with a head and no body.
    Halting,
    /// Answers.
    Well,
    /// Answers that the result comes later.
    Later,
}

/// A webhook that counts the requests it has read whole.
struct Webhook {
    url: String,
    count: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    manner: Arc<Mutex<Manner>>,
    /// What came last.
    last: Arc<Mutex<String>>,
}

impl Webhook {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let webhook = Self {
            url: format!("http://{}/", listener.local_addr().unwrap()),
            count: Arc::default(),
            connections: Arc::default(),
            manner: Arc::new(Mutex::new(Manner::Well)),
            last: Arc::default(),
        };
        let (count, connections, manner) =
            (Arc::clone(&webhook.count), Arc::clone(&webhook.connections), Arc::clone(&webhook.manner));
        let last = Arc::clone(&webhook.last);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let manner = *manner.lock().unwrap();
                let (count, last) = (Arc::clone(&count), Arc::clone(&last));
                std::thread::spawn(move || serve(connection, manner, &count, &last));
                connections.fetch_add(1, Ordering::SeqCst);
            }
        });
        webhook
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

fn serve(mut connection: TcpStream, manner: Manner, count: &AtomicUsize, last: &Mutex<String>) {
    let hold = |mut connection: TcpStream| drop(connection.read(&mut [0]));
    if manner == Manner::Deaf {
        return std::thread::sleep(Duration::from_secs(5));
    }
    loop {
        let mut text = String::new();
        while !text.ends_with("}}") {
            let mut buffer = [0; 4096];
            match connection.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(n) => text.push_str(&String::from_utf8_lossy(&buffer[..n])),
            }
        }
        last.lock().unwrap().clone_from(&text);
        count.fetch_add(1, Ordering::SeqCst);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\n";
        match manner {
            Manner::Mute | Manner::Deaf => return hold(connection),
            Manner::Halting => {
                connection.write_all(head.as_bytes()).unwrap();
                return hold(connection);
            }
            Manner::Later => {
                if connection.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").is_err() {
                    return;
                }
            }
            Manner::Well => {
                if connection.write_all(format!("{head}done").as_bytes()).is_err() {
                    return;
                }
            }
        }
    }
}

/// Replicas on one database, with a tool.
struct Fleet {
    scratch: Scratch,
    postgres: EmbeddedPostgres,
    webhook: Webhook,
    key: String,
}

impl Fleet {
    fn start() -> Self {
        let scratch = Scratch::new();
        let postgres = scratch.postgres();
        let webhook = Webhook::start();
        let mut fleet = Self { scratch, postgres, webhook, key: String::new() };
        let server = fleet.replica(&[]);
        fleet.key = Credentials::read(&fleet.scratch.data_dir()).demo_key;
        server.expect(201, &fleet.key, ("POST", "/v1/tools"), Some(&tool("t", &fleet.webhook.url)));
        let mut alone = tool("alone", &fleet.webhook.url);
        alone["concurrent"] = json!(false);
        server.expect(201, &fleet.key, ("POST", "/v1/tools"), Some(&alone));
        server.stop(Signal::SIGTERM);
        fleet
    }

    fn replica(&self, environment: &[(&str, &str)]) -> Server {
        let mut dev = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
        dev.env("TOOLHOOK_DATA_DIR", self.scratch.data_dir())
            .env("DATABASE_URL", self.postgres.url("postgres"))
            .env("TOOLHOOK_LEASE_GRACE_MS", "500")
            .envs(environment.iter().copied());
        Server::start(&self.scratch, &mut dev)
    }

    /// Calls the tool with a key and a second's time. Nothing if there is no answer.
    fn call(&self, server: &Server, key: &str) -> Option<Answer> {
        self.run(&server.base_url, key, "/v1/tools/t/calls", &json!({"input": {}}))
    }

    fn run(&self, base_url: &str, key: &str, path: &str, body: &Value) -> Option<Answer> {
        let bearer = format!("Bearer {}", self.key);
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", key), ("toolhook-timeout-ms", "1000")];
        send_with(base_url, &headers, "POST", path, Some(body)).ok()
    }

    /// The same in the background.
    fn call_meanwhile<'scope>(
        &'scope self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        server: &Server,
        key: &'static str,
        path: &'static str,
        body: Value,
    ) -> mpsc::Receiver<Option<Answer>> {
        let (sender, answer) = mpsc::channel();
        let base_url = server.base_url.clone();
        scope.spawn(move || drop(sender.send(self.run(&base_url, key, path, &body))));
        answer
    }

    fn rows(&self, server: &Server, query: &str) -> Vec<Value> {
        let page = server.expect(200, &self.key, ("GET", &format!("/v1/calls?{query}")), None);
        page["data"].as_array().unwrap().clone()
    }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Where the replica dies, what the log says in the end, what a repeat is told, and how often the webhook was asked in all.
#[test]
fn f05_each_crash_point_ends_as_it_must() {
    let fleet = Fleet::start();
    for (key, crash, manner, end, repeat, deliveries) in [
        ("k1", "before_claim", Manner::Well, None, ("succeeded", false), 1),
        ("k2", "after_claim", Manner::Well, Some("unknown"), ("unknown", false), 0),
        ("k3", "", Manner::Deaf, Some("unknown"), ("unknown", false), 0),
        ("k4", "", Manner::Mute, Some("unknown"), ("unknown", false), 1),
        ("k5", "", Manner::Halting, Some("unknown"), ("unknown", false), 1),
        ("k6", "before_finish", Manner::Well, Some("unknown"), ("unknown", false), 1),
        ("k7", "after_finish", Manner::Well, Some("succeeded"), ("succeeded", true), 1),
        ("k8", "reaping", Manner::Mute, Some("unknown"), ("unknown", false), 1),
    ] {
        *fleet.webhook.manner.lock().unwrap() = manner;
        let (asked, connected) = (fleet.webhook.count(), fleet.webhook.connections.load(Ordering::SeqCst));
        let dies = if crash == "reaping" { "" } else { crash };
        let environment = [("TOOLHOOK_CRASH_AT", dies)];
        let mut first = fleet.replica(if dies.is_empty() { &[] } else { &environment });
        let before = fleet.rows(&first, "limit=200").len();
        std::thread::scope(|scope| {
            let answer = fleet.call_meanwhile(scope, &first, key, "/v1/tools/t/calls", json!({"input": {}}));
            if dies.is_empty() {
                until("the webhook is asked", || match manner {
                    Manner::Deaf => fleet.webhook.connections.load(Ordering::SeqCst) > connected,
                    _ => fleet.webhook.count() > asked,
                });
                std::thread::sleep(Duration::from_millis(50)); // the head may be on its way
                first.signal(Signal::SIGKILL);
            }
            assert!(answer.recv().unwrap().is_none(), "{key}: a dead replica answers nobody");
        });
        first.ended();
        if crash == "reaping" {
            let mut second = fleet.replica(&[("TOOLHOOK_CRASH_AT", "reaping")]);
            second.ended();
        }

        *fleet.webhook.manner.lock().unwrap() = Manner::Well;
        let other = fleet.replica(&[]);
        if let Some(end) = end {
            until("the call ends", || fleet.rows(&other, "limit=1")[0]["status"] == end);
        }
        assert_eq!(fleet.rows(&other, "limit=200").len(), before + usize::from(end.is_some()), "{key}");
        let again = fleet.call(&other, key).unwrap();
        assert_eq!(again.status, 200, "{key}: {}", again.body);
        assert_eq!(
            (again.body["status"].as_str(), again.body["replayed"].as_bool()),
            (Some(repeat.0), Some(repeat.1)),
            "{key}"
        );
        assert_eq!(fleet.webhook.count() - asked, deliveries, "{key}");
        let row = &fleet.rows(&other, "limit=1")[0];
        assert_eq!(
            (&row["id"], &row["status"]),
            (&again.body["id"], &again.body["status"]),
            "{key}: the answer is what the log says"
        );
        assert!(fleet.rows(&other, "status=running").is_empty(), "{key}");
        other.stop(Signal::SIGTERM);
    }
}

#[test]
fn f06_an_owner_that_was_held_still_past_its_lease_changes_nothing() {
    let fleet = Fleet::start();
    *fleet.webhook.manner.lock().unwrap() = Manner::Mute;
    let (first, other) = (fleet.replica(&[]), fleet.replica(&[]));
    std::thread::scope(|scope| {
        let answer = fleet.call_meanwhile(scope, &first, "k", "/v1/tools/t/calls", json!({"input": {}}));
        until("the webhook is asked", || fleet.webhook.count() == 1);
        first.signal(Signal::SIGSTOP);
        until("the call is given up", || fleet.rows(&other, "limit=1")[0]["status"] == "unknown");
        first.signal(Signal::SIGCONT);
        let late = answer.recv().unwrap().unwrap();
        assert_eq!(late.body["status"], "unknown", "{}", late.body);
    });
    let repeat = fleet.call(&other, "k").unwrap();
    assert_eq!(repeat.body["error"]["code"], "outcome_unknown");
    assert_eq!(fleet.rows(&other, "limit=1")[0]["error"]["code"], "outcome_unknown");
    assert_eq!(fleet.webhook.count(), 1);
}

#[test]
fn what_was_not_sent_when_the_grace_time_ends_can_be_made_again() {
    let fleet = Fleet::start();
    *fleet.webhook.manner.lock().unwrap() = Manner::Mute;
    let mut first = fleet.replica(&[("TOOLHOOK_SHUTDOWN_GRACE_MS", "100")]);
    let path = "/v1/formats/toolhook/calls";
    let body = json!({"reply": [{"id": "1", "name": "t", "input": {}}, {"id": "2", "name": "alone", "input": {}}]});
    std::thread::scope(|scope| {
        let answer = fleet.call_meanwhile(scope, &first, "k", path, body.clone());
        until("the webhook is asked", || fleet.webhook.count() == 1);
        first.signal(Signal::SIGTERM);
        assert_eq!(first.ended().code(), Some(1), "{}", first.logged());
        assert!(answer.recv().unwrap().is_none());
    });
    *fleet.webhook.manner.lock().unwrap() = Manner::Well;
    let other = fleet.replica(&[]);
    let told = |rows: &[Value]| rows.iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(told(&fleet.rows(&other, "limit=2")), ["rejected", "unknown"], "at once, not when the lease ends");
    let again = fleet.run(&other.base_url, "k", path, &body).unwrap();
    assert_eq!(told(again.body["calls"].as_array().unwrap()), ["unknown", "succeeded"]);
    assert_eq!(told(&fleet.rows(&other, "limit=2")), ["succeeded", "unknown"]);
    assert_eq!(fleet.webhook.count(), 2);
}

#[test]
fn a_call_that_was_pending_when_its_replica_died_is_answered_by_its_report() {
    let fleet = Fleet::start();
    *fleet.webhook.manner.lock().unwrap() = Manner::Later;
    let (mut first, other) = (fleet.replica(&[]), fleet.replica(&[]));
    let mut later = tool("later", &fleet.webhook.url);
    later["handler"]["async"] = json!(true);
    other.expect(201, &fleet.key, ("POST", "/v1/tools"), Some(&later));
    let path = "/v1/tools/later/calls";
    std::thread::scope(|scope| {
        let answer = fleet.call_meanwhile(scope, &first, "k", path, json!({"input": {}}));
        until("the call is pending", || !fleet.rows(&other, "status=pending").is_empty());
        first.signal(Signal::SIGKILL);
        assert!(answer.recv().unwrap().is_none());
    });
    first.ended();
    let repeat = || fleet.run(&other.base_url, "k", path, &json!({"input": {}})).unwrap();
    let event = fleet.webhook.last.lock().unwrap().clone();
    let (_, event) = event.split_once("\r\n\r\n").unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    let callback = event["data"]["callback_url"].as_str().unwrap();
    let callback = &callback[callback.find("/v1/").unwrap()..];
    let taken = send_with(&other.base_url, &[], "POST", callback, Some(&json!({"text": "done"}))).unwrap();
    assert_eq!(taken.body["accepted"], true, "{}", taken.body);
    let told = std::cell::RefCell::new(repeat());
    until("the dead replica's lease runs out", || {
        if told.borrow().status != 200 {
            assert_eq!(told.borrow().body["code"], "request_in_progress");
            told.replace(repeat());
        }
        told.borrow().status == 200
    });
    let told = told.into_inner();
    assert_eq!(told.body["result"]["text"], "done", "{}", told.body);
    assert_eq!(told.body["replayed"], false);
    let told = repeat();
    assert_eq!((&told.body["replayed"], &told.body["result"]["text"]), (&json!(true), &json!("done")));
    assert_eq!(fleet.webhook.count(), 1, "it was sent once");
}
