//! Running calls.

use crate::support::{Reaction, Receiver, Tenant, TestService, eventually, json_answer, pointers, tool};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn a_reply_with_good_and_bad_calls_has_every_one_answered_in_order() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    acme.editor.put("/v1/handlers/h", &json!({"kind": "webhook", "url": receiver.url()})).await.with(201);
    acme.editor.post("/v1/tools", &tool("get_weather", &json!("h"), &json!({}))).await.with(201);
    acme.editor.post("/v1/tools", &tool("off", &json!("h"), &json!({"enabled": false}))).await.with(201);
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let reply = json!({"role": "assistant", "content": [
        call("a", "get_weather", json!({"city": 5})), call("b", "nowhere", json!({})), call("c", "get_weather", json!({"city": "Bern"})),
        call("d", "off", json!({"city": "x"})), call("e", "get_weather", json!("{\"city\":"))]});
    let answer = acme.agent.post("/v1/formats/anthropic/calls", &json!({"reply": reply})).await.with(200);
    let content = answer["append"][0]["content"].as_array().unwrap();
    let told: Vec<_> =
        content.iter().map(|one| (one["tool_use_id"].as_str().unwrap(), one["is_error"] == json!(true))).collect();
    assert_eq!(told, [("a", true), ("b", true), ("c", false), ("d", true), ("e", true)]);
    let codes: Vec<_> = answer["calls"].as_array().unwrap().iter().map(|one| one["error"]["code"].as_str()).collect();
    assert_eq!(
        codes,
        [Some("invalid_input"), Some("unknown_tool"), None, Some("tool_disabled"), Some("invalid_arguments")]
    );
    assert!(content[0].to_string().contains("city"), "{}", content[0]);
    assert_eq!(receiver.seen().len(), 1);
    assert_eq!(acme.viewer.get("/v1/calls").await.with(200)["data"].as_array().unwrap().len(), 5);

    let skipped = acme.agent.post("/v1/formats/anthropic/calls?unknown=skip", &json!({"reply": reply})).await.with(200);
    let told: Vec<_> =
        skipped["calls"].as_array().unwrap().iter().map(|one| one["call_id"].as_str().unwrap()).collect();
    assert_eq!(told, ["a", "c", "d", "e"]);
    let none = acme
        .agent
        .post("/v1/formats/anthropic/calls", &json!({"reply": {"role": "assistant", "content": "Hello."}}))
        .await;
    assert_eq!(none.with(200), json!({"append": [], "calls": []}));
}

#[tokio::test]
async fn a_reply_that_cannot_be_read_is_422_with_its_place_and_runs_nothing() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    acme.editor
        .post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": receiver.url()}), &json!({})))
        .await
        .with(201);
    let good = json!({"type": "tool_use", "id": "a", "name": "t", "input": {"city": "x"}});
    let without_id = json!({"type": "tool_use", "name": "t", "input": {"city": "x"}});
    let path = "/v1/formats/anthropic/calls";
    let problem = acme.agent.post(path, &json!({"reply": [good, without_id]})).await.problem(422, "invalid_reply");
    assert_eq!(pointers(&problem), ["/reply/1/id"]);
    let problem = acme.agent.post(path, &json!({"reply": "hello"})).await.problem(422, "invalid_reply");
    assert_eq!(pointers(&problem), ["/reply"]);
    let problem = acme.agent.post(path, &json!({"context": 5, "rely": []})).await.problem(422, "invalid_body");
    assert_eq!(pointers(&problem), ["/reply", "/context", "/rely"]);
    let problem = acme
        .agent
        .post("/v1/tools/t/calls", &json!({"input": {}, "caller": "robot", "contexts": {}}))
        .await
        .problem(422, "invalid_body");
    assert_eq!(pointers(&problem), ["/caller", "/contexts"]);
    acme.agent.post("/v1/formats/nonsense/calls", &json!({"reply": []})).await.problem(404, "not_found");
    acme.agent.post("/v1/tools/missing/calls", &json!({})).await.problem(404, "not_found");
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn one_tool_is_run_whatever_it_says() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let refusing = Receiver::start(|_| {
        let body = "{\"error\": \"no such city: Bern\"}";
        let head = "HTTP/1.1 422 No\r\ncontent-type: application/json";
        format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    })
    .await;
    acme.editor
        .post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": refusing.url()}), &json!({})))
        .await
        .with(201);
    let sum =
        acme.agent.post("/v1/tools/calculate/calls", &json!({"input": {"expression": "1.10 + 2"}})).await.with(200);
    assert_eq!(
        (&sum["status"], &sum["result"]["text"], &sum["replayed"], &sum["error"]),
        (&json!("succeeded"), &json!("3.1"), &json!(false), &Value::Null)
    );
    let bad = acme.agent.post("/v1/tools/t/calls", &json!({"input": {"town": "x"}})).await.with(200);
    assert_eq!(
        (&bad["status"], &bad["error"]["code"], &bad["attempts"]),
        (&json!("rejected"), &json!("invalid_input"), &json!(0))
    );
    assert!(bad["error"]["message"].as_str().unwrap().contains("city"), "{bad}");
    assert_eq!(refusing.connections(), 0);
    let said = acme.agent.post("/v1/tools/t/calls", &json!({"input": "{\"city\": \"Bern\"}"})).await.with(200);
    assert_eq!((&said["status"], &said["error"]["message"]), (&json!("failed"), &json!("no such city: Bern")));
    assert_eq!(refusing.seen()[0].json()["data"]["input"], json!({"city": "Bern"}));
}

#[tokio::test]
async fn numbers_reach_the_webhook_digit_for_digit() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::start(|_| json_answer(&json!({"text": "ok"}))).await;
    let schema = json!({"input_schema": {"type": "object", "properties": {"n": {"type": "number"}}}});
    acme.editor
        .post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": receiver.url()}), &schema))
        .await
        .with(201);
    for digits in ["1.10", "123456789012345678901234567890", "0.1000000000000000055511151231257827"] {
        let body = format!("{{\"input\":{{\"n\":{digits}}}}}");
        let call = acme.agent.send("POST", "/v1/tools/t/calls", Some(body.as_bytes())).await.with(200);
        assert_eq!(call["status"], "succeeded", "{call}");
        assert!(receiver.seen().pop().unwrap().body.contains(&format!("{{\"n\":{digits}}}")), "{digits}");
        let logged = acme.viewer.get(&format!("/v1/calls/{}", call["id"].as_str().unwrap())).await;
        assert!(logged.text().contains(&format!("{{\"n\":{digits}}}")), "{}", logged.text());
    }
}

#[tokio::test]
async fn a_caller_that_hangs_up_does_not_cut_a_call_in_half() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let slow = Receiver::start(|_| Reaction {
        after: Duration::from_millis(400),
        bytes: json_answer(&json!({"text": "late"})),
    })
    .await;
    acme.editor
        .post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": slow.url()}), &json!({})))
        .await
        .with(201);
    let body = json!({"input": {"city": "x"}}).to_string();
    let request = acme.agent.request("POST", "/v1/tools/t/calls", Some(body.as_bytes()));
    let mut connection = tokio::net::TcpStream::connect(service.address).await.unwrap();
    connection.write_all(&request).await.unwrap();
    eventually(async || (slow.seen().len() == 1).then_some(())).await;
    drop(connection);
    let listed = eventually(async || {
        let listed = acme.viewer.get("/v1/calls").await.with(200);
        listed["data"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!((&listed["status"], &listed["result"]["text"]), (&json!("succeeded"), &json!("late")));
    assert_eq!(slow.seen().len(), 1);
}

#[tokio::test]
async fn a_drain_waits_for_a_call_whose_caller_is_gone() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let slow = Receiver::start(|_| Reaction {
        after: Duration::from_millis(300),
        bytes: json_answer(&json!({"text": "late"})),
    })
    .await;
    acme.editor
        .post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": slow.url()}), &json!({})))
        .await
        .with(201);
    let request = acme.agent.request("POST", "/v1/tools/t/calls", Some(br#"{"input":{"city":"x"}}"#));
    let mut connection = tokio::net::TcpStream::connect(service.address).await.unwrap();
    connection.write_all(&request).await.unwrap();
    eventually(async || (slow.seen().len() == 1).then_some(())).await;
    drop(connection);
    service.state.drain().await;
    assert_eq!(acme.viewer.get("/v1/calls").await.with(200)["data"][0]["status"], "succeeded");
    service.anonymous().get("/readyz").await.problem(503, "unavailable");
    service.anonymous().get("/livez").await.with(200);
}

/// A tool whose webhook takes longer than any test waits.
async fn hanging(acme: &Tenant) -> Receiver {
    let receiver = Receiver::start(|_| Reaction { after: Duration::from_mins(1), bytes: Vec::new() }).await;
    acme.editor
        .post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": receiver.url()}), &json!({})))
        .await
        .with(201);
    receiver
}

#[tokio::test]
async fn a_request_may_ask_for_less_time_and_not_for_more() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    hanging(&acme).await;
    let body = json!({"input": {"city": "x"}});
    let began = Instant::now();
    let call = acme.agent.with("toolhook-timeout-ms", "200").post("/v1/tools/t/calls", &body).await.with(200);
    assert!(matches!(call["status"].as_str(), Some("timed_out" | "unknown")), "{call}");
    assert!(began.elapsed() < Duration::from_secs(3));
    service.operator().patch("/v1/tenants/acme", &json!({"limits": {"max_timeout_ms": 200}})).await.with(200);
    let began = Instant::now();
    acme.agent.with("toolhook-timeout-ms", "60000").post("/v1/tools/t/calls", &body).await.with(200);
    acme.agent.post("/v1/tools/t/calls", &body).await.with(200);
    assert!(began.elapsed() < Duration::from_secs(3));
    for odd in ["0", "-1", "300001", "soon", "", "1.5"] {
        acme.agent
            .with("toolhook-timeout-ms", odd)
            .post("/v1/tools/t/calls", &body)
            .await
            .problem(400, "invalid_header");
    }
}

#[tokio::test]
async fn a_trace_is_passed_on() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    acme.editor
        .post("/v1/tools", &tool("t", &json!({"kind": "webhook", "url": receiver.url()}), &json!({})))
        .await
        .with(201);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    acme.agent.with("traceparent", trace).post("/v1/tools/t/calls", &json!({"input": {"city": "x"}})).await.with(200);
    assert_eq!(receiver.seen()[0].header("traceparent"), Some(trace));
}

#[tokio::test]
async fn a_dry_run_shows_the_request_with_secrets_masked_and_sends_nothing() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let handler = json!({"name": "h", "kind": "webhook", "url": receiver.url(), "headers": {"authorization": "Bearer s3cret-of-the-dry-run"}});
    let made = acme.editor.post("/v1/handlers", &handler).await.with(201);
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    let body = json!({"input": {"city": "Sydney"}, "context": {"user_id": "u_1"}});
    let answer = acme.agent.post("/v1/tools/t/calls?dry_run=true", &body).await;
    let dry = answer.with(200);
    let request = &dry["request"];
    assert_eq!((&request["method"], &request["url"]), (&json!("POST"), &json!(receiver.url())));
    assert_eq!(
        (&request["headers"]["authorization"], &request["headers"]["webhook-signature"]),
        (&json!("***"), &json!("***"))
    );
    let data = &request["body"]["data"];
    assert_eq!(
        (&data["input"], &data["context"], &data["tenant"]),
        (&json!({"city": "Sydney"}), &json!({"user_id": "u_1"}), &json!("acme"))
    );
    assert_eq!((&dry["validation"], &dry["egress"]["allowed"]), (&json!({"valid": true, "errors": []}), &json!(true)));
    let secret = made["signing_secret"].as_str().unwrap();
    assert!(!answer.text().contains("s3cret") && !answer.text().contains(secret) && !answer.text().contains("v1,"));
    let bad = acme.agent.post("/v1/tools/t/calls?dry_run=true", &json!({"input": {"city": 5, "n": 1}})).await.with(200);
    assert_eq!(
        (&bad["validation"]["valid"], &bad["validation"]["errors"][0]["pointer"]),
        (&json!(false), &json!("/city"))
    );
    acme.agent.post("/v1/tools/missing/calls?dry_run=true", &body).await.problem(404, "not_found");
    assert_eq!(receiver.connections(), 0);
    assert_eq!(acme.viewer.get("/v1/calls").await.with(200)["data"], json!([]), "a dry run is no call");
    acme.agent.post("/v1/tools/t/calls?dry_run=false", &body).await.with(200);
    assert_eq!(receiver.connections(), 1);
}
