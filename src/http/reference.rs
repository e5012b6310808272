//! `/v1/openapi.json` and `/docs`: the reference, made from the handlers.

use super::problem::{Code, Problem, ProblemView};
use super::respond::json;
use super::{AppState, etag};
use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(openapi))
}

/// The viewer, whose files are in the binary.
pub(super) fn viewer() -> Router<AppState> {
    Router::from(SwaggerUi::new("/docs").config(Config::from("/v1/openapi.json").try_it_out_enabled(true)))
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Toolhook", description = "Tools as data for AI agents: tenants define them, every provider's model can call them, \
        webhooks run them.\n\nErrors are `application/problem+json` (RFC 9457) with a stable `code`. Every answer has `X-Request-Id`."),
    tags(
        (name = "tenants", description = "The operator's view of tenants and their limits"),
        (name = "keys", description = "A tenant's API keys"),
        (name = "audit", description = "Who changed what, for good"),
        (name = "handlers", description = "What runs tools"),
        (name = "tools", description = "Tools as data, every version kept"),
        (name = "formats", description = "Tool lists in each provider's shape"),
        (name = "calls", description = "Running calls, and their log"),
        (name = "mcp", description = "The tenant's tools as an MCP server"),
        (name = "reference", description = "This document"),
        (name = "health", description = "Probes, and metrics for Prometheus")
    ),
    components(schemas(ProblemView))
)]
struct Reference;

static DOCUMENT: LazyLock<(String, String)> = LazyLock::new(|| {
    let text = document().to_string();
    let tag = etag::of(text.as_bytes());
    (text, tag)
});

/// Answers this document.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "get_reference", tag = "reference", security(()), responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
async fn openapi() -> Result<Response, Problem> {
    let (text, tag) = &*DOCUMENT;
    Ok(json(StatusCode::OK, text.as_str(), Some(tag)))
}

/// The reference as an `OpenAPI` document: what the handlers say of themselves, and what holds for all of them.
pub fn document() -> Value {
    let mut api = Reference::openapi();
    api.merge(super::routes().merge(super::metrics::routes()).into_openapi());
    let mut document = serde_json::to_value(&api).unwrap_or_default();
    document["components"]["securitySchemes"] = json!({
        "key": {"type": "http", "scheme": "bearer", "description": "An API key, `thk_…`"}
    });
    document["security"] = json!([{"key": []}]);
    let paths = document["paths"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let paths = paths.into_iter().map(|(path, item)| (path.clone(), complete(&path, item)));
    document["paths"] = Value::Object(paths.collect());
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schema::flatten(schemas);
        schema::close(schemas);
    }
    document
}

/// Adds to a path's operations what the layers around the handlers take and answer.
fn complete(path: &str, item: Value) -> Value {
    let Value::Object(mut operations) = item else { return item };
    for (method, operation) in &mut operations {
        let Some(operation) = operation.as_object_mut() else { continue };
        let open = operation.get("security").is_some_and(|security| *security == json!([{}]));
        let tenant = !open && !path.starts_with("/v1/tenants");
        if tenant {
            let named = json!({"name": "Toolhook-Tenant", "in": "header", "schema": {"type": "string"},
                "description": "The tenant, where the key is an operator's"});
            push(operation, named);
        }
        for code in Code::ALL {
            if applies(*code, path, method, operation, open) {
                answer(operation, *code);
            }
        }
        let resources = ["/v1/tools", "/v1/handlers"].iter().any(|resource| path.starts_with(resource));
        let writes_tools = resources && method != "get" && !path.ends_with("/calls");
        let answers = operation.get_mut("responses").and_then(Value::as_object_mut);
        for (status, answer) in answers.into_iter().flatten() {
            if writes_tools && status.starts_with('2') {
                answer["headers"]["Toolhook-Registry-Version"] = json!({"schema": {"type": "integer"},
                    "description": "After a write: the version of the tenant's tools that it made, or a later one"});
            }
            answer["headers"]["X-Request-Id"] =
                json!({"schema": {"type": "string"}, "description": "The request's id, for the log"});
        }
    }
    Value::Object(operations)
}

fn push(operation: &mut Map<String, Value>, parameter: Value) {
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    if let Some(parameters) = parameters.as_array_mut() {
        parameters.push(parameter);
    }
}

fn applies(code: Code, path: &str, method: &str, operation: &Map<String, Value>, open: bool) -> bool {
    let has = |place: &str, name: &str| {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        parameters
            .is_some_and(|all| all.iter().any(|one| one["in"] == place && (name.is_empty() || one["name"] == name)))
    };
    let body = operation.contains_key("requestBody");
    let mcp = path == "/mcp";
    let runs = (path.ends_with("/calls") || mcp) && method == "post";
    let callback = path.starts_with("/v1/callbacks/");
    let cancel = path.ends_with("/cancel");
    let writes = matches!(method, "post" | "put" | "patch" | "delete") && !runs && !callback && !cancel;
    match code {
        Code::Internal | Code::Unavailable => !open || callback || path == "/readyz",
        Code::KeyInQuery | Code::Unauthenticated | Code::BadKeys | Code::Forbidden => !open,
        Code::NotFound | Code::InvalidQuery => !open || callback,
        Code::CallEnded => callback || cancel,
        Code::CallbackExpired => callback,
        Code::TenantRequired => !open && path != "/v1/audit" && !path.starts_with("/v1/tenants"),
        Code::MalformedBody | Code::BodyTooLarge | Code::UnsupportedMediaType | Code::RequestTimeout => body,
        Code::InvalidBody => body && !mcp && !callback, // said in JSON-RPC there, and to the model here
        Code::ForeignOrigin | Code::NotAcceptable => mcp,
        Code::InvalidHeader => runs || has("header", "Toolhook-Registry-Version"),
        Code::RateLimited | Code::TooManyCalls | Code::Overloaded => runs,
        Code::KeyReused | Code::InProgress => runs && !mcp,
        Code::InvalidReply => path.starts_with("/v1/formats/") && runs,
        Code::PreconditionFailed => has("header", "If-Match"),
        Code::VersionAhead => has("header", "Toolhook-Registry-Version"),
        Code::Changed => writes && !path.starts_with("/v1/keys"),
        Code::NameTaken => writes && body && (path == "/v1/handlers" || path.starts_with("/v1/tools")),
        Code::ToolLimit | Code::Busy | Code::SchemaTooExpensive => writes && body && path.starts_with("/v1/tools"),
        Code::HandlerGone => path.ends_with("/restore"),
        Code::HandlerInUse => method == "delete" && path.starts_with("/v1/handlers"),
        Code::Unreadable => !open && ["/v1/tools", "/v1/handlers"].iter().any(|resource| path.starts_with(resource)),
        Code::NotSigned => path.ends_with("/rotate-secret"),
        Code::UnknownRoute | Code::MethodNotAllowed => false,
    }
}

/// Documents that an operation may answer an error.
fn answer(operation: &mut Map<String, Value>, code: Code) {
    let status = code.status().as_u16().to_string();
    let said = format!("`{}`: {}", code.as_str(), code.meaning().trim());
    let answers = operation.entry("responses").or_insert_with(|| json!({}));
    let known = answers.get(&status).and_then(|known| known["description"].as_str());
    let description =
        known.filter(|known| known.contains('`')).map_or_else(|| said.clone(), |known| format!("{known}\n\n{said}"));
    // What the handler documents in a form of its own stays beside it.
    let mut content = answers.get(&status).and_then(|known| known.get("content")).cloned().unwrap_or_else(|| json!({}));
    content["application/problem+json"] = json!({"schema": {"$ref": "#/components/schemas/ProblemView"}});
    answers[&status] = json!({"description": description, "content": content});
    if code.says_when() {
        answers[&status]["headers"] = json!({"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds"}});
    }
}

mod schema {
    //! What the derived schemas leave to be said.

    use serde_json::{Map, Value, json};

    /// Turns a schema that is put together from others into one object, so that it can be closed and read at a glance.
    pub(super) fn flatten(schemas: &mut Map<String, Value>) {
        let names: Vec<String> = schemas.keys().cloned().collect();
        for name in names {
            let merged = merged(&schemas[&name], schemas);
            schemas.insert(name, merged);
        }
    }

    fn merged(schema: &Value, all: &Map<String, Value>) -> Value {
        let Some(parts) = schema.get("allOf").and_then(Value::as_array) else { return schema.clone() };
        let mut whole = json!({"type": "object", "properties": {}, "required": []});
        for part in parts {
            let part = part["$ref"]
                .as_str()
                .and_then(|name| all.get(name.trim_start_matches("#/components/schemas/")))
                .unwrap_or(part);
            let part = merged(part, all);
            for (name, property) in part["properties"].as_object().into_iter().flatten() {
                whole["properties"][name] = property.clone();
            }
            if let (Some(into), Some(more)) = (whole["required"].as_array_mut(), part["required"].as_array()) {
                into.extend(more.iter().cloned());
            }
        }
        for (keyword, value) in schema.as_object().into_iter().flatten().filter(|(keyword, _)| *keyword != "allOf") {
            whole[keyword] = value.clone();
        }
        whole
    }

    /// Says of every request body that unknown members are refused.
    pub(super) fn close(schemas: &mut Map<String, Value>) {
        for (name, schema) in schemas {
            if name.ends_with("Body") || matches!(name.as_str(), "Annotations" | "TenantLimits") {
                schema["additionalProperties"] = json!(false);
            }
        }
    }
}
