//! Secrets: shown once, masked ever after, and nowhere in the clear.

use crate::support::{Receiver, TestService, tool, traced};
use serde_json::json;

#[tokio::test]
async fn i07_planted_secrets_are_in_no_answer_no_table_and_no_log() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let own = "whsec_cGxhbnRlZC1zaWduaW5nLXNlY3JldC0wMTIzNDU2Nzg5";
    let named = json!({"name": "h", "kind": "webhook", "url": receiver.url(), "signing_secret": own,
        "headers": {"authorization": "Bearer planted-header-one"}});
    acme.editor.post("/v1/handlers", &named).await.with(201);
    let owned = json!({"kind": "webhook", "url": receiver.url(), "headers": {"x-key": "planted-header-two"}});
    let made = acme.editor.post("/v1/tools", &tool("own", &owned, &json!({}))).await.with(201);
    let fresh = made["handler"]["signing_secret"].as_str().unwrap().to_owned();
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    acme.editor
        .patch("/v1/tools/own", &json!({"handler": {"headers": {"x-key": "planted-header-three"}}}))
        .await
        .with(200);
    let rotated = acme.editor.send("POST", "/v1/handlers/h/rotate-secret", None).await.with(200);
    let rotated = rotated["signing_secret"].as_str().unwrap().to_owned();
    let key =
        acme.admin.post("/v1/keys", &json!({"role": "agent"})).await.with(201)["key"].as_str().unwrap().to_owned();
    let agent = service.anonymous().key(&key);
    for name in ["t", "own"] {
        let call = agent.post(&format!("/v1/tools/{name}/calls"), &json!({"input": {"city": "x"}})).await.with(200);
        assert_eq!(call["status"], "succeeded", "{call}");
    }
    // Also the ways on which things go wrong.
    let twice = r#"{"name": "i", "kind": "webhook", "url": "https://a.example/", "headers": {"x": "planted-header-four", "x": "planted-header-four"}, "signing_secret": "whsec_planted-and-wrong"}"#;
    let refused = acme.editor.send("POST", "/v1/handlers", Some(twice.as_bytes())).await;
    refused.problem(422, "invalid_body");

    let secret_part = key.rsplit_once('_').map_or(key.as_str(), |(_, secret)| secret);
    let mut secrets: Vec<&str> = vec!["planted-header", "planted-and-wrong", secret_part];
    for signing in [own, &fresh, &rotated] {
        secrets.push(signing.strip_prefix("whsec_").unwrap());
    }
    assert!(receiver.seen().iter().any(|seen| seen.header("authorization") == Some("Bearer planted-header-one")));
    let mut places =
        vec![("the service's log".to_owned(), traced()), ("a refusal".to_owned(), refused.text().to_owned())];
    places.push(("the database".to_owned(), service.database.dump().await));
    for path in [
        "/v1/handlers",
        "/v1/handlers/h",
        "/v1/tools",
        "/v1/tools/own",
        "/v1/tools/own/versions",
        "/v1/tools/own/versions/1",
        "/v1/keys",
        "/v1/calls",
        "/v1/formats/mcp/tools",
    ] {
        places.push((path.to_owned(), acme.operator.get(path).await.text().to_owned()));
    }
    for (place, text) in &places {
        assert!(text.contains("planted") || text.len() > 10, "{place} is empty");
        for secret in &secrets {
            let hex: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect(); // as bytea is shown
            assert!(!text.contains(secret) && !text.contains(&hex.concat()), "{secret} is in {place}");
        }
    }
    assert!(places[0].1.contains("answered"), "the service's log is not kept");
    assert!(places[2].1.contains("hooks") || places[2].1.contains("/run"), "the dump has no handlers");
}

#[tokio::test]
async fn i08_a_sealed_secret_that_was_moved_takes_its_tool_down_and_no_other() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    for name in ["a", "b"] {
        let body = json!({"name": name, "kind": "webhook", "url": receiver.url(), "headers": {"x": name}});
        acme.editor.post("/v1/handlers", &body).await.with(201);
        acme.editor.post("/v1/tools", &tool(name, &json!(name), &json!({}))).await.with(201);
    }
    service
        .database
        .execute("update handlers set headers = (select headers from handlers where name = 'b') where name = 'a'")
        .await;
    let after = acme.at(&service.restart().await);
    let list = after.agent.get("/v1/formats/toolhook/tools").await.with(200);
    assert!(!list["tools"].to_string().contains("\"a\"") && list["tools"].to_string().contains("\"b\""), "{list}");
    assert_eq!(list["omitted"][0]["name"], "a");
    let call = json!({"input": {"city": "x"}});
    assert_eq!(after.agent.post("/v1/tools/b/calls", &call).await.with(200)["status"], "succeeded");
    after.agent.post("/v1/tools/a/calls", &call).await.problem(409, "unreadable");
    assert_eq!(receiver.seen().len(), 1);
}
