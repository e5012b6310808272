//! `/v1/tenants`.

use crate::support::{TestService, pointers, tool, webhook};
use serde_json::{Value, json};

#[tokio::test]
async fn a_tenant_is_made_read_changed_and_removed() {
    let service = TestService::start().await;
    let operator = service.operator();
    let body = json!({"display_name": "Acme Inc.", "limits": {"tools": 200, "max_timeout_ms": 60000}});
    let made = operator.put("/v1/tenants/acme", &body).await;
    assert_eq!(made.header("location"), Some("/v1/tenants/acme"));
    let view = made.with(201);
    assert_eq!(view["name"], "acme");
    assert_eq!(view["display_name"], "Acme Inc.");
    assert_eq!(view["limits"], body["limits"]);
    let got = operator.get("/v1/tenants/acme").await;
    assert_eq!(got.with(200), view);
    assert_eq!(got.etag(), made.etag());

    let replaced = operator.put("/v1/tenants/acme", &json!({"limits": {"log_days": 3}})).await.with(200);
    assert_eq!(replaced["display_name"], Value::Null);
    assert_eq!(replaced["limits"], json!({"log_days": 3}));

    operator.delete("/v1/tenants/acme").await.with(204);
    operator.get("/v1/tenants/acme").await.problem(404, "not_found");
    operator.delete("/v1/tenants/acme").await.problem(404, "not_found");
}

#[tokio::test]
async fn a_patch_of_a_tenant_merges_and_null_resets() {
    let service = TestService::start().await;
    let operator = service.operator();
    let body = json!({"display_name": "A", "limits": {"tools": 2, "log_days": 3}});
    operator.put("/v1/tenants/acme", &body).await.with(201);
    let patch = json!({"limits": {"tools": null, "max_result_chars": 9}});
    let patched = operator.patch("/v1/tenants/acme", &patch).await.with(200);
    assert_eq!(patched["limits"], json!({"log_days": 3, "max_result_chars": 9}));
    assert_eq!(patched["display_name"], "A");
    let patched = operator.patch("/v1/tenants/acme", &json!({"limits": null, "display_name": null})).await.with(200);
    assert_eq!((&patched["limits"], &patched["display_name"]), (&json!({}), &Value::Null));
}

#[tokio::test]
async fn a_tenants_faults_are_told_together() {
    let service = TestService::start().await;
    let operator = service.operator();
    let body = json!({"display_name": " ", "limits": {"tools": -1, "log_days": "3", "boats": 1}, "x": 1});
    let problem = operator.put("/v1/tenants/acme", &body).await.problem(422, "invalid_body");
    let mut places = pointers(&problem);
    places.sort();
    assert_eq!(places, ["/display_name", "/limits/boats", "/limits/log_days", "/limits/tools", "/x"]);
    for name in ["Acme", "-a", "a.b", &"a".repeat(64), "%00", "%C3%A9"] {
        operator.put(&format!("/v1/tenants/{name}"), &json!({})).await.problem(422, "invalid_body");
        operator.get(&format!("/v1/tenants/{name}")).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn if_match_guards_a_tenant() {
    let service = TestService::start().await;
    let operator = service.operator();
    let first = operator.put("/v1/tenants/acme", &json!({})).await.etag();
    let second = operator.with("if-match", &first).patch("/v1/tenants/acme", &json!({"display_name": "A"})).await;
    second.with(200);
    let stale = operator.with("if-match", &first);
    stale.put("/v1/tenants/acme", &json!({})).await.problem(412, "precondition_failed");
    stale.patch("/v1/tenants/acme", &json!({})).await.problem(412, "precondition_failed");
    stale.delete("/v1/tenants/acme").await.problem(412, "precondition_failed");
    stale.put("/v1/tenants/new", &json!({})).await.problem(412, "precondition_failed");
    operator.get("/v1/tenants/new").await.problem(404, "not_found");
    operator.with("if-match", &second.etag()).delete("/v1/tenants/acme").await.with(204);
}

#[tokio::test]
async fn a_removed_tenant_takes_everything_along_and_its_name_is_free() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    let calculate = json!({"input": {"expression": "1+1"}});
    acme.agent.post("/v1/tools/calculate/calls", &calculate).await.with(200);
    service.operator().delete("/v1/tenants/acme").await.with(204);
    acme.editor.get("/v1/tools").await.problem(401, "unauthenticated");
    acme.operator.get("/v1/tools").await.problem(404, "not_found");
    let again = service.tenant("acme").await;
    assert_eq!(again.viewer.get("/v1/tools").await.with(200)["data"], json!([]));
    assert_eq!(again.viewer.get("/v1/calls").await.with(200)["data"], json!([]));
}

#[tokio::test]
async fn a_changed_limit_holds_from_the_answer_on() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    service.operator().patch("/v1/tenants/acme", &json!({"limits": {"tools": 1}})).await.with(200);
    acme.editor.post("/v1/tools", &tool("a", &webhook(), &json!({}))).await.with(201);
    let full = acme.editor.post("/v1/tools", &tool("b", &webhook(), &json!({}))).await;
    full.problem(409, "tool_limit");
    acme.editor.put("/v1/tools/b", &tool("b", &webhook(), &json!({}))).await.problem(409, "tool_limit");
    // What is there may still be changed, and a taken name is told as such.
    acme.editor.put("/v1/tools/a", &tool("a", &webhook(), &json!({"tags": ["x"]}))).await.with(200);
    acme.editor.post("/v1/tools", &tool("a", &webhook(), &json!({}))).await.problem(409, "name_taken");
    service.operator().patch("/v1/tenants/acme", &json!({"limits": {"tools": 2}})).await.with(200);
    acme.editor.post("/v1/tools", &tool("b", &webhook(), &json!({}))).await.with(201);
}

#[tokio::test]
async fn two_that_make_one_tenant_both_succeed() {
    let service = TestService::start().await;
    let operator = service.operator();
    let body = json!({});
    let made = futures_util::future::join_all((0..6).map(|_| operator.put("/v1/tenants/acme", &body))).await;
    let mut statuses: Vec<u16> = made.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 201)), "{statuses:?}");
}
