//! A primary dies, and its standby is promoted behind the same address: nobody restarts anything, and nothing that was answered is
//! lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::http::{Answer, send_with};
use crate::pair::{Fate, Pair};
use crate::process::{Scratch, Server, finish, tool, toolhook};
use crate::webhook::Webhook;

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const LIST: &str = "/v1/formats/toolhook/tools";
/// How long there is no primary.
const WITHOUT: Duration = Duration::from_secs(1);
/// How soon calls work again after the promotion, at the latest.
const AGAIN: Duration = Duration::from_secs(20);
/// The bound for news of changes.
const BOUND: Duration = Duration::from_secs(5);

fn serve(url: &str) -> std::process::Command {
    let mut command = toolhook(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("DATABASE_URL", url).env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
    command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true");
    command.env("TOOLHOOK_EGRESS_PORTS", "any");
    command
}

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

/// A request of the holder of a key.
#[derive(Clone)]
struct Caller {
    base_url: String,
    key: String,
}

impl Caller {
    fn call(&self, idempotency: Option<&str>) -> std::io::Result<Answer> {
        let authorization = format!("Bearer {}", self.key);
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend(idempotency.map(|key| ("idempotency-key", key)));
        send_with(&self.base_url, &headers, "POST", "/v1/tools/seen/calls", Some(&json!({"input": {}})))
    }

    fn list(&self) -> std::io::Result<Answer> {
        let authorization = format!("Bearer {}", self.key);
        send_with(&self.base_url, &[("authorization", &authorization)], "GET", LIST, None)
    }
}

/// What somebody met who asked again and again.
#[derive(Default)]
struct Met {
    /// The ids of the calls that were answered, each with the key that it was made with.
    calls: Vec<(String, Option<String>)>,
    lists: usize,
    stale: usize,
    refused: usize,
    odd: Vec<String>,
}

impl Met {
    fn call(&mut self, idempotency: Option<&str>, answer: std::io::Result<Answer>) {
        match answer {
            Ok(answer) if answer.status == 200 && answer.body["status"] == "succeeded" => {
                self.calls.push((answer.body["id"].as_str().unwrap().to_owned(), idempotency.map(str::to_owned)));
            }
            Ok(answer) if answer.status == 503 && answer.body["code"] == "unavailable" => self.refused += 1,
            Ok(answer) => self.odd.push(answer.text),
            Err(error) => self.odd.push(error.to_string()),
        }
    }

    fn list(&mut self, answer: std::io::Result<Answer>) {
        match answer {
            Ok(answer) if answer.status == 200 => {
                self.lists += 1;
                self.stale += usize::from(answer.header("toolhook-stale").is_some());
            }
            Ok(answer) => self.odd.push(answer.text),
            Err(error) => self.odd.push(error.to_string()),
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy)]
enum Asked {
    Lists,
    Calls,
    CallsWithKeys,
}

/// Those who ask at the same time, until it is over.
struct Crowd {
    over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<Met>>,
}

impl Crowd {
    fn start(caller: &Caller, asked: &[Asked]) -> Self {
        let (over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let ask = |(place, asked): (usize, &Asked)| {
            let (caller, asked, over, answered) = (caller.clone(), *asked, Arc::clone(&over), Arc::clone(&answered));
            thread::spawn(move || {
                let mut met = Met::default();
                for number in 0.. {
                    if over.load(Ordering::SeqCst) {
                        break;
                    }
                    match asked {
                        Asked::Lists => met.list(caller.list()),
                        Asked::Calls => met.call(None, caller.call(None)),
                        Asked::CallsWithKeys => {
                            let idempotency = format!("{place}-{number}");
                            met.call(Some(&idempotency), caller.call(Some(&idempotency)));
                        }
                    }
                    answered.fetch_add(met.calls.len().min(1), Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(5));
                }
                met
            })
        };
        let threads = asked.iter().enumerate().map(ask).collect();
        Self { over, answered, threads }
    }

    /// Waits until calls have been answered.
    fn is_under_way(&self) {
        let began = Instant::now();
        while self.answered.load(Ordering::SeqCst) < 100 {
            assert!(began.elapsed() < AGAIN, "no calls are answered");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(self) -> Vec<Met> {
        self.over.store(true, Ordering::SeqCst);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

#[test]
fn a_promoted_standby_takes_over_behind_one_address() {
    takes_over(Fate::Dies);
}

/// Its machine is gone: nobody says that the connections to it are closed.
#[test]
fn a_primary_that_vanishes_without_a_word_is_let_go() {
    takes_over(Fate::Vanishes);
}

fn takes_over(fate: Fate) {
    let scratch = Scratch::new();
    let Some(mut pair) = Pair::start(&scratch) else { return };
    let url = pair.url();
    let (key, webhook) = (key(&url), Webhook::start("ok"));
    let replicas = [(); 2].map(|()| Server::start(&scratch, &mut serve(&url)));
    replicas[0].expect(201, &key, ("POST", "/v1/tools"), Some(&tool("seen", &webhook.url)));
    let caller = Caller { base_url: replicas[0].base_url.clone(), key: key.clone() };
    let other = Caller { base_url: replicas[1].base_url.clone(), key: key.clone() };
    assert_eq!(other.list().unwrap().status, 200, "it is in memory");
    let asked = [Asked::Lists, Asked::Calls, Asked::Calls, Asked::CallsWithKeys, Asked::CallsWithKeys];
    let crowd = Crowd::start(&caller, &asked);
    crowd.is_under_way();

    pair.lose_primary(fate);
    without_a_primary(&replicas[0], &caller);
    pair.promote();
    until(&replicas[0], "calls work", AGAIN, || caller.call(None).is_ok_and(|answer| answer.status == 200));
    until(&replicas[1], "calls work", AGAIN, || other.call(None).is_ok_and(|answer| answer.status == 200));
    let (before, began) = (crowd.answered.load(Ordering::SeqCst), Instant::now());
    while crowd.answered.load(Ordering::SeqCst) < before + 100 {
        assert!(began.elapsed() < AGAIN, "callers are not answered any more: {}", replicas[0].logged());
        thread::sleep(Duration::from_millis(10));
    }
    let met = crowd.end();
    nothing_is_lost(&replicas, &caller, &met);
    until(&replicas[0], "both replicas listen to the new primary", BOUND, || pair.listeners() == 2);
    news_travel(&replicas, &key, &other);
    for replica in replicas {
        replica.stop(Signal::SIGTERM);
    }
}

fn until(server: &Server, what: &str, bound: Duration, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < bound, "not within {bound:?}: {what}\n{}", server.logged());
        thread::sleep(Duration::from_millis(20));
    }
}

/// The address leads to a standby: it answers, but takes no writes.
fn without_a_primary(server: &Server, caller: &Caller) {
    let refused = || caller.call(None).is_ok_and(|answer| answer.status == 503);
    until(server, "calls are refused", AGAIN, refused);
    let began = Instant::now();
    while began.elapsed() < WITHOUT {
        assert!(refused(), "a call without a primary: {}", server.logged());
        assert_eq!(server.get("", "/readyz").unwrap().status, 503);
        thread::sleep(Duration::from_millis(50));
    }
}

/// Every call that was answered is in the log of the new primary, and its key has the answer that it had.
fn nothing_is_lost(replicas: &[Server; 2], caller: &Caller, met: &[Met]) {
    let odd: Vec<&String> = met.iter().flat_map(|met| &met.odd).collect();
    assert!(odd.is_empty(), "{} odd answers, such as {:?}\n{}", odd.len(), odd.first(), replicas[0].logged());
    assert!(met[0].stale > 10 && met[0].lists > met[0].stale, "{} of {} lists", met[0].stale, met[0].lists);
    assert!(met[1..].iter().all(|met| met.refused > 0), "calls were under way");
    let answered: Vec<_> = met.iter().flat_map(|met| &met.calls).collect();
    let missing = || {
        let log = logged(&replicas[1], &caller.key);
        answered.iter().filter(|(id, _)| !log.contains(id)).count()
    };
    // What ran without being logged any more is logged as soon as it can be.
    until(&replicas[0], "what was answered is in the log", BOUND, || missing() == 0);
    let keyed: Vec<_> = answered.iter().filter_map(|(id, key)| key.as_ref().map(|key| (id, key))).collect();
    assert!(keyed.len() > 20, "{}", keyed.len());
    for (id, key) in keyed {
        let again = caller.call(Some(key)).unwrap();
        assert_eq!((again.status, again.body["id"].as_str()), (200, Some(id.as_str())), "{}", again.text);
        assert_eq!(again.body["replayed"], json!(true), "{}", again.text);
    }
}

/// The ids of all calls in the log.
fn logged(server: &Server, key: &str) -> BTreeSet<String> {
    let (mut ids, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = server.expect(200, key, ("GET", &format!("/v1/calls?limit=200{cursor}")), None);
        ids.extend(page["data"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

/// What is written on one replica is seen on the other, by the new primary's word.
fn news_travel(replicas: &[Server; 2], key: &str, other: &Caller) {
    for number in 0..3 {
        let text = format!("changed {number} times since");
        let change = json!({"description": text});
        replicas[0].expect(200, key, ("PATCH", "/v1/tools/seen"), Some(&change));
        until(&replicas[1], &text, BOUND, || other.list().is_ok_and(|list| list.text.contains(&text)));
    }
}
