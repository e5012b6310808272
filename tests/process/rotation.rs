//! The master key is changed while calls are made.

use std::process::Command;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::http::send;
use crate::process::{Scratch, Server, finish, tool, toolhook};
use crate::webhook::Webhook;

const OLD: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW: &str = "//////////////////////////////////////////8=";
const SECRET: &str = "sealed-header";
/// How many calls go through each step.
const CALLS: usize = 50;

fn with_keys(arguments: &[&str], url: &str, current: &str, previous: &str) -> Command {
    let mut command = toolhook(arguments);
    command.env("DATABASE_URL", url).env("TOOLHOOK_MASTER_KEY", current);
    command.env("TOOLHOOK_PREVIOUS_MASTER_KEYS", previous);
    command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PORTS", "any");
    command.env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true");
    command
}

fn serve(scratch: &Scratch, url: &str, current: &str, previous: &str) -> Server {
    Server::start(scratch, &mut with_keys(&["serve", "--listen", "127.0.0.1:0"], url, current, previous))
}

fn run(arguments: &[&str], url: &str) -> String {
    let ended = finish(toolhook(arguments).env("DATABASE_URL", url));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended.out.trim().to_owned()
}

/// What `toolhook doctor` says of the master key.
fn doctor(url: &str, current: &str, previous: &str) -> String {
    let doctor = finish(&mut with_keys(&["doctor", "--listen", "127.0.0.1:0"], url, current, previous));
    doctor.out.lines().find(|line| line.contains("master key")).unwrap_or_default().to_owned()
}

/// Two replicas behind something that sends nobody to one that is being replaced.
struct Fleet<'a> {
    scratch: &'a Scratch,
    url: &'a str,
    replicas: [RwLock<Server>; 2],
    calls: AtomicUsize,
    stop: AtomicBool,
}

impl Fleet<'_> {
    fn make_tools(&self, key: &str, webhook: &Webhook) {
        for number in 0..30 {
            let mut made = tool(&format!("t{number}"), &webhook.url);
            made["handler"]["headers"] = json!({"x-secret": SECRET});
            self.replicas[0].read().unwrap().expect(201, key, ("POST", "/v1/tools"), Some(&made));
        }
    }

    /// Makes calls, and changes of secrets, until it is told to stop. None may fail.
    fn traffic(&self, number: usize, key: &str) {
        let _stop = Stop(&self.stop); // a call that fails ends the whole
        let mut count = number;
        while !self.stop.load(Ordering::SeqCst) {
            let replica = self.replicas[count % 2].read().unwrap();
            if count.is_multiple_of(5) {
                let changed = json!({"handler": {"headers": {"x-secret": SECRET, "x-count": count.to_string()}}});
                replica.expect(200, key, ("PATCH", &format!("/v1/tools/t{number}")), Some(&changed));
            }
            let path = format!("/v1/tools/t{number}/calls");
            let answer = send(&replica.base_url, key, "POST", &path, Some(&json!({"input": {}}))).unwrap();
            assert_eq!((answer.status, &answer.body["status"]), (200, &json!("succeeded")), "{}", answer.text);
            self.calls.fetch_add(1, Ordering::SeqCst);
            count += 1;
        }
    }

    /// Replaces one replica after the other, with traffic in between.
    fn roll(&self, current: &str, previous: &str) {
        for replica in &self.replicas {
            let next = serve(self.scratch, self.url, current, previous);
            let before = std::mem::replace(&mut *replica.write().unwrap(), next);
            before.stop(Signal::SIGTERM);
            self.let_through();
        }
    }

    fn let_through(&self) {
        let until = self.calls.load(Ordering::SeqCst) + CALLS;
        while self.calls.load(Ordering::SeqCst) < until && !self.stop.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// The four steps, with traffic in between.
    fn rotate(&self) {
        let _stop = Stop(&self.stop);
        self.let_through();
        self.roll(OLD, NEW);
        self.roll(NEW, OLD);
        assert!(doctor(self.url, NEW, OLD).contains("with a previous key"), "{}", doctor(self.url, NEW, OLD));
        // A replica without the new key would have been refused, and so would one without the old key now.
        finish(&mut with_keys(&["serve", "--listen", "127.0.0.1:0"], self.url, NEW, ""))
            .complains(1, &["not the master key", "PREVIOUS"]);
        let rotated = finish(&mut with_keys(&["rotate-master-key"], self.url, NEW, OLD));
        assert_eq!(rotated.code, Some(0), "{}{}", rotated.out, rotated.err);
        assert_eq!(rotated.out.lines().count(), 2, "one key is left: {}", rotated.out);
        assert!(rotated.out.contains("current") && !rotated.err.contains("Sealed 0"), "{}{}", rotated.out, rotated.err);
        self.let_through();
        self.roll(NEW, "");
        assert!(doctor(self.url, NEW, "").starts_with("ok"), "{}", doctor(self.url, NEW, ""));
    }
}

#[test]
fn i09_the_master_key_is_changed_under_traffic_and_no_call_fails() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let webhook = Webhook::start("done");
    let fleet = Fleet {
        scratch: &scratch,
        url: &url,
        replicas: [serve(&scratch, &url, OLD, ""), serve(&scratch, &url, OLD, "")].map(RwLock::new),
        calls: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    };
    run(&["tenants", "create", "acme"], &url);
    let key = run(&["keys", "create", "--role", "editor", "--tenant", "acme"], &url);
    fleet.make_tools(&key, &webhook);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|number| {
                scope.spawn({
                    let (fleet, key) = (&fleet, &key);
                    move || fleet.traffic(number, key)
                })
            })
            .collect();
        let steps = scope.spawn(|| fleet.rotate());
        steps.join().unwrap();
        for client in clients {
            client.join().unwrap();
        }
    });
    finish(&mut with_keys(&["serve", "--listen", "127.0.0.1:0"], &url, OLD, "")).complains(1, &["not the master key"]);
    let again = finish(&mut with_keys(&["rotate-master-key"], &url, OLD, ""));
    again.complains(1, &["under another master key"]);
    assert!(again.out.contains("unknown"), "{}", again.out);
    let calls = fleet.calls.load(Ordering::SeqCst);
    webhook.posted(|posted| {
        assert_eq!(posted.len(), calls);
        assert!(posted.iter().all(|post| post.header("x-secret") == Some(SECRET)));
    });
    for replica in fleet.replicas {
        replica.into_inner().unwrap().stop(Signal::SIGTERM);
    }
    postgres.stop();
}

/// Ends the traffic, also when a step fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
