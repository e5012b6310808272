//! `/v1/handlers`.

use crate::support::{Receiver, Seen, Tenant, TestService, pointers, tool, webhook};
use serde_json::{Value, json};
use toolhook::egress::Policy;
use toolhook::execution::Natives;

/// Runs a tool of this handler once, and gives what the receiver saw.
async fn run(acme: &Tenant, receiver: &Receiver, name: &str) -> Seen {
    let call = acme.agent.post(&format!("/v1/tools/{name}/calls"), &json!({"input": {"city": "Sydney"}})).await;
    assert_eq!(call.with(200)["status"], "succeeded", "{}", call.text());
    receiver.seen().pop().unwrap()
}

#[tokio::test]
async fn a_handler_is_made_read_replaced_and_removed() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = json!({"name": "weather", "kind": "webhook", "url": "https://hooks.example.com/weather",
        "headers": {"Authorization": "Bearer s3cret"}, "timeout_ms": 1000, "error_body": "hide"});
    let made = acme.editor.post("/v1/handlers", &body).await;
    assert_eq!(made.header("location"), Some("/v1/handlers/weather"));
    let view = made.with(201);
    assert!(view["signing_secret"].as_str().unwrap().starts_with("whsec_"));
    assert_eq!(view["headers"], json!({"authorization": "***"}));
    assert_eq!(
        (&view["timeout_ms"], &view["max_attempts"], &view["error_body"]),
        (&json!(1000), &json!(3), &json!("hide"))
    );
    let got = acme.editor.get("/v1/handlers/weather").await;
    assert_eq!(got.with(200)["signing_secret"], "***");
    assert_eq!(got.etag(), made.etag());

    let replaced = acme
        .editor
        .put("/v1/handlers/weather", &json!({"kind": "webhook", "url": "https://b.example/"}))
        .await
        .with(200);
    assert_eq!(
        (&replaced["headers"], &replaced["timeout_ms"], &replaced["version"]),
        (&json!({}), &json!(30000), &json!(2))
    );
    let made = acme.editor.put("/v1/handlers/other", &webhook()).await;
    assert!(made.with(201)["signing_secret"].as_str().unwrap().starts_with("whsec_"));
    acme.editor.delete("/v1/handlers/other").await.with(204);
    acme.editor.get("/v1/handlers/other").await.problem(404, "not_found");
}

#[tokio::test]
async fn a_taken_handlers_name_is_a_conflict_for_post_alone() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = json!({"name": "h", "kind": "webhook", "url": "https://a.example/"});
    acme.editor.post("/v1/handlers", &body).await.with(201);
    acme.editor.post("/v1/handlers", &body).await.problem(409, "name_taken");
    acme.editor.put("/v1/handlers/h", &body).await.with(200);
    let renamed = json!({"name": "i", "kind": "webhook", "url": "https://a.example/"});
    assert_eq!(pointers(&acme.editor.put("/v1/handlers/h", &renamed).await.problem(422, "invalid_body")), ["/name"]);
    assert_eq!(
        pointers(&acme.editor.patch("/v1/handlers/h", &json!({"name": "i"})).await.problem(422, "invalid_body")),
        ["/name"]
    );
    acme.editor.patch("/v1/handlers/h", &json!({"name": "h"})).await.with(200);
}

#[tokio::test]
async fn a_handlers_faults_are_told_together() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = json!({"name": "a b", "kind": "webhook", "url": "gopher://x", "headers": {"host": "x", "x-ok": "a\r\nb"},
        "timeout_ms": 0, "max_attempts": 11, "signing_secret": "whsec_short", "error_body": "perhaps", "async": 1, "boats": 1});
    let mut told = pointers(&acme.editor.post("/v1/handlers", &body).await.problem(422, "invalid_body"));
    told.sort();
    let expected = [
        "/async",
        "/boats",
        "/error_body",
        "/headers/host",
        "/headers/x-ok",
        "/max_attempts",
        "/name",
        "/signing_secret",
        "/timeout_ms",
        "/url",
    ];
    assert_eq!(told, expected);
    for (body, places) in [
        (json!({"name": "h"}), ["/kind"]),
        (json!({"name": "h", "kind": "pigeon"}), ["/kind"]),
        (json!({"name": "h", "kind": "native", "function": "nothing"}), ["/function"]),
        (json!({"name": "h", "kind": "native"}), ["/function"]),
        (json!({"kind": "webhook", "url": "https://a.example/"}), ["/name"]),
        (json!({"name": 7, "kind": "webhook", "url": "https://a.example/"}), ["/name"]),
        (json!({"name": "h", "kind": "webhook", "url": "https://a.example/", "headers": {"x": "***"}}), ["/headers/x"]),
    ] {
        assert_eq!(
            pointers(&acme.editor.post("/v1/handlers", &body).await.problem(422, "invalid_body")),
            places,
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_header_that_stands_twice_is_refused() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for headers in [r#"{"x-a": "1", "x-a": "2"}"#, r#"{"x-a": "1", "X-A": "2"}"#] {
        let body = format!(r#"{{"name": "h", "kind": "webhook", "url": "https://a.example/", "headers": {headers}}}"#);
        let answer = acme.editor.send("POST", "/v1/handlers", Some(body.as_bytes())).await;
        let problem = answer.problem(422, "invalid_body");
        assert!(problem["detail"].as_str().unwrap().contains("twice"), "{problem}");
    }
}

#[tokio::test]
async fn a_mask_keeps_what_is_stored_and_what_is_left_out_is_gone() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let body = json!({"name": "h", "kind": "webhook", "url": receiver.url(), "headers": {"x-one": "1", "x-two": "2"}});
    let secret = acme.editor.post("/v1/handlers", &body).await.with(201)["signing_secret"].as_str().unwrap().to_owned();
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    let headers = |seen: &Seen| ["x-one", "x-two", "x-three"].map(|name| seen.header(name).map(str::to_owned));
    let some = |text: &str| Some(text.to_owned());
    let seen = run(&acme, &receiver, "t").await;
    assert_eq!(headers(&seen), [some("1"), some("2"), None]);
    assert!(seen.is_signed_with(&secret));

    let next = json!({"kind": "webhook", "url": receiver.url(), "signing_secret": "***", "headers": {"X-One": "***", "x-three": "3"}});
    acme.editor.put("/v1/handlers/h", &next).await.with(200);
    let seen = run(&acme, &receiver, "t").await;
    assert_eq!(headers(&seen), [some("1"), None, some("3")]);
    assert!(seen.is_signed_with(&secret));

    // What was read can be written back as it is, without what only answers have.
    let mut read = acme.editor.get("/v1/handlers/h").await.with(200);
    for answered in ["version", "created_at", "updated_at"] {
        read.as_object_mut().unwrap().remove(answered);
    }
    acme.editor.put("/v1/handlers/h", &read).await.with(200);
    acme.editor
        .patch("/v1/handlers/h", &json!({"headers": {"x-two": "2", "x-three": null}, "timeout_ms": 5000}))
        .await
        .with(200);
    let seen = run(&acme, &receiver, "t").await;
    assert_eq!(headers(&seen), [some("1"), some("2"), None]);
    assert!(seen.is_signed_with(&secret));
}

#[tokio::test]
async fn a_secret_of_the_authors_own_signs() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let body = json!({"name": "h", "kind": "webhook", "url": receiver.url(), "signing_secret": own});
    acme.editor.post("/v1/handlers", &body).await.with(201);
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    assert!(run(&acme, &receiver, "t").await.is_signed_with(own));
}

#[tokio::test]
async fn i13_after_a_rotation_both_secrets_verify() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let body = json!({"name": "h", "kind": "webhook", "url": receiver.url()});
    let old = acme.editor.post("/v1/handlers", &body).await.with(201)["signing_secret"].as_str().unwrap().to_owned();
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    let rotated = acme.editor.send("POST", "/v1/handlers/h/rotate-secret", None).await;
    let new = rotated.with(200)["signing_secret"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    let got = acme.editor.get("/v1/handlers/h").await;
    assert_eq!(got.etag(), rotated.etag());
    assert_eq!(got.with(200)["signing_secret"], "***");
    // A change of something else in between keeps the old secret in force.
    acme.editor.patch("/v1/handlers/h", &json!({"timeout_ms": 9000})).await.with(200);
    let after = service.restart().await;
    let seen = run(&acme.at(&after), &receiver, "t").await;
    assert!(seen.is_signed_with(&new) && seen.is_signed_with(&old));
    service.database.execute("update handlers set previous_until = now() - interval '1 second'").await;
    let later = service.restart().await;
    let seen = run(&acme.at(&later), &receiver, "t").await;
    assert!(seen.is_signed_with(&new) && !seen.is_signed_with(&old));

    acme.editor.post("/v1/handlers", &json!({"name": "n", "kind": "native", "function": "calculate"})).await.with(201);
    acme.editor.send("POST", "/v1/handlers/n/rotate-secret", None).await.problem(409, "not_signed");
}

#[tokio::test]
async fn a_handler_that_turns_into_a_webhook_shows_its_new_secret() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let native = json!({"kind": "native", "function": "calculate"});
    let hook = json!({"kind": "webhook", "url": receiver.url()});
    acme.editor.put("/v1/handlers/h", &native).await.with(201);
    acme.editor.post("/v1/tools", &tool("named", &json!("h"), &json!({}))).await.with(201);
    let shown = acme.editor.put("/v1/handlers/h", &hook).await.with(200)["signing_secret"].as_str().unwrap().to_owned();
    assert!(run(&acme, &receiver, "named").await.is_signed_with(&shown));

    acme.editor.post("/v1/tools", &tool("owning", &native, &json!({}))).await.with(201);
    let patched = acme
        .editor
        .patch("/v1/tools/owning", &json!({"handler": {"kind": "webhook", "function": null, "url": receiver.url()}}))
        .await
        .with(200);
    let shown = patched["handler"]["signing_secret"].as_str().unwrap();
    assert!(run(&acme, &receiver, "owning").await.is_signed_with(shown));
}

#[tokio::test]
async fn if_match_guards_a_handler() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let first = acme.editor.put("/v1/handlers/h", &webhook()).await.etag();
    let second = acme.editor.with("if-match", &first).patch("/v1/handlers/h", &json!({"timeout_ms": 7})).await;
    second.with(200);
    let stale = acme.editor.with("if-match", &first);
    stale.put("/v1/handlers/h", &webhook()).await.problem(412, "precondition_failed");
    stale.patch("/v1/handlers/h", &json!({})).await.problem(412, "precondition_failed");
    stale.delete("/v1/handlers/h").await.problem(412, "precondition_failed");
    stale.put("/v1/handlers/new", &webhook()).await.problem(412, "precondition_failed");
    assert_eq!(acme.editor.get("/v1/handlers/h").await.with(200)["timeout_ms"], 7);
    acme.editor.with("if-match", &second.etag()).delete("/v1/handlers/h").await.with(204);
}

#[tokio::test]
async fn a_handler_in_use_cannot_be_removed() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    acme.editor.put("/v1/handlers/i", &webhook()).await.with(201);
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    acme.editor.delete("/v1/handlers/h").await.problem(409, "handler_in_use");
    acme.editor.patch("/v1/tools/t", &json!({"handler": "i"})).await.with(200);
    acme.editor.delete("/v1/handlers/h").await.with(204);
    // A version that needs it can still be read, and is not restored to nothing.
    assert_eq!(acme.viewer.get("/v1/tools/t/versions/1").await.with(200)["handler"], "h");
    let restored = acme.editor.send("POST", "/v1/tools/t/versions/1/restore", None).await;
    restored.problem(409, "handler_gone");
}

#[tokio::test]
async fn a_changed_handler_serves_all_its_tools_from_the_answer_on() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let (one, two) = (Receiver::weather().await, Receiver::weather().await);
    acme.editor.put("/v1/handlers/h", &json!({"kind": "webhook", "url": one.url()})).await.with(201);
    for name in ["a", "b"] {
        acme.editor.post("/v1/tools", &tool(name, &json!("h"), &json!({}))).await.with(201);
        run(&acme, &one, name).await;
    }
    acme.editor.patch("/v1/handlers/h", &json!({"url": two.url()})).await.with(200);
    for name in ["a", "b"] {
        assert_eq!(run(&acme, &two, name).await.json()["data"]["tool"], name);
    }
    assert_eq!((one.seen().len(), two.seen().len()), (2, 2));
}

#[tokio::test]
async fn private_addresses_are_refused_when_they_are_written() {
    let service = TestService::with(Policy::production(), Natives::built_in().unwrap()).await;
    let acme = service.tenant("acme").await;
    for url in [
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://127.1/",
        "https://169.254.169.254/latest",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://[fd00:ec2::254]/",
        "https://[::ffff:127.0.0.1]/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://metadata.google.internal/",
        "https://printer/",
        "http://hooks.example.com/",
        "https://hooks.example.com:22/",
        "https://user:pw@hooks.example.com/",
        "ftp://hooks.example.com/",
        "https:///",
        "nonsense",
    ] {
        let body = json!({"name": "h", "kind": "webhook", "url": url});
        let problem = acme.editor.post("/v1/handlers", &body).await.problem(422, "invalid_body");
        assert_eq!(pointers(&problem), ["/url"], "{url}");
        let owned = tool("t", &json!({"kind": "webhook", "url": url}), &json!({}));
        let problem = acme.editor.post("/v1/tools", &owned).await.problem(422, "invalid_body");
        assert_eq!(pointers(&problem), ["/handler/url"], "{url}");
    }
    let public = json!({"name": "h", "kind": "webhook", "url": "https://hooks.example.com/"});
    acme.editor.post("/v1/handlers", &public).await.with(201);
    acme.editor.patch("/v1/handlers/h", &json!({"url": "https://127.0.0.1/"})).await.problem(422, "invalid_body");
    acme.editor
        .put("/v1/handlers/h", &json!({"kind": "webhook", "url": "https://127.0.0.1/"}))
        .await
        .problem(422, "invalid_body");
    assert_eq!(acme.editor.get("/v1/handlers/h").await.with(200)["url"], "https://hooks.example.com/");
}

#[tokio::test]
async fn an_address_that_was_accepted_once_is_refused_when_it_is_called_under_a_stricter_policy() {
    let lax = TestService::start().await;
    let acme = lax.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let owned = json!({"kind": "webhook", "url": receiver.url()});
    acme.editor.post("/v1/tools", &tool("t", &owned, &json!({}))).await.with(201);
    let strict = lax.restart_with(Policy::production()).await;
    let there = acme.at(&strict);
    let call = there.agent.post("/v1/tools/t/calls", &json!({"input": {"city": "Sydney"}})).await.with(200);
    assert_eq!((&call["status"], &call["attempts"], &call["result"]), (&json!("failed"), &json!(0), &Value::Null));
    assert!(!call.to_string().contains("127.0.0.1"), "the model is told the address: {call}");
    let dry = there.agent.post("/v1/tools/t/calls?dry_run=true", &json!({"input": {"city": "Sydney"}})).await.with(200);
    assert_eq!(dry["egress"]["allowed"], false);
    assert_eq!(receiver.connections(), 0);
}
