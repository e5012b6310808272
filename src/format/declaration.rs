//! One tool on its way into a list, and the list that it goes into.

use super::list::{Effect, ListOptions, Note, Omitted, Rendered};
use super::schema::Adapted;
use super::schema::strict::Unfit;
use super::{About, FormatName};
use crate::domain::json::Object;
use crate::domain::{Caller, InputSchema, Pointer, Tool, ToolOptions};
use serde_json::Value;

/// How a format says that code may call a tool.
#[derive(Clone, Copy, Debug)]
pub(super) enum CodeCalls<'a> {
    /// It has no such calls.
    None,
    /// It has, but the list was not asked for with what they need; the text says what that is.
    NotAsked(&'static str),
    /// By this name.
    As(&'a str),
}

/// A list in the making.
pub(super) struct List<'a> {
    format: FormatName,
    about: &'a About,
    options: &'a ListOptions,
    code: CodeCalls<'a>,
    /// The declarations so far, each with its tool's name.
    pub(super) declared: Vec<(String, Value)>,
    rendered: Rendered,
}

/// A tool on its way into a list. A renderer takes out of it what it understands.
pub(super) struct Draft<'a> {
    pub(super) tool: &'a Tool,
    /// The options that nobody has taken yet.
    pub(super) left: ToolOptions,
    /// The schema of the output, until it is taken.
    pub(super) output_schema: Option<&'a InputSchema>,
    code: CodeCalls<'a>,
    merged: Object,
    notes: Vec<Note>,
}

impl<'a> List<'a> {
    pub(super) const fn new(format: FormatName, options: &'a ListOptions, code: CodeCalls<'a>) -> Self {
        let rendered = Rendered { tools: Vec::new(), omitted: Vec::new(), notes: Vec::new() };
        Self { format, about: &format.format().about, options, code, declared: Vec::new(), rendered }
    }

    /// A tool that this list can declare; the others are noted as omitted, or are not what was asked for.
    pub(super) fn admit(&mut self, tool: &'a Tool) -> Option<Draft<'a>> {
        let said = tool.options.allowed_callers.as_deref();
        if said.is_some_and(<[Caller]>::is_empty) {
            self.omit(tool, "allowed_callers is empty: nobody may call it");
            return None;
        }
        let may = |caller: Caller| said.is_none_or(|set| set.contains(&caller));
        if self.options.caller.is_some_and(|caller| !may(caller)) {
            return None; // a filter, like a tag: what it leaves out is not missed
        }
        if !may(Caller::Human) {
            match self.code {
                CodeCalls::As(_) => {}
                // A list in a format that knows nothing of code, asked for by code, is for code.
                CodeCalls::None if self.options.caller == Some(Caller::CodeExecution) => {}
                CodeCalls::None => {
                    self.omit(tool, "only code may call it, and this format has no calls from code");
                    return None;
                }
                CodeCalls::NotAsked(needed) => {
                    self.omit(tool, format!("only code may call it, and the list was not asked for with {needed}"));
                    return None;
                }
            }
        }
        if let Some(most) = self.about.max_tools.filter(|most| self.declared.len() >= *most) {
            self.omit(tool, format!("{} takes at most {most} tools in one request", self.about.title));
            return None;
        }
        Some(Draft::of(tool, self.format, self.code))
    }

    /// Notes that a tool is not in the list.
    pub(super) fn omit(&mut self, tool: &Tool, reason: impl Into<String>) {
        self.rendered.omitted.push(Omitted { name: tool.name.to_string(), reason: reason.into() });
    }

    /// Takes a declaration out of the list again.
    pub(super) fn withdraw(&mut self, name: &str, reason: &str) {
        self.declared.retain(|(declared, _)| declared != name);
        self.rendered.notes.retain(|note| note.name != name);
        self.rendered.omitted.push(Omitted { name: name.to_owned(), reason: reason.to_owned() });
    }

    /// Notes a difference that only the list as a whole brings about.
    pub(super) fn note(&mut self, name: &str, pointer: &str, effect: Effect, detail: impl Into<String>) {
        let pointer = Pointer::root().join(pointer);
        self.rendered.notes.push(Note { name: name.to_owned(), pointer, effect, detail: detail.into() });
    }

    /// Adds a declaration, with what the author wrote for this format in `provider_options`.
    pub(super) fn push(&mut self, draft: Draft<'a>, mut declaration: Value) {
        merge_under(&mut declaration, draft.merged.clone());
        self.declared.push((draft.tool.name.to_string(), declaration));
        self.rendered.notes.extend(draft.finish());
    }

    /// The finished list of these entries.
    pub(super) fn finish(self, tools: Vec<Value>) -> Rendered {
        Rendered { tools, ..self.rendered }
    }

    /// The finished list, each declaration an entry of its own.
    pub(super) fn finish_flat(mut self) -> Rendered {
        let tools = std::mem::take(&mut self.declared).into_iter().map(|(_, declaration)| declaration).collect();
        self.finish(tools)
    }
}

impl<'a> Draft<'a> {
    fn of(tool: &'a Tool, format: FormatName, code: CodeCalls<'a>) -> Self {
        let mut left = tool.options.clone();
        let merged = left.provider_options.remove(format.as_str()).unwrap_or_default();
        left.provider_options.clear(); // what is written for other formats is not dropped here
        left.result_type = None; // is about results, which every format renders by it; no declaration has a place for it
        Self { tool, left, output_schema: tool.output_schema.as_ref(), code, merged, notes: Vec::new() }
    }

    /// Notes a difference at a place of the tool.
    pub(super) fn note(&mut self, pointer: &str, effect: Effect, detail: impl Into<String>) {
        let name = self.tool.name.to_string();
        self.notes.push(Note { name, pointer: Pointer::root().join(pointer), effect, detail: detail.into() });
    }

    /// A schema of the tool as it was adapted; what changed becomes notes.
    pub(super) fn adapted(&mut self, at: &str, adapted: Adapted) -> Value {
        let stored =
            if at == "/output_schema" { self.tool.output_schema.as_ref() } else { Some(&self.tool.input_schema) };
        let stored = stored.filter(|_| !adapted.changes.is_empty()).map(InputSchema::to_value);
        for change in adapted.changes.into_iter().map(|change| change.placed_in(stored.as_ref())) {
            let place = format!("{at}{}", change.pointer);
            let said = |note: &Note| {
                note.pointer.as_str() == place && note.detail == change.detail && note.effect == change.effect
            };
            if !self.notes.iter().any(said) {
                self.note(&place, change.effect, change.detail);
            }
        }
        adapted.schema
    }

    /// Notes that the tool goes without the `strict` that its author asked for.
    pub(super) fn not_strict(&mut self, unfit: &Unfit) {
        let place = if unfit.pointer.as_str().is_empty() { String::new() } else { format!("at {}, ", unfit.pointer) };
        let detail = format!("sent without strict: {place}{}", unfit.detail);
        self.note("/strict", Effect::Dropped, detail);
    }

    /// Takes the allowed callers, in this format's names.
    pub(super) fn callers(&mut self) -> Option<Vec<String>> {
        let set = self.left.allowed_callers.take()?;
        let human = set.contains(&Caller::Human);
        let mut names = if human { vec!["direct".to_owned()] } else { Vec::new() };
        if set.contains(&Caller::CodeExecution) {
            match self.code {
                CodeCalls::As(name) => names.push(name.to_owned()),
                CodeCalls::None if !human => {}
                CodeCalls::None => {
                    self.note("/allowed_callers", Effect::Dropped, "this format has no calls from code");
                }
                CodeCalls::NotAsked(needed) => self.note(
                    "/allowed_callers",
                    Effect::Dropped,
                    format!("calls from code are declared only in a list that is asked for with {needed}"),
                ),
            }
        }
        Some(names)
    }

    /// The notes, with one for every option that is still left.
    fn finish(mut self) -> Vec<Note> {
        let left = serde_json::to_value(&self.left).unwrap_or_default();
        let unset = serde_json::to_value(ToolOptions::default()).unwrap_or_default();
        let mut places = Vec::new();
        differences(&left, &unset, &Pointer::root(), &mut places);
        if self.output_schema.is_some() {
            places.push(Pointer::root().key("output_schema"));
        }
        for place in places {
            self.note(place.as_str(), Effect::Dropped, "the format has no place for it");
        }
        self.notes
    }
}

/// The name in a declaration of any format.
pub(super) fn name_in(declaration: &Value) -> Option<&str> {
    ["/name", "/function/name", "/toolSpec/name"].iter().find_map(|place| declaration.pointer(place)?.as_str())
}

/// The places in which two values of one shape differ.
pub(super) fn differences(one: &Value, other: &Value, at: &Pointer, places: &mut Vec<Pointer>) {
    match (one, other) {
        (Value::Object(members), Value::Object(others)) if !others.is_empty() => {
            for (key, value) in members {
                differences(value, others.get(key).unwrap_or(&Value::Null), &at.key(key), places);
            }
        }
        _ if one != other => places.push(at.clone()),
        _ => {}
    }
}

/// Adds members to a value, objects into objects, without replacing what is there.
fn merge_under(value: &mut Value, additions: Object) {
    let Value::Object(members) = value else { return };
    for (key, addition) in additions {
        match (members.get_mut(&key), addition) {
            (Some(inner @ Value::Object(_)), Value::Object(additions)) => merge_under(inner, additions),
            (Some(_), _) => {}
            (None, addition) => {
                members.insert(key, addition);
            }
        }
    }
}

/// Adds a member if there is something to say.
pub(super) fn put(members: &mut Object, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        members.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_adds_and_never_replaces() {
        let mut value = json!({"a": 1, "f": {"x": 1}});
        let Value::Object(additions) = json!({"a": 2, "b": 3, "f": {"x": 9, "y": 2}}) else { panic!() };
        merge_under(&mut value, additions);
        assert_eq!(value.to_string(), r#"{"a":1,"f":{"x":1,"y":2},"b":3}"#);
    }
}
