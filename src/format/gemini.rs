//! Google Gemini `generateContent`.
//!
//! All declarations stand in the one `tools` entry (whether several are taken is **U**), keys in camelCase; unknown keys
//! are refused by the SDK's types (**S**). Calls may come without arguments and without an id (**S**): results are then
//! paired by name and position. A result's `response` is always an object, with the result under `output` or the error
//! under `error` (**S**), and all results go in one content (**E**: as many responses as calls).

use super::declaration::{CodeCalls, List, put};
use super::list::{ListOptions, Rendered};
use super::outcome::{Seen, seen};
use super::reply::{Node, Reply, ReplyFault};
use super::{About, Format, FormatName, schema};
use crate::domain::json::Object;
use crate::domain::{Answered, Caller, Tool, ToolCall};
use serde_json::{Value, json};

pub(super) const FORMAT: Format = Format {
    tools,
    calls,
    results,
    restore: |tool, arguments| schema::restore(tool, Some(schema::NameRule::Gemini), false, arguments),
    about: About {
        title: "Google Gemini generateContent",
        pairs_by_id: false,
        marks_errors: true,
        pictures: true,
        objects: true,
        max_tools: Some(512), // **S**
    },
};

fn tools(tools: &[&Tool], options: &ListOptions) -> Rendered {
    let mut list = List::new(FormatName::Gemini, options, CodeCalls::None);
    for tool in tools {
        let Some(mut draft) = list.admit(tool) else { continue };
        draft.callers();
        let mut entry = Object::new();
        put(&mut entry, "name", Some(tool.name.as_str()));
        put(&mut entry, "description", Some(tool.description.as_str()));
        if let Some(adapted) = schema::gemini(&tool.input_schema) {
            put(&mut entry, "parametersJsonSchema", Some(draft.adapted("/input_schema", adapted)));
        }
        if let Some(output) = draft.output_schema.take() {
            put(&mut entry, "responseJsonSchema", Some(draft.adapted("/output_schema", schema::gemini_output(output))));
        }
        list.push(draft, Value::Object(entry));
    }
    let declared: Vec<Value> = std::mem::take(&mut list.declared).into_iter().map(|(_, entry)| entry).collect();
    let tools = if declared.is_empty() { Vec::new() } else { vec![json!({ "functionDeclarations": declared })] };
    list.finish(tools)
}

const EXPECTED: &str = "a response, its content, its parts or one of them";

fn calls(reply: &Value) -> Result<Reply, ReplyFault> {
    let root = Node::root(reply);
    if let Some(candidates) = root.get("candidates") {
        // More candidates than one are alternatives, of which the conversation goes on with the first.
        return candidates.list()?.first().map_or_else(|| Ok(Reply::default()), of_candidate);
    }
    if root.get("content").is_some() {
        return of_candidate(&root);
    }
    // A prompt that was blocked has feedback instead of candidates.
    let blocked = root.object().is_some_and(|members| {
        ["candidates", "promptFeedback", "prompt_feedback"].iter().any(|key| members.contains_key(*key))
    });
    if blocked {
        return Ok(Reply::default());
    }
    let elements = root.elements().unwrap_or_else(|| vec![root]);
    let mut found = Vec::new();
    for element in elements {
        found.extend(of_content(&element)?);
    }
    Ok(Reply::of(found, false))
}

fn of_candidate(candidate: &Node<'_>) -> Result<Reply, ReplyFault> {
    let reason = candidate.either(["finishReason", "finish_reason"]);
    let cut_off = reason.is_some_and(|reason| reason.value == "MAX_TOKENS");
    let found = candidate.get("content").map_or_else(|| Ok(Vec::new()), |content| of_content(&content))?;
    Ok(Reply::of(found, cut_off))
}

/// The calls of a content, of a part, or of a call by itself. The SDK for Python dumps keys in `snake_case`.
fn of_content(node: &Node<'_>) -> Result<Vec<ToolCall>, ReplyFault> {
    let Some(members) = node.object() else { return Err(node.no_reply(EXPECTED)) };
    if let Some(parts) = node.get("parts") {
        let mut found = Vec::new();
        for part in parts.list()? {
            found.extend(of_content(&part)?);
        }
        return Ok(found);
    }
    if let Some(inner) = node.either(["functionCall", "function_call"]) {
        return Ok(vec![call(&inner)?]);
    }
    let by_itself = members.get("name").is_some_and(Value::is_string)
        && members.keys().all(|key| {
            ["id", "name", "args", "partialArgs", "partial_args", "willContinue", "will_continue"]
                .contains(&key.as_str())
        });
    if by_itself {
        return Ok(vec![call(node)?]);
    }
    // A content without parts, or a part of another kind, such as text or a thought.
    if members.is_empty() || members.contains_key("choices") || members.contains_key("output") {
        return Err(node.no_reply(EXPECTED));
    }
    Ok(Vec::new())
}

fn call(node: &Node<'_>) -> Result<ToolCall, ReplyFault> {
    Ok(ToolCall {
        call_id: node.text("id").filter(|id| !id.is_empty()).map(str::to_owned),
        name: node.name()?,
        arguments: node.arguments("args"),
        caller: Caller::Human,
        // `thoughtSignature` sits beside the call in the model's own content, which the agent keeps: results need none.
        echo: Object::new(),
        cut_off: false,
    })
}

fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    let parts: Vec<Value> = answered.iter().map(result).collect();
    if parts.is_empty() { Vec::new() } else { vec![json!({ "role": "user", "parts": parts })] }
}

/// The types of pictures that a function response takes (**D**): no GIF.
const PICTURES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

fn result(answered: &Answered<'_>) -> Value {
    let mut response = Object::new();
    put(&mut response, "id", answered.call.call_id.clone());
    put(&mut response, "name", Some(answered.call.name.as_str()));
    match seen(answered) {
        Seen::Text(text) => put(&mut response, "response", Some(json!({ "output": text }))),
        Seen::Object(object, _) => put(&mut response, "response", Some(json!({ "output": object }))),
        Seen::Error(message) => put(&mut response, "response", Some(json!({ "error": message }))),
        Seen::Picture { media_type, base64, text } => {
            put(&mut response, "response", Some(json!({ "output": text })));
            if PICTURES.contains(&media_type) {
                let data = json!({ "mimeType": media_type, "data": base64 });
                put(&mut response, "parts", Some(json!([{ "inlineData": data }])));
            }
        }
    }
    json!({ "functionResponse": response })
}
