//! `/v1/tools/{name}/versions`.

use crate::support::{Receiver, TestService, tool, webhook};
use serde_json::{Value, json};

#[tokio::test]
async fn every_version_is_kept_and_can_be_read() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({"tags": ["one"]}))).await.with(201);
    acme.editor.patch("/v1/tools/t", &json!({"tags": ["two"], "description": "second"})).await.with(200);
    acme.editor.patch("/v1/tools/t", &json!({"enabled": false})).await.with(200);
    let first = acme.viewer.get("/v1/tools/t/versions/1").await.with(200);
    assert_eq!(
        (&first["version"], &first["tags"], &first["description"]),
        (&json!(1), &json!(["one"]), &json!("For a test"))
    );
    assert_eq!(first["handler"]["signing_secret"], "***");
    let listed = acme.viewer.get("/v1/tools/t/versions").await.with(200);
    let numbers: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|row| &row["version"]).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(listed["data"][2], first);
    for missing in ["0", "4", "-1", "x", "99999999999", "%00"] {
        acme.viewer.get(&format!("/v1/tools/t/versions/{missing}")).await.problem(404, "not_found");
    }
    acme.viewer.get("/v1/tools/missing/versions").await.problem(404, "not_found");
    acme.editor.delete("/v1/tools/t").await.with(204);
    acme.viewer.get("/v1/tools/t/versions").await.problem(404, "not_found");
    // A tool of the same name begins anew.
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    assert_eq!(acme.viewer.get("/v1/tools/t/versions").await.with(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn h04_a_restore_makes_a_new_version_with_the_old_content() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    let schema = "{ \"properties\":{\"b\":{},  \"a\":{}}}";
    let body = format!(r#"{{"name":"t","description":"first","handler":"h","input_schema":{schema}}}"#);
    acme.editor.send("POST", "/v1/tools", Some(body.as_bytes())).await.with(201);
    acme.editor.put("/v1/tools/t", &tool("t", &json!("h"), &json!({"strict": true}))).await.with(200);
    let restored = acme.editor.send("POST", "/v1/tools/t/versions/1/restore", None).await;
    let view = restored.with(200);
    assert_eq!((&view["version"], &view["description"], &view["strict"]), (&json!(3), &json!("first"), &json!(false)));
    assert!(restored.text().contains(schema) && view["warnings"].is_array(), "{}", restored.text());
    assert_eq!(acme.viewer.get("/v1/tools/t").await.etag(), restored.etag());
    assert_eq!(acme.viewer.get("/v1/tools/t/versions/2").await.with(200)["strict"], true);
    // Of what is there already, nothing becomes new.
    let same = acme.editor.send("POST", "/v1/tools/t/versions/3/restore", None).await.with(200);
    assert_eq!(same["version"], 3);
    let same = acme.editor.send("POST", "/v1/tools/t/versions/1/restore", None).await.with(200);
    assert_eq!(same["version"], 3);
    acme.editor.send("POST", "/v1/tools/t/versions/9/restore", None).await.problem(404, "not_found");
    acme.editor.send("POST", "/v1/tools/missing/versions/1/restore", None).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_restored_handler_in_place_still_sends_its_secrets() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let owned = json!({"kind": "webhook", "url": receiver.url(), "headers": {"x-key": "k1"}});
    let made = acme.editor.post("/v1/tools", &tool("t", &owned, &json!({}))).await.with(201);
    let secret = made["handler"]["signing_secret"].as_str().unwrap().to_owned();
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    acme.editor.patch("/v1/tools/t", &json!({"handler": {"headers": {"x-key": "k2"}}})).await.with(200);
    acme.editor.patch("/v1/tools/t", &json!({"handler": "h"})).await.with(200);
    for (version, key) in [(1, "k1"), (2, "k2"), (1, "k1")] {
        let restored =
            acme.editor.send("POST", &format!("/v1/tools/t/versions/{version}/restore"), None).await.with(200);
        assert_eq!(
            (&restored["handler"]["headers"]["x-key"], &restored["handler"]["signing_secret"]),
            (&json!("***"), &json!("***"))
        );
        acme.agent.post("/v1/tools/t/calls", &json!({"input": {"city": "Sydney"}})).await.with(200);
        let seen = receiver.seen().pop().unwrap();
        assert_eq!(seen.header("x-key"), Some(key));
        assert!(seen.is_signed_with(&secret));
        assert_eq!(seen.json()["data"]["tool_version"], restored["version"]);
    }
}
