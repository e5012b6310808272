//! How long the log is kept, where its records are, and what it does not show.

use crate::support::{Receiver, TestService, eventually, tool};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhook::execution::upkeep;

/// Copies a tenant's calls to so many days ago, as if they had been made then.
fn copied(days: i32) -> String {
    format!(
        "insert into calls (tenant_id, id, tool, caller, status, repairs, attempts, duration_ms, request_id, key_id, created_at)
         select tenant_id, (left(id_at(now() - interval '{days} days')::text, 14) || right(id::text, 22))::uuid, 'd{days}', caller,
           status, repairs, attempts, duration_ms, request_id, key_id, now() - interval '{days} days'
         from calls where tool = 'calculate'"
    )
}

#[tokio::test]
async fn each_tenant_keeps_its_log_for_as_long_as_it_may() {
    let service = TestService::start().await;
    let tenants = [service.tenant("week").await, service.tenant("month").await, service.tenant("quarter").await];
    for (name, days) in [("week", 7), ("quarter", 90)] {
        service.operator().put(&format!("/v1/tenants/{name}"), &json!({"limits": {"log_days": days}})).await.with(200);
    }
    for tenant in &tenants {
        tenant.agent.post("/v1/tools/calculate/calls", &json!({"input": {"expression": "1"}})).await.with(200);
    }
    let database = &service.database;
    database.execute("select calls_add_day((now() - interval '20 days')::date), calls_add_day((now() - interval '120 days')::date)").await;
    for days in [2, 20, 60, 120] {
        database.execute(&copied(days)).await; // those of two days have a partition, the others are in the default one
    }
    let listed = async |n: usize| -> Vec<String> {
        let page = tenants[n].viewer.get("/v1/calls").await.with(200);
        page["data"].as_array().unwrap().iter().map(|row| row["tool"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(0).await, ["calculate", "d2", "d20", "d60", "d120"], "in order of time, wherever they are");
    let stop = CancellationToken::new();
    TaskTracker::new().spawn(upkeep::run(service.state.ledger(), service.state.metrics(), stop.clone()));
    eventually(async || (listed(0).await.len() == 2).then_some(())).await;
    eventually(async || (listed(1).await.len() == 3).then_some(())).await;
    assert_eq!(listed(0).await, ["calculate", "d2"]);
    assert_eq!(listed(1).await, ["calculate", "d2", "d20"]);
    // What no partition was made for is not dropped with one.
    assert_eq!(listed(2).await, ["calculate", "d2", "d20", "d60"]);
    stop.cancel();

    // A tenant that goes takes its log along.
    service.operator().delete("/v1/tenants/quarter").await.with(204);
    let stop = CancellationToken::new();
    TaskTracker::new().spawn(upkeep::run(service.state.ledger(), service.state.metrics(), stop.clone()));
    eventually(async || (!database.dump().await.contains(",d60,")).then_some(())).await;
    stop.cancel();
}

#[tokio::test]
async fn a_record_without_a_partition_is_caught_and_moves_to_it() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.agent.post("/v1/tools/calculate/calls", &json!({"input": {"expression": "1"}})).await.with(200);
    let there = async || acme.viewer.get("/v1/calls?tool=d5").await.with(200)["data"].as_array().unwrap().len();
    service.database.execute(&copied(5)).await;
    assert_eq!(there().await, 1);
    service.database.execute("select calls_add_day((now() - interval '5 days')::date)").await;
    assert_eq!(there().await, 1);
    service.database.execute("do $$ begin assert (select count(*) from calls_default) = 0; end $$").await;
}

#[tokio::test]
async fn a_page_goes_on_where_the_last_one_ended() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let mut ids = Vec::new();
    for n in 0..7 {
        let name = if n % 2 == 0 { "calculate" } else { "count_text" };
        let call = json!({"input": {"expression": "1", "text": "1"}});
        let call = acme.agent.post(&format!("/v1/tools/{name}/calls"), &call).await.with(200);
        ids.push(call["id"].as_str().unwrap().to_owned());
    }
    ids.reverse();
    for (query, step) in [("", 1), ("&tool=calculate", 2)] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = acme.viewer.get(&format!("/v1/calls?limit=2{query}{cursor}")).await.with(200);
            found.extend(page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, ids.iter().step_by(step).cloned().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn write_only_values_reach_the_handler_and_nobody_else() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::start(|_| crate::support::json_answer(&json!({"text": "done"}))).await;
    let schema = json!({
        "type": "object",
        "properties": {
            "card": {"$ref": "#/$defs/card"},
            "pins": {"type": "array", "items": {"type": "string", "writeOnly": true}},
            "note": {"allOf": [{"type": "string"}, {"writeOnly": true}]}
        },
        "$defs": {"card": {"type": "object", "properties": {"number": {"type": "string", "writeOnly": true}, "name": {"type": "string"}}}}
    });
    let body = tool("pay", &json!({"kind": "webhook", "url": receiver.url()}), &json!({"input_schema": schema}));
    acme.editor.post("/v1/tools", &body).await.with(201);
    let input =
        json!({"card": {"number": "4111-hidden", "name": "Ada"}, "pins": ["1234-hidden"], "note": "secret-hidden"});
    let masked = json!({"card": {"number": "***", "name": "Ada"}, "pins": ["***"], "note": "***"});
    for client in [acme.agent.clone(), acme.agent.with("idempotency-key", "k")] {
        let call = client.post("/v1/tools/pay/calls", &json!({"input": input})).await.with(200);
        let path = format!("/v1/calls/{}", call["id"].as_str().unwrap());
        let logged: Value = acme.viewer.get(&path).await.with(200);
        assert_eq!(logged["input"], masked);
        assert_eq!(receiver.seen().last().unwrap().json()["data"]["input"], input);
    }
    // An input that is refused is not logged, and its error does not repeat it.
    let refused = json!({"input": {"card": {"number": 4111}, "note": "secret-hidden", "pins": "1234-hidden"}});
    acme.agent.post("/v1/tools/pay/calls", &refused).await.with(200);
    assert!(!service.database.dump().await.contains("-hidden"));
    assert!(!crate::support::traced().contains("secret-hidden"));
}
