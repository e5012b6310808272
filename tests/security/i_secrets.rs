//! Where secrets go, and what a signature is worth.

use serde_json::{Value, json};
use standardwebhooks::Webhook;

use crate::http::send_with;
use crate::process::Server;
use crate::receiver::Receiver;
use crate::stage::{OK, Tenant, everywhere, key, outcome, serve};

#[test]
fn i04_a_key_does_what_its_role_says_and_no_more() {
    let tenant = Tenant::new();
    let stage = &tenant.stage;
    tenant.tool("t", &crate::stage::somewhere());
    let call = json!({"input": {}});
    let viewer = key(&stage.open, &stage.operator, &tenant.name, "viewer");
    stage.open.expect(200, &viewer, ("GET", "/v1/tools"), None);
    stage.open.expect(403, &viewer, ("POST", "/v1/tools/t/calls?dry_run=true"), Some(&call));
    stage.open.expect(403, &viewer, ("GET", "/v1/formats/mcp/tools"), None);
    let agent = key(&stage.open, &stage.operator, &tenant.name, "agent");
    stage.open.expect(200, &agent, ("POST", "/v1/tools/t/calls?dry_run=true"), Some(&call));
    stage.open.expect(403, &agent, ("DELETE", "/v1/tools/t"), None);
    stage.open.expect(403, &agent, ("GET", "/v1/handlers"), None);
}

#[test]
fn i07_the_fullest_log_has_no_secrets() {
    let tenant = Tenant::new();
    let stage = &tenant.stage;
    let mut command = serve(&stage.database(), "127.0.0.1:0");
    everywhere(&mut command).env("TOOLHOOK_LOG", "trace");
    let server = Server::start(&stage.scratch, &mut command);
    let receiver = Receiver::answering(OK);
    let signing = "whsec_cGxhbnRlZC1zaWduaW5nLXNlY3JldC0wMTIzNDU2Nzg5";
    let handler = json!({"kind": "webhook", "url": receiver.url(), "signing_secret": signing,
        "headers": {"authorization": "Bearer planted-in-a-header"}});
    let mut tool = crate::stage::tool("t", &handler);
    tool["input_schema"] = json!({"properties": {"pin": {"writeOnly": true}}});
    let made = tenant.ask_of(&server, "POST", "/v1/tools", &tool);
    assert_eq!(made.status, 201, "{}", made.text);
    let call = tenant.call_by(&server, "t", &json!({"pin": "planted-in-an-input"}));
    assert_eq!(outcome(&call), ("succeeded", ""));
    let broken = "postgres://planted-in-a-body";
    assert_eq!(tenant.ask_in_words(&server, "POST", "/v1/tools", &format!("{{\"{broken}")).status, 400);
    assert!(receiver.requests()[0].contains("planted-in-a-header"), "it was sent");
    let log = server.logged();
    assert!(log.contains("TRACE") && log.contains("answered"), "the log is a full one");
    for secret in ["planted-in", "cGxhbnRlZC1zaWduaW5n", tenant.key.as_str(), crate::stage::MASTER_KEY] {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(secret)).collect();
        assert!(lines.is_empty(), "{secret} is in the log: {lines:#?}");
    }
}

/// An author could otherwise point a handler at a server of their own, and be sent what they may not read.
#[test]
fn i07_a_header_is_sent_nowhere_but_where_it_was_written_for() {
    let tenant = Tenant::new();
    let (right, wrong) = (Receiver::answering(OK), Receiver::answering(OK));
    let secret = json!({"authorization": "Bearer s3cret"});
    let made = json!({"name": "h", "kind": "webhook", "url": right.url(), "headers": secret});
    assert_eq!(tenant.ask("POST", "/v1/handlers", &made).status, 201);
    tenant.tool("named", &json!("h"));
    tenant.tool("owning", &json!({"kind": "webhook", "url": right.url(), "headers": secret}));
    let masked = json!({"authorization": "***"});
    let moved = json!({"kind": "webhook", "url": wrong.url(), "headers": masked});
    for (method, path, body, at) in [
        ("PATCH", "/v1/handlers/h", json!({"url": wrong.url()}), "/headers/authorization"),
        ("PUT", "/v1/handlers/h", moved.clone(), "/headers/authorization"),
        ("PATCH", "/v1/tools/owning", json!({"handler": {"url": wrong.url()}}), "/handler/headers/authorization"),
        ("PUT", "/v1/tools/owning", crate::stage::tool("owning", &moved), "/handler/headers/authorization"),
    ] {
        let refused = tenant.ask(method, path, &body);
        assert_eq!(refused.status, 422, "{method} {path}: {}", refused.text);
        assert_eq!(refused.body["errors"][0]["pointer"], at, "{}", refused.text);
    }
    // Another path of the same server is another matter, and so is a header that is written again.
    let path = right.url().replace("/run", "/other");
    assert_eq!(tenant.ask("PATCH", "/v1/handlers/h", &json!({"url": path})).status, 200);
    assert_eq!(outcome(&tenant.call("named", &json!({}))), ("succeeded", ""));
    assert!(right.requests()[0].contains("Bearer s3cret"));
    let anew = json!({"url": wrong.url(), "headers": {"authorization": "Bearer other"}});
    assert_eq!(tenant.ask("PATCH", "/v1/handlers/h", &anew).status, 200);
    assert_eq!(outcome(&tenant.call("named", &json!({}))), ("succeeded", ""));
    assert!(wrong.requests()[0].contains("Bearer other"));
    assert!(!wrong.requests().concat().contains("s3cret"));
}

#[test]
fn i14_a_signature_is_of_the_very_bytes() {
    let tenant = Tenant::new();
    let receiver = Receiver::answering(OK);
    tenant.tool("unused", &crate::stage::somewhere());
    let handler = json!({"kind": "webhook", "url": receiver.url()});
    let made = tenant.ask("PUT", "/v1/tools/t", &crate::stage::tool("t", &handler));
    let secret = made.body["handler"]["signing_secret"].as_str().unwrap();
    let bearer = format!("Bearer {}", tenant.key);
    // An id of the caller's with dots in it is not what is signed.
    let headers = [("authorization", bearer.as_str()), ("x-request-id", "a.b.c"), ("idempotency-key", "1.2.3")];
    let body = json!({"input": {"z": 1, "a": [1, 2]}, "context": {}});
    let call = send_with(&tenant.stage.open.base_url, &headers, "POST", "/v1/tools/t/calls", Some(&body)).unwrap();
    assert_eq!(call.status, 200, "{}", call.text);
    let request = receiver.requests().pop().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let named = |name: &str| head.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap();
    let (id, timestamp) = (named("webhook-id"), named("webhook-timestamp").parse::<i64>().unwrap());
    assert!(!id.contains('.') && call.body["id"] == id, "{id}");
    let webhook = Webhook::new(secret).unwrap();
    assert_eq!(webhook.sign(id, timestamp, body.as_bytes()).unwrap(), named("webhook-signature"));
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(body).unwrap()).unwrap();
    assert_ne!(webhook.sign(id, timestamp, pretty.as_bytes()).unwrap(), named("webhook-signature"));
}
