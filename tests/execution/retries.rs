//! What is sent again, when, and what is not.

use crate::receiver::{Reaction, Receiver, Seen, answer, json};
use crate::setup::{SECRET, call, executor, failure, limited, registry, run, run_by, text, tool};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use toolhook::domain::CallStatus;
use toolhook::egress::{Egress, Lookup, Policy};
use toolhook::execution::{Breaking, Executor, Limiting, Natives};

/// No breaker, so that what is looked at is the repeating alone.
fn patient() -> Limiting {
    let breaking = Breaking { in_a_row: u32::MAX, at_least: u32::MAX, ..Breaking::default() };
    Limiting { breaking, ..Limiting::default() }
}

/// A receiver that does the first things once each, in their order, and the last one from then on.
async fn script(reactions: Vec<fn() -> Reaction>) -> Receiver {
    let count = AtomicUsize::new(0);
    let last = reactions.len() - 1;
    Receiver::start(move |_| reactions[count.fetch_add(1, Ordering::SeqCst).min(last)]()).await
}

fn done() -> Reaction {
    Reaction::Answer(json(r#"{"text":"done"}"#))
}

fn busy() -> Reaction {
    Reaction::Answer(answer("503 Service Unavailable", "text/plain", ""))
}

fn with_wait(status: &str, seconds: u32) -> Reaction {
    let head = format!("HTTP/1.1 {status}\r\nretry-after: {seconds}\r\ncontent-length: 0\r\n\r\n");
    Reaction::Answer(head.into_bytes())
}

fn said(seen: &[Seen], what: &str) -> Vec<Value> {
    seen.iter().map(|one| one.data()[what].clone()).collect()
}

#[tokio::test]
async fn f12_an_idempotent_tool_is_sent_again_under_the_same_id() {
    for annotations in [json!({"idempotent": true}), json!({"read_only": true})] {
        let receiver = script(vec![busy, || with_wait("503 Service Unavailable", 1), done]).await;
        let registry = registry(vec![tool("t", &receiver.url(), &json!({"annotations": annotations}))]);
        let executed = run(&registry, vec![call("t", json!({"n": 1}))]).await;
        assert_eq!((text(&executed[0]).as_str(), executed[0].attempts), ("done", 3));
        let (seen, id) = (receiver.seen(), executed[0].id.to_string());
        assert_eq!(said(&seen, "attempt"), [1, 2, 3]);
        assert_eq!(said(&seen, "id"), vec![json!(id); 3]);
        for one in &seen {
            assert_eq!(
                (one.header("webhook-id"), one.header("idempotency-key")),
                (Some(id.as_str()), Some(id.as_str()))
            );
            let headers = one.headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let webhook = standardwebhooks::Webhook::new(SECRET).unwrap();
            assert!(webhook.verify(one.body.as_bytes(), &headers.collect()).is_ok(), "each is signed for itself");
        }
        assert!(seen[2].arrived - seen[1].arrived >= Duration::from_secs(1), "Retry-After is honoured");
        assert_ne!(seen[0].header("webhook-timestamp"), seen[2].header("webhook-timestamp"));
    }
}

#[tokio::test]
async fn f11_a_tool_that_is_neither_is_never_sent_again_once_it_may_have_arrived() {
    let reactions: [fn() -> Reaction; 7] = [
        busy,
        || with_wait("503 Service Unavailable", 0),
        || with_wait("429 Too Many Requests", 0),
        || Reaction::Answer(answer("502 Bad Gateway", "text/plain", "")),
        || Reaction::Answer(answer("504 Gateway Timeout", "text/plain", "")),
        || Reaction::Close(b""),
        || Reaction::Close(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"),
    ];
    for (n, reaction) in reactions.into_iter().enumerate() {
        for (annotations, sent) in
            [(json!({}), 1), (json!({"idempotent": false, "read_only": false}), 1), (json!({"idempotent": true}), 2)]
        {
            let receiver = script(vec![reaction, done]).await;
            let registry = registry(vec![tool("t", &receiver.url(), &json!({"annotations": annotations}))]);
            let executed = run_by(&limited(Limiting::default()), &registry, vec![call("t", json!({"n": 1}))]).await;
            assert_eq!(
                (executed[0].attempts, receiver.seen().len()),
                (sent, usize::try_from(sent).unwrap()),
                "{n} {annotations}"
            );
            if sent == 2 {
                assert_eq!(text(&executed[0]), "done");
            }
        }
    }
}

#[tokio::test]
async fn what_is_an_answer_is_not_asked_for_again() {
    for (status, body) in
        [("500 Internal Server Error", ""), ("404 Not Found", ""), ("200 OK", r#"{"error":"no"}"#), ("302 Found", "")]
    {
        let status = status.to_owned();
        let receiver = Receiver::start(move |_| Reaction::Answer(answer(&status, "application/json", body))).await;
        let registry = registry(vec![tool("t", &receiver.url(), &json!({"annotations": {"idempotent": true}}))]);
        let executed = run(&registry, vec![call("t", json!({"n": 1}))]).await;
        assert_eq!((failure(&executed[0]).status, executed[0].attempts), (CallStatus::Failed, 1));
        assert_eq!(receiver.seen().len(), 1);
    }
}

#[tokio::test]
async fn as_often_as_the_handler_says_and_within_the_time() {
    let handler =
        |url: &str, most: u32| json!({"kind": "webhook", "url": url, "signing_secret": SECRET, "max_attempts": most});
    let executor = limited(patient());
    for most in [1, 2, 3, 6] {
        let receiver = script(vec![busy]).await;
        let more = json!({"annotations": {"idempotent": true}, "handler": handler(&receiver.url(), most)});
        let registry = registry(vec![tool("t", &receiver.url(), &more)]);
        let executed = run_by(&executor, &registry, vec![call("t", json!({"n": 1}))]).await;
        let failure = failure(&executed[0]);
        assert_eq!((failure.code, executed[0].attempts), ("handler_status", most), "{}", failure.message);
        assert_eq!(receiver.seen().len(), usize::try_from(most).unwrap());
    }
    // A wait that does not fit is not begun, and the model hears of it.
    let receiver = script(vec![|| with_wait("429 Too Many Requests", 60)]).await;
    let registry = registry(vec![tool("t", &receiver.url(), &json!({"annotations": {"idempotent": true}}))]);
    let began = Instant::now();
    let executed = run_by(&executor, &registry, vec![call("t", json!({"n": 1}))]).await;
    assert!(failure(&executed[0]).message.contains("60 seconds"), "{:?}", failure(&executed[0]));
    assert_eq!((executed[0].attempts, receiver.seen().len()), (1, 1));
    assert!(began.elapsed() < Duration::from_secs(8), "answered at once");
}

/// A name that resolves to loopback from the `n`-th time on.
#[derive(Clone)]
struct Resolves {
    from: u64,
    asked: Arc<AtomicU64>,
}

impl Lookup for Resolves {
    fn lookup(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = if asked < self.from {
            Err(io::Error::other("no such host"))
        } else {
            Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
        };
        Box::pin(std::future::ready(answer))
    }
}

fn resolving(policy: Policy, from: u64) -> (Executor, Resolves) {
    let lookup = Resolves { from, asked: Arc::default() };
    let egress = Egress::with_lookup(policy, lookup.clone()).unwrap();
    let soon = Limiting { first_backoff: Duration::from_millis(5), ..Limiting::default() };
    (Executor::new(egress, Natives::default()).limited_by(soon), lookup)
}

#[tokio::test]
async fn f10_what_cannot_have_arrived_is_sent_again_whatever_the_tool_says() {
    let receiver = Receiver::echo().await;
    let url = format!("http://hooks.example.com:{}/run", receiver.address.port());
    let registry = registry(vec![tool("t", &url, &json!({}))]);
    let (executor, lookup) = resolving(Policy::development(), 3);
    let executed = run_by(&executor, &registry, vec![call("t", json!({"n": 7}))]).await;
    assert_eq!((text(&executed[0]).as_str(), executed[0].attempts), ("7", 3));
    assert_eq!((said(&receiver.seen(), "attempt"), lookup.asked.load(Ordering::SeqCst)), (vec![json!(3)], 3));

    let (executor, lookup) = resolving(Policy::development(), 4);
    let executed = run_by(&executor, &registry, vec![call("t", json!({"n": 7}))]).await;
    assert_eq!((failure(&executed[0]).code, executed[0].attempts), ("handler_unreachable", 3));
    assert_eq!((lookup.asked.load(Ordering::SeqCst), receiver.seen().len()), (3, 1));
}

#[tokio::test]
async fn f10_a_refused_connection_is_tried_three_times_and_a_blocked_address_once() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let registry_of = |url: &str| registry(vec![tool("t", url, &json!({"annotations": {"idempotent": true}}))]);
    let closed = registry_of(&format!("http://{free}/run"));
    let executed = run_by(&limited(Limiting::default()), &closed, vec![call("t", json!({"n": 1}))]).await;
    assert_eq!((failure(&executed[0]).code, executed[0].attempts), ("handler_unreachable", 3));

    let receiver = Receiver::echo().await;
    let guarded = Policy { allow: Vec::new(), ..Policy::development() };
    let (executor, lookup) = resolving(guarded, 0);
    let registry = registry_of(&format!("http://hooks.example.com:{}/run", receiver.address.port()));
    let executed = run_by(&executor, &registry, vec![call("t", json!({"n": 1}))]).await;
    assert_eq!((failure(&executed[0]).code, executed[0].attempts), ("handler_unreachable", 1));
    assert_eq!((lookup.asked.load(Ordering::SeqCst), receiver.seen().len()), (1, 0));
}

#[tokio::test]
async fn a_dead_handler_gets_a_fifth_more_and_not_three_times_as_much() {
    let receiver = script(vec![busy]).await;
    let registry = registry(vec![tool("t", &receiver.url(), &json!({"annotations": {"idempotent": true}}))]);
    let executor = limited(Limiting { repeats_per_second: 0, ..patient() });
    let executed = run_by(&executor, &registry, (0..50).map(|n| call("t", json!({"n": n}))).collect()).await;
    assert!(executed.iter().all(|one| failure(one).code == "handler_status"));
    let sent = receiver.seen().len();
    assert!((51..=60).contains(&sent), "{sent} requests for 50 calls");
    let attempts: u32 = executed.iter().map(|one| one.attempts).sum();
    assert_eq!(usize::try_from(attempts).unwrap(), sent);
    // The same with what every handler may have: some repeats whatever it was sent before.
    let executed = run_by(&self::executor(Natives::default()), &registry, vec![call("t", json!({"n": 1}))]).await;
    assert_eq!(executed[0].attempts, 3);
}
