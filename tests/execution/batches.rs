//! Several calls of one reply.

use crate::receiver::{Reaction, Receiver, json};
use crate::setup::{call, failure, registry, run, text, tool};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use toolhook::domain::{Caller, ToolCall};

#[tokio::test]
async fn neighbours_run_together_and_barriers_alone() {
    let wait = Duration::from_millis(150);
    let receiver = Receiver::start(move |seen| Reaction::After(wait, json(&seen.n().to_string()))).await;
    let tools = vec![
        tool("beside", &receiver.url(), &Value::Null),
        tool("alone", &receiver.url(), &json!({"concurrent": false})),
    ];
    let registry = registry(tools);
    let names = ["beside", "beside", "alone", "beside", "beside", "alone", "alone"];
    let calls = names.iter().enumerate().map(|(n, name)| call(name, json!({"n": n}))).collect();
    let began = Instant::now();
    let executed = run(&registry, calls).await;
    assert!(began.elapsed() < wait * 7, "five turns, not seven: {:?}", began.elapsed());

    let texts: Vec<String> = executed.iter().map(text).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6"]);
    let mut seen = receiver.seen();
    seen.sort_by_key(crate::receiver::Seen::n);
    for (early, late) in [(0, 2), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6)] {
        assert!(seen[early].answered <= seen[late].arrived, "{late} began before {early} ended");
    }
    for (one, other) in [(0, 1), (3, 4)] {
        assert!(seen[one].arrived < seen[other].answered && seen[other].arrived < seen[one].answered);
    }
}

#[tokio::test]
async fn results_come_back_in_the_replys_order() {
    let receiver = Receiver::start(|seen| {
        let wait = Duration::from_millis(300 - 100 * seen.n());
        Reaction::After(wait, json(&seen.n().to_string()))
    })
    .await;
    let registry = registry(vec![tool("t", &receiver.url(), &Value::Null)]);
    let executed = run(&registry, (0..3).map(|n| call("t", json!({"n": n}))).collect()).await;
    assert_eq!(executed.iter().map(text).collect::<Vec<_>>(), ["0", "1", "2"]);
    assert!(executed.iter().all(|one| one.call.call_id.as_deref() == Some("call_1")), "equal ids are separate calls");
    assert!(executed[0].duration_ms >= 290 && executed[2].duration_ms < 290);
}

#[tokio::test]
async fn what_is_refused_costs_the_others_nothing() {
    let receiver = Receiver::echo().await;
    let tools = vec![
        tool("good", &receiver.url(), &Value::Null),
        tool("off", &receiver.url(), &json!({"enabled": false})),
        tool("code", &receiver.url(), &json!({"allowed_callers": ["code_execution"]})),
        tool("nobody", &receiver.url(), &json!({"allowed_callers": []})),
    ];
    let good = call("good", json!({"n": 1}));
    let calls: Vec<(ToolCall, Option<&str>)> = vec![
        (call("multiply", json!({})), Some("unknown_tool")),
        (good.clone(), None),
        (ToolCall { cut_off: true, ..good.clone() }, Some("reply_cut_off")),
        (call("off", json!({"n": 1})), Some("tool_disabled")),
        (call("code", json!({"n": 1})), Some("caller_not_allowed")),
        (ToolCall { caller: Caller::CodeExecution, ..call("code", json!({"n": 2})) }, None),
        (call("nobody", json!({"n": 1})), Some("caller_not_allowed")),
        (call("good", json!([1])), Some("invalid_arguments")),
        (call("good", json!("{\"n\":1}{\"n\":2}")), Some("invalid_arguments")),
        (call("good", json!({"n": "many"})), Some("invalid_input")),
        (call("good", json!("{\"n\":3}")), None),
    ];
    let (calls, expected): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
    let executed = run(&registry(tools), calls.clone()).await;
    assert_eq!(executed.len(), calls.len());
    for ((one, call), expected) in executed.iter().zip(&calls).zip(expected) {
        assert_eq!(&one.call, call);
        if let Some(code) = expected {
            assert_eq!((failure(one).code, one.attempts, &one.input), (code, 0, &None));
        } else {
            assert_eq!(text(one), one.input.as_ref().unwrap()["n"].to_string());
        }
    }
    assert!(failure(&executed[0]).message.contains("\"multiply\"") && failure(&executed[0]).message.contains("good"));
    assert!(failure(&executed[9]).message.contains("/n: expected an integer"), "{}", failure(&executed[9]).message);
    assert_eq!(receiver.seen().len(), 3);
}

#[tokio::test]
async fn two_hundred_calls_are_all_answered_and_not_all_at_once() {
    let receiver =
        Receiver::start(|seen| Reaction::After(Duration::from_millis(10), json(&seen.n().to_string()))).await;
    let registry = registry(vec![tool("t", &receiver.url(), &Value::Null)]);
    let calls = (0..200).map(|n| call(if n % 10 == 9 { "none" } else { "t" }, json!({"n": n}))).collect();
    let executed = run(&registry, calls).await;
    for (n, one) in executed.iter().enumerate() {
        if n % 10 == 9 {
            assert_eq!(failure(one).code, "unknown_tool");
        } else {
            assert_eq!(text(one), n.to_string());
        }
    }
    let mut ids: Vec<_> = executed.iter().map(|one| one.id).collect();
    assert!(ids.is_sorted());
    ids.dedup();
    assert_eq!(ids.len(), 200);
    let seen = receiver.seen();
    assert_eq!(seen.len(), 180);
    let beside = |at: Instant| seen.iter().filter(|one| one.arrived <= at && at < one.answered).count();
    assert!(seen.iter().all(|one| beside(one.arrived) <= 32));
}
