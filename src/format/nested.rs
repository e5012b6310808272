//! The nested shape of a call that `OpenAI` Chat and Cohere share: `{"id", "type", "function": {"name", "arguments"}}`.

use super::reply::{Node, Reply, ReplyFault};
use crate::domain::json::Object;
use crate::domain::{Caller, ToolCall};

/// The calls of a message, a list of calls (or of messages), or one call.
pub(super) fn calls(node: &Node<'_>, expected: &str) -> Result<Reply, ReplyFault> {
    if let Some(elements) = node.elements() {
        let mut found = Vec::new();
        for element in elements {
            found.extend(one(&element, expected)?);
        }
        return Ok(Reply::of(found, false));
    }
    Ok(Reply::of(one(node, expected)?, false))
}

fn one(node: &Node<'_>, expected: &str) -> Result<Vec<ToolCall>, ReplyFault> {
    if node.get("function").is_some() || node.get("custom").is_some() || node.is_text("type", "function") {
        return Ok(call(node)?.into_iter().collect());
    }
    if node
        .object()
        .is_some_and(|members| ["role", "tool_calls", "content"].iter().any(|key| members.contains_key(*key)))
    {
        return message(node);
    }
    Err(node.no_reply(expected))
}

/// The calls of an assistant message.
pub(super) fn message(message: &Node<'_>) -> Result<Vec<ToolCall>, ReplyFault> {
    if message.object().is_none() {
        return Err(message.no_reply("a message"));
    }
    let Some(calls) = message.get("tool_calls") else {
        // The form before tool calls had no ids, and takes no tool message in return.
        return match message.get("function_call") {
            Some(old) => Err(old.fault("the older function_call has no id to answer to; use tools and tool_calls")),
            None => Ok(Vec::new()),
        };
    };
    let mut found = Vec::new();
    for element in calls.list()? {
        found.extend(call(&element)?);
    }
    Ok(found)
}

/// One call; none if it is of another type, such as `custom`, which Toolhook never declares. Mistral and Ollama leave
/// the type out (**S**).
fn call(node: &Node<'_>) -> Result<Option<ToolCall>, ReplyFault> {
    if node.get("type").is_some() && !node.is_text("type", "function") {
        return Ok(None);
    }
    let Some(function) = node.get("function") else {
        return Err(node.no_reply("a call with a function"));
    };
    Ok(Some(ToolCall {
        call_id: Some(node.id("id")?),
        name: function.name()?,
        arguments: function.arguments("arguments"),
        caller: Caller::Human,
        echo: Object::new(),
        cut_off: false,
    }))
}
