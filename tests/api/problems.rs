//! Whatever is wrong with a request: a problem document, with a request id, and never a fault of the service.

use crate::support::{Answer, Line, TestService, exchange, tool, webhook};
use serde_json::json;

/// Sends a body as it is.
async fn post(service: &TestService, client: &crate::support::Client, path: &str, body: &[u8]) -> Answer {
    assert_eq!(client.address, service.address);
    client.send("POST", path, Some(body)).await
}

#[tokio::test]
async fn c19_a_body_that_cannot_be_read_is_400() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let nested = |levels: usize| format!("{{\"name\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let bodies: Vec<Vec<u8>> = [
        "",
        "{",
        "nonsense",
        "[]",
        "7",
        "null",
        "{} {}",
        "{'a':1}",
        r#"{"name":1,"name":2}"#,
        r#"{"name":1,"n\u0061me":2}"#,
        "\u{feff}{}",
        r#"{"name":NaN}"#,
        r#"{"\ud800":1}"#,
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .chain([b"{\"name\":\"\xff\"}".to_vec()])
    .collect();
    for path in ["/v1/tools", "/v1/handlers", "/v1/tools/calculate/calls", "/v1/formats/toolhook/calls"] {
        for body in &bodies {
            post(&service, &acme.editor, path, body).await.problem(400, "malformed_body");
        }
        // Depth is bounded, and does not end the process.
        for levels in [200, 100_000] {
            let answer = post(&service, &acme.editor, path, nested(levels).as_bytes()).await;
            assert!(matches!(answer.status, 400 | 422), "{path}: {}", answer.text());
        }
    }
    for path in ["/v1/tools/t", "/v1/handlers/h"] {
        for method in ["PUT", "PATCH"] {
            acme.editor.send(method, path, Some(b"{\"a\":1,\"a\":1}")).await.problem(400, "malformed_body");
        }
    }
}

#[tokio::test]
async fn c21_characters_that_a_database_or_a_reader_trips_over_are_no_fault_of_the_service() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    let base = tool("t", &json!("h"), &json!({})).to_string();
    for odd in [r"a\u0000b", r"a\ud800b", r"a\u202eb"] {
        for (field, value) in [
            ("description", format!("\"{odd}\"")),
            ("name", format!("\"{odd}\"")),
            ("handler", format!("\"{odd}\"")),
            ("tags", format!("[\"{odd}\"]")),
            ("annotations", format!("{{\"title\":\"{odd}\"}}")),
            ("annotations", format!("{{\"{odd}\":1}}")),
            ("provider_options", format!("{{\"{odd}\":{{}}}}")),
            ("allowed_callers", format!("[\"{odd}\"]")),
            ("result_type", format!("\"{odd}\"")),
            (
                "handler",
                format!("{{\"kind\":\"webhook\",\"url\":\"https://a.example/{odd}\",\"headers\":{{\"x\":\"{odd}\"}}}}"),
            ),
        ] {
            let body = base.replacen('{', &format!("{{\"{field}\":{value},"), 1);
            // The field stands twice now, unless the one that was there is taken out.
            let mut kept: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&base).unwrap();
            kept.remove(field);
            let body_once =
                serde_json::Value::Object(kept).to_string().replacen('{', &format!("{{\"{field}\":{value},"), 1);
            post(&service, &acme.editor, "/v1/tools", body.as_bytes()).await;
            let answer = post(&service, &acme.editor, "/v1/tools", body_once.as_bytes()).await;
            assert!(matches!(answer.status, 400 | 422), "{body_once}: {} {}", answer.status, answer.text());
        }
        // Inside documents NUL is text like any other, half a character is none, and what turns a line round is refused.
        let schema = format!("{{\"type\":\"object\",\"properties\":{{\"city\":{{\"description\":\"{odd}\"}}}}}}");
        let name = format!("d{}", odd.len() + usize::from(odd.contains('d')));
        let body = format!(
            r#"{{"name":"{name}","description":"d","handler":"h","input_schema":{schema},"input_examples":[{{"{odd}":"{odd}"}}],"provider_options":{{"gemini":{{"x":"{odd}"}}}}}}"#
        );
        let answer = post(&service, &acme.editor, "/v1/tools", body.as_bytes()).await;
        if odd.contains("d800") || odd.contains("202e") {
            assert_eq!(answer.status, 422, "{}", answer.text());
        } else {
            answer.with(201);
            assert!(acme.viewer.get(&format!("/v1/tools/{name}")).await.text().contains(&schema));
            acme.agent.get("/v1/formats/toolhook/tools").await.with(200);
        }
        let call = format!("{{\"input\":{{\"expression\":\"{odd}\"}},\"context\":{{\"{odd}\":\"{odd}\"}}}}");
        let answer = post(&service, &acme.agent, "/v1/tools/calculate/calls", call.as_bytes()).await;
        assert_eq!(answer.status, if odd.contains("d800") { 400 } else { 200 }, "{}", answer.text());
        let reply = format!("{{\"reply\":[{{\"id\":\"{odd}\",\"name\":\"{odd}\",\"input\":{{\"x\":\"{odd}\"}}}}]}}");
        let answer = post(&service, &acme.agent, "/v1/formats/toolhook/calls", reply.as_bytes()).await;
        assert_eq!(answer.status, if odd.contains("d800") { 400 } else { 200 }, "{}", answer.text());
    }
    acme.viewer.get("/v1/calls").await.with(200);
    for path in ["/v1/tools/%00", "/v1/handlers/%00", "/v1/calls/%00", "/v1/tools/%ff", "/v1/formats/%00/tools"] {
        acme.editor.get(path).await.problem(404, "not_found");
    }
    acme.admin.delete("/v1/keys/%00").await.problem(404, "not_found");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = |bytes: usize| format!("{{\"x\":\"{}\"}}", "a".repeat(bytes - 8)).into_bytes();
    let mebibyte = 1024 * 1024;
    post(&service, &acme.editor, "/v1/tools", &body(mebibyte)).await.problem(422, "invalid_body");
    post(&service, &acme.editor, "/v1/tools", &body(mebibyte + 1)).await.problem(413, "body_too_large");
    let calls = "/v1/formats/toolhook/calls";
    post(&service, &acme.agent, calls, &body(8 * mebibyte)).await.problem(422, "invalid_body");
    post(&service, &acme.agent, calls, &body(8 * mebibyte + 1)).await.problem(413, "body_too_large");
    // Also where the length is not said beforehand.
    let mut chunked = acme
        .editor
        .with("transfer-encoding", "chunked")
        .with("content-type", "application/json")
        .request("POST", "/v1/tools", None);
    for _ in 0..17 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(" ".repeat(0x10000).as_bytes());
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    exchange(service.address, &chunked).await.problem(413, "body_too_large");
    // A schema has a bound of its own.
    let schema = json!({"input_schema": {"description": "x".repeat(70_000)}});
    let problem = acme.editor.post("/v1/tools", &tool("t", &webhook(), &schema)).await.problem(422, "invalid_body");
    assert_eq!(crate::support::pointers(&problem), ["/input_schema"]);
}

#[tokio::test]
async fn a_body_that_is_not_json_by_its_type_is_415() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "text/json", "application/json; charset=latin1", "json", ""]
    {
        let client = acme.editor.with("content-type", kind);
        client.send("POST", "/v1/tools", Some(b"{}")).await.problem(415, "unsupported_media_type");
        client.send("PATCH", "/v1/tools/t", Some(b"{}")).await.problem(415, "unsupported_media_type");
    }
    for kind in
        ["application/json", "application/json; charset=UTF-8", "application/merge-patch+json", "Application/JSON"]
    {
        acme.editor
            .with("content-type", kind)
            .send("POST", "/v1/tools", Some(b"{}"))
            .await
            .problem(422, "invalid_body");
    }
    let none = acme.editor.request("POST", "/v1/tools", None);
    exchange(service.address, &none).await.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn an_unknown_route_and_a_wrong_method_are_problems_too() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for path in ["/", "/v1", "/v1/", "/v1/tools/", "/v2/tools", "/v1/tools/a/b", "/favicon.ico", "/v1/TOOLS"] {
        acme.editor.get(path).await.problem(404, "unknown_route");
        service.anonymous().get(path).await.problem(404, "unknown_route");
    }
    let wrong = acme.editor.send("DELETE", "/v1/tools", None).await;
    wrong.problem(405, "method_not_allowed");
    let mut allowed: Vec<&str> = wrong.header("allow").unwrap().split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    acme.editor.send("BREW", "/v1/tools/t", None).await.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_head_is_a_get_without_its_body() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    let request = acme.viewer.request("HEAD", "/v1/tools/t", None);
    let mut connection = tokio::net::TcpStream::connect(service.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut connection, &request).await.unwrap();
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut connection, &mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("\r\n\r\n"), "{text}");
    assert!(text.contains(&acme.viewer.get("/v1/tools/t").await.etag()), "{text}");
}

#[tokio::test]
async fn a_request_id_is_taken_or_made_and_logged() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let made = acme.viewer.get("/v1/tools").await.header("x-request-id").unwrap().to_owned();
    assert_ne!(acme.viewer.get("/v1/tools").await.header("x-request-id"), Some(made.as_str()));
    for path in ["/v1/tools", "/v1/tools/missing", "/nowhere", "/livez"] {
        let answer = acme.viewer.with("x-request-id", "req_from-the-caller.1").get(path).await;
        assert_eq!(answer.header("x-request-id"), Some("req_from-the-caller.1"), "{path}");
    }
    let longest = "x".repeat(128);
    assert_eq!(
        acme.viewer.with("x-request-id", &longest).get("/v1/tools").await.header("x-request-id"),
        Some(longest.as_str())
    );
    for odd in ["", "a b", "é", &"x".repeat(129)] {
        let answer = acme.viewer.with("x-request-id", odd).get("/v1/tools").await;
        assert_ne!(answer.header("x-request-id"), Some(odd));
    }
    let agent = acme.agent.with("x-request-id", "req_of-a-call");
    let call = agent.post("/v1/tools/calculate/calls", &json!({"input": {"expression": "1"}})).await.with(200);
    let logged = acme.viewer.get(&format!("/v1/calls/{}", call["id"].as_str().unwrap())).await.with(200);
    assert_eq!(logged["request_id"], "req_of-a-call");
    assert!(crate::support::traced().contains("req_of-a-call"), "the service's own log does not name the request");
}

#[tokio::test]
async fn a_database_that_is_away_is_503_and_nothing_is_sent() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = crate::support::Receiver::weather().await;
    let owned = json!({"kind": "webhook", "url": receiver.url()});
    acme.editor.post("/v1/tools", &tool("t", &owned, &json!({}))).await.with(201);
    let line = Line::to(&service.database.url());
    let service = service.restart_over(&line).await;
    let acme = acme.at(&service);
    acme.agent.get("/v1/formats/anthropic/tools").await.with(200);
    service.anonymous().get("/readyz").await.with(200);
    line.cut();
    // What is in memory is still served; what has to be asked or logged is not.
    acme.agent.get("/v1/formats/anthropic/tools").await.with(200);
    service.anonymous().get("/livez").await.with(200);
    let body = json!({"input": {"city": "x"}});
    // Beside each other, for each waits for a connection.
    let nobody = service.anonymous();
    let (ready, tools, call) =
        tokio::join!(nobody.get("/readyz"), acme.agent.get("/v1/tools"), acme.agent.post("/v1/tools/t/calls", &body));
    for answer in [ready, tools, call] {
        answer.problem(503, "unavailable");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_is_refused() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let twice = acme.editor.with("Authorization", "Bearer thk_another");
    twice.get("/v1/tools").await.problem(401, "unauthenticated");
    let coded = acme.editor.with("Content-Encoding", "gzip");
    coded.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.problem(415, "unsupported_media_type");
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    let only_new = acme.editor.with("If-None-Match", "*");
    only_new.put("/v1/tools/t", &tool("t", &webhook(), &json!({}))).await.problem(412, "precondition_failed");
    only_new.put("/v1/tools/u", &tool("u", &webhook(), &json!({}))).await.with(201);
    let many: Vec<_> = (0..1_001).map(|n| json!({"id": n.to_string(), "name": "t", "input": {}})).collect();
    acme.agent.post("/v1/formats/toolhook/calls", &json!({"reply": many})).await.problem(422, "invalid_reply");
    let log = acme.viewer.get("/v1/calls").await.with(200);
    assert_eq!(log["data"], json!([]), "nothing of it was run");
}
