//! Arguments that a model sends in another spelling, over the wire: what the webhook gets, and what is said of it.

use crate::support::{Receiver, Tenant, TestService, json_answer, tool};
use serde_json::{Value, json};

async fn set_up(service: &TestService, receiver: &Receiver) -> Tenant {
    let acme = service.tenant("acme").await;
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "n": {"type": "integer"}, "on": {"type": "boolean"}, "note": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"by (key)": {"type": "integer"}}, "additionalProperties": false}},
        "either": {"type": ["string", "number"]}}});
    let body = tool("t", &json!({"kind": "webhook", "url": receiver.url()}), &json!({"input_schema": schema}));
    acme.editor.post("/v1/tools", &body).await.with(201);
    acme
}

#[tokio::test]
async fn each_repair_is_named_and_the_webhook_gets_what_was_meant() {
    let service = TestService::start().await;
    let receiver = Receiver::start(|_| json_answer(&json!({}))).await;
    let acme = set_up(&service, &receiver).await;
    for (input, delivered, repairs) in [
        (
            json!({"n": "42", "on": "false"}),
            r#"{"n":42,"on":false}"#,
            json!(["/n: read from its text as a number", "/on: read from its text as a boolean"]),
        ),
        (
            json!({"n": "4093117758201946517999", "note": null}),
            r#"{"n":4093117758201946517999}"#,
            json!(["/n: read from its text as a number", "/note: null, left out"]),
        ),
        (
            json!({"list": "[{\"by (key)\":\"1\"}]"}),
            r#"{"list":[{"by (key)":1}]}"#,
            json!(["/list: read from its JSON text", "/list/0/by (key): read from its text as a number"]),
        ),
        (json!("\"{ \\\"n\\\": 21 }\""), r#"{"n":21}"#, json!(["the arguments: read from JSON text inside JSON text"])),
        (json!({"either": "5", "note": "7"}), r#"{"either":"5","note":"7"}"#, json!([])),
    ] {
        let call = acme.agent.post("/v1/tools/t/calls", &json!({ "input": input })).await.with(200);
        assert_eq!((&call["status"], &call["repairs"]), (&json!("succeeded"), &repairs), "{call}");
        assert!(receiver.seen().last().unwrap().body.contains(&format!("\"input\":{delivered}")), "{delivered}");
        let logged = acme.viewer.get(&format!("/v1/calls/{}", call["id"].as_str().unwrap())).await.with(200);
        assert_eq!(logged["repairs"], repairs);
        let sent = receiver.seen().len();
        let dry = acme.agent.post("/v1/tools/t/calls?dry_run=true", &json!({ "input": input })).await.with(200);
        assert_eq!((&dry["repairs"], &dry["validation"]["valid"]), (&repairs, &json!(true)));
        assert_eq!(dry["request"]["body"]["data"]["input"].to_string(), delivered);
        assert_eq!(receiver.seen().len(), sent);
    }
}

#[tokio::test]
async fn what_would_be_a_guess_is_an_error_for_the_model() {
    let service = TestService::start().await;
    let receiver = Receiver::start(|_| json_answer(&json!({}))).await;
    let acme = set_up(&service, &receiver).await;
    for (input, place) in [
        (json!({"n": "3.5"}), "/n: expected an integer, got a string"),
        (json!({"n": "12abc"}), "/n"),
        (json!({"n": " 5"}), "/n"),
        (json!({"n": "1e3"}), "/n"),
        (json!({"n": true}), "/n: expected an integer, got a boolean"),
        (json!({"on": "yes"}), "/on: expected a boolean, got a string"),
        (json!({"on": 1}), "/on"),
        (json!({"list": "[{\"by (key)\":1}"}), "/list: expected an array, got a string"),
        (json!({"list": "[{\"by (key)\":1,\"by (key)\":2}]"}), "/list"),
        (json!({"list": "{}"}), "/list"),
        (json!({"unknown": null}), "unknown"),
        (json!({"n": "1", "note": 5}), "/note: expected a string, got a number"),
    ] {
        let call = acme.agent.post("/v1/tools/t/calls", &json!({ "input": input })).await.with(200);
        assert_eq!((&call["status"], &call["error"]["code"]), (&json!("rejected"), &json!("invalid_input")), "{call}");
        assert!(call["error"]["message"].as_str().unwrap().contains(place), "{call}");
        assert_eq!(call["repairs"], json!([]));
    }
    assert!(receiver.seen().is_empty());
}

#[tokio::test]
async fn names_inside_a_text_are_mapped_back() {
    let service = TestService::start().await;
    let receiver = Receiver::start(|_| json_answer(&json!({}))).await;
    let acme = set_up(&service, &receiver).await;
    let block =
        |list: Value| json!({"reply": {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"list": list}}});
    for list in [json!([{"by__key": 1}]), json!("[{\"by__key\":1}]"), json!("[\"{\\\"by__key\\\":\\\"1\\\"}\"]")] {
        let answer = acme.agent.post("/v1/formats/anthropic/calls", &block(list)).await.with(200);
        assert_eq!(answer["calls"][0]["status"], "succeeded", "{answer}");
        assert!(receiver.seen().last().unwrap().body.contains(r#""input":{"list":[{"by (key)":1}]}"#));
    }
}
