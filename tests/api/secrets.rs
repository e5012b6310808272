//! Secrets: shown once, masked ever after, and nowhere in the clear.

use crate::support::{Receiver, TestService, eventually, tool, traced};
use secrecy::ExposeSecret as _;
use serde_json::json;
use sqlx::{Connection as _, Executor as _};
use toolhook::domain::{HandlerName, TenantName};
use toolhook::store::{MasterKey, Store, Vault, handlers, rotation, tenants};

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

/// Somebody changes a row at the very moment at which its values are sealed again.
#[tokio::test]
async fn i09_a_write_during_the_rotation_is_kept() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = |value: &str| json!({"kind": "webhook", "url": "https://a.example/", "headers": {"x": value}});
    for name in ["h", "i"] {
        acme.editor.put(&format!("/v1/handlers/{name}"), &body("first")).await.with(201);
    }
    let mut writer = service.database.connect().await;
    writer.execute("create table first as select id, headers from handlers").await.unwrap();
    acme.editor.put("/v1/handlers/h", &body("second")).await.with(200);

    let (old, new) = (MasterKey::from_random([42; 32]), MasterKey::from_random([43; 32]));
    let vault = Vault::with(&new, std::slice::from_ref(&old));
    let store = Store::connect(&service.database.url(), 2, vault).await.unwrap();
    writer
        .execute("begin; update handlers h set headers = f.headers, version = 9 from first f where f.id = h.id and h.name = 'h'")
        .await
        .unwrap();
    let mut watcher = service.database.connect().await;
    let waits = eventually(async || {
        let waiting =
            "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        let waiting: Vec<i32> = sqlx::query_scalar(waiting).fetch_all(&mut watcher).await.unwrap();
        (!waiting.is_empty()).then_some(())
    });
    let release = async {
        waits.await;
        writer.execute("commit").await.unwrap();
    };
    let (resealed, ()) = futures_util::future::join(rotation::reseal(&store), release).await;
    // Each handler has headers and a signing secret.
    assert_eq!(resealed.unwrap(), 4);
    let uses = rotation::uses(&store).await.unwrap();
    assert!(uses.len() == 1 && uses[0].current && uses[0].values == 4, "{uses:?}");

    let alone = Store::connect(&service.database.url(), 1, Vault::new(&new)).await.unwrap();
    let tenant = tenants::get(&alone, &TenantName::parse("acme").unwrap()).await.unwrap().unwrap().id;
    let found = handlers::get(&alone, tenant, &HandlerName::parse("h").unwrap()).await.unwrap().unwrap();
    assert_eq!((found.version, found.handler.secrets.headers["x"].expose_secret()), (9, "first"));
    for connection in [writer, watcher] {
        connection.close().await.unwrap();
    }
}
