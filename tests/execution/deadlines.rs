//! When time is up.

use crate::receiver::{Reaction, Receiver, json};
use crate::setup::{call, executor, failure, registry, registry_with, request, run, text, tool};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;
use toolhook::domain::{CallStatus, Outcome, TenantLimits};
use toolhook::execution::Natives;

#[tokio::test]
async fn one_of_three_times_out() {
    let receiver = Receiver::start(|seen| match seen.n() {
        1 => Reaction::Silence,
        n => Reaction::Answer(json(&n.to_string())),
    })
    .await;
    let registry = registry(vec![tool("probe", &receiver.url(), &json!({"timeout_ms": 400}))]);
    let began = Instant::now();
    let executed = run(&registry, (0..3).map(|n| call("probe", json!({"n": n}))).collect()).await;
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!((text(&executed[0]), text(&executed[2])), ("0".to_owned(), "2".to_owned()));
    let late = failure(&executed[1]);
    assert_eq!((late.status, late.code, executed[1].attempts), (CallStatus::TimedOut, "timed_out", 1));
    assert!(late.message.contains("in time") && late.message.contains("check before"), "{}", late.message);
}

#[tokio::test]
async fn a_slow_drip_ends_at_the_deadline() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1000\r\n\r\n";
    let receiver = Receiver::start(|_| Reaction::Drip(head.to_vec(), Duration::from_millis(50))).await;
    let registry = registry(vec![tool("drip", &receiver.url(), &json!({"timeout_ms": 400}))]);
    let began = Instant::now();
    let executed = run(&registry, vec![call("drip", json!({"n": 0}))]).await;
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!(failure(&executed[0]).code, "timed_out");
}

#[tokio::test]
async fn the_shortest_of_tool_tenant_and_request_counts() {
    let receiver = Receiver::start(|_| Reaction::Silence).await;
    let slow = tool("t", &receiver.url(), &json!({"timeout_ms": 5000}));
    let limits = TenantLimits { max_timeout_ms: Some(200), ..TenantLimits::default() };
    for (registry, time) in [
        (registry_with(limits, vec![slow.clone()]), Duration::from_secs(5)),
        (registry(vec![slow]), Duration::from_millis(200)),
    ] {
        let began = Instant::now();
        let request = request(&registry, vec![call("t", json!({"n": 0}))], time);
        let executed = executor(Natives::default()).run(request).await;
        assert_eq!(failure(&executed[0]).status, CallStatus::TimedOut);
        assert!(began.elapsed() < Duration::from_millis(700), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn calls_whose_turn_does_not_come_are_answered_and_not_sent() {
    let wait = Duration::from_millis(150);
    let receiver = Receiver::start(move |seen| Reaction::After(wait, json(&seen.n().to_string()))).await;
    let registry = registry(vec![tool("t", &receiver.url(), &json!({"concurrent": false}))]);
    let calls = (0..8).map(|n| call("t", json!({"n": n}))).collect();
    let began = Instant::now();
    let executed = executor(Natives::default()).run(request(&registry, calls, Duration::from_millis(400))).await;
    assert!(began.elapsed() < Duration::from_millis(800), "{:?}", began.elapsed());
    assert_eq!(executed.len(), 8);
    let sent = executed.iter().filter(|one| one.attempts == 1).count();
    assert_eq!(receiver.seen().len(), sent);
    assert!((1..=3).contains(&sent), "{sent}");
    assert!(matches!(executed[0].outcome, Outcome::Success(_)));
    for one in &executed[sent..] {
        let failure = failure(one);
        assert_eq!((failure.status, failure.code), (CallStatus::TimedOut, "not_started"));
        assert!(failure.message.contains("has not run"));
    }
}
