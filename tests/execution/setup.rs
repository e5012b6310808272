//! A tenant with tools, and an executor to run them.

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use toolhook::domain::{
    Caller, Failure, Fields, HandlerRef, Outcome, TenantLimits, TenantName, ToolCall, ToolDraft, handler::Handler,
};
use toolhook::egress::{Egress, Policy};
use toolhook::execution::{Admission, Executed, Executor, Limiting, Natives, Request};
use toolhook::registry::{Entry, HandlerKey, Registry, TenantFacts};
use uuid::Uuid;

pub(crate) const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A tool with a webhook; `more` replaces or adds members of its body.
pub(crate) fn tool(name: &str, url: &str, more: &Value) -> Arc<Entry> {
    let mut body = json!({
        "name": name,
        "description": "For a test",
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "handler": {"kind": "webhook", "url": url, "signing_secret": SECRET, "headers": {"authorization": "Bearer s3cret"}}
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    let fields = Fields::parse(body.to_string().as_bytes()).unwrap();
    let tool = ToolDraft::new(fields).check(None, &[], None).unwrap();
    let HandlerRef::Owned(handler) = &tool.handler else { panic!("the handler is written in place") };
    let handler: Arc<Handler> = Arc::new((**handler).clone());
    let handler_key = HandlerKey::of(Uuid::now_v7(), &handler);
    Arc::new(Entry { tool, version: 3, handler, handler_key })
}

pub(crate) fn registry(entries: Vec<Arc<Entry>>) -> Arc<Registry> {
    registry_with(TenantLimits::default(), entries)
}

pub(crate) fn registry_with(limits: TenantLimits, entries: Vec<Arc<Entry>>) -> Arc<Registry> {
    let tenant = TenantFacts { id: Uuid::now_v7(), name: TenantName::parse("acme").unwrap(), limits };
    Arc::new(Registry::build(tenant, 1, entries, Vec::new()))
}

pub(crate) fn executor(natives: Natives) -> Executor {
    Executor::new(Egress::new(Policy::development()).unwrap(), natives)
}

/// Under limits of its own; what it repeats it repeats soon.
pub(crate) fn limited(limiting: Limiting) -> Executor {
    executor(Natives::default()).limited_by(Limiting { first_backoff: Duration::from_millis(5), ..limiting })
}

pub(crate) fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        call_id: Some("call_1".to_owned()),
        name: name.to_owned(),
        arguments,
        caller: Caller::Human,
        echo: serde_json::Map::new(),
        cut_off: false,
    }
}

pub(crate) fn request(registry: &Arc<Registry>, calls: Vec<ToolCall>, time: Duration) -> Request {
    Request {
        registry: Arc::clone(registry),
        calls,
        context: None,
        deadline: Instant::now() + time,
        request_id: "req_1".to_owned(),
        traceparent: None,
        restore: None,
        admission: Admission::unasked(),
        respond_async: false,
    }
}

/// Runs calls that have ten seconds, in a task of their own, as the service does.
pub(crate) async fn run(registry: &Arc<Registry>, calls: Vec<ToolCall>) -> Vec<Executed> {
    run_by(&executor(Natives::default()), registry, calls).await
}

/// The same by this executor.
pub(crate) async fn run_by(executor: &Executor, registry: &Arc<Registry>, calls: Vec<ToolCall>) -> Vec<Executed> {
    let (executor, request) = (executor.clone(), request(registry, calls, Duration::from_secs(10)));
    TaskTracker::new().spawn(async move { executor.run(request).await }).await.unwrap()
}

pub(crate) fn text(executed: &Executed) -> String {
    match &executed.outcome {
        Outcome::Success(success) => success.content.text(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn failure(executed: &Executed) -> &Failure {
    match &executed.outcome {
        Outcome::Failure(failure) => failure,
        other => panic!("{other:?}"),
    }
}
