//! The Model Context Protocol: the list and result shapes of `tools/list` and `tools/call`.
//!
//! Optional members are absent, never null. The envelope (`JSON-RPC`, `resultType`, paging) is the server's, not here.
//! `structuredContent` is the one place of all formats where a result's `data` goes to the client; errors have none.

use super::declaration::{CodeCalls, List, put};
use super::list::{Effect, ListOptions, Rendered};
use super::outcome::{Seen, readable_object, seen};
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
        title: "Model Context Protocol",
        pairs_by_id: false,
        marks_errors: true,
        pictures: true,
        objects: true,
        max_tools: None,
    },
};

fn tools(tools: &[&Tool], options: &ListOptions) -> Rendered {
    let mut list = List::new(FormatName::Mcp, options, CodeCalls::None);
    for tool in tools {
        let Some(mut draft) = list.admit(tool) else { continue };
        draft.callers();
        let said = std::mem::take(&mut draft.left.annotations);
        let mut hints = Object::new();
        put(&mut hints, "readOnlyHint", said.read_only);
        put(&mut hints, "destructiveHint", said.destructive);
        put(&mut hints, "idempotentHint", said.idempotent);
        put(&mut hints, "openWorldHint", said.open_world);
        let mut entry = Object::new();
        put(&mut entry, "name", Some(tool.name.as_str()));
        put(&mut entry, "title", said.title);
        put(&mut entry, "description", Some(tool.description.as_str()));
        put(&mut entry, "inputSchema", Some(draft.adapted("/input_schema", schema::mcp(&tool.input_schema))));
        if let Some(output) = draft.output_schema.take() {
            match schema::mcp_output(output) {
                Some(adapted) => put(&mut entry, "outputSchema", Some(draft.adapted("/output_schema", adapted))),
                None => draft.note("/output_schema", Effect::Dropped, "is no object's, which older revisions refuse"),
            }
        }
        put(&mut entry, "annotations", (!hints.is_empty()).then_some(hints));
        list.push(draft, Value::Object(entry));
    }
    list.finish_flat()
}

fn calls(reply: &Value) -> Result<Reply, ReplyFault> {
    let root = Node::root(reply);
    let found: Result<Vec<ToolCall>, ReplyFault> = match root.elements() {
        Some(elements) => elements.iter().map(call).collect(),
        None => call(&root).map(|call| vec![call]),
    };
    Ok(Reply::of(found?, false))
}

fn call(node: &Node<'_>) -> Result<ToolCall, ReplyFault> {
    let params = match node.get("method") {
        None => node.clone(),
        Some(method) if method.value == "tools/call" => match node.get("params") {
            Some(params) => params,
            None => return Err(node.no_reply("a tools/call request with params")),
        },
        Some(method) => return Err(method.fault("is no call of a tool; expected tools/call")),
    };
    if params.object().is_none() {
        return Err(params.no_reply("a tools/call request, its params or a list of them"));
    }
    let id = node.get("id").filter(|id| id.value.is_string() || id.value.is_number());
    Ok(ToolCall {
        call_id: id.map(|id| id.value.as_str().map_or_else(|| id.value.to_string(), str::to_owned)),
        name: params.name()?,
        arguments: params.arguments("arguments"),
        caller: Caller::Human,
        echo: Object::new(),
        cut_off: false,
    })
}

fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    answered.iter().map(result).collect()
}

fn result(answered: &Answered<'_>) -> Value {
    let text = |text: &str| if text.is_empty() { json!([]) } else { json!([{ "type": "text", "text": text }]) };
    let data = match answered.outcome {
        Outcome::Success(success) => success.data.as_ref().and_then(readable_object),
        Outcome::Pending(_) | Outcome::Failure(_) => None,
    };
    let (content, structured) = match seen(answered) {
        Seen::Text(said) => (text(&said), data),
        Seen::Object(object, said) => (text(said), data.or(Some(object))),
        Seen::Picture { media_type, base64, .. } => {
            (json!([{ "type": "image", "data": base64, "mimeType": media_type }]), data)
        }
        Seen::Error(message) => return json!({ "content": text(message), "isError": true }),
    };
    let mut result = Object::new();
    put(&mut result, "content", Some(content));
    put(&mut result, "structuredContent", structured.cloned());
    Value::Object(result)
}
