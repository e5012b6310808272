//! What a tenant, a handler and the process may have under way, as callers see it.

use crate::support::{
    Answer, Client, Exposition, Reaction, Receiver, Tenant, TestService, eventually, json_answer, tool,
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::task::TaskTracker;
use toolhook::execution::Limiting;

const CALL: &str = "/v1/tools/t/calls";

async fn limit(service: &TestService, limits: &Value) {
    service.operator().patch("/v1/tenants/acme", &json!({"limits": limits})).await.with(200);
}

async fn give(tenant: &Tenant, name: &str, receiver: &Receiver, more: &Value) {
    let owned = json!({"kind": "webhook", "url": receiver.url()});
    tenant.editor.post("/v1/tools", &tool(name, &owned, more)).await.with(201);
}

async fn slow(time: Duration) -> Receiver {
    Receiver::start(move |_| Reaction { after: time, bytes: json_answer(&json!({"text": "late"})) }).await
}

fn input() -> Value {
    json!({"input": {"city": "Oslo"}})
}

/// Many calls at one time.
async fn calls(agent: &Client, times: usize) -> Vec<Answer> {
    let input = input();
    join_all((0..times).map(|_| agent.post(CALL, &input))).await
}

fn waits(answer: &Answer) -> u64 {
    answer.header("retry-after").unwrap().parse().unwrap()
}

#[tokio::test]
async fn e02_a_tenant_over_its_rate_gets_429_and_the_others_notice_nothing() {
    let service = TestService::start().await;
    let (acme, other) = (service.tenant("acme").await, service.tenant("other").await);
    let receiver = Receiver::weather().await;
    give(&acme, "t", &receiver, &json!({})).await;
    give(&other, "t", &receiver, &json!({})).await;
    limit(&service, &json!({"calls_per_second": 2})).await;
    let (theirs, ours) = tokio::join!(calls(&other.agent, 20), calls(&acme.agent, 20));
    assert!(theirs.iter().all(|answer| answer.with(200)["status"] == "succeeded"));
    let (done, refused): (Vec<_>, Vec<_>) = ours.iter().partition(|answer| answer.status == 200);
    assert!((2..=10).contains(&done.len()), "{}", done.len());
    for answer in &refused {
        answer.problem(429, "rate_limited");
        assert!((1..=2).contains(&waits(answer)));
    }
    assert_eq!(receiver.seen().len(), 20 + done.len(), "what is refused is not sent");
    let log = acme.viewer.get("/v1/calls?limit=200").await.with(200);
    assert_eq!(log["data"].as_array().unwrap().len(), done.len(), "nor logged");
    // Whoever waits as long as it is told gets through.
    tokio::time::sleep(Duration::from_secs(2)).await;
    acme.agent.post(CALL, &input()).await.with(200);
    // Other limits count from the next request on.
    limit(&service, &json!({"calls_per_second": 1000})).await;
    for answer in calls(&acme.agent, 20).await {
        answer.with(200);
    }
}

#[tokio::test]
async fn a_refusal_costs_the_database_nothing_and_takes_no_key() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    give(&acme, "t", &receiver, &json!({})).await;
    limit(&service, &json!({"calls_per_second": 1})).await;
    let keyed = acme.agent.with("idempotency-key", "k1");
    let mut refused = Vec::new();
    for _ in 0..10 {
        let before = service.database.statements();
        let answer = keyed.with("idempotency-key", &format!("k{}", refused.len())).post(CALL, &input()).await;
        if answer.status == 429 {
            refused.push(service.database.statements() - before);
        }
    }
    // A key is asked for again after some seconds, which a slow machine may spend here.
    assert!(refused.iter().filter(|asked| **asked == 0).count() * 2 > refused.len(), "{refused:?}");
    limit(&service, &json!({"calls_per_second": 1000})).await;
    let last = keyed.with("idempotency-key", &format!("k{}", refused.len() - 1));
    let first = last.post(CALL, &input()).await.with(200);
    assert_eq!((&first["status"], &first["replayed"]), (&json!("succeeded"), &json!(false)), "nobody had claimed it");
    assert_eq!(last.post(CALL, &input()).await.with(200)["replayed"], true);
}

#[tokio::test]
async fn of_a_reply_as_many_calls_run_as_may() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    give(&acme, "t", &receiver, &json!({})).await;
    limit(&service, &json!({"calls_per_second": 2})).await;
    let block = |n: usize, name: &str| json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": {"city": "Oslo"}});
    let blocks: Vec<Value> =
        ["gone", "t", "gone", "t", "t", "t"].iter().enumerate().map(|(n, name)| block(n, name)).collect();
    let reply = json!({"reply": blocks});
    let answer = acme.agent.post("/v1/formats/anthropic/calls", &reply).await.with(200);
    let outcome = |call: &Value| call["error"]["code"].as_str().unwrap_or("done").to_owned();
    let outcomes: Vec<String> = answer["calls"].as_array().unwrap().iter().map(outcome).collect();
    // Calls that name no tool take nothing from the others.
    assert_eq!(outcomes, ["unknown_tool", "done", "unknown_tool", "done", "rate_limited", "rate_limited"]);
    assert_eq!(answer["calls"][5]["status"], "rejected");
    let told = answer["append"][0]["content"][5]["content"].to_string();
    assert!(told.contains("has not run") && told.contains("again in a second"), "{told}");
    assert_eq!(receiver.seen().len(), 2);
    let log = acme.viewer.get("/v1/calls?limit=50").await.with(200);
    assert_eq!(log["data"].as_array().unwrap().len(), 6, "all of them were answered");
    // A dry run sends nothing and takes nothing; MCP is held to the same.
    acme.agent.post("/v1/formats/anthropic/calls", &reply).await.problem(429, "rate_limited");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {"city": "Oslo"}}});
    acme.agent.post("/mcp", &message).await.problem(429, "rate_limited");
    acme.agent.post("/mcp", &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await.with(200);
    acme.agent.post(&format!("{CALL}?dry_run=true"), &input()).await.with(200);
    acme.agent.post("/v1/formats/anthropic/calls", &json!({"reply": []})).await.with(200);
    assert_eq!(receiver.seen().len(), 2);
    let seen = Exposition::of(&service).await;
    assert_eq!(seen.count(r#"toolhook_limit_refusals_total{reason="rate_limited"}"#), 4, "two calls and two requests");
}

#[tokio::test]
async fn e01_a_tenant_whose_handlers_hang_is_refused_and_the_others_are_served() {
    let first = TestService::start().await;
    let limiting = Limiting { concurrent_calls: 2, in_flight_calls: 30, ..Limiting::default() };
    let service = first.restart_under(limiting).await;
    let (acme, other) = (service.tenant("acme").await, service.tenant("other").await);
    let count = AtomicUsize::new(0);
    let hung = Receiver::start(move |_| {
        let after = Duration::from_secs(if count.fetch_add(1, Ordering::SeqCst) < 2 { 2 } else { 0 });
        Reaction { after, bytes: json_answer(&json!({"text": "late"})) }
    });
    let (hung, quick) = (hung.await, Receiver::weather().await);
    give(&acme, "t", &hung, &json!({})).await;
    give(&other, "t", &quick, &json!({})).await;
    let (tasks, agent) = (TaskTracker::new(), acme.agent.clone());
    let crowd = tasks.spawn(async move { calls(&agent, 40).await });
    eventually(async || (hung.seen().len() == 2).then_some(())).await;
    for _ in 0..10 {
        assert_eq!(other.agent.post(CALL, &input()).await.with(200)["status"], "succeeded");
    }
    let seen = Exposition::of(&service).await;
    assert_eq!(seen.count("toolhook_calls_in_flight"), 2);
    assert_eq!(seen.count(r#"toolhook_calls_waiting{queue="tenant"}"#), 14, "the handler's 16, but the two");
    let answers = crowd.await.unwrap();
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert_eq!(refused.len(), 40 - 2 - 16, "as many run and wait as may");
    for answer in refused {
        answer.problem(429, "too_many_calls");
        assert!((2..=3).contains(&waits(answer)));
    }
    // Those that waited had their turns.
    let answered = answers.iter().filter(|answer| answer.status == 200);
    assert!(answered.into_iter().all(|answer| answer.with(200)["status"] == "succeeded"));
    assert_eq!(Exposition::of(&service).await.count(r#"toolhook_calls_waiting{queue="tenant"}"#), 0);
}

#[tokio::test]
async fn a_process_with_as_much_as_it_takes_says_so() {
    let first = TestService::start().await;
    let service = first.restart_under(Limiting { in_flight_calls: 2, ..Limiting::default() }).await;
    let acme = service.tenant("acme").await;
    let receiver = slow(Duration::from_millis(800)).await;
    give(&acme, "t", &receiver, &json!({})).await;
    let (tasks, agent) = (TaskTracker::new(), acme.agent.clone());
    let running = tasks.spawn(async move { calls(&agent, 2).await });
    eventually(async || (receiver.seen().len() == 2).then_some(())).await;
    let refused = acme.agent.with("idempotency-key", "k").post(CALL, &input()).await;
    refused.problem(503, "overloaded");
    assert!((2..=3).contains(&waits(&refused)));
    acme.agent.get("/v1/formats/anthropic/tools").await.with(200);
    for answer in running.await.unwrap() {
        answer.with(200);
    }
    assert_eq!(receiver.seen().len(), 2);
    // There is room for two: four of one reply run two at a time.
    let block =
        |n: usize| json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": "t", "input": {"city": "Oslo"}});
    let reply = json!({"reply": (0..4).map(block).collect::<Vec<_>>()});
    let answer = acme.agent.post("/v1/formats/anthropic/calls", &reply).await.with(200);
    assert!(answer["calls"].as_array().unwrap().iter().all(|call| call["status"] == "succeeded"), "{answer}");
    acme.agent.with("idempotency-key", "k").post(CALL, &input()).await.with(200);
}

#[tokio::test]
async fn a_handler_that_is_down_is_left_alone_and_a_changed_one_is_not() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let down = Receiver::start(|_| b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    let up = Receiver::weather().await;
    let mut handler = json!({"kind": "webhook", "url": down.url()});
    acme.editor.put("/v1/handlers/h", &handler).await.with(201);
    for name in ["t", "u"] {
        acme.editor.post("/v1/tools", &tool(name, &json!("h"), &json!({}))).await.with(201);
    }
    for _ in 0..5 {
        assert_eq!(acme.agent.post(CALL, &input()).await.with(200)["error"]["code"], "handler_status");
    }
    // The breaker is the handler's: another tool of the same one is not sent either.
    let refused = acme.agent.post("/v1/tools/u/calls", &input()).await.with(200);
    assert_eq!((&refused["status"], &refused["attempts"]), (&json!("rejected"), &json!(0)));
    assert_eq!(refused["error"]["code"], "handler_unavailable");
    assert_eq!(down.seen().len(), 5);
    let seen = Exposition::of(&service).await;
    assert_eq!(seen.count("toolhook_handler_breakers_open"), 1);
    assert_eq!(seen.count(r#"toolhook_limit_refusals_total{reason="handler_unavailable"}"#), 1);
    handler["url"] = json!(up.url());
    acme.editor.put("/v1/handlers/h", &handler).await.with(200);
    assert_eq!(acme.agent.post(CALL, &input()).await.with(200)["status"], "succeeded");
}

#[tokio::test]
async fn repeats_are_counted_and_logged() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::start(|seen| {
        if seen.json()["data"]["attempt"] == 1 {
            return b"HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n".to_vec();
        }
        json_answer(&json!({"text": "done"}))
    })
    .await;
    give(&acme, "t", &receiver, &json!({"annotations": {"idempotent": true}})).await;
    let keyed = acme.agent.with("idempotency-key", "k");
    let call = keyed.post(CALL, &input()).await.with(200);
    assert_eq!(
        (&call["status"], &call["attempts"], &call["result"]["text"]),
        (&json!("succeeded"), &json!(2), &json!("done"))
    );
    let again = keyed.post(CALL, &input()).await.with(200);
    assert_eq!((&again["replayed"], &again["attempts"]), (&json!(true), &json!(2)));
    let logged = acme.viewer.get(&format!("/v1/calls/{}", call["id"].as_str().unwrap())).await.with(200);
    assert_eq!(logged["attempts"], 2);
    assert_eq!(receiver.seen().len(), 2);
    assert_eq!(Exposition::of(&service).await.count("toolhook_handler_retries_total"), 1);
}
