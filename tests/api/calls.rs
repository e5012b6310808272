//! Running calls, from the provider's reply to the provider's shape.

use crate::support::{Reaction, Receiver, Tenant, TestService, eventually, json_answer, pointers, tool, webhook};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;

/// What a provider's API returned, and what it wants appended.
struct Exchange {
    format: &'static str,
    reply: Value,
    call_id: Option<&'static str>,
    append: Value,
    /// The place of the tool's name in a declaration.
    name_at: &'static str,
}

const TEXT: &str = "get_weather in Sydney";

/// Each format's reply with one call of `get_weather`, as the provider documents it, and its result.
fn exchanges() -> Vec<Exchange> {
    let arguments = "{\"city\":\"Sydney\"}";
    let input = json!({"city": "Sydney"});
    vec![
        Exchange {
            format: "openai-chat",
            reply: json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message":
                {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function":
                {"name": "get_weather", "arguments": arguments}}]}}]}),
            call_id: Some("call_1"),
            append: json!([{"role": "tool", "tool_call_id": "call_1", "content": TEXT}]),
            name_at: "/function/name",
        },
        Exchange {
            format: "openai-responses",
            reply: json!({"object": "response", "status": "completed", "output": [{"type": "function_call", "id": "fc_1", "call_id": "call_1",
                "name": "get_weather", "arguments": arguments, "status": "completed"}]}),
            call_id: Some("call_1"),
            append: json!([{"type": "function_call_output", "call_id": "call_1", "output": TEXT}]),
            name_at: "/name",
        },
        Exchange {
            format: "anthropic",
            reply: json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
                {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": input}]}),
            call_id: Some("toolu_1"),
            append: json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                "content": TEXT}]}]),
            name_at: "/name",
        },
        Exchange {
            format: "gemini",
            reply: json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": input}}]},
                "finishReason": "STOP"}]}),
            call_id: None,
            append: json!([{"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"output": TEXT}}}]}]),
            name_at: "/functionDeclarations",
        },
        Exchange {
            format: "bedrock",
            reply: json!({"output": {"message": {"role": "assistant", "content": [{"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather",
                "input": input}}]}}, "stopReason": "tool_use"}),
            call_id: Some("tooluse_1"),
            append: json!([{"role": "user", "content": [{"toolResult": {"toolUseId": "tooluse_1", "status": "success",
                "content": [{"text": TEXT}]}}]}]),
            name_at: "/toolSpec/name",
        },
        Exchange {
            format: "cohere",
            reply: json!({"id": "r", "finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_plan": "I look.", "tool_calls": [
                {"id": "get_weather_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}]}}),
            call_id: Some("get_weather_1"),
            append: json!([{"role": "tool", "tool_call_id": "get_weather_1", "content": TEXT}]),
            name_at: "/function/name",
        },
        Exchange {
            format: "mcp",
            reply: json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "get_weather", "arguments": input}}),
            call_id: Some("7"),
            append: json!([{"content": [{"type": "text", "text": TEXT}]}]),
            name_at: "/name",
        },
        Exchange {
            format: "toolhook",
            reply: json!([{"id": "1", "name": "get_weather", "input": input}]),
            call_id: Some("1"),
            append: json!([{"id": "1", "name": "get_weather", "status": "succeeded", "text": TEXT, "data": null}]),
            name_at: "/name",
        },
    ]
}

/// The declarations of a list, one a tool; Gemini's stand together in one.
fn declared(list: &Value, name_at: &str) -> Vec<String> {
    let tools = list["tools"].as_array().unwrap();
    let inner = tools.iter().flat_map(|tool| match tool.pointer(name_at) {
        Some(Value::Array(inner)) => inner.iter().map(|one| one["name"].clone()).collect(),
        Some(name) => vec![name.clone()],
        None => vec![],
    });
    inner.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_tool_made_by_rest_is_listed_called_and_answered_in_every_format() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let handler = json!({"name": "weather-backend", "kind": "webhook", "url": receiver.url(), "headers": {"authorization": "Bearer s3cret"}});
    let made = acme.editor.post("/v1/handlers", &handler).await.with(201);
    let secret = made["signing_secret"].as_str().unwrap();
    acme.editor.post("/v1/tools", &tool("get_weather", &json!("weather-backend"), &json!({}))).await.with(201);
    let formats = acme.viewer.get("/v1/formats").await.with(200);
    let formats: Vec<&str> =
        formats["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(exchanges().iter().map(|one| one.format).collect::<Vec<_>>(), formats, "a format is not tested");
    for Exchange { format, reply, call_id, append, name_at } in exchanges() {
        let list = acme.agent.get(&format!("/v1/formats/{format}/tools")).await.with(200);
        assert!(declared(&list, name_at).contains(&"get_weather".to_owned()), "{format}: {list}");
        let body = json!({"reply": reply, "context": {"user_id": "u_1"}});
        let answer = acme.agent.post(&format!("/v1/formats/{format}/calls"), &body).await.with(200);
        assert_eq!(answer["append"], append, "{format}");
        let call = &answer["calls"][0];
        assert_eq!(
            (&call["call_id"], &call["status"], &call["result"]["text"]),
            (&json!(call_id), &json!("succeeded"), &json!(TEXT)),
            "{format}"
        );

        let seen = receiver.seen().pop().unwrap();
        assert!(seen.is_signed_with(secret), "{format}");
        assert!(!seen.is_signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
        assert_eq!(seen.line, "POST /run HTTP/1.1");
        assert_eq!(
            (seen.header("authorization"), seen.header("webhook-id")),
            (Some("Bearer s3cret"), call["id"].as_str())
        );
        assert_eq!(seen.header("idempotency-key"), seen.header("webhook-id"));
        let event = seen.json();
        assert_eq!(event["type"], "tool.call");
        let data = &event["data"];
        assert_eq!(
            (&data["id"], &data["tool"], &data["tool_version"], &data["tenant"]),
            (&call["id"], &json!("get_weather"), &json!(1), &json!("acme"))
        );
        assert_eq!(
            (&data["input"], &data["context"], &data["attempt"]),
            (&json!({"city": "Sydney"}), &json!({"user_id": "u_1"}), &json!(1))
        );
    }
    assert_eq!(receiver.seen().len(), 8);
    let logged = acme.viewer.get("/v1/calls").await.with(200);
    let mut told: Vec<&str> =
        logged["data"].as_array().unwrap().iter().map(|row| row["format"].as_str().unwrap()).collect();
    told.reverse();
    assert_eq!(told, formats);
}

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
    let receiver = Receiver::start(|_| Reaction { after: Duration::from_secs(60), bytes: Vec::new() }).await;
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

#[tokio::test]
async fn a_list_has_the_tools_that_can_be_called_and_is_the_same_until_one_changes() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    for (name, more) in
        [("b", json!({"tags": ["x"]})), ("a", json!({"tags": ["x", "y"]})), ("off", json!({"enabled": false}))]
    {
        acme.editor.post("/v1/tools", &tool(name, &json!("h"), &more)).await.with(201);
    }
    let list = acme.agent.get("/v1/formats/toolhook/tools").await;
    assert_eq!(declared(&list.with(200), "/name"), ["a", "b", "calculate", "count_text", "current_time"]);
    let again = acme.at(&service.restart().await).agent.get("/v1/formats/toolhook/tools").await;
    assert_eq!((list.body.clone(), list.etag()), (again.body.clone(), again.etag()));
    let known = acme.agent.with("if-none-match", &list.etag()).get("/v1/formats/toolhook/tools").await;
    assert_eq!((known.status, known.body.len(), known.etag()), (304, 0, list.etag()));
    for (query, expected) in [
        ("tag=x", vec!["a", "b"]),
        ("tag=x&tag=y", vec!["a"]),
        ("name=b&name=off", vec!["b"]),
        ("tag=x&name=b", vec!["b"]),
        ("name=none", vec![]),
    ] {
        let got = acme.agent.get(&format!("/v1/formats/toolhook/tools?{query}")).await.with(200);
        assert_eq!(declared(&got, "/name"), expected, "{query}");
    }
    acme.editor.patch("/v1/tools/off", &json!({"enabled": true})).await.with(200);
    let changed = acme.agent.with("if-none-match", &list.etag()).get("/v1/formats/toolhook/tools").await.with(200);
    assert!(declared(&changed, "/name").contains(&"off".to_owned()));
    assert!(changed["registry_version"].as_i64() > list.json()["registry_version"].as_i64());
    acme.agent.get("/v1/formats/nonsense/tools").await.problem(404, "not_found");
}
