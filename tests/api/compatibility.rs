//! `/v1/tools/{name}/compatibility`, and the warnings of a write, which say the same.

use crate::support::{TestService, tool, webhook};
use serde_json::{Value, json};

#[tokio::test]
async fn a_report_says_what_every_list_says() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let options = json!({"strict": true, "annotations": {"read_only": true}, "input_schema": {"type": "object",
        "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}, "required": ["labels"]}});
    let made = acme.editor.post("/v1/tools", &tool("set_labels", &webhook(), &options)).await.with(201);
    let warnings = made["warnings"].to_string();
    assert!(
        warnings.contains("openai-chat, openai-responses, anthropic, bedrock: /strict sent without strict"),
        "{warnings}"
    );
    assert!(!warnings.contains("annotations"), "{warnings}");

    let answer = acme.viewer.get("/v1/tools/set_labels/compatibility").await;
    let report = answer.with(200);
    assert!(answer.header("etag").is_some());
    let names: Vec<&String> = report["formats"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 8);
    for name in names {
        let list = acme.agent.get(&format!("/v1/formats/{name}/tools?name=set_labels")).await.with(200);
        let entry = &list["tools"][0];
        let entry = entry.pointer("/functionDeclarations/0").unwrap_or(entry);
        assert_eq!(report["formats"][name]["declaration"], *entry, "{name}");
        assert_eq!(report["formats"][name]["notes"].as_array().unwrap().len(), list["notes"].as_array().unwrap().len());
        assert_eq!(report["formats"][name]["verdict"], "lossy", "{name}");
    }
}

#[tokio::test]
async fn a_report_needs_a_tool_and_a_key() {
    let service = TestService::start().await;
    let (acme, other) = (service.tenant("acme").await, service.tenant("other").await);
    let body = tool("plain", &webhook(), &json!({"allowed_callers": []}));
    let made = acme.editor.post("/v1/tools", &body).await.with(201);
    assert!(made["warnings"].to_string().contains("left out: allowed_callers is empty"), "{made}");
    let report = acme.viewer.get("/v1/tools/plain/compatibility").await.with(200);
    assert_eq!(report["formats"]["gemini"]["verdict"], "omitted");
    assert_eq!(report["formats"]["gemini"]["declaration"], Value::Null);
    assert!(report["formats"]["gemini"]["notes"][0]["detail"].as_str().unwrap().contains("nobody"));
    other.viewer.get("/v1/tools/plain/compatibility").await.problem(404, "not_found");
    acme.viewer.get("/v1/tools/none/compatibility").await.problem(404, "not_found");
    acme.viewer.get("/v1/tools/plain/compatibility?x=1").await.problem(400, "invalid_query");
    service.anonymous().get("/v1/tools/plain/compatibility").await.problem(401, "unauthenticated");
    acme.viewer.post("/v1/tools/plain/compatibility", &json!({})).await.problem(405, "method_not_allowed");
}
