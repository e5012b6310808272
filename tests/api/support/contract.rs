//! The reference, held against every answer that any test gets.

use super::answer::Answer;
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

static DOCUMENT: LazyLock<Value> = LazyLock::new(toolhook::http::document);

/// One documented operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// In capitals.
    pub(crate) method: String,
    /// With its parameters in braces.
    pub(crate) path: String,
    pub(crate) spec: Value,
}

/// Every documented operation.
pub(crate) fn operations() -> Vec<Operation> {
    OPERATIONS.clone()
}

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| {
        let operations = item.as_object().unwrap().clone();
        let path = path.clone();
        operations.into_iter().map(move |(method, spec)| Operation {
            method: method.to_ascii_uppercase(),
            path: path.clone(),
            spec,
        })
    };
    paths.iter().flat_map(of).collect()
});

/// A path with its parameters filled in.
pub(crate) fn fill(path: &str, value: impl Fn(&str) -> String) -> String {
    let part = |part: &str| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')).map(&value);
    path.split('/').map(|raw| part(raw).unwrap_or_else(|| raw.to_owned())).collect::<Vec<_>>().join("/")
}

fn fits(template: &str, path: &str) -> bool {
    let (mut parts, mut written) = (template.split('/'), path.split('/'));
    loop {
        match (parts.next(), written.next()) {
            (None, None) => return true,
            (Some(part), Some(written)) if part == written || (part.starts_with('{') && !written.is_empty()) => {}
            _ => return false,
        }
    }
}

/// Holds an answer against what the reference says of its route.
pub(crate) fn check(method: &str, target: &str, answer: &Answer) {
    let path = target.split('?').next().unwrap_or_default();
    let told = || format!("{method} {target}: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
    assert_ne!(answer.status, 500, "a fault of the service: {}", told());
    assert!(answer.header("x-request-id").is_some_and(|id| !id.is_empty()), "no request id: {}", told());
    if path.starts_with("/docs") {
        return; // the viewer's pages
    }
    // MCP says in JSON-RPC what is wrong with a message of its own; the schema below says how.
    let problem =
        answer.status >= 400 && !(path == "/mcp" && answer.header("content-type") == Some("application/json"));
    if problem {
        check_problem(answer, &told());
    }
    let mut route = OPERATIONS.iter().filter(|operation| fits(&operation.path, path)).peekable();
    if route.peek().is_none() {
        assert_eq!(answer.json()["code"], "unknown_route", "{}", told());
        return;
    }
    let Some(operation) = route.find(|operation| operation.method == method) else {
        assert_eq!(answer.json()["code"], "method_not_allowed", "{}", told());
        return;
    };
    let responses = &operation.spec["responses"];
    let documented = responses.get(answer.status.to_string());
    let documented = documented.unwrap_or_else(|| panic!("this status is not documented: {}", told()));
    let content = documented["content"].as_object();
    assert_eq!(content.is_none_or(Map::is_empty), answer.body.is_empty(), "a body or none: {}", told());
    let Some(content) = content.filter(|content| !content.is_empty()) else { return };
    let kind = answer.header("content-type").unwrap_or_default();
    let content =
        content.get(kind).unwrap_or_else(|| panic!("this content type is not documented: {kind}: {}", told()));
    if !kind.contains("json") {
        return; // metrics
    }
    let validator = validator(&content["schema"]);
    let value = answer.json();
    let faults: Vec<String> =
        validator.iter_errors(&value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{}\n{faults:#?}", told());
    if problem {
        let said = documented["description"].as_str().unwrap();
        let code = value["code"].as_str().unwrap();
        assert!(said.contains(&format!("`{code}`")), "the code is not documented for this status: {}", told());
    }
}

fn check_problem(answer: &Answer, told: &str) {
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{told}");
    let body = answer.json();
    assert_eq!(body["status"], answer.status, "{told}");
    for member in ["type", "title", "detail", "code"] {
        assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "no {member}: {told}");
    }
    assert_eq!(matches!(answer.status, 429 | 503), answer.header("retry-after").is_some(), "Retry-After: {told}");
    assert_eq!(answer.status == 401, answer.header("www-authenticate").is_some(), "WWW-Authenticate: {told}");
    assert_eq!(answer.status == 405, answer.header("allow").is_some(), "Allow: {told}");
}

/// The compiled schema of an answer, made once.
fn validator(schema: &Value) -> Arc<Validator> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Arc::clone(known.entry(schema.to_string()).or_insert_with(|| Arc::new(compile(schema))))
}

/// Compiles a schema of the document, which may refer to others in it.
pub(crate) fn compile(schema: &Value) -> Validator {
    let whole = json!({"allOf": [schema], "components": DOCUMENT["components"]});
    jsonschema::draft202012::options().should_validate_formats(true).build(&whole).unwrap()
}
