//! AWS Bedrock Converse.
//!
//! A list entry is a union of one member: `toolSpec`, or `cachePoint` (**S**). The list is what goes in
//! `toolConfig.tools`; an empty one means to leave `toolConfig` out. The schema is wrapped (`inputSchema.json`). Results
//! go in one user message; a `json` block holds an object and nothing else, without empty keys (**E**), and text must not
//! be empty (**E**).

use super::declaration::{CodeCalls, List, put};
use super::list::{CacheTtl, ListOptions, Rendered};
use super::outcome::{Seen, error_text, not_blank, seen};
use super::reply::{Node, Reply, ReplyFault};
use super::schema::{self, NameRule, strict_anthropic};
use super::{About, Format, FormatName};
use crate::domain::json::Object;
use crate::domain::{Answered, Caller, Tool, ToolCall};
use serde_json::{Value, json};

pub(super) const FORMAT: Format = Format {
    tools,
    calls,
    results,
    restore: |tool, arguments| schema::restore(tool, Some(NameRule::Anthropic), false, arguments),
    about: About {
        title: "AWS Bedrock Converse",
        pairs_by_id: true,
        marks_errors: true,
        pictures: true,
        objects: true,
        max_tools: None,
    },
};

fn tools(tools: &[&Tool], options: &ListOptions) -> Rendered {
    let mut list = List::new(FormatName::Bedrock, options, CodeCalls::None);
    for tool in tools {
        let Some(mut draft) = list.admit(tool) else { continue };
        draft.callers();
        let mut schema = draft.adapted("/input_schema", schema::anthropic(&tool.input_schema));
        let mut strict = std::mem::take(&mut draft.left.strict);
        if strict {
            match strict_anthropic::fit(&schema) {
                Ok(fitted) => schema = draft.adapted("/input_schema", fitted),
                Err(unfit) => {
                    draft.not_strict(&unfit);
                    strict = false;
                }
            }
        }
        let mut spec = Object::new();
        put(&mut spec, "name", Some(tool.name.as_str()));
        put(&mut spec, "description", Some(tool.description.as_str()));
        put(&mut spec, "inputSchema", Some(json!({ "json": schema })));
        put(&mut spec, "strict", strict.then_some(true));
        list.push(draft, json!({ "toolSpec": spec }));
    }
    let mut entries = Vec::new();
    for (_, mut entry) in std::mem::take(&mut list.declared) {
        let mark = settle_members(&mut entry);
        entries.push(entry);
        entries.extend(mark);
    }
    if let Some(ttl) = options.cache.filter(|_| !entries.is_empty()) {
        entries.push(match ttl {
            CacheTtl::FiveMinutes => json!({ "cachePoint": { "type": "default" } }), // the default, which all models know
            CacheTtl::OneHour => json!({ "cachePoint": { "type": "default", "ttl": ttl.as_str() } }),
        });
    }
    list.finish(entries)
}

/// What the author added beside `toolSpec` belongs inside it, save a cache point, which is an entry of its own.
fn settle_members(entry: &mut Value) -> Option<Value> {
    let members = entry.as_object_mut()?;
    let mark = members.shift_remove("cachePoint").map(|point| json!({ "cachePoint": point }));
    let (mut spec, beside): (Object, Object) =
        std::mem::take(members).into_iter().partition(|(key, _)| key == "toolSpec");
    if let Some(Value::Object(inner)) = spec.get_mut("toolSpec") {
        for (key, value) in beside {
            inner.entry(key).or_insert(value);
        }
    }
    *members = spec;
    mark
}

const EXPECTED: &str = "a Converse response, its message, the message's content or one of its blocks";

fn calls(reply: &Value) -> Result<Reply, ReplyFault> {
    let root = Node::root(reply);
    if let Some(output) = root.get("output") {
        let cut_off = ["max_tokens", "model_context_window_exceeded"].iter().any(|at| root.is_text("stopReason", at));
        let Some(message) = output.get("message") else { return Err(output.no_reply(EXPECTED)) };
        return Ok(Reply::of(of_message(&message)?, cut_off));
    }
    if let Some(message) = root.get("message") {
        return Ok(Reply::of(of_message(&message)?, false));
    }
    if root.object().is_some_and(|members| members.contains_key("content")) {
        return Ok(Reply::of(of_message(&root)?, false));
    }
    Ok(Reply::of(of_blocks(root.elements().unwrap_or_else(|| vec![root]))?, false))
}

fn of_message(message: &Node<'_>) -> Result<Vec<ToolCall>, ReplyFault> {
    message.get("content").map_or_else(|| Ok(Vec::new()), |content| of_blocks(content.list()?))
}

fn of_blocks(blocks: Vec<Node<'_>>) -> Result<Vec<ToolCall>, ReplyFault> {
    let mut found = Vec::new();
    for block in blocks {
        let Some(members) = block.object().filter(|members| !members.is_empty()) else {
            return Err(block.no_reply(EXPECTED));
        };
        let Some(inner) = block.get("toolUse").or_else(|| members.contains_key("toolUseId").then(|| block.clone()))
        else {
            // A block is a union: one key that says what it holds.
            if members.values().all(|value| !value.is_object() && !value.is_string()) || members.contains_key("type") {
                return Err(block.no_reply(EXPECTED));
            }
            continue;
        };
        if inner.get("type").is_some_and(|kind| kind.value == "server_tool_use") {
            continue; // run by the service itself
        }
        found.push(ToolCall {
            call_id: Some(inner.id("toolUseId")?),
            name: inner.name()?,
            arguments: inner.arguments("input"),
            caller: Caller::Human,
            echo: Object::new(),
            cut_off: false,
        });
    }
    Ok(found)
}

fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    let blocks: Vec<Value> = answered.iter().map(result).collect();
    if blocks.is_empty() { Vec::new() } else { vec![json!({ "role": "user", "content": blocks })] }
}

fn result(answered: &Answered<'_>) -> Value {
    let (status, block) = match seen(answered) {
        Seen::Text(text) => ("success", json!({ "text": not_blank(text) })),
        Seen::Object(object, _) => ("success", json!({ "json": object })),
        Seen::Picture { media_type, base64, .. } => {
            let format = media_type.rsplit('/').next().unwrap_or_default();
            ("success", json!({ "image": { "format": format, "source": { "bytes": base64 } } }))
        }
        // The status works on Nova and Claude alone (**S**), so the text says it too.
        Seen::Error(message) => ("error", json!({ "text": error_text(message) })),
    };
    json!({ "toolResult": { "toolUseId": answered.call.call_id, "status": status, "content": [block] } })
}
