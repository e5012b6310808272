//! How many calls run at one time: of a tenant, and of a handler.

use crate::receiver::{Reaction, Receiver, Seen, json};
use crate::setup::{call, executor, failure, limited, registry, registry_with, request, run_by, text, tool};
use serde_json::json;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use toolhook::domain::{CallStatus, Outcome, TenantLimits};
use toolhook::execution::{Limiting, Natives};

/// The most requests that were with the receiver at one time.
fn at_once(seen: &[Seen]) -> usize {
    let with = |at| seen.iter().filter(|one| one.arrived <= at && at < one.answered).count();
    seen.iter().map(|one| with(one.arrived)).max().unwrap_or_default()
}

async fn slow(time: Duration) -> Receiver {
    Receiver::start(move |_| Reaction::After(time, json(r#"{"text":"late"}"#))).await
}

async fn eventually(mut what: impl FnMut() -> bool) {
    for _ in 0..500 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come about within 5 seconds");
}

#[tokio::test]
async fn e03_a_slow_handler_queues_its_own_calls_alone() {
    let hung = Receiver::start(|_| Reaction::Silence).await;
    let quick = Receiver::echo().await;
    // Room for three calls of the tenant: the hung handler may have two of them, however many wait for it.
    let limits = TenantLimits { concurrent_calls: Some(3), ..TenantLimits::default() };
    let tools = vec![tool("hung", &hung.url(), &json!({"timeout_ms": 1500})), tool("quick", &quick.url(), &json!({}))];
    let registry = registry_with(limits, tools);
    let executor = limited(Limiting { handler_concurrency: 2, ..Limiting::default() });
    let (tasks, behind) = (TaskTracker::new(), (executor.clone(), registry.clone()));
    let stuck = tasks.spawn(async move {
        run_by(&behind.0, &behind.1, (0..12).map(|n| call("hung", json!({"n": n}))).collect()).await
    });
    eventually(|| hung.seen().len() == 2).await;
    for n in 0..20 {
        let executed = run_by(&executor, &registry, vec![call("quick", json!({"n": n}))]).await;
        assert_eq!(text(&executed[0]), n.to_string());
    }
    assert!(!stuck.is_finished(), "the quick ones were done while the others hung");
    assert_eq!(hung.seen().len(), 2);
    let stuck = stuck.await.unwrap();
    let codes: Vec<&str> = stuck.iter().map(|one| failure(one).code).collect();
    let count = |code: &str| codes.iter().filter(|one| **one == code).count();
    // Eight may wait, for half of their time; the hung two take all of theirs.
    assert_eq!((count("timed_out"), count("handler_busy")), (2, 10), "{codes:?}");
    assert_eq!(hung.seen().len(), 2, "what waited in vain was not sent");
    let waited = stuck.iter().find(|one| failure(one).code == "handler_busy").unwrap();
    assert_eq!((failure(waited).status, waited.attempts), (CallStatus::Rejected, 0));
}

#[tokio::test]
async fn many_calls_of_one_reply_to_one_handler_take_their_turns() {
    let receiver = slow(Duration::from_millis(50)).await;
    let registry = registry(vec![tool("t", &receiver.url(), &json!({}))]);
    let executor = limited(Limiting { handler_concurrency: 4, ..Limiting::default() });
    // 32 of a reply are under way at once: 4 run, 16 may wait, so all of 20 are answered well.
    let executed = run_by(&executor, &registry, (0..20).map(|n| call("t", json!({"n": n}))).collect()).await;
    assert!(executed.iter().all(|one| text(one) == "late"));
    assert!((2..=4).contains(&at_once(&receiver.seen())), "{}", at_once(&receiver.seen()));
}

#[tokio::test]
async fn a_tenant_has_so_many_calls_running_over_all_its_handlers() {
    let (one, other) = (slow(Duration::from_millis(40)).await, slow(Duration::from_millis(40)).await);
    let limits = TenantLimits { concurrent_calls: Some(2), ..TenantLimits::default() };
    let tools = || vec![tool("a", &one.url(), &json!({})), tool("b", &other.url(), &json!({}))];
    let executor = executor(Natives::default());
    let registry = registry_with(limits, tools());
    let calls = (0..12).map(|n| call(if n % 2 == 0 { "a" } else { "b" }, json!({"n": n}))).collect();
    let executed = run_by(&executor, &registry, calls).await;
    assert!(executed.iter().all(|one| text(one) == "late"));
    let seen = [one.seen(), other.seen()].concat();
    assert_eq!((seen.len(), at_once(&seen)), (12, 2));
}

#[tokio::test]
async fn a_call_waits_for_its_tenant_s_others_for_a_quarter_of_its_time() {
    let (hung, free) = (Receiver::start(|_| Reaction::Silence).await, Receiver::echo().await);
    let limits = TenantLimits { concurrent_calls: Some(1), ..TenantLimits::default() };
    let tools = vec![
        tool("hung", &hung.url(), &json!({"timeout_ms": 2000})),
        tool("free", &free.url(), &json!({"timeout_ms": 1000})),
    ];
    let registry = registry_with(limits, tools);
    let executor = executor(Natives::default());
    let mine = (executor.clone(), registry.clone());
    let stuck =
        TaskTracker::new().spawn(async move { run_by(&mine.0, &mine.1, vec![call("hung", json!({"n": 1}))]).await });
    eventually(|| hung.seen().len() == 1).await;
    let request = request(&registry, vec![call("free", json!({"n": 1}))], Duration::from_secs(10));
    let executed = executor.run(request).await;
    let told = failure(&executed[0]);
    assert_eq!((told.status, told.code, executed[0].attempts), (CallStatus::Rejected, "too_many_calls", 0));
    assert!(told.message.contains("has not run") && told.message.contains("again in"), "{}", told.message);
    assert!(free.seen().is_empty());
    assert!(matches!(stuck.await.unwrap()[0].outcome, Outcome::Failure(_)));
    assert_eq!(text(&run_by(&executor, &registry, vec![call("free", json!({"n": 2}))]).await[0]), "2");
}
