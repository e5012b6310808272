//! The reference against the service. (That every answer fits it is checked on each request of each test: `support::contract`.)

use crate::support::{Client, Operation, Receiver, TestService, compile, fill, operations};
use serde_json::{Value, json};

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

#[tokio::test]
async fn what_is_documented_is_routed_and_nothing_else_is() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let document = service.anonymous().get("/v1/openapi.json").await.with(200);
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 15, "{}", paths.len());
    for (template, item) in paths {
        let path = fill(template, |_| "missing".to_owned());
        for method in METHODS {
            let answer = acme.operator.send(method, &path, None).await;
            let code =
                if answer.status >= 400 { answer.json()["code"].as_str().unwrap().to_owned() } else { String::new() };
            if item.get(method.to_ascii_lowercase()).is_some() {
                assert!(
                    !matches!(code.as_str(), "unknown_route" | "method_not_allowed"),
                    "{method} {template}: {code}"
                );
            } else {
                assert_eq!(code, "method_not_allowed", "{method} {template}");
                let allowed = answer.header("allow").unwrap();
                let documented = METHODS.iter().filter(|known| item.get(known.to_ascii_lowercase()).is_some());
                assert!(documented.clone().all(|known| allowed.contains(known)), "{template}: {allowed}");
                assert!(!allowed.contains(method), "{template}: {allowed}");
            }
        }
    }
}

/// A body's example, wherever the document keeps it.
fn request_example(operation: &Operation, document: &Value) -> Option<Value> {
    let content = operation.spec.pointer("/requestBody/content")?.as_object()?.values().next()?.clone();
    let name = content["schema"]["$ref"].as_str()?.rsplit('/').next()?.to_owned();
    let example = document["components"]["schemas"][&name].get("example").cloned();
    Some(example.unwrap_or_else(|| panic!("{} {} has no example", operation.method, operation.path)))
}

fn path_example(operation: &Operation, ids: &[(&str, String)]) -> String {
    fill(&operation.path, |part| {
        let own = ids.iter().find(|(prefix, _)| part == "id" && operation.path.starts_with(prefix));
        let parameters = operation.spec["parameters"].as_array().unwrap();
        let documented = parameters.iter().find(|one| one["in"] == "path" && one["name"] == part);
        let example = documented.and_then(|one| one.get("example").or_else(|| one["schema"].get("example")));
        let example = example.unwrap_or_else(|| panic!("{} has no example for {part}", operation.path));
        own.map_or_else(|| example.as_str().map_or_else(|| example.to_string(), str::to_owned), |(_, id)| id.clone())
    })
}

async fn follow(client: &Client, operation: &Operation, document: &Value, ids: &[(&str, String)]) -> Value {
    let body = request_example(operation, document).map(|body| body.to_string());
    let path = path_example(operation, ids);
    let answer = client.send(&operation.method, &path, body.as_deref().map(str::as_bytes)).await;
    assert!(answer.status < 300, "{} {path} {body:?}: {} {}", operation.method, answer.status, answer.text());
    if answer.body.is_empty() { Value::Null } else { answer.json() }
}

#[tokio::test]
async fn every_example_of_a_request_does_what_it_shows() {
    let service = TestService::start().await;
    let document = service.anonymous().get("/v1/openapi.json").await.with(200);
    // The examples tell one story, of a tenant `acme` with a tool `get_weather`; only the webhook has to be one that is there.
    let receiver = Receiver::weather().await;
    let (operator, mut left) = (service.operator().with("toolhook-tenant", "acme"), operations());
    let mut take = |method: &str, path: &str| {
        let place = left.iter().position(|one| one.method == method && one.path == path);
        left.swap_remove(place.unwrap_or_else(|| panic!("{method} {path} is not documented")))
    };
    let mut ids = Vec::new();
    follow(&operator, &take("PUT", "/v1/tenants/{tenant}"), &document, &ids).await;
    let key = follow(&operator, &take("POST", "/v1/keys"), &document, &ids).await;
    ids.push(("/v1/keys", key["id"].as_str().unwrap().to_owned()));
    follow(&operator, &take("POST", "/v1/handlers"), &document, &ids).await;
    follow(&operator, &take("POST", "/v1/tools"), &document, &ids).await;
    for (method, path) in [
        ("PATCH", "/v1/tenants/{tenant}"),
        ("PUT", "/v1/handlers/{name}"),
        ("PATCH", "/v1/handlers/{name}"),
        ("POST", "/v1/handlers/{name}/rotate-secret"),
        ("PUT", "/v1/tools/{name}"),
        ("PATCH", "/v1/tools/{name}"),
        ("POST", "/v1/tools/{name}/versions/{n}/restore"),
    ] {
        follow(&operator, &take(method, path), &document, &ids).await;
    }
    operator.patch("/v1/tools/get_weather", &json!({"handler": {"url": receiver.url()}})).await.with(200);
    let call = follow(&operator, &take("POST", "/v1/tools/{name}/calls"), &document, &ids).await;
    assert_eq!(call["status"], "succeeded", "{call}");
    ids.push(("/v1/calls", call["id"].as_str().unwrap().to_owned()));
    let batch = follow(&operator, &take("POST", "/v1/formats/{format}/calls"), &document, &ids).await;
    assert_eq!(batch["calls"][0]["status"], "succeeded", "{batch}");
    let answer = follow(&operator, &take("POST", "/mcp"), &document, &ids).await;
    assert_eq!(answer["result"]["content"][0]["text"], batch["append"][0]["content"][0]["content"], "{answer}");
    // A call that has ended cannot be cancelled or reported on; those that can be have tests of their own.
    for path in ["/v1/calls/{id}/cancel", "/v1/callbacks/{token}"] {
        take("POST", path);
    }
    let deletes = ["/v1/keys/{id}", "/v1/tools/{name}", "/v1/handlers/{name}", "/v1/tenants/{tenant}"]
        .map(|path| take("DELETE", path));
    for read in left {
        assert_eq!(read.method, "GET", "{} is not part of the story", read.path);
        follow(&operator, &read, &document, &ids).await;
    }
    for delete in deletes {
        follow(&operator, &delete, &document, &ids).await;
    }
}

#[tokio::test]
async fn every_example_fits_its_own_schema() {
    let service = TestService::start().await;
    let document = service.anonymous().get("/v1/openapi.json").await.with(200);
    let mut checked = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let Some(example) = schema.get("example") else { continue };
        let faults: Vec<String> =
            compile(schema).iter_errors(example).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
        assert!(faults.is_empty(), "{name}: {faults:#?}");
        checked += 1;
    }
    assert!(checked >= 12, "{checked}");
}

#[tokio::test]
async fn the_document_is_whole_and_has_a_tag() {
    let service = TestService::start().await;
    let answer = service.anonymous().get("/v1/openapi.json").await;
    let document = answer.with(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(!answer.etag().is_empty());
    for operation in operations() {
        let place = format!("{} {}", operation.method, operation.path);
        let words = operation.spec["summary"].as_str().or_else(|| operation.spec["description"].as_str());
        assert!(words.is_some_and(|words| words.len() > 10), "{place} is not described");
        assert!(operation.spec["operationId"].is_string() && operation.spec["tags"][0].is_string(), "{place}");
        for (status, response) in operation.spec["responses"].as_object().unwrap() {
            assert!(response["headers"]["X-Request-Id"].is_object(), "{place} {status}");
        }
    }
    let mut ids: Vec<String> = operations().iter().map(|one| one.spec["operationId"].to_string()).collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "two operations have one id");
    // Every code of the catalogue that a documented route can answer is told somewhere.
    let text = document["paths"].to_string();
    for code in toolhook::http::Code::ALL {
        let of_no_route = ["unknown_route", "method_not_allowed"].contains(&code.as_str());
        assert_eq!(text.contains(&format!("`{}`", code.as_str())), !of_no_route, "{}", code.as_str());
    }
}

#[tokio::test]
async fn the_viewer_is_served_from_the_service_itself() {
    let service = TestService::start().await;
    let mut page = service.anonymous().get("/docs").await;
    if let Some(place) = page.header("location") {
        page = service.anonymous().get(place).await;
    }
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("swagger-ui"), "{}", page.text());
    let is_part = |part: &&str| matches!(part.rsplit('.').next(), Some("js" | "css")) && part.contains('.');
    let parts: Vec<&str> = page.text().split('"').filter(is_part).collect();
    assert!(parts.len() >= 3, "{parts:?}");
    for part in parts {
        assert!(!part.contains("//"), "{part} comes from elsewhere");
        let answer = service.anonymous().get(&format!("/docs/{}", part.trim_start_matches("./"))).await;
        assert_eq!((answer.status, answer.body.is_empty()), (200, false), "{part}");
    }
}

#[tokio::test]
async fn a_bodys_schema_requires_what_the_service_requires() {
    let service = TestService::start().await;
    let document = service.anonymous().get("/v1/openapi.json").await.with(200);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let bodies = schemas.iter().filter(|(name, schema)| name.ends_with("Body") && schema["type"] == "object");
    let required: Value = bodies.map(|(name, schema)| (name.clone(), schema["required"].clone())).collect();
    let expected = json!({"TenantBody": null, "KeyBody": ["role"], "HandlerBody": ["kind"], "CallBody": null, "ReplyBody": ["reply"],
        "ToolBody": ["description", "input_schema", "handler"]});
    assert_eq!(required, expected);
    assert!(document["components"]["schemas"]["ToolBody"]["additionalProperties"] == json!(false));
}
