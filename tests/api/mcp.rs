//! The tenant's tools as an MCP server, for clients of both generations.

use crate::support::{Answer, Client, Reaction, Receiver, Tenant, TestService, eventually, json_answer, tool, webhook};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

const NOW: &str = "2026-07-28";

/// A request as clients up to 2025-11-25 send it, after their handshake.
async fn older(client: &Client, target: &str, method: &str, params: Value) -> Answer {
    let client = client.with("mcp-protocol-version", "2025-06-18");
    client.post(target, &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})).await
}

/// A request as clients from 2026-07-28 on send it.
async fn newer(client: &Client, method: &str, params: Value) -> Answer {
    spoken(client, method, params.get("name").and_then(Value::as_str), params.clone()).await
}

async fn spoken(client: &Client, method: &str, name: Option<&str>, mut params: Value) -> Answer {
    let mut client = client.with("mcp-protocol-version", NOW).with("mcp-method", method);
    if let Some(name) = name {
        client = client.with("mcp-name", name);
    }
    params["_meta"] =
        json!({"io.modelcontextprotocol/protocolVersion": NOW, "io.modelcontextprotocol/clientCapabilities": {}});
    client.post("/mcp", &json!({"jsonrpc": "2.0", "id": "n", "method": method, "params": params})).await
}

fn result(answer: &Answer) -> Value {
    let body = answer.with(200);
    assert!(body.get("error").is_none(), "{body}");
    body["result"].clone()
}

#[track_caller]
fn error(answer: &Answer, status: u16, code: i64) -> String {
    let body = answer.with(status);
    assert_eq!(body["error"]["code"].to_string(), code.to_string(), "{body}");
    body["error"]["message"].as_str().unwrap().to_owned()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn names(result: &Value) -> Vec<&str> {
    result["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

async fn weather(tenant: &Tenant, receiver: &Receiver) {
    let handler = json!({"kind": "webhook", "url": receiver.url()});
    tenant.editor.post("/v1/tools", &tool("get_weather", &handler, &json!({"tags": ["weather"]}))).await.with(201);
}

#[tokio::test]
async fn older_clients_shake_hands_list_and_call() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    weather(&acme, &Receiver::weather().await).await;
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        (NOW, "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = acme.agent.post("/mcp", &request).await;
        assert!(answer.header("mcp-session-id").is_none());
        let hello = result(&answer);
        assert_eq!(hello["protocolVersion"], agreed);
        assert_eq!(hello["capabilities"], json!({"tools": {"listChanged": false}}));
        assert_eq!(hello["serverInfo"]["name"], "toolhook");
    }
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let taken = acme.agent.with("mcp-protocol-version", "2025-06-18").post("/mcp", &ready).await;
    assert_eq!((taken.status, taken.body.len()), (202, 0));
    assert_eq!(result(&older(&acme.agent, "/mcp", "ping", Value::Null).await), json!({}));

    let listed = result(&older(&acme.agent, "/mcp", "tools/list", json!({})).await);
    let format = acme.agent.get("/v1/formats/mcp/tools").await.with(200);
    assert_eq!(listed, json!({"tools": format["tools"]}));
    let arguments = json!({"name": "get_weather", "arguments": {"city": "Sydney"}});
    let called = result(&older(&acme.agent, "/mcp", "tools/call", arguments).await);
    assert_eq!(called, json!({"content": [{"type": "text", "text": "get_weather in Sydney"}]}));
    let unknown = older(&acme.agent, "/mcp", "resources/list", json!({})).await;
    assert!(error(&unknown, 200, -32601).contains("resources/list"));
    // The first revision of this transport had no header for it.
    result(&acme.agent.post("/mcp", &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await);
}

#[tokio::test]
async fn newer_clients_discover_list_and_call_without_a_handshake() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    weather(&acme, &Receiver::weather().await).await;
    let found = result(&newer(&acme.agent, "server/discover", json!({})).await);
    assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!(NOW)), "{found}");
    assert_eq!(found["capabilities"], json!({"tools": {"listChanged": false}}));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolhook");

    let listed = result(&newer(&acme.agent, "tools/list", json!({})).await);
    let format = acme.agent.get("/v1/formats/mcp/tools").await.with(200);
    assert_eq!(listed["tools"], format["tools"]);
    assert_eq!(listed["resultType"], "complete");
    assert_eq!((listed["ttlMs"].to_string().as_str(), &listed["cacheScope"]), ("0", &json!("private")));
    let arguments = json!({"name": "get_weather", "arguments": {"city": "Sydney"}});
    let called = result(&newer(&acme.agent, "tools/call", arguments).await);
    let content = json!([{"type": "text", "text": "get_weather in Sydney"}]);
    assert_eq!(called, json!({"resultType": "complete", "content": content}));

    for gone in ["ping", "resources/list", "subscriptions/listen", "nothing"] {
        assert!(error(&newer(&acme.agent, gone, json!({})).await, 404, -32601).contains(gone));
    }
    let cancelled = acme.agent.with("mcp-protocol-version", NOW).with("mcp-method", "notifications/cancelled");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(cancelled.post("/mcp", &note).await.status, 202);
}

#[tokio::test]
async fn headers_that_say_something_else_than_the_body_are_refused() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let call = json!({"name": "calculate", "arguments": {"expression": "1+1"}});
    result(&newer(&acme.agent, "tools/call", call.clone()).await);
    result(&spoken(&acme.agent, "tools/call", Some("=?base64?Y2FsY3VsYXRl?="), call.clone()).await);
    error(&spoken(&acme.agent, "tools/call", Some("count_text"), call.clone()).await, 400, -32020);
    error(&spoken(&acme.agent, "tools/call", None, call.clone()).await, 400, -32020);
    let body = |version: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}}})
    };
    let speaking = |version: &str| acme.agent.with("mcp-protocol-version", version);
    error(&speaking(NOW).with("mcp-method", "tools/call").post("/mcp", &body(NOW)).await, 400, -32020);
    error(&speaking(NOW).post("/mcp", &body(NOW)).await, 400, -32020);
    error(&speaking("2025-11-25").post("/mcp", &body(NOW)).await, 400, -32020);
    error(&acme.agent.post("/mcp", &body(NOW)).await, 400, -32020);
    let future = speaking("2030-01-01").with("mcp-method", "tools/list").post("/mcp", &body("2030-01-01")).await;
    error(&future, 400, -32022);
    assert_eq!(future.json()["error"]["data"]["requested"], "2030-01-01");
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": NOW}}});
    let incomplete = speaking(NOW).with("mcp-method", "tools/list").post("/mcp", &bare).await;
    assert!(error(&incomplete, 400, -32602).contains("clientCapabilities"));
}

#[tokio::test]
async fn the_list_comes_in_pages_and_a_tag_narrows_it_and_the_calls() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    for n in 0..203 {
        let tags = if n % 100 == 0 { json!(["round", "all"]) } else { json!(["all"]) };
        let body = tool(&format!("tool_{n:03}"), &json!("h"), &json!({"tags": tags}));
        acme.editor.post("/v1/tools", &body).await.with(201);
    }
    let format = acme.agent.get("/v1/formats/mcp/tools").await.with(200);
    let first = result(&older(&acme.agent, "/mcp", "tools/list", Value::Null).await);
    let second = result(&older(&acme.agent, "/mcp", "tools/list", json!({"cursor": first["nextCursor"]})).await);
    assert_eq!((names(&first).len(), second.get("nextCursor")), (200, None));
    let both: Vec<Value> =
        [&first, &second].iter().flat_map(|page| page["tools"].as_array().unwrap().clone()).collect();
    assert_eq!(json!(both), format["tools"]);
    // A tool that came in between moves nothing.
    acme.editor.post("/v1/tools", &tool("a_first", &json!("h"), &json!({}))).await.with(201);
    let again = older(&acme.agent, "/mcp", "tools/list", json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(result(&again), second);
    for bad in [json!("*"), json!(1), json!({})] {
        error(&older(&acme.agent, "/mcp", "tools/list", json!({"cursor": bad})).await, 200, -32602);
    }

    let round = result(&older(&acme.agent, "/mcp?tag=round&tag=all", "tools/list", json!({})).await);
    assert_eq!(names(&round), ["tool_000", "tool_100", "tool_200"]);
    let outside =
        older(&acme.agent, "/mcp?tag=round", "tools/call", json!({"name": "tool_001", "arguments": {}})).await;
    assert!(error(&outside, 200, -32602).contains("tool_001"));
    older(&acme.agent, "/mcp?tags=round", "tools/list", json!({})).await.problem(400, "invalid_query");
}

#[tokio::test]
async fn a_tool_is_listed_as_its_author_wrote_it() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let schema =
        json!({"type": "object", "properties": {"z": {"type": "number", "maximum": 1.50}, "a": {"type": "string"}}});
    let more = json!({"input_schema": schema, "annotations": {"read_only": true, "title": "T"},
        "provider_options": {"mcp": {"execution": {"taskSupport": "forbidden"}, "x_vendor": {"n": 1.0}}}});
    let written = tool("t", &webhook(), &more).to_string().replace("1.5,", "1.50,");
    acme.editor.send("POST", "/v1/tools", Some(written.as_bytes())).await.with(201);
    let answer = older(&acme.agent, "/mcp?tag=", "tools/list", json!({})).await;
    assert_eq!(names(&result(&answer)), Vec::<&str>::new());
    let answer = newer(&acme.agent, "tools/list", json!({})).await;
    let format = acme.agent.get("/v1/formats/mcp/tools").await;
    let (from, to) = (format.text().find("\"tools\":[").unwrap(), format.text().find(",\"omitted\"").unwrap());
    assert!(answer.text().contains(&format.text()[from..to]), "{}\n{}", answer.text(), format.text());
    assert!(answer.text().contains("x_vendor"), "{}", answer.text());
}

#[tokio::test]
async fn results_are_text_data_errors_and_pictures() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::start(|seen| match seen.json()["data"]["input"]["city"].as_str().unwrap() {
        "data" => json_answer(&json!({"text": "22 degrees", "data": {"celsius": 22}})),
        "object" => json_answer(&json!({"celsius": 22})),
        "error" => json_answer(&json!({"error": "no such city"})),
        "picture" => {
            b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 8\r\n\r\n\x89PNG\r\n\x1a\n".to_vec()
        }
        _ => json_answer(&json!({"text": "warm"})),
    })
    .await;
    let handler = json!({"kind": "webhook", "url": receiver.url()});
    acme.editor.post("/v1/tools", &tool("free", &handler, &json!({}))).await.with(201);
    let output = json!({"output_schema": {"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]}});
    acme.editor.post("/v1/tools", &tool("promising", &handler, &output)).await.with(201);
    let call = async |name: &str, city: &str| {
        result(&older(&acme.agent, "/mcp", "tools/call", json!({"name": name, "arguments": {"city": city}})).await)
    };
    for name in ["free", "promising"] {
        let data = call(name, "data").await;
        assert_eq!((text(&data), &data["structuredContent"]), ("22 degrees", &json!({"celsius": 22})));
        let object = call(name, "object").await;
        assert_eq!((text(&object), &object["structuredContent"]), ("{\"celsius\":22}", &json!({"celsius": 22})));
        let failed = call(name, "error").await;
        assert_eq!(failed, json!({"content": [{"type": "text", "text": "no such city"}], "isError": true}));
    }
    assert_eq!(call("free", "text").await, json!({"content": [{"type": "text", "text": "warm"}]}));
    let picture = json!([{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]);
    assert_eq!(call("free", "picture").await, json!({"content": picture}));
    let broken = call("promising", "text").await;
    assert_eq!((&broken["isError"], &broken["content"][1]["text"]), (&json!(true), &json!("warm")), "{broken}");
}

#[tokio::test]
async fn wrong_arguments_are_for_the_model_and_wrong_requests_for_the_client() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    weather(&acme, &receiver).await;
    let call = async |params: Value| older(&acme.agent, "/mcp", "tools/call", params).await;
    for arguments in [json!({}), json!({"city": 1}), json!(["Sydney"]), json!("Sydney"), json!(1), Value::Null] {
        let refused = result(&call(json!({"name": "get_weather", "arguments": arguments})).await);
        assert_eq!(refused["isError"], true, "{refused}");
    }
    let refused = result(&call(json!({"name": "get_weather"})).await);
    assert!(text(&refused).contains("city"), "{refused}");
    assert!(error(&call(json!({"name": "get_wether", "arguments": {}})).await, 200, -32602).contains("get_wether"));
    for params in [
        json!({}),
        json!({"name": 1}),
        json!({"name": ""}),
        json!({"name": null}),
        json!({"arguments": {}}),
        Value::Null,
    ] {
        assert!(error(&call(params.clone()).await, 200, -32602).contains("name"), "{params}");
    }
    error(&call(json!([])).await, 400, -32602);
    assert_eq!(receiver.connections(), 0);
    acme.editor.patch("/v1/tools/get_weather", &json!({"enabled": false})).await.with(200);
    let off = result(&call(json!({"name": "get_weather", "arguments": {"city": "Sydney"}})).await);
    assert!(off["isError"] == true && text(&off).contains("switched off"), "{off}");
}

#[tokio::test]
async fn ids_come_back_as_they_were_written_and_digits_reach_the_handler() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for id in ["1", "0", "-1", "9007199254740993", "12345678901234567890", "1.50", "\"1\"", "\"\"", "\"a-\\u00e4\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let answer = acme.agent.send("POST", "/mcp", Some(body.as_bytes())).await;
        answer.with(200);
        let expected: Value = serde_json::from_str(id).unwrap();
        assert_eq!(answer.text(), format!(r#"{{"jsonrpc":"2.0","id":{expected},"result":{{}}}}"#));
    }
    let receiver = Receiver::start(|_| json_answer(&json!({"text": "", "data": {"n": 0.10}}))).await;
    let schema = json!({"input_schema": {"type": "object", "properties": {"n": {"type": "number"}}}});
    let handler = json!({"kind": "webhook", "url": receiver.url()});
    acme.editor.post("/v1/tools", &tool("exact", &handler, &schema)).await.with(201);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exact","arguments":{"n":12345678901234567890.10},"_meta":{"progressToken":1}}}"#;
    acme.agent.send("POST", "/mcp", Some(body.as_bytes())).await.with(200);
    assert!(receiver.seen()[0].body.contains("\"n\":12345678901234567890.10"), "{}", receiver.seen()[0].body);
}

#[tokio::test]
async fn what_is_no_message_is_refused_in_the_protocols_words() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, -32602),
    ] {
        error(&acme.agent.send("POST", "/mcp", Some(body.as_bytes())).await, 400, code);
    }
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    acme.agent.with("content-type", "text/plain").post("/mcp", &ping).await.problem(415, "unsupported_media_type");
    acme.agent.with("accept", "text/event-stream").post("/mcp", &ping).await.problem(406, "not_acceptable");
    for accept in ["application/json, text/event-stream", "*/*", "application/json"] {
        acme.agent.with("accept", accept).post("/mcp", &ping).await.with(200);
    }
    for method in ["GET", "DELETE"] {
        let answer = acme.agent.send(method, "/mcp", None).await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("POST"));
    }
}

#[tokio::test]
async fn who_may_and_from_where() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    service.anonymous().post("/mcp", &ping).await.problem(401, "unauthenticated");
    acme.viewer.post("/mcp", &ping).await.problem(403, "forbidden");
    for client in [&acme.agent, &acme.editor, &acme.operator] {
        client.post("/mcp", &ping).await.with(200);
    }
    for foreign in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        acme.agent.with("origin", foreign).post("/mcp", &ping).await.problem(403, "foreign_origin");
    }
    acme.agent.with("origin", &format!("http://{}", service.address)).post("/mcp", &ping).await.with(200);
}

#[tokio::test]
async fn tenants_see_and_call_their_own_tools_alone() {
    let service = TestService::start().await;
    let (acme, globex) = (service.tenant("acme").await, service.tenant("globex").await);
    let receiver = Receiver::weather().await;
    weather(&acme, &receiver).await;
    acme.editor.post("/v1/tools", &tool("secret_plan", &webhook(), &json!({}))).await.with(201);
    let listed = result(&newer(&globex.agent, "tools/list", json!({})).await);
    assert!(!listed.to_string().contains("secret_plan") && !names(&listed).contains(&"get_weather"), "{listed}");
    let call = json!({"name": "get_weather", "arguments": {"city": "Sydney"}});
    error(&newer(&globex.agent, "tools/call", call.clone()).await, 200, -32602);
    assert!(receiver.seen().is_empty());
    result(&newer(&acme.agent, "tools/call", call).await);

    let log = acme.viewer.get("/v1/calls").await.with(200);
    assert_eq!((log["data"].as_array().unwrap().len(), &log["data"][0]["format"]), (1, &json!("mcp")), "{log}");
    assert_eq!(receiver.seen()[0].json()["data"]["context"], json!({}));
    assert_eq!(globex.viewer.get("/v1/calls").await.with(200)["data"], json!([]));
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_cut_a_sent_call_in_half() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let after = Duration::from_millis(300);
    let receiver = Receiver::start(move |_| Reaction { after, bytes: json_answer(&json!({"text": "done"})) }).await;
    weather(&acme, &receiver).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_weather", "arguments": {"city": "Sydney"}}});
    let mut connection = tokio::net::TcpStream::connect(service.address).await.unwrap();
    connection.write_all(&acme.agent.request("POST", "/mcp", Some(call.to_string().as_bytes()))).await.unwrap();
    eventually(async || (!receiver.seen().is_empty()).then_some(())).await;
    drop(connection);
    let logged = eventually(async || {
        let log = acme.viewer.get("/v1/calls").await.with(200);
        log["data"].get(0).cloned()
    })
    .await;
    assert_eq!(logged["status"], "succeeded");
}
