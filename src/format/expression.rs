//! What a format can express, found out by rendering.

use super::declaration::differences;
use super::list::{Effect, ListOptions};
use super::{FormatName, NAMES};
use crate::domain::{Fields, Pointer, Tool, ToolDraft, ToolOptions};
use serde_json::Value;

/// A tool that every format declares, and whose schema every strict mode takes.
const PLAIN: &str = r#"{"name": "plain", "description": "A plain tool.", "handler": "none", "input_schema":
    {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": false},
    "output_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}"#;

/// Each option's place in a tool, and whether a declaration of the format carries it.
pub(super) fn of(format: FormatName) -> Vec<(String, bool)> {
    let Some(plain) = plain() else { return Vec::new() };
    let all = serde_json::to_value(ToolOptions::example(format.as_str())).unwrap_or_default();
    let unset = serde_json::to_value(ToolOptions::default()).unwrap_or_default();
    let mut places = Vec::new();
    differences(&all, &unset, &Pointer::root(), &mut places);
    let mut found: Vec<(String, bool)> = Vec::new();
    for place in places {
        let Some(options) = only(&place, &all, &unset) else { continue };
        found.push((
            place.to_string(),
            carries(format, &Tool { options, output_schema: None, ..plain.clone() }, &place),
        ));
    }
    let place = Pointer::root().key("output_schema");
    found.push((place.to_string(), carries(format, &plain, &place)));
    found
}

fn plain() -> Option<Tool> {
    let fields = Fields::parse(PLAIN.as_bytes()).ok()?;
    ToolDraft::new(fields).check(None, &NAMES, None).ok()
}

/// Options of which one alone is set.
fn only(place: &Pointer, all: &Value, unset: &Value) -> Option<ToolOptions> {
    let mut options = unset.clone();
    *options.pointer_mut(place.as_str())? = all.pointer(place.as_str())?.clone();
    serde_json::from_value(options).ok()
}

fn carries(format: FormatName, tool: &Tool, place: &Pointer) -> bool {
    let asked = ListOptions {
        code_execution: Some(super::list::CODE_EXECUTION_VERSIONS[1].to_owned()),
        programmatic: true,
        ..ListOptions::default()
    };
    let beside = Tool { options: ToolOptions::default(), ..tool.clone() }; // a list of deferred tools alone is refused
    let rendered = (format.format().tools)(&[&beside, tool], &asked);
    let dropped =
        |note: &super::Note| note.effect == Effect::Dropped && note.pointer.as_str().starts_with(place.as_str());
    // The tool beside it has no options, so what is dropped of the options is dropped of the tool.
    !rendered.notes.iter().any(dropped)
}
