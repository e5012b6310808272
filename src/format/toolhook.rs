//! Toolhook's own plain JSON, for agents without a provider's shape. It is treated as one more format, so that nothing
//! is a special case.
//!
//! `{"name", "description", "input_schema"}` declares; `{"id", "name", "input"}` calls, alone, in a list or under
//! `calls`; `{"id", "name", "status", "text", "data"}` answers. A call may say its `caller`, `human` or
//! `code_execution`.

use super::declaration::{CodeCalls, List};
use super::list::{ListOptions, Rendered};
use super::outcome::{Seen, seen};
use super::reply::{Node, Reply, ReplyFault};
use super::{About, Format, FormatName, schema};
use crate::domain::json::Object;
use crate::domain::{Answered, Caller, Outcome, Tool, ToolCall};
use serde_json::{Value, json};

pub(super) const FORMAT: Format = Format {
    tools,
    calls,
    results,
    restore: |_, arguments| arguments,
    about: About {
        title: "Toolhook's own plain JSON",
        pairs_by_id: false,
        marks_errors: true,
        pictures: false,
        objects: true,
        max_tools: None,
    },
};

fn tools(tools: &[&Tool], options: &ListOptions) -> Rendered {
    let mut list = List::new(FormatName::Toolhook, options, CodeCalls::None);
    for tool in tools {
        let Some(mut draft) = list.admit(tool) else { continue };
        draft.callers();
        let input_schema = draft.adapted("/input_schema", schema::as_stored(&tool.input_schema));
        let entry = json!({ "name": tool.name, "description": tool.description, "input_schema": input_schema });
        list.push(draft, entry);
    }
    list.finish_flat()
}

fn calls(reply: &Value) -> Result<Reply, ReplyFault> {
    let root = Node::root(reply);
    let elements = match root.get("calls") {
        Some(calls) => calls.list()?,
        None => root.elements().unwrap_or_else(|| vec![root]),
    };
    let found: Result<Vec<ToolCall>, ReplyFault> = elements.iter().map(call).collect();
    Ok(Reply::of(found?, false))
}

fn call(node: &Node<'_>) -> Result<ToolCall, ReplyFault> {
    if node.object().is_none() {
        return Err(node.no_reply(r#"{"id", "name", "input"}, a list of them, or {"calls": [...]}"#));
    }
    let caller = match node.get("caller") {
        None => Caller::Human,
        Some(said) if said.value == "human" => Caller::Human,
        Some(said) if said.value == "code_execution" => Caller::CodeExecution,
        Some(said) => return Err(said.fault("expected \"human\" or \"code_execution\"")),
    };
    let id = node.get("id");
    if let Some(id) = id.as_ref().filter(|id| !id.value.is_string()) {
        return Err(id.fault("expected a string"));
    }
    Ok(ToolCall {
        call_id: id.and_then(|id| id.value.as_str().map(str::to_owned)),
        name: node.name()?,
        arguments: node.arguments("input"),
        caller,
        echo: Object::new(),
        cut_off: false,
    })
}

fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    answered
        .iter()
        .map(|one| {
            let given = match one.outcome {
                Outcome::Success(success) => success.data.clone(),
                Outcome::Pending(_) | Outcome::Failure(_) => None,
            };
            let (text, data) = match seen(one) {
                Seen::Text(text) | Seen::Picture { text, .. } => (text, given),
                Seen::Object(object, text) => (text.to_owned(), given.or_else(|| Some(object.clone()))),
                Seen::Error(message) => (message.to_owned(), None),
            };
            let status = one.outcome.status().as_str();
            json!({ "id": one.call.call_id, "name": one.call.name, "status": status, "text": text, "data": data })
        })
        .collect()
}
