//! `/v1/calls`.

use crate::support::{Receiver, TestService, tool};
use serde_json::{Value, json};

#[tokio::test]
async fn an_answered_call_is_in_the_log_as_it_was() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    acme.editor
        .post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": receiver.url()}), &json!({})))
        .await
        .with(201);
    let key = acme.admin.post("/v1/keys", &json!({"role": "agent"})).await.with(201);
    let agent = service.anonymous().key(key["key"].as_str().unwrap()).with("x-request-id", "req_7");
    let reply = json!({"reply": [{"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"city": "Sydney"}}]});
    let answer = agent.post("/v1/formats/anthropic/calls", &reply).await.with(200);
    let call = &answer["calls"][0];
    let mut logged = acme.viewer.get(&format!("/v1/calls/{}", call["id"].as_str().unwrap())).await.with(200);
    assert_eq!(acme.viewer.get("/v1/calls").await.with(200)["data"], json!([logged]));
    assert!(logged["created_at"].take().as_str().unwrap().ends_with('Z'));
    let expected = json!({"id": call["id"], "tool": "t", "tool_version": 1, "format": "anthropic", "call_id": "toolu_1", "caller": "human",
        "status": "succeeded", "input": {"city": "Sydney"}, "result": {"text": "t in Sydney", "data": null, "truncated": false},
        "error": null, "repairs": [], "attempts": 1, "duration_ms": call["duration_ms"], "request_id": "req_7", "key_id": key["id"],
        "created_at": null, "cancel_requested": false});
    assert_eq!(logged, expected);
}

#[tokio::test]
async fn the_log_is_filtered_by_tool_status_and_time() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let run = async |name: &str, input: Value| {
        acme.agent.post(&format!("/v1/tools/{name}/calls"), &json!({"input": input})).await.with(200)["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = run("calculate", json!({"expression": "1"})).await;
    let second = run("calculate", json!({})).await;
    let third = run("count_text", json!({"text": "abc"})).await;
    let found = async |query: &str| -> Vec<String> {
        let page = acme.viewer.get(&format!("/v1/calls?{query}")).await.with(200);
        page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found("").await, [&third[..], &second, &first]);
    assert_eq!(found("tool=calculate").await, [&second[..], &first]);
    assert_eq!(found("tool=calculate&status=succeeded").await, [&first[..]]);
    assert_eq!(found("status=rejected").await, [&second[..]]);
    assert_eq!(found("status=failed").await, Vec::<String>::new());
    let at = acme.viewer.get(&format!("/v1/calls/{second}")).await.with(200)["created_at"].as_str().unwrap().to_owned();
    assert_eq!(found(&format!("since={at}")).await, [&third[..], &second]);
    assert_eq!(found(&format!("until={at}")).await, [&first[..]]);
    // A `+` in a query is a space, which callers forget; the offset has to be escaped.
    let shifted = time::OffsetDateTime::parse(&at, &time::format_description::well_known::Rfc3339).unwrap();
    let shifted = shifted.to_offset(time::UtcOffset::from_hms(2, 0, 0).unwrap());
    let shifted = shifted.format(&time::format_description::well_known::Rfc3339).unwrap().replace('+', "%2B");
    assert_eq!(found(&format!("since={shifted}")).await, [&third[..], &second]);
}

#[tokio::test]
async fn a_logged_call_that_is_waited_for_comes_at_once() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let call = acme.agent.post("/v1/tools/calculate/calls", &json!({"input": {"expression": "1"}})).await.with(200);
    let path = format!("/v1/calls/{}", call["id"].as_str().unwrap());
    let began = std::time::Instant::now();
    acme.viewer.get(&format!("{path}?wait_ms=60000")).await.with(200);
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
    acme.viewer.get(&format!("{path}?wait_ms=60001")).await.problem(400, "invalid_query");
    for id in ["x", "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11"] {
        acme.viewer.get(&format!("/v1/calls/{id}")).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn the_diagnostic_is_for_operators_alone() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/gone", listener.local_addr().unwrap());
    drop(listener); // nobody listens there now
    acme.editor.post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": url}), &json!({}))).await.with(201);
    let call = acme.agent.post("/v1/tools/t/calls", &json!({"input": {"city": "x"}})).await.with(200);
    assert_eq!(call["status"], "failed");
    let path = format!("/v1/calls/{}", call["id"].as_str().unwrap());
    let told = acme.operator.get(&path).await.with(200);
    assert!(told["diagnostic"].as_str().is_some_and(|text| !text.is_empty()), "{told}");
    for client in [&acme.viewer, &acme.admin] {
        assert!(client.get(&path).await.with(200).get("diagnostic").is_none());
    }
}
