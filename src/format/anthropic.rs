//! Anthropic Messages.
//!
//! Declarations are flat; the service refuses unknown keys (**E**). `type` is left out, as it may be (**S**), so that
//! `provider_options` can give a native one. All results of a reply go in the one user message that follows it, before
//! any text (**D**); text blocks must not be empty (**E**).

use super::declaration::{CodeCalls, Draft, List, put};
use super::list::{Effect, ListOptions, Rendered, ToolSearch};
use super::outcome::{Seen, seen};
use super::reply::{Node, Reply, ReplyFault};
use super::schema::strict::{Unfit, is_recursive};
use super::schema::{self, Adapted, NameRule, strict_anthropic};
use super::{About, Format, FormatName};
use crate::domain::json::Object;
use crate::domain::{Answered, Caller, Pointer, Tool, ToolCall};
use serde_json::{Value, json};

pub(super) const FORMAT: Format = Format {
    tools,
    calls,
    results,
    restore: |tool, arguments| schema::restore(tool, Some(NameRule::Anthropic), false, arguments),
    about: About {
        title: "Anthropic Messages",
        pairs_by_id: true,
        marks_errors: true,
        pictures: true,
        objects: false,
        max_tools: None,
    },
};

fn tools(tools: &[&Tool], options: &ListOptions) -> Rendered {
    let runs = options.code_execution.as_ref().map(|version| format!("code_execution_{version}"));
    let code = runs.as_deref().map_or(CodeCalls::NotAsked("code_execution=<version>"), CodeCalls::As);
    let mut list = List::new(FormatName::Anthropic, options, code);
    let mut budget = StrictBudget { tools: 20, optional: 24, unions: 16 };
    for tool in tools {
        let Some(mut draft) = list.admit(tool) else { continue };
        match declare(&mut draft, runs.as_deref(), &mut budget) {
            Ok(declaration) => list.push(draft, declaration),
            Err(reason) => list.omit(tool, reason),
        }
    }
    settle_deferred(&mut list);
    let mut companions = Vec::new();
    if options.search != Some(ToolSearch::None) && list.declared.iter().any(|(_, entry)| is_deferred(entry)) {
        let kind = if options.search == Some(ToolSearch::Regex) { "regex" } else { "bm25" };
        let (kind, name) = (format!("tool_search_tool_{kind}_20251119"), format!("tool_search_tool_{kind}"));
        companions.push(json!({ "type": kind, "name": name }));
    }
    if let Some(runs) = &runs
        && list.declared.iter().any(|(_, entry)| names_caller(entry, runs))
    {
        companions.push(json!({ "type": runs, "name": "code_execution" }));
    }
    // Two tools of one name fail the whole request (**E**), and the provider's own is needed by others.
    let ours = |name: &str| companions.iter().any(|entry| entry["name"] == name);
    for name in list.declared.iter().map(|(name, _)| name.clone()).filter(|name| ours(name)).collect::<Vec<_>>() {
        list.withdraw(&name, "the list needs a tool of the provider's that has this name");
    }
    if let Some(ttl) = options.cache
        && let Some((_, last)) = list.declared.iter_mut().rev().find(|(_, entry)| !is_deferred(entry))
        && last.get("cache_control").is_none()
    {
        last["cache_control"] = json!({ "type": "ephemeral", "ttl": ttl.as_str() });
    }
    // In front: what a cache mark covers is all that stands before it.
    let declared = std::mem::take(&mut list.declared).into_iter().map(|(_, entry)| entry);
    let entries = companions.into_iter().chain(declared).collect();
    list.finish(entries)
}

/// What strict tools may still use up: the limits are per request over all tools (**D**).
struct StrictBudget {
    tools: usize,
    optional: usize,
    unions: usize,
}

/// One declaration; the error is the reason to leave the tool out.
fn declare(draft: &mut Draft<'_>, runs: Option<&str>, budget: &mut StrictBudget) -> Result<Value, &'static str> {
    let adapted = schema::anthropic(&draft.tool.input_schema);
    let stays = adapted.changes.is_empty();
    let input_schema = draft.adapted("/input_schema", adapted);
    let mut callers = draft.callers();
    let code = |callers: &Option<Vec<String>>| callers.iter().flatten().any(|name| Some(name.as_str()) == runs);
    if code(&callers) && is_recursive(&input_schema) {
        // "Circular $ref detected" (**D**)
        callers = callers.map(|names| names.into_iter().filter(|name| Some(name.as_str()) != runs).collect());
        if callers.as_ref().is_some_and(Vec::is_empty) {
            return Err("only code may call it, and its schema refers to itself, which this provider refuses for code");
        }
        draft.note("/allowed_callers", Effect::Dropped, "code may not call a tool whose schema refers to itself");
    }
    let mut input_schema = input_schema;
    let mut strict = std::mem::take(&mut draft.left.strict);
    if strict {
        match fit_strict(&input_schema, code(&callers), budget) {
            Ok(fitted) => input_schema = draft.adapted("/input_schema", fitted),
            Err(unfit) => {
                draft.not_strict(&unfit);
                strict = false;
            }
        }
    }
    let examples = examples(draft, &input_schema, stays && !strict);
    let mut entry = Object::new();
    put(&mut entry, "name", Some(draft.tool.name.as_str()));
    put(&mut entry, "description", Some(draft.tool.description.as_str()));
    put(&mut entry, "input_schema", Some(input_schema));
    put(&mut entry, "strict", strict.then_some(true));
    put(&mut entry, "input_examples", examples);
    put(&mut entry, "defer_loading", std::mem::take(&mut draft.left.defer_loading).then_some(true));
    put(&mut entry, "eager_input_streaming", draft.left.eager_input_streaming.take());
    put(&mut entry, "allowed_callers", callers);
    Ok(Value::Object(entry))
}

/// The schema of a tool that asks for `strict`, or why it goes without.
fn fit_strict(schema: &Value, code: bool, budget: &mut StrictBudget) -> Result<Adapted, Unfit> {
    let whole = |detail: &str| Unfit { pointer: Pointer::root(), detail: detail.to_owned() };
    if code {
        return Err(whole("this provider takes no strict tool that code may call"));
    }
    let fitted = strict_anthropic::fit(schema)?;
    let (optional, unions) = strict_anthropic::optional_and_unions(&fitted.schema);
    if budget.tools == 0 || optional > budget.optional || unions > budget.unions {
        let limits = "one request has at most 20 strict tools, with 24 optional parameters and 16 unions in all";
        return Err(whole(limits));
    }
    budget.tools -= 1;
    budget.optional -= optional;
    budget.unions -= unions;
    Ok(fitted)
}

/// The examples that are valid under the schema as it is sent: the service checks them (**D**).
fn examples(draft: &mut Draft<'_>, input_schema: &Value, unchanged: bool) -> Option<Vec<Value>> {
    let written = std::mem::take(&mut draft.left.input_examples);
    let count = written.len();
    let stored = &draft.tool.input_schema;
    let renamed = |example| schema::rename_value(stored, NameRule::Anthropic, Value::Object(example));
    let mut examples: Vec<Value> = written.into_iter().map(renamed).collect();
    if !unchanged && count > 0 {
        examples = schema::admitted(input_schema, examples);
        if examples.len() < count {
            draft.note("/input_examples", Effect::Dropped, "some do not fit the schema as it is sent to this provider");
        }
    }
    (!examples.is_empty()).then_some(examples)
}

/// Keeps out what the service refuses about deferred tools: a cache mark on one, and a list of nothing else (**D**).
fn settle_deferred(list: &mut List<'_>) {
    for index in 0..list.declared.len() {
        let Some((name, entry)) = list.declared.get_mut(index) else { continue };
        if is_deferred(entry) && entry.as_object_mut().and_then(|entry| entry.shift_remove("cache_control")).is_some() {
            let name = name.clone();
            let place = "/provider_options/anthropic/cache_control";
            list.note(&name, place, Effect::Dropped, "a deferred tool carries no cache mark");
        }
    }
    if list.declared.iter().all(|(_, entry)| is_deferred(entry))
        && let Some((name, entry)) = list.declared.first_mut()
    {
        entry.as_object_mut().and_then(|entry| entry.shift_remove("defer_loading"));
        let name = name.clone();
        let detail = "at least one tool of a list must not be deferred; this is the first of it";
        list.note(&name, "/defer_loading", Effect::Dropped, detail);
    }
}

fn is_deferred(entry: &Value) -> bool {
    entry.get("defer_loading") == Some(&json!(true))
}

fn names_caller(entry: &Value, caller: &str) -> bool {
    entry.get("allowed_callers").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == caller))
}

const EXPECTED: &str = "a message, its content or one of its blocks";

fn calls(reply: &Value) -> Result<Reply, ReplyFault> {
    let root = Node::root(reply);
    if let Some(blocks) = root.elements() {
        return Ok(Reply::of(of_blocks(blocks)?, false));
    }
    if let Some(content) = root.get("content").filter(|_| !root.is_text("type", "tool_result")) {
        let cut_off = ["max_tokens", "model_context_window_exceeded"].iter().any(|at| root.is_text("stop_reason", at));
        let found = if content.value.is_string() { Vec::new() } else { of_blocks(content.list()?)? };
        return Ok(Reply::of(found, cut_off));
    }
    Ok(Reply::of(of_blocks(vec![root])?, false))
}

/// The calls among content blocks. Only `tool_use` is ours to answer: for a `server_tool_use` the service refuses a
/// result (**D**), and a block with a `toolset_name` calls a built-in tool (**S**).
fn of_blocks(blocks: Vec<Node<'_>>) -> Result<Vec<ToolCall>, ReplyFault> {
    let mut found = Vec::new();
    for block in blocks {
        if block.get("type").is_none_or(|kind| !kind.value.is_string()) {
            return Err(block.no_reply(EXPECTED));
        }
        if !block.is_text("type", "tool_use") || block.get("toolset_name").is_some() {
            continue;
        }
        let code = block
            .get("caller")
            .is_some_and(|caller| caller.text("type").is_some_and(|kind| kind.starts_with("code_execution")));
        found.push(ToolCall {
            call_id: Some(block.id("id")?),
            name: block.name()?,
            arguments: block.arguments("input"),
            caller: if code { Caller::CodeExecution } else { Caller::Human },
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
    let mut block = Object::new();
    put(&mut block, "type", Some("tool_result"));
    put(&mut block, "tool_use_id", answered.call.call_id.clone());
    match seen(answered) {
        // An absent content says that there is none; an empty one is refused.
        Seen::Text(text) => put(&mut block, "content", (!text.trim().is_empty()).then_some(text)),
        Seen::Object(_, text) => put(&mut block, "content", Some(text)), // there is no block for JSON (**S**)
        Seen::Picture { media_type, base64, .. } => {
            let source = json!({ "type": "base64", "media_type": media_type, "data": base64 });
            put(&mut block, "content", Some(json!([{ "type": "image", "source": source }])));
        }
        Seen::Error(message) => {
            put(&mut block, "content", Some(message));
            put(&mut block, "is_error", Some(true));
        }
    }
    Value::Object(block)
}
