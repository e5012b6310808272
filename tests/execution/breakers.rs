//! A handler that fails again and again is left alone.

use crate::receiver::{Reaction, Receiver, answer, json};
use crate::setup::{call, failure, limited, registry, request, run_by, text, tool};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;
use toolhook::domain::CallStatus;
use toolhook::execution::{Breaking, Executor, Limiting};
use toolhook::registry::{Entry, HandlerKey, Registry};
use uuid::Uuid;

const PAUSE: Duration = Duration::from_millis(700);

fn breaking() -> Executor {
    let breaking = Breaking { pause: PAUSE, longest_pause: PAUSE, ..Breaking::default() };
    limited(Limiting { breaking, ..Limiting::default() })
}

/// Answers 500 or well, as the flag says at the time.
async fn sick() -> (Receiver, Arc<AtomicBool>) {
    let well = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&well);
    let receiver = Receiver::start(move |_| {
        let body =
            if flag.load(Ordering::SeqCst) { json(r#"{"text":"well"}"#) } else { answer("500 Oh", "text/plain", "") };
        Reaction::Answer(body)
    })
    .await;
    (receiver, well)
}

async fn one(executor: &Executor, registry: &Arc<Registry>) -> toolhook::execution::Executed {
    run_by(executor, registry, vec![call("t", json!({"n": 1}))]).await.remove(0)
}

#[tokio::test]
async fn it_opens_after_five_faults_lets_one_call_try_and_closes_by_an_answer() {
    let (receiver, well) = sick().await;
    let executor = breaking();
    let registry = registry(vec![tool("t", &receiver.url(), &json!({}))]);
    for _ in 0..5 {
        assert_eq!(failure(&one(&executor, &registry).await).code, "handler_status");
    }
    let refused = one(&executor, &registry).await;
    let told = failure(&refused);
    assert_eq!((told.status, told.code, refused.attempts), (CallStatus::Rejected, "handler_unavailable", 0));
    assert!(told.message.contains("has not run") && told.message.contains("again in a second"), "{}", told.message);
    assert_eq!(receiver.seen().len(), 5, "nothing is sent");

    sleep(PAUSE).await;
    let tried = run_by(&executor, &registry, (0..8).map(|n| call("t", json!({"n": n}))).collect()).await;
    assert_eq!(receiver.seen().len(), 6, "one call tries it, and it is not back");
    assert_eq!(tried.iter().filter(|one| failure(one).code == "handler_unavailable").count(), 7);

    well.store(true, Ordering::SeqCst);
    assert_eq!(failure(&one(&executor, &registry).await).code, "handler_unavailable", "until its time has come");
    sleep(PAUSE).await;
    assert_eq!(text(&one(&executor, &registry).await), "well");
    let all = run_by(&executor, &registry, (0..8).map(|n| call("t", json!({"n": n}))).collect()).await;
    assert!(all.iter().all(|one| text(one) == "well"));
}

#[tokio::test]
async fn it_is_one_tenants_and_of_one_handler_as_it_is() {
    let (receiver, well) = sick().await;
    let executor = breaking();
    let sick = tool("t", &receiver.url(), &json!({}));
    let mine = registry(vec![Arc::clone(&sick)]);
    for _ in 0..5 {
        one(&executor, &mine).await;
    }
    well.store(true, Ordering::SeqCst);
    assert_eq!(failure(&one(&executor, &mine).await).code, "handler_unavailable");
    assert_eq!(text(&one(&executor, &registry(vec![Arc::clone(&sick)])).await), "well", "another tenant's");
    let facts = mine.tenant().clone();
    let again = |entry: Entry| Arc::new(Registry::build(facts.clone(), 2, vec![Arc::new(entry)], Vec::new()));
    let mut same = Arc::unwrap_or_clone(sick);
    same.version += 1;
    assert_eq!(failure(&one(&executor, &again(same.clone())).await).code, "handler_unavailable", "the tool changed");
    let changed = Entry { handler_key: HandlerKey::of(Uuid::now_v7(), &same.handler), ..same };
    assert_eq!(text(&one(&executor, &again(changed)).await), "well", "the handler changed");
}

#[tokio::test]
async fn only_what_the_handler_is_to_blame_for_counts() {
    let executor = breaking();
    for status in ["400 Bad Request", "404 Not Found", "429 Too Many Requests", "302 Found"] {
        let receiver = Receiver::start(move |_| Reaction::Answer(answer(status, "text/plain", ""))).await;
        let registry = registry(vec![tool("t", &receiver.url(), &json!({}))]);
        for _ in 0..8 {
            one(&executor, &registry).await;
        }
        assert_eq!(receiver.seen().len(), 8, "{status}");
    }
    // Whoever gives it no time does not have it called dead; whoever gives it the time that it usually has, does.
    let receiver = Receiver::start(|_| Reaction::Silence).await;
    let slow =
        registry(vec![tool("t", &receiver.url(), &json!({})), tool("u", &receiver.url(), &json!({"timeout_ms": 400}))]);
    let hurried = (0..8).map(|n| call("t", json!({"n": n}))).collect();
    executor.run(request(&slow, hurried, Duration::from_millis(200))).await;
    let calls = |times: u64| (0..times).map(|n| call("u", json!({"n": n}))).collect();
    let five = run_by(&executor, &slow, calls(5)).await;
    assert!(five.iter().all(|one| failure(one).code == "timed_out"), "{five:?}");
    assert_eq!(failure(&run_by(&executor, &slow, calls(1)).await[0]).code, "handler_unavailable");
}
