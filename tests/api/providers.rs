//! From the provider's reply to the provider's shape, in every format.

use crate::support::{Receiver, TestService, tool, webhook};
use serde_json::{Value, json};

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
    some_exchanges().into_iter().chain(more_exchanges()).collect()
}

fn some_exchanges() -> Vec<Exchange> {
    let (arguments, input) = ("{\"city\":\"Sydney\"}", json!({"city": "Sydney"}));
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
    ]
}

/// The others.
fn more_exchanges() -> Vec<Exchange> {
    let (arguments, input) = ("{\"city\":\"Sydney\"}", json!({"city": "Sydney"}));
    vec![
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
