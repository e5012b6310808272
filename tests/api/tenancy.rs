//! Who may do what, and that nobody reaches what is another tenant's.

use crate::support::{Client, Operation, Receiver, TestService, fill, operations, tool, webhook};
use serde_json::{Value, json};

/// The weakest role that each documented operation takes; nothing for one that asks for no key.
const NEEDED: &[(&str, &str, Option<&str>)] = &[
    ("GET", "/v1/tenants", Some("operator")),
    ("GET", "/v1/tenants/{tenant}", Some("operator")),
    ("PUT", "/v1/tenants/{tenant}", Some("operator")),
    ("PATCH", "/v1/tenants/{tenant}", Some("operator")),
    ("DELETE", "/v1/tenants/{tenant}", Some("operator")),
    ("GET", "/v1/keys", Some("admin")),
    ("POST", "/v1/keys", Some("admin")),
    ("DELETE", "/v1/keys/{id}", Some("admin")),
    ("GET", "/v1/audit", Some("admin")),
    ("GET", "/v1/handlers", Some("editor")),
    ("POST", "/v1/handlers", Some("editor")),
    ("GET", "/v1/handlers/{name}", Some("editor")),
    ("PUT", "/v1/handlers/{name}", Some("editor")),
    ("PATCH", "/v1/handlers/{name}", Some("editor")),
    ("DELETE", "/v1/handlers/{name}", Some("editor")),
    ("POST", "/v1/handlers/{name}/rotate-secret", Some("editor")),
    ("GET", "/v1/tools", Some("viewer")),
    ("POST", "/v1/tools", Some("editor")),
    ("GET", "/v1/tools/{name}", Some("viewer")),
    ("PUT", "/v1/tools/{name}", Some("editor")),
    ("PATCH", "/v1/tools/{name}", Some("editor")),
    ("DELETE", "/v1/tools/{name}", Some("editor")),
    ("GET", "/v1/tools/{name}/compatibility", Some("viewer")),
    ("GET", "/v1/tools/{name}/versions", Some("viewer")),
    ("GET", "/v1/tools/{name}/versions/{n}", Some("viewer")),
    ("POST", "/v1/tools/{name}/versions/{n}/restore", Some("editor")),
    ("POST", "/v1/tools/{name}/calls", Some("agent")),
    ("GET", "/v1/formats", Some("viewer")),
    ("GET", "/v1/formats/{format}/tools", Some("agent")),
    ("POST", "/v1/formats/{format}/calls", Some("agent")),
    ("GET", "/v1/calls", Some("viewer")),
    ("GET", "/v1/calls/{id}", Some("viewer")),
    ("POST", "/v1/calls/{id}/cancel", Some("agent")),
    ("POST", "/v1/callbacks/{token}", None), // the token is the key
    ("POST", "/mcp", Some("agent")),
    ("GET", "/v1/openapi.json", None),
    ("GET", "/livez", None),
    ("GET", "/readyz", None),
    ("GET", "/metrics", None),
];

const ROLES: [&str; 5] = ["viewer", "agent", "editor", "admin", "operator"];

fn needed(operation: &Operation) -> Option<usize> {
    let known = NEEDED.iter().find(|(method, path, _)| *method == operation.method && *path == operation.path);
    let (_, _, role) = known.unwrap_or_else(|| panic!("who may {} {}?", operation.method, operation.path));
    role.map(|role| ROLES.iter().position(|known| *known == role).unwrap())
}

/// Sends an operation something that is not there, so that nothing comes of it.
async fn try_out(client: &Client, operation: &Operation) -> crate::support::Answer {
    let path = fill(&operation.path, |part| if part == "format" { "gemini".to_owned() } else { "missing".to_owned() });
    let body = operation.spec.get("requestBody").map(|_| b"[]".as_slice());
    client.send(&operation.method, &path, body).await
}

#[tokio::test]
async fn i04_every_route_takes_the_roles_that_it_says_and_no_other() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let clients = [&acme.viewer, &acme.agent, &acme.editor, &acme.admin, &acme.operator];
    let all = operations();
    assert_eq!(all.len(), NEEDED.len(), "the table names routes that are not there");
    for operation in &all {
        let place = format!("{} {}", operation.method, operation.path);
        let Some(needed) = needed(operation) else {
            let status = if operation.path == "/v1/callbacks/{token}" { 404 } else { 200 };
            try_out(&service.anonymous(), operation).await.with(status);
            continue;
        };
        try_out(&service.anonymous(), operation).await.problem(401, "unauthenticated");
        try_out(&service.anonymous().key("thk_nonsense"), operation).await.problem(401, "unauthenticated");
        for (rank, client) in clients.iter().enumerate() {
            let answer = try_out(client, operation).await;
            if rank < needed {
                let problem = answer.problem(403, "forbidden");
                let detail = problem["detail"].as_str().unwrap();
                assert!(detail.contains(ROLES[needed]) && detail.contains(ROLES[rank]), "{place}: {detail}");
            } else {
                assert!(!matches!(answer.status, 401 | 403), "{place} as {}: {}", ROLES[rank], answer.text());
            }
        }
    }
}

#[tokio::test]
async fn d01_another_tenants_thing_is_not_found_just_as_one_that_is_not_there() {
    let service = TestService::start().await;
    let (acme, other) = (service.tenant("acme").await, service.tenant("other").await);
    acme.editor.put("/v1/handlers/secret_h", &webhook()).await.with(201);
    acme.editor.post("/v1/tools", &tool("secret_t", &json!("secret_h"), &json!({}))).await.with(201);
    let call = acme.agent.post("/v1/tools/secret_t/calls?dry_run=false", &json!({"input": {}})).await.with(200);
    let key = acme.admin.post("/v1/keys", &json!({"role": "viewer"})).await.with(201);
    let before =
        (acme.editor.get("/v1/handlers/secret_h").await.body, acme.viewer.get("/v1/tools/secret_t").await.body);

    let theirs = |path: &str| match path {
        path if path.starts_with("/v1/handlers") => "secret_h".to_owned(),
        path if path.starts_with("/v1/tools") => "secret_t".to_owned(),
        path if path.starts_with("/v1/calls") => call["id"].as_str().unwrap().to_owned(),
        path if path.starts_with("/v1/keys") => key["id"].as_str().unwrap().to_owned(),
        path => panic!("whose is {path}?"),
    };
    let mut tried = 0;
    for operation in operations() {
        let of_a_tenant = !operation.path.starts_with("/v1/tenants") && !operation.path.starts_with("/v1/formats");
        // A PUT of what is not there makes it: that it makes one of one's own is another test.
        let of_a_key = !operation.path.starts_with("/v1/callbacks"); // what a token names is tried in another test
        if !operation.path.contains('{') || !of_a_tenant || !of_a_key || operation.method == "PUT" {
            continue;
        }
        let at = |thing: String| fill(&operation.path, |part| if part == "n" { "1".to_owned() } else { thing.clone() });
        let body = operation.spec.get("requestBody").map(|_| b"{}".as_slice());
        let missing =
            if operation.path.starts_with("/v1/calls") { "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11" } else { "missing" };
        for asker in [&other.admin, &other.operator] {
            let foreign = asker.send(&operation.method, &at(theirs(&operation.path)), body).await;
            let absent = asker.send(&operation.method, &at(missing.to_owned()), body).await;
            foreign.problem(404, "not_found");
            assert_eq!(foreign.body, absent.body, "{} {}", operation.method, operation.path);
            tried += 1;
        }
    }
    assert!(tried >= 2 * 12, "only {tried} were tried");
    let after = (acme.editor.get("/v1/handlers/secret_h").await.body, acme.viewer.get("/v1/tools/secret_t").await.body);
    assert_eq!(before, after);
    service.anonymous().key(key["key"].as_str().unwrap()).get("/v1/tools").await.with(200);
}

#[tokio::test]
async fn d02_no_list_shows_what_is_another_tenants() {
    let service = TestService::start().await;
    let (acme, other) = (service.tenant("acme").await, service.tenant("other").await);
    acme.editor.put("/v1/handlers/secret_h", &webhook()).await.with(201);
    acme.editor.post("/v1/tools", &tool("secret_t", &json!("secret_h"), &json!({"tags": ["x"]}))).await.with(201);
    acme.agent.post("/v1/tools/secret_t/calls", &json!({"input": {}})).await.with(200);
    let ids: Vec<Value> = acme.admin.get("/v1/keys").await.with(200)["data"].as_array().unwrap().clone();
    for path in [
        "/v1/handlers",
        "/v1/tools",
        "/v1/tools?tag=x",
        "/v1/tools?handler=secret_h",
        "/v1/calls",
        "/v1/calls?tool=secret_t",
    ] {
        assert!(acme.admin.get(path).await.text().contains("secret_"), "the test does not see what it guards: {path}");
        assert_eq!(other.admin.get(path).await.with(200)["data"], json!([]), "{path}");
    }
    let keys = other.admin.get("/v1/keys").await.text().to_owned();
    assert!(ids.iter().all(|row| !keys.contains(row["id"].as_str().unwrap())), "{keys}");
    for format in ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock", "cohere", "mcp", "toolhook"] {
        let path = format!("/v1/formats/{format}/tools");
        assert!(acme.agent.get(&path).await.text().contains("secret_t"), "{format}");
        assert!(!other.agent.get(&path).await.text().contains("secret_t"), "{format}");
    }
    // Nor does a handler's name of theirs serve a tool of ours.
    other.editor.post("/v1/tools", &tool("t", &json!("secret_h"), &json!({}))).await.problem(422, "invalid_body");
    let unknown =
        other.agent.post("/v1/formats/toolhook/calls", &json!({"reply": [{"id": "1", "name": "secret_t"}]})).await;
    assert_eq!(unknown.with(200)["calls"][0]["error"]["code"], "unknown_tool");
}

#[tokio::test]
async fn d06_two_tenants_with_one_name_for_a_tool_see_and_run_their_own() {
    let service = TestService::start().await;
    let mut tenants = Vec::new();
    for name in ["acme", "other"] {
        let (tenant, receiver) = (service.tenant(name).await, Receiver::weather().await);
        let owned = json!({"kind": "webhook", "url": receiver.url(), "headers": {"x-whose": name}});
        let body = tool("get_weather", &owned, &json!({"description": format!("of {name}")}));
        let made = tenant.editor.put("/v1/tools/get_weather", &body).await.with(201);
        tenants.push((name, tenant, receiver, made["handler"]["signing_secret"].as_str().unwrap().to_owned()));
    }
    let run = async |tenant: &crate::support::Tenant| {
        let reply = json!({"reply": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Sydney"}}]});
        tenant.agent.post("/v1/formats/anthropic/calls", &reply).await.with(200);
    };
    futures_util::future::join(run(&tenants[0].1), run(&tenants[1].1)).await;
    for (name, tenant, receiver, secret) in &tenants {
        let listed = tenant.agent.get("/v1/formats/anthropic/tools").await.with(200);
        let ours: Vec<&Value> =
            listed["tools"].as_array().unwrap().iter().filter(|tool| tool["name"] == "get_weather").collect();
        assert_eq!(ours.len(), 1);
        assert_eq!(ours[0]["description"], format!("of {name}"));
        let seen = receiver.seen();
        assert_eq!(seen.len(), 1, "{name}");
        assert_eq!((seen[0].header("x-whose"), &seen[0].json()["data"]["tenant"]), (Some(*name), &json!(name)));
        assert!(seen[0].is_signed_with(secret));
        let calls = tenant.viewer.get("/v1/calls").await.with(200);
        assert_eq!(calls["data"].as_array().unwrap().len(), 1);
        assert_eq!(calls["data"][0]["id"], seen[0].header("webhook-id").unwrap());
    }
    // A change or the end of the one is nothing to the other.
    let (acme, other) = (&tenants[0].1, &tenants[1].1);
    acme.editor.delete("/v1/tools/get_weather").await.with(204);
    assert_eq!(other.viewer.get("/v1/tools/get_weather").await.with(200)["version"], 1);
    acme.agent.post("/v1/tools/get_weather/calls", &json!({"input": {"city": "x"}})).await.problem(404, "not_found");
}
