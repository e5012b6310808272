//! What is refused before anything is sent: a snapshot and a call in, a checked input or a refusal out.

use super::turns::{NoResult, Turns};
use super::{Restore, repair};
use crate::domain::arguments::{self, Arguments};
use crate::domain::json::Object;
use crate::domain::schema::meter;
use crate::domain::{Failure, ToolCall, Violation, violation};
use crate::registry::{Entry, Registry};
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::Arc;
use tokio::time::Instant;
use uuid::Uuid;

/// How many names an unknown tool's answer lists.
const MAX_NAMES: usize = 20;
/// How much of an unknown name is repeated, in characters; real ones have at most 64.
const MAX_NAME_SHOWN: usize = 100;

/// An input that fits its tool.
#[derive(Debug)]
pub(super) struct Input {
    /// The input.
    pub(super) object: Object,
    /// What was put right in the arguments.
    pub(super) repairs: Vec<String>,
}

/// Arguments that do not fit their tool.
#[derive(Debug)]
pub(super) enum Unfit {
    /// They are no object.
    Unreadable(String),
    /// They are, and break the schema in these places.
    Invalid(Object, Vec<Violation>),
    /// To check them takes too long.
    TooMuch,
}

/// The tool that a call names.
pub(super) fn find<'a>(registry: &'a Registry, call: &ToolCall) -> Result<&'a Arc<Entry>, Failure> {
    registry.get(&call.name).ok_or_else(|| Failure::rejected("unknown_tool", unknown(registry, call)))
}

/// Whether this call of a tool may be looked at further.
pub(super) fn admit(entry: &Entry, call: &ToolCall) -> Result<(), Failure> {
    let name = &entry.tool.name;
    if call.cut_off {
        return Err(Failure::rejected(
            "reply_cut_off",
            format!(
                "The call of {name} was not run: the reply that holds it was cut off at the token limit, so its arguments \
                 may be incomplete. Send the call again, with a shorter input or in several smaller calls."
            ),
        ));
    }
    if !entry.tool.enabled {
        return Err(Failure::rejected(
            "tool_disabled",
            format!("The tool {name} is switched off. Do not call it again; go on without it."),
        ));
    }
    if !may_call(entry, call) {
        return Err(Failure::rejected("caller_not_allowed", wrong_caller(entry)));
    }
    Ok(())
}

/// Reads a call's arguments, maps them back to the stored schema, and holds them against it; what does not fit and is
/// plainly meant is repaired, and has to fit then.
pub(super) fn read(entry: &Entry, call: &ToolCall, restore: Option<Restore>) -> Result<Input, Unfit> {
    let schema = &entry.tool.input_schema;
    let settle =
        |object: Object| restore.map_or_else(|| object.clone(), |restore| restore(&entry.tool, object.clone()));
    let Arguments { object, twice } = arguments::read(&call.arguments).map_err(Unfit::Unreadable)?;
    let mut repairs: Vec<String> =
        twice.then(|| "the arguments: read from JSON text inside JSON text".to_owned()).into_iter().collect();
    let value = Value::Object(settle(object));
    let verdict = schema.check(&value);
    let Value::Object(object) = value else { return Err(Unfit::Unreadable("the arguments are no object".to_owned())) };
    let Err(violations) = verdict else { return Ok(Input { object, repairs }) };
    match meter::attempt(|| repair::repair(schema, &object, &settle)).flatten() {
        Some(repaired) => {
            repairs.extend(repaired.repairs);
            Ok(Input { object: repaired.object, repairs })
        }
        None => Err(Unfit::Invalid(object, violations)),
    }
}

/// The same, at once if that takes little, else when it is the tenant's turn, and by the deadline in any case.
pub(super) async fn read_in(
    turns: &Turns,
    tenant: Uuid,
    deadline: Instant,
    entry: &Arc<Entry>,
    call: &Arc<ToolCall>,
    restore: Option<Restore>,
) -> Result<Result<Input, Unfit>, NoResult> {
    let (entry, call) = (Arc::clone(entry), Arc::clone(call));
    turns.check(tenant, deadline, move || read(&entry, &call, restore)).await
}

impl Unfit {
    /// The refusal for the model.
    pub(super) fn failure(&self, entry: &Entry) -> Failure {
        let name = &entry.tool.name;
        match self {
            Self::Unreadable(detail) => Failure::rejected(
                "invalid_arguments",
                format!("The call of {name} was not run: {detail}. Correct the arguments and call the tool again."),
            ),
            Self::Invalid(..) | Self::TooMuch => {
                let told = match self {
                    Self::Invalid(_, violations) => violation::told(violations),
                    _ => violation::TOO_MUCH.to_owned(),
                };
                Failure::rejected(
                    "invalid_input",
                    format!(
                        "The call of {name} was not run, because its input does not fit the tool's schema: {told}. \
                         Correct the input and call the tool again."
                    ),
                )
            }
        }
    }
}

fn may_call(entry: &Entry, call: &ToolCall) -> bool {
    entry.tool.options.allowed_callers.as_ref().is_none_or(|allowed| allowed.contains(&call.caller))
}

fn wrong_caller(entry: &Entry) -> String {
    use crate::domain::Caller;
    let name = &entry.tool.name;
    match entry.tool.options.allowed_callers.as_deref() {
        Some([Caller::CodeExecution, ..]) => {
            format!("The tool {name} may only be called by code that you run. Call it from there.")
        }
        Some([Caller::Human, ..]) => {
            format!("The tool {name} may not be called by code. Call it directly.")
        }
        _ => format!("Nobody may call the tool {name}. Do not call it again; go on without it."),
    }
}

fn unknown(registry: &Registry, call: &ToolCall) -> String {
    let shown: String = call.name.chars().take(MAX_NAME_SHOWN).collect();
    let usable = |entry: &&Arc<Entry>| entry.tool.enabled && may_call(entry, call);
    let mut names: Vec<&str> = registry.entries().filter(usable).map(|entry| entry.tool.name.as_str()).collect();
    let total = names.len();
    let start = format!("There is no tool named {shown:?}.");
    if total == 0 {
        return format!("{start} There are no tools at all; go on without.");
    }
    // From alike to unlike; equals stay in the order of the list.
    names.sort_by_cached_key(|name| Reverse(likeness(&shown, name)));
    names.truncate(MAX_NAMES);
    let which = if total > MAX_NAMES { format!("The closest of {total} tools are") } else { "There are".to_owned() };
    format!("{start} {which}: {}. Call one of them by its exact name, or go on without.", names.join(", "))
}

/// How much two names have in common at their ends, in bytes, letter case aside. Linear, since names come from a model and a
/// tenant has many tools.
fn likeness(one: &str, other: &str) -> usize {
    let alike = |(a, b): &(u8, u8)| a.eq_ignore_ascii_case(b);
    let front = one.bytes().zip(other.bytes()).take_while(alike).count();
    let back = one.bytes().rev().zip(other.bytes().rev()).take_while(alike).count();
    (front + back).min(one.len()).min(other.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        Caller, Fields, Handler, HandlerRef, TenantLimits, TenantName, ToolDraft, handler::HandlerKind,
    };
    use crate::registry::TenantFacts;
    use serde_json::json;

    fn entry(name: &str, more: &str) -> Arc<Entry> {
        let text = format!(
            r#"{{"name":"{name}","description":"d","handler":{{"kind":"native","function":"f"}},
            "input_schema":{{"required":["city"],"properties":{{"city":{{"type":"string"}},"days":{{"maximum":7}}}}}}{more}}}"#
        );
        let tool = ToolDraft::new(Fields::parse(text.as_bytes()).unwrap()).check(None, &[], None).unwrap();
        let HandlerRef::Owned(handler) = &tool.handler else { panic!("named") };
        let handler: Arc<Handler> = Arc::new((**handler).clone());
        assert!(matches!(handler.kind, HandlerKind::Native { .. }));
        Arc::new(Entry { tool, version: 1, handler, handler_key: crate::registry::HandlerKey::default() })
    }

    fn registry(entries: Vec<Arc<Entry>>) -> Registry {
        let name = TenantName::parse("acme").unwrap();
        let tenant = TenantFacts { id: uuid::Uuid::nil(), name, limits: TenantLimits::default() };
        Registry::build(tenant, 1, entries, Vec::new())
    }

    fn call(name: &str, arguments: Value) -> ToolCall {
        let (name, caller) = (name.to_owned(), Caller::Human);
        ToolCall { call_id: None, name, arguments, caller, echo: Object::new(), cut_off: false }
    }

    #[test]
    fn an_unknown_tool_is_answered_with_the_names_that_there_are() {
        let tools = [("get_weather", ""), ("secret", r#","enabled":false"#), ("code", r#","allowed_callers":[]"#)];
        let few = registry(tools.iter().map(|(name, more)| entry(name, more)).collect());
        let message = find(&few, &call("get_wether", json!({}))).unwrap_err().message;
        assert!(message.contains("\"get_wether\"") && message.contains("are: get_weather."), "{message}");
        let many = registry((0..50).map(|n| entry(&format!("tool_{n:02}"), "")).collect());
        let message = find(&many, &call("TOOL_4", json!({}))).unwrap_err().message;
        assert!(message.contains("of 50 tools are: tool_04, ") && message.matches("tool_").count() == 20, "{message}");
        let message = find(&registry(vec![]), &call(&"x".repeat(5000), json!({}))).unwrap_err().message;
        assert!(message.len() < 250 && message.contains("no tools"), "{message}");
    }

    #[test]
    fn who_may_call() {
        let refused = |more: &str, call: &ToolCall| admit(&entry("t", more), call).err().map(|failure| failure.code);
        let human = call("t", json!({}));
        let code = ToolCall { caller: Caller::CodeExecution, ..human.clone() };
        for (more, by_human, by_code) in [
            ("", true, true),
            (r#","allowed_callers":null"#, true, true),
            (r#","allowed_callers":["human"]"#, true, false),
            (r#","allowed_callers":["code_execution"]"#, false, true),
            (r#","allowed_callers":["code_execution","human"]"#, true, true),
            (r#","allowed_callers":[]"#, false, false),
        ] {
            let verdict = |allowed: bool| (!allowed).then_some("caller_not_allowed");
            assert_eq!(refused(more, &human), verdict(by_human), "{more}");
            assert_eq!(refused(more, &code), verdict(by_code), "{more}");
        }
        let cut = ToolCall { cut_off: true, ..human.clone() };
        assert_eq!(refused(r#","enabled":false"#, &cut), Some("reply_cut_off"));
        assert_eq!(refused(r#","enabled":false,"allowed_callers":[]"#, &human), Some("tool_disabled"));
    }

    #[test]
    fn what_comes_out_of_a_text_is_mapped_back_too() {
        let entry = entry("t", "");
        let restore: Restore = |_, mut object| {
            if let Some(inner) = object.get_mut("list").and_then(|list| list.get_mut(0)).and_then(Value::as_object_mut)
            {
                let named = inner.shift_remove("by__key").into_iter().map(|value| ("by (key)".to_owned(), value));
                inner.extend(named.collect::<Vec<_>>());
            }
            object
        };
        let mut entry = Arc::unwrap_or_clone(entry);
        let schema = r#"{"properties": {"list": {"type": "array", "items": {"properties": {"by (key)": {"type": "integer"}}}}}}"#;
        let raw = serde_json::value::RawValue::from_string(schema.to_owned()).unwrap();
        entry.tool.input_schema = crate::domain::InputSchema::compile(&raw).unwrap();
        let input = read(&entry, &call("t", json!({"list": "[{\"by__key\": \"1\"}]"})), Some(restore)).unwrap();
        assert_eq!(Value::Object(input.object), json!({"list": [{"by (key)": 1}]}));
        assert_eq!(
            input.repairs,
            ["/list: read from its JSON text", "/list/0/by (key): read from its text as a number"]
        );
    }

    #[test]
    fn a_refusal_names_each_place_and_what_to_do() {
        let entry = entry("forecast", "");
        let failure = |arguments: Value| read(&entry, &call("forecast", arguments), None).unwrap_err().failure(&entry);
        let invalid = failure(json!({"days": 9}));
        assert_eq!(invalid.code, "invalid_input");
        for part in ["city", "missing", "/days: expected a number of at most 7", "Correct the input"] {
            assert!(invalid.message.contains(part), "{part}: {}", invalid.message);
        }
        let unreadable = failure(json!("{\"city\":"));
        assert_eq!(unreadable.code, "invalid_arguments");
        assert!(unreadable.message.contains("JSON"), "{}", unreadable.message);
        assert!(failure(json!([1])).message.contains("object"));
    }
}
