//! How well a tool fits a format, found out by rendering it.

use super::declaration::name_in;
use super::list::{Effect, ListOptions, Note};
use super::{FormatName, NAMES};
use crate::domain::{Fields, Pointer, Tool, ToolDraft};
use serde::Serialize;
use serde_json::Value;

/// What a tool is in a format's list that was asked for without options.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// In one word.
    pub verdict: Verdict,
    /// The tool's entry in the list, if it has one.
    pub declaration: Option<Value>,
    /// What was adapted or lost, or why there is no entry.
    pub notes: Vec<Note>,
}

/// How well a tool fits a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Declared as it is written.
    Exact,
    /// Said in another way, with the same meaning; or without hints: annotations, the output schema, examples inside the
    /// schema. The model is told everything that binds a call, and gets everything that was asked for.
    Adapted,
    /// The model is not told a rule of the input schema, which calls are held to all the same; or an option that was asked
    /// for, such as `strict`, is left out.
    Lossy,
    /// Left out of the list.
    Omitted,
}

/// A tool that stands beside the one that is looked at: of a list of deferred tools alone, one would not be deferred.
const BESIDE: &str = r#"{"name": "beside", "description": "Stands beside.", "handler": "none", "input_schema": {}}"#;

/// Renders a tool and looks at what came out.
pub(super) fn report(format: FormatName, tool: &Tool) -> Report {
    let beside = ToolDraft::new(Fields::parse(BESIDE.as_bytes()).unwrap_or_default()).check(None, &NAMES, None).ok();
    let tools: Vec<&Tool> = beside.iter().filter(|beside| beside.name != tool.name).chain([tool]).collect();
    let rendered = (format.format().tools)(&tools, &ListOptions::default());
    let name = tool.name.as_str();
    if let Some(omitted) = rendered.omitted.into_iter().find(|omitted| omitted.name == name) {
        let (name, detail) = (omitted.name, omitted.reason);
        let why = Note { name, pointer: Pointer::root(), effect: Effect::Dropped, detail };
        return Report { verdict: Verdict::Omitted, declaration: None, notes: vec![why] };
    }
    let notes: Vec<Note> = rendered.notes.into_iter().filter(|note| note.name == name).collect();
    let verdict = notes.iter().map(Note::verdict).max().unwrap_or(Verdict::Exact);
    // From behind: what a format adds of its own stands in front.
    let declaration = rendered.tools.into_iter().rev().flat_map(entries).find(|entry| name_in(entry) == Some(name));
    Report { verdict, declaration, notes }
}

/// An entry of a list, or the entries that it holds (Gemini's).
fn entries(entry: Value) -> Vec<Value> {
    match entry.get("functionDeclarations") {
        Some(Value::Array(declarations)) => declarations.clone(),
        _ => vec![entry],
    }
}

impl Note {
    /// What this difference alone makes of a tool.
    pub fn verdict(&self) -> Verdict {
        let place = self.pointer.as_str();
        let about = |part: &str| place == part || place.strip_prefix(part).is_some_and(|rest| rest.starts_with('/'));
        match self.effect {
            Effect::Rewritten => Verdict::Adapted,
            // About results, or for people: nothing that a call depends on.
            _ if about("/output_schema") || about("/annotations") => Verdict::Adapted,
            Effect::Dropped if about("/input_schema") => Verdict::Adapted,
            Effect::Dropped | Effect::Lost => Verdict::Lossy,
        }
    }
}
