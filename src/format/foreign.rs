//! Calls in another provider's shape.
//!
//! A reply without calls is answered with nothing, and the agent's turn ends. If the reply holds calls that this format
//! does not read, because it was posted to the wrong format, that would be a call lost in silence.

use super::FormatName;
use super::reply::{Node, ReplyFault};
use serde_json::Value;

/// How deep calls stand in any provider's response, and how many values are looked at.
const MAX_LEVELS: usize = 7;
const MAX_VALUES: usize = 5_000;

/// A way in which some providers mark a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    ToolCalls,
    ToolUse,
    FunctionCallItem,
    FunctionCallPart,
    ToolUseBlock,
}

impl Mark {
    /// The mark of a call in this value itself.
    fn of(value: &Value) -> Option<Self> {
        let filled = |key: &str| value.get(key).is_some_and(|inner| !inner.is_null());
        let list = |key: &str| value.get(key).and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        match value.get("type").and_then(Value::as_str) {
            Some("tool_use") => Some(Self::ToolUse),
            Some("function_call") => Some(Self::FunctionCallItem),
            _ if list("tool_calls") => Some(Self::ToolCalls),
            _ if filled("functionCall") || filled("function_call") => Some(Self::FunctionCallPart),
            _ if filled("toolUse") => Some(Self::ToolUseBlock),
            _ => None,
        }
    }

    /// The formats whose providers call so.
    const fn formats(self) -> &'static str {
        match self {
            Self::ToolCalls => "openai-chat or cohere",
            Self::ToolUse => "anthropic",
            Self::FunctionCallItem => "openai-responses",
            Self::FunctionCallPart => "gemini",
            Self::ToolUseBlock => "bedrock",
        }
    }
}

const fn own(format: FormatName) -> Option<Mark> {
    match format {
        FormatName::OpenaiChat | FormatName::Cohere => Some(Mark::ToolCalls),
        FormatName::OpenaiResponses => Some(Mark::FunctionCallItem),
        FormatName::Anthropic => Some(Mark::ToolUse),
        FormatName::Gemini => Some(Mark::FunctionCallPart),
        FormatName::Bedrock => Some(Mark::ToolUseBlock),
        FormatName::Mcp | FormatName::Toolhook => None,
    }
}

/// Refuses a reply in which `format` found no call and another provider's call stands.
pub(super) fn check(format: FormatName, reply: &Value) -> Result<(), ReplyFault> {
    let mut open = vec![(Node::root(reply), 0)];
    let mut looked_at = 0;
    while let Some((node, level)) = open.pop() {
        looked_at += 1;
        if level > MAX_LEVELS || looked_at > MAX_VALUES {
            continue;
        }
        if let Some(mark) = Mark::of(node.value).filter(|mark| Some(*mark) != own(format)) {
            let detail = format!(
                "holds a call in the shape of {}, which {} does not read; post the reply to the format of its provider",
                mark.formats(),
                format.as_str()
            );
            return Err(node.fault(detail));
        }
        match node.value {
            Value::Array(_) => open.extend(node.elements().into_iter().flatten().map(|inner| (inner, level + 1))),
            Value::Object(members) => {
                open.extend(members.keys().filter_map(|key| node.get(key)).map(|inner| (inner, level + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reply_at_the_wrong_format_is_not_taken_for_one_without_calls() {
        let openai = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]});
        let anthropic =
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "t", "input": {}}]});
        let responses = json!({"output": [{"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"}]});
        let gemini =
            json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "t"}}]}}]});
        let bedrock =
            json!({"output": {"message": {"content": [{"toolUse": {"toolUseId": "t", "name": "t", "input": {}}}]}}});
        let replies = [
            ("openai-chat cohere", openai),
            ("anthropic", anthropic),
            ("openai-responses", responses),
            ("gemini", gemini),
            ("bedrock", bedrock),
        ];
        for (own, reply) in &replies {
            for format in FormatName::ALL {
                let read = format.read(reply);
                let is_own = own.split(' ').any(|name| name == format.as_str());
                let found = read.as_ref().is_ok_and(|reply| !reply.calls.is_empty());
                assert_eq!(found, is_own, "{own} at {}: {read:?}", format.as_str());
                assert!(is_own || read.is_err(), "{own} at {} is swallowed", format.as_str());
            }
        }
    }

    #[test]
    fn a_reply_of_text_alone_is_none() {
        for (format, reply) in [
            (FormatName::OpenaiChat, json!({"role": "assistant", "content": "tool_use", "tool_calls": null})),
            (
                FormatName::Anthropic,
                json!({"role": "assistant", "content": [{"type": "text", "text": "functionCall"},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}]}),
            ),
        ] {
            assert!(format.read(&reply).is_ok_and(|reply| reply.calls.is_empty()));
        }
    }
}
