//! `OpenAI` Responses.
//!
//! Declarations are flat, with `strict` always said: where it is absent the service tries strict first (**S**). Calls
//! are items of `output`, paired by `call_id`; `id` is the item's own (**S**). A result is an input item whose `output`
//! is text or parts, with the call's `caller` copied back so that a paused program can go on (**D**), and its `namespace`.

use super::declaration::{CodeCalls, List, put};
use super::list::{ListOptions, Rendered, ToolSearch};
use super::outcome::{Seen, error_text, seen};
use super::reply::{Node, Reply, ReplyFault};
use super::{About, Format, FormatName, openai_chat, schema};
use crate::domain::json::Object;
use crate::domain::{Answered, Caller, Tool, ToolCall};
use serde_json::{Value, json};

pub(super) const FORMAT: Format = Format {
    tools,
    calls,
    results,
    restore: openai_chat::FORMAT.restore,
    about: About {
        title: "OpenAI Responses",
        pairs_by_id: true,
        marks_errors: false,
        pictures: true,
        objects: false,
        max_tools: Some(128), // **U**: stated nowhere; Chat's limit
    },
};

fn tools(tools: &[&Tool], options: &ListOptions) -> Rendered {
    let code =
        if options.programmatic { CodeCalls::As("programmatic") } else { CodeCalls::NotAsked("programmatic=true") };
    let mut list = List::new(FormatName::OpenaiResponses, options, code);
    for tool in tools {
        let Some(mut draft) = list.admit(tool) else { continue };
        let (parameters, strict) = openai_chat::parameters(&mut draft);
        let mut entry = Object::new();
        put(&mut entry, "type", Some("function"));
        put(&mut entry, "name", Some(tool.name.as_str()));
        put(&mut entry, "description", Some(tool.description.as_str()));
        put(&mut entry, "parameters", Some(parameters));
        put(&mut entry, "strict", Some(strict.unwrap_or(false)));
        put(&mut entry, "defer_loading", std::mem::take(&mut draft.left.defer_loading).then_some(true));
        put(&mut entry, "allowed_callers", draft.callers());
        if let Some(output) = draft.output_schema.take() {
            let output = draft.adapted("/output_schema", schema::output(output));
            put(&mut entry, "output_schema", Some(output));
        }
        list.push(draft, Value::Object(entry));
    }
    let says = |key: &str, test: &dyn Fn(&Value) -> bool| {
        list.declared.iter().any(|(_, entry)| entry.get(key).is_some_and(test))
    };
    let mut companions = Vec::new();
    if says("defer_loading", &|said| *said == json!(true)) && options.search != Some(ToolSearch::None) {
        companions.push(json!({ "type": "tool_search" }));
    }
    if says("allowed_callers", &|said| said.as_array().is_some_and(|all| all.iter().any(|one| one == "programmatic"))) {
        companions.push(json!({ "type": "programmatic_tool_calling" }));
    }
    // In front, so that the entries before a tool stay the same when tools are added behind it.
    let declared = std::mem::take(&mut list.declared).into_iter().map(|(_, entry)| entry);
    let entries = companions.into_iter().chain(declared).collect();
    list.finish(entries)
}

fn calls(reply: &Value) -> Result<Reply, ReplyFault> {
    let root = Node::root(reply);
    let (items, cut_off) = match root.get("output") {
        Some(output) if !root.is_text("type", "function_call_output") => {
            let reason = root.get("incomplete_details");
            let limit = reason.is_some_and(|details| details.is_text("reason", "max_output_tokens"));
            (output.list()?, limit && root.is_text("status", "incomplete"))
        }
        _ => (root.elements().unwrap_or_else(|| vec![root.clone()]), false),
    };
    let mut found = Vec::new();
    for item in items {
        let Some(members) = item.object() else { return Err(item.no_reply(EXPECTED)) };
        if item.is_text("type", "function_call") {
            found.push(call(&item)?);
        } else if !members.contains_key("type") && !members.contains_key("role") {
            return Err(item.no_reply(EXPECTED));
        }
    }
    Ok(Reply::of(found, cut_off))
}

/// What a result has of its call: who made it, and the namespace that a loaded tool was called in (**S**).
const ECHOED: [&str; 2] = ["caller", "namespace"];
const EXPECTED: &str = "a response, its output or one of its items";

fn call(item: &Node<'_>) -> Result<ToolCall, ReplyFault> {
    let mut echo = Object::new();
    let caller = item.get("caller");
    for key in ECHOED {
        put(&mut echo, key, item.get(key).map(|member| member.value.clone()));
    }
    Ok(ToolCall {
        call_id: Some(item.id("call_id")?),
        name: item.name()?,
        arguments: item.arguments("arguments"),
        caller: if caller.is_some_and(|caller| caller.is_text("type", "program")) {
            Caller::CodeExecution
        } else {
            Caller::Human
        },
        echo,
        cut_off: item.is_text("status", "incomplete"),
    })
}

fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    answered
        .iter()
        .map(|one| {
            let output = match seen(one) {
                Seen::Text(text) => json!(text),
                Seen::Object(_, text) => json!(text), // an object is refused by the type (**S**)
                Seen::Error(message) => json!(error_text(message)),
                Seen::Picture { media_type, base64, .. } => {
                    json!([{ "type": "input_image", "image_url": format!("data:{media_type};base64,{base64}") }])
                }
            };
            let mut item = json!({ "type": "function_call_output", "call_id": one.call.call_id, "output": output });
            for key in ECHOED {
                if let Some(member) = one.call.echo.get(key) {
                    item[key] = member.clone();
                }
            }
            item
        })
        .collect()
}
