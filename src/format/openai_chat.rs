//! `OpenAI` Chat Completions, also for the services compatible with it: xAI, `DeepSeek`, Groq, Mistral, Ollama,
//! `OpenRouter`, vLLM.
//!
//! A declaration is `{"type": "function", "function": {"name", "description", "parameters", "strict"}}`, and no other
//! key exists (**S**). `parameters` is always there, since Mistral requires it (**S**). Results are one `tool` message
//! per call, of text alone and without a mark for errors (**S**).

use super::declaration::{CodeCalls, Draft, List};
use super::list::{ListOptions, Rendered};
use super::reply::{Node, Reply, ReplyFault};
use super::schema::{self, strict_openai};
use super::{About, Format, FormatName, nested, outcome};
use crate::domain::json::Object;
use crate::domain::{Answered, Tool};
use serde_json::{Value, json};

pub(super) const FORMAT: Format = Format {
    tools,
    calls,
    results,
    restore,
    about: About {
        title: "OpenAI Chat Completions and compatible services",
        pairs_by_id: true,
        marks_errors: false,
        pictures: false,
        objects: false,
        max_tools: Some(128), // **E**, for OpenAI; **S**, for Groq
    },
};

fn tools(tools: &[&Tool], options: &ListOptions) -> Rendered {
    let mut list = List::new(FormatName::OpenaiChat, options, CodeCalls::None);
    for tool in tools {
        let Some(mut draft) = list.admit(tool) else { continue };
        draft.callers(); // every call of this format is the model's own
        let (parameters, strict) = parameters(&mut draft);
        let mut function = json!({ "name": tool.name, "description": tool.description, "parameters": parameters });
        if let Some(strict) = strict {
            function["strict"] = json!(strict); // absent means false here (**S**)
        }
        list.push(draft, json!({ "type": "function", "function": function }));
    }
    list.finish_flat()
}

/// The schema for `OpenAI`, and whether to say `strict`: nothing if the author did not ask for it.
pub(super) fn parameters(draft: &mut Draft<'_>) -> (Value, Option<bool>) {
    let parameters = draft.adapted("/input_schema", schema::openai(&draft.tool.input_schema));
    if !std::mem::take(&mut draft.left.strict) {
        return (parameters, None);
    }
    match strict_openai::fit(&parameters) {
        Ok(fitted) => (draft.adapted("/input_schema", fitted), Some(true)),
        Err(unfit) => {
            draft.not_strict(&unfit);
            (parameters, Some(false))
        }
    }
}

/// Nulls that strict asked for are taken away again.
fn restore(tool: &Tool, arguments: Object) -> Object {
    if tool.options.strict { schema::restore(tool, None, true, arguments) } else { arguments }
}

fn calls(reply: &Value) -> Result<Reply, ReplyFault> {
    let root = Node::root(reply);
    if let Some(choices) = root.get("choices") {
        // More choices than one are alternatives, of which the conversation goes on with the first.
        let Some(choice) = choices.list()?.into_iter().next() else { return Ok(Reply::default()) };
        return of_choice(&choice);
    }
    if root.get("message").is_some() {
        return of_choice(&root);
    }
    nested::calls(&root, "a chat completion, its message, its tool_calls or one of them")
}

fn of_choice(choice: &Node<'_>) -> Result<Reply, ReplyFault> {
    let Some(message) = choice.get("message") else { return Err(choice.no_reply("a choice with a message")) };
    let found = nested::message(&message)?;
    Ok(Reply::of(found, choice.is_text("finish_reason", "length")))
}

fn results(answered: &[Answered<'_>]) -> Vec<Value> {
    answered
        .iter()
        .map(|one| json!({ "role": "tool", "tool_call_id": one.call.call_id, "content": outcome::text(one) }))
        .collect()
}
