//! What is asked of the database, counted in the database server's own log.

use crate::support::{TestService, tool, webhook};
use serde_json::json;

#[tokio::test]
async fn a_warm_list_of_a_hundred_tools_asks_nothing_of_the_database() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    for n in 0..97 {
        acme.editor.put(&format!("/v1/tools/t{n}"), &tool(&format!("t{n}"), &json!("h"), &json!({}))).await.with(201);
    }
    let cold = service.database.statements();
    let first = acme.agent.get("/v1/formats/anthropic/tools").await;
    assert_eq!(first.with(200)["tools"].as_array().unwrap().len(), 100, "with the three that are built in");
    assert!(service.database.statements() > cold, "the log counts nothing");
    // A key is asked for again after some seconds, which a slow machine may spend here: one quiet round of five will do.
    let mut asked = Vec::new();
    for _ in 0..5 {
        let warm = service.database.statements();
        for format in ["anthropic", "openai-chat", "gemini", "anthropic"] {
            for query in ["", "?tag=x", "?name=t1"] {
                acme.agent.get(&format!("/v1/formats/{format}/tools{query}")).await.with(200);
            }
        }
        acme.agent.with("if-none-match", &first.etag()).get("/v1/formats/anthropic/tools").await.with(304);
        asked.push(service.database.statements() - warm);
    }
    assert!(asked.contains(&0), "{asked:?}");
    // An operator's request is as cheap, once the tenant was looked up.
    let mut asked = Vec::new();
    for _ in 0..5 {
        let known = service.database.statements();
        acme.operator.get("/v1/formats/anthropic/tools").await.with(200);
        asked.push(service.database.statements() - known);
    }
    assert!(asked.contains(&0), "{asked:?}");
}

#[tokio::test]
async fn a_warm_call_writes_the_log_and_asks_at_most_whether_it_is_open() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let call = json!({"input": {"expression": "1"}});
    acme.agent.post("/v1/tools/calculate/calls", &call).await.with(200);
    let before = service.database.statements();
    acme.agent.post("/v1/tools/calculate/calls", &call).await.with(200);
    assert!((1..=2).contains(&(service.database.statements() - before)));
}

#[tokio::test]
async fn calls_at_the_same_time_are_logged_together() {
    const CALLS: usize = 128;
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let call = json!({"input": {"expression": "1"}});
    acme.agent.post("/v1/tools/calculate/calls", &call).await.with(200);
    let before = service.database.statements();
    let calls = (0..CALLS).map(|_| acme.agent.post("/v1/tools/calculate/calls", &call));
    for answer in futures_util::future::join_all(calls).await {
        answer.with(200);
    }
    let statements = service.database.statements() - before;
    assert!(statements < CALLS / 2, "{statements} statements for {CALLS} calls");
    let page = acme.viewer.get("/v1/calls?limit=200").await.with(200);
    assert_eq!(page["data"].as_array().unwrap().len(), CALLS + 1);
}

#[tokio::test]
async fn eight_that_wait_for_a_cold_list_cost_one_load() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.agent.get("/v1/tools").await.with(200); // the key is known from here on
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    let before = service.database.statements();
    let lists = (0..8).map(|_| acme.agent.get("/v1/formats/anthropic/tools"));
    for list in futures_util::future::join_all(lists).await {
        list.with(200);
    }
    assert_eq!(service.database.statements() - before, 1);
}
