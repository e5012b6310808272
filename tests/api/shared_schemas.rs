//! Tools whose schemas are the same text share what was compiled, whoever's they are; counted at `/metrics`.

use crate::support::{Exposition, Tenant, TestService, tool, webhook};
use serde_json::{Value, json};

const TOOLS: i64 = 20;
/// One of each tool's input, and one of its output.
const SCHEMAS: i64 = 2 * TOOLS;
const LIST: &str = "/v1/formats/toolhook/tools";

/// The nth tool of a catalogue that several tenants took.
fn taken(n: i64) -> Value {
    let schema = json!({"type": "object", "properties": {format!("p{n}"): {"type": "string", "minLength": n}}});
    tool(
        &format!("t{n}"),
        &json!("h"),
        &json!({"input_schema": schema, "output_schema": {"type": "array", "minItems": n}}),
    )
}

async fn stocked(service: &TestService, name: &str) -> Tenant {
    let tenant = service.tenant(name).await;
    tenant.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    for n in 0..TOOLS {
        tenant.editor.post("/v1/tools", &taken(n)).await.with(201);
    }
    tenant
}

async fn compiled(service: &TestService) -> i64 {
    Exposition::of(service).await.count("toolhook_schemas_compiled_total")
}

#[tokio::test]
async fn tenants_with_the_same_tools_share_their_schemas() {
    let service = TestService::start().await;
    let (acme, other) = (stocked(&service, "acme").await, stocked(&service, "other").await);
    assert_eq!(compiled(&service).await, 0, "whoever wrote a tool has it compiled");
    // Another replica, which has seen none of them.
    let replica = service.restart().await;
    let (acme, other) = (acme.at(&replica), other.at(&replica));
    let list = acme.agent.get(LIST).await.with(200)["tools"].clone();
    assert_eq!(compiled(&replica).await, SCHEMAS);
    assert_eq!(other.agent.get(LIST).await.with(200)["tools"], list);
    assert_eq!(compiled(&replica).await, SCHEMAS, "the other's are the same");
    let in_memory = Exposition::of(&replica).await.count("toolhook_schemas");
    assert!((SCHEMAS..SCHEMAS + TOOLS).contains(&in_memory), "{in_memory}");
    // What they share checks the input of both.
    for tenant in [&acme, &other] {
        let call = json!({"input": {"p3": "ab"}});
        let refused = tenant.agent.post("/v1/tools/t3/calls", &call).await.with(200);
        assert_eq!(refused["error"]["code"], "invalid_input", "{refused}");
    }
}

#[tokio::test]
async fn a_change_of_one_tool_compiles_no_other() {
    let service = TestService::start().await;
    let acme = stocked(&service, "acme").await;
    let replica = service.restart().await;
    let there = acme.at(&replica);
    there.agent.get(LIST).await.with(200);
    let before = (compiled(&service).await, compiled(&replica).await);
    let text = r#"{ "type":"object",  "properties": {"p7": {"minimum": 1.10}} }"#;
    let body = format!(r#"{{"input_schema": {text}}}"#);
    let patch = acme.editor.with("content-type", "application/merge-patch+json");
    let changed = patch.send("PATCH", "/v1/tools/t7", Some(body.as_bytes())).await;
    changed.with(200);
    let seen = acme.agent.get("/v1/tools/t7").await;
    assert!(seen.text().contains(text), "as it was written: {}", seen.text());
    // The other replica is told which version there is now, and loads the tools anew.
    let version = changed.header("toolhook-registry-version").unwrap();
    let list = there.agent.with("toolhook-registry-version", version).get(LIST).await;
    assert!(list.text().contains(r#""p7":{"minimum":1.10}"#), "{}", list.text());
    acme.agent.get(LIST).await.with(200);
    let after = (compiled(&service).await, compiled(&replica).await);
    assert_eq!((after.0 - before.0, after.1 - before.1), (0, 1), "where it was written, and elsewhere");
}

/// A text that differs in nothing but a space comes back with it, though another tenant's means the same.
#[tokio::test]
async fn what_is_shared_is_never_another_text() {
    let service = TestService::start().await;
    let texts =
        [r#"{"type":"object","title":"a"}"#, r#"{"type": "object","title":"a"}"#, r#"{"title":"a","type":"object"}"#];
    let mut tenants = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let tenant = service.tenant(&format!("tenant-{n}")).await;
        tenant.editor.put("/v1/handlers/h", &webhook()).await.with(201);
        let body = format!(r#"{{"name":"t","description":"d","handler":"h","input_schema":{text}}}"#);
        tenant.editor.send("POST", "/v1/tools", Some(body.as_bytes())).await.with(201);
        tenants.push(tenant);
    }
    let replica = service.restart().await;
    for process in [&service, &replica] {
        for (tenant, text) in tenants.iter().zip(texts) {
            let seen = tenant.at(process).viewer.get("/v1/tools/t").await;
            assert!(seen.text().contains(text), "{text} is not in {}", seen.text());
        }
    }
}
