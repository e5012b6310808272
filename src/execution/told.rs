//! A call's span: what operators see of it in traces, by OpenTelemetry's conventions for generative AI, and in the log.
//! Never its input, its result, or what the handler said.

use super::Executed;
use crate::domain::{Outcome, ToolCall};
use crate::registry::Entry;
use crate::telemetry::traces;
use tracing::Span;
use tracing::field::Empty;
use uuid::Uuid;

/// The span of a call. Its own `traceparent` is what a webhook gets. `caller` is the one that came with the call, which is not the
/// request's where a protocol has a place of its own for it.
pub(super) fn span(id: Uuid, call: &ToolCall, entry: Option<&Entry>, caller: Option<&str>) -> Span {
    // A name that is no tool's is the model's free text, and neither a record's field nor a span's name.
    let tool = entry.map(|entry| entry.tool.name.as_str());
    let span = tracing::info_span!("execute_tool", call = %id, tool, otel.name = Empty);
    traces::follow_from(&Span::current(), &span, caller);
    traces::name(&span, || tool.map_or_else(|| "execute_tool".to_owned(), |tool| format!("execute_tool {tool}")));
    traces::note(&span, "gen_ai.operation.name", "execute_tool");
    traces::note(&span, "gen_ai.tool.type", "function");
    traces::note_text(&span, "gen_ai.tool.name", &call.name);
    match &call.call_id {
        Some(given) => traces::note_text(&span, "gen_ai.tool.call.id", given),
        None => traces::note(&span, "gen_ai.tool.call.id", id.to_string()),
    }
    span
}

/// Says how the call ended.
pub(super) fn ended(span: &Span, executed: &Executed) {
    traces::note(span, "toolhook.call.status", executed.outcome.status().as_str());
    traces::note(span, "toolhook.call.attempts", i64::from(executed.attempts));
    if let Outcome::Failure(failure) = &executed.outcome {
        traces::failed(span, failure.code);
    }
}
