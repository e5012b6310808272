//! Cohere v2 chat.
//!
//! Declarations and calls are nested as `OpenAI` Chat's are. `strict` exists for the whole request only
//! (`strict_tools`, **D**), so a tool's own is dropped, and its note says what to send instead. A result is text, or documents whose data is an object (**S**).

use super::declaration::{CodeCalls, List};
use super::list::{Effect, ListOptions, Rendered};
use super::outcome::{Seen, error_text, not_blank, seen};
use super::reply::{Node, Reply, ReplyFault};
use super::{About, Format, FormatName, nested, schema};
use crate::domain::{Answered, Tool};
use serde_json::{Value, json};

pub(super) const FORMAT: Format = Format {
    tools,
    calls,
    results,
    restore: |_, arguments| arguments,
    about: About {
        title: "Cohere v2 chat",
        pairs_by_id: true,
        marks_errors: false,
        pictures: false,
        objects: true,
        max_tools: None,
    },
};

fn tools(tools: &[&Tool], options: &ListOptions) -> Rendered {
    let mut list = List::new(FormatName::Cohere, options, CodeCalls::None);
    for tool in tools {
        let Some(mut draft) = list.admit(tool) else { continue };
        draft.callers();
        if std::mem::take(&mut draft.left.strict) {
            let detail = "this provider has strict for a whole request alone: send strict_tools beside the list";
            draft.note("/strict", Effect::Dropped, detail);
        }
        let parameters = draft.adapted("/input_schema", schema::json_schema(&tool.input_schema));
        let function = json!({ "name": tool.name, "description": tool.description, "parameters": parameters });
        list.push(draft, json!({ "type": "function", "function": function }));
    }
    list.finish_flat()
}

fn calls(reply: &Value) -> Result<Reply, ReplyFault> {
    let root = Node::root(reply);
    if let Some(message) = root.get("message") {
        let found = nested::message(&message)?;
        return Ok(Reply::of(found, root.is_text("finish_reason", "MAX_TOKENS")));
    }
    nested::calls(&root, "a chat response, its message, its tool_calls or one of them")
}

fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    answered
        .iter()
        .map(|one| {
            let content = match seen(one) {
                Seen::Object(data, _) => json!([{ "type": "document", "document": { "data": data } }]),
                Seen::Text(text) | Seen::Picture { text, .. } => json!(not_blank(text)),
                Seen::Error(message) => json!(error_text(message)),
            };
            json!({ "role": "tool", "tool_call_id": one.call.call_id, "content": content })
        })
        .collect()
}
