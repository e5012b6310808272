//! Postgres goes away under load, and comes back: lists go on, calls are refused, and nobody restarts anything.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::http::{Answer, send, send_with};
use crate::process::{Scratch, Server, finish, tool, toolhook};
use crate::webhook::Webhook;

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Longer than a key is taken without asking, so that the database is asked and does not answer.
const OUTAGE: Duration = Duration::from_secs(7);

/// What one caller met while it asked for a list again and again.
#[derive(Default)]
struct Seen {
    fresh: usize,
    stale: Vec<u64>,
    failed: Vec<String>,
    slowest: Duration,
}

fn ask_again_and_again(base_url: String, key: String, over: Arc<AtomicBool>) -> JoinHandle<Seen> {
    thread::spawn(move || {
        let mut seen = Seen::default();
        while !over.load(Ordering::SeqCst) {
            let began = Instant::now();
            match send(&base_url, &key, "GET", "/v1/formats/openai-chat/tools", None) {
                Ok(answer) if answer.status == 200 => match answer.header("toolhook-stale") {
                    Some(age) => seen.stale.push(age.parse().unwrap()),
                    None => seen.fresh += 1,
                },
                Ok(Answer { status, text, .. }) => seen.failed.push(format!("{status} {text}")),
                Err(error) => seen.failed.push(error.to_string()),
            }
            seen.slowest = seen.slowest.max(began.elapsed());
            thread::sleep(Duration::from_millis(5));
        }
        seen
    })
}

fn serve(url: &str) -> Command {
    let mut command = toolhook(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("DATABASE_URL", url).env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
    command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true");
    command.env("TOOLHOOK_EGRESS_PORTS", "any");
    command
}

/// A tenant's key, made on the command line.
fn key(url: &str) -> String {
    let run = |arguments: &[&str]| {
        let ended = finish(toolhook(arguments).env("DATABASE_URL", url));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        ended.out.trim().to_owned()
    };
    run(&["migrate"]);
    run(&["tenants", "create", "acme"]);
    run(&["keys", "create", "--role", "editor", "--tenant", "acme"])
}

const LIST: &str = "/v1/formats/openai-chat/tools";

/// A call of the tool `seen`.
fn call(server: &Server, key: &str) -> Answer {
    send(&server.base_url, key, "POST", "/v1/tools/seen/calls", Some(&json!({"input": {}}))).unwrap()
}

#[test]
fn l03_lists_go_on_without_postgres_and_calls_are_refused_before_anything_is_sent() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let (key, webhook) = (key(&url), Webhook::start("ok"));
    let server = Server::start(&scratch, &mut serve(&url));
    server.expect(201, &key, ("POST", "/v1/tools"), Some(&tool("seen", &webhook.url)));
    assert_eq!(call(&server, &key).status, 200);
    let list = server.get(&key, LIST).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> =
        (0..4).map(|_| ask_again_and_again(server.base_url.clone(), key.clone(), Arc::clone(&over))).collect();
    thread::sleep(Duration::from_millis(300));

    postgres.stop();
    calls_are_refused(&server, &key);
    what_is_in_memory_is_served(&server, &key, &list);
    assert_eq!(webhook.posted(<[_]>::len), 1, "nothing was sent");

    let postgres = scratch.postgres();
    let (back, mut status) = (Instant::now(), 0);
    while status != 200 {
        assert!(back.elapsed() < Duration::from_secs(10), "it does not come back: {status}\n{}", server.logged());
        status = call(&server, &key).status;
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(webhook.posted(<[_]>::len), 2);
    server.expect(200, &key, ("GET", "/v1/calls"), None);
    assert!(server.get(&key, LIST).unwrap().header("toolhook-stale").is_none());
    over.store(true, Ordering::SeqCst);
    for caller in callers {
        let seen = caller.join().unwrap();
        assert!(seen.failed.is_empty(), "{} of the lists failed, such as {:?}", seen.failed.len(), seen.failed.first());
        assert!(seen.fresh > 10 && seen.stale.len() > 50, "{} fresh, {} stale", seen.fresh, seen.stale.len());
        assert!(seen.stale.iter().max().unwrap() >= &3, "the age grows: {:?}", seen.stale.last());
        assert!(seen.slowest < Duration::from_secs(4), "{:?}", seen.slowest);
    }
    server.stop(Signal::SIGTERM);
    postgres.stop();
}

fn calls_are_refused(server: &Server, key: &str) {
    let (began, mut slowest) = (Instant::now(), Duration::ZERO);
    while began.elapsed() < OUTAGE {
        let refusing = Instant::now();
        let refused = call(server, key);
        assert_eq!((refused.status, &refused.body["code"]), (503, &json!("unavailable")), "{}", refused.text);
        assert!(refused.header("retry-after").is_some());
        slowest = slowest.max(refusing.elapsed());
        thread::sleep(Duration::from_millis(50));
    }
    assert!(slowest < Duration::from_secs(3), "refused only after {slowest:?}");
}

fn what_is_in_memory_is_served(server: &Server, key: &str, list: &Answer) {
    let (began, stale) = (Instant::now(), server.get(key, LIST).unwrap());
    assert!(began.elapsed() < Duration::from_secs(1), "nobody waits for a database that is known to be away");
    assert_eq!((stale.status, &stale.text), (200, &list.text));
    assert!(stale.header("toolhook-stale").is_some(), "{}", stale.head);
    let (authorization, tag) = (format!("Bearer {key}"), stale.header("etag").unwrap());
    let headers = [("authorization", authorization.as_str()), ("if-none-match", tag)];
    let known = send_with(&server.base_url, &headers, "GET", LIST, None).unwrap();
    assert_eq!(known.status, 304);
    assert!(known.header("toolhook-stale").is_some(), "{}", known.head);
    let headers = [("authorization", authorization.as_str()), ("accept", "application/json, text/event-stream")];
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let over_mcp = send_with(&server.base_url, &headers, "POST", "/mcp", Some(&message)).unwrap();
    assert_eq!(over_mcp.status, 200, "{}", over_mcp.text);
    assert!(over_mcp.header("toolhook-stale").is_some(), "{}", over_mcp.head);
    assert_eq!(server.get("", "/readyz").unwrap().status, 503);
    assert_eq!(server.get("", "/livez").unwrap().status, 200);
    let metrics = server.get("", "/metrics").unwrap().text;
    for line in ["toolhook_database_up 0\n", "toolhook_stale_lists_total "] {
        assert!(metrics.contains(line), "{metrics}");
    }
    let mistyped = format!("{}aaaa", &key[..key.len() - 4]);
    assert_eq!(server.get(&mistyped, "/v1/tools").unwrap().status, 401, "which is known without a database");
}

#[test]
fn lists_that_are_too_old_are_not_served() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let key = key(&url);
    let server = Server::start(&scratch, serve(&url).env("TOOLHOOK_STALE_LISTS_MS", "2000"));
    assert_eq!(server.get(&key, "/v1/formats/mcp/tools").unwrap().status, 200);
    postgres.stop();
    let began = Instant::now();
    loop {
        let _ = server.get("", "/readyz"); // notices that the database is away
        let list = server.get(&key, "/v1/formats/mcp/tools").unwrap();
        if list.status == 503 {
            assert!(list.header("retry-after").is_some());
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(6), "{}", list.head);
        thread::sleep(Duration::from_millis(100));
    }
    assert!(began.elapsed() > Duration::from_millis(1_500), "{:?}", began.elapsed());
    server.stop(Signal::SIGTERM);
}

/// A Postgres that is there and does nothing is away too.
#[test]
fn a_postgres_that_hangs_is_noticed() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let key = key(&url);
    let server = Server::start(&scratch, &mut serve(&url));
    assert_eq!(server.get(&key, "/v1/formats/mcp/tools").unwrap().status, 200);
    let pids: Vec<String> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|process| {
            let cwd = fs::read_link(process.path().join("cwd"));
            cwd.is_ok_and(|cwd| cwd.starts_with(scratch.path()))
        })
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!pids.is_empty());
    let all = |signal: Signal| {
        for pid in &pids {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.parse().unwrap()), signal);
        }
    };
    all(Signal::SIGSTOP);
    let began = Instant::now();
    let refused = server.get("", "/readyz").unwrap().status;
    let took = began.elapsed();
    let list = server.get(&key, "/v1/formats/mcp/tools").unwrap();
    all(Signal::SIGCONT);
    assert_eq!(refused, 503);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(list.status, 200);
    assert!(list.header("toolhook-stale").is_some(), "{}", list.head);
    let began = Instant::now();
    while server.get("", "/readyz").unwrap().status != 200 {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", server.logged());
        thread::sleep(Duration::from_millis(50));
    }
    server.stop(Signal::SIGTERM);
    postgres.stop();
}
