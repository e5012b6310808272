//! A real service on a real Postgres, and those who talk to it: callers that speak HTTP over TCP, and webhooks on loopback.

mod answer;
mod asynchronous;
mod client;
mod contract;
mod exposition;
mod line;
mod logs;
mod postgres;
mod receiver;
mod service;

pub(crate) use answer::Answer;
pub(crate) use asynchronous::{Later, in_city};
pub(crate) use client::{Client, exchange};
pub(crate) use contract::{Operation, compile, fill, operations};
pub(crate) use exposition::Exposition;
pub(crate) use line::Line;
pub(crate) use logs::traced;
pub(crate) use receiver::{Reaction, Receiver, Seen, json_answer};
pub(crate) use service::{Tenant, TestService, connect_with, eventually};

use serde_json::{Value, json};

/// A tool's body with a named handler; `more` replaces or adds members.
pub(crate) fn tool(name: &str, handler: &Value, more: &Value) -> Value {
    let mut body = json!({
        "name": name,
        "description": "For a test",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "handler": handler
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    body
}

/// A handler's body: a webhook that nobody calls.
pub(crate) fn webhook() -> Value {
    json!({"kind": "webhook", "url": "https://hooks.example.com/x"})
}

/// The places of a problem's errors.
pub(crate) fn pointers(problem: &Value) -> Vec<String> {
    let errors = problem["errors"].as_array().cloned().unwrap_or_default();
    let place = |error: &Value| error["pointer"].as_str().or_else(|| error["parameter"].as_str()).map(str::to_owned);
    errors.iter().filter_map(place).collect()
}
