//! A tool as data. A [`Tool`] exists only checked; [`ToolDraft::check`] is the one door.

use super::fault::{Faults, Pointer};
use super::fields::{Fields, Reader};
use super::handler::{Handler, HandlerDraft, HandlerName};
use super::limits::Limits;
use super::options::ToolOptions;
use super::schema::{InputSchema, SchemaFault};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;

/// The longest description, in characters.
pub const MAX_DESCRIPTION: usize = 4_096;
/// The most tags of one tool.
pub const MAX_TAGS: usize = 20;
/// The longest tag, in characters.
pub const MAX_TAG: usize = 64;

/// A tool's name: what every provider accepts. Letters, digits, `_` and `-`, first a letter or `_` (Gemini's rule), at
/// most 64 characters (OpenAI Chat's, Bedrock's and Mistral's).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ToolName(String);

impl ToolName {
    /// What a name looks like, for messages.
    pub const EXPECTED: &str = "a tool's name has 1 to 64 letters, digits, _ and -, and starts with a letter or _ (what every provider accepts)";

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        (first && text.len() <= 64 && text.chars().all(allowed)).then(|| Self(text.to_owned()))
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A checked tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name, unique in the tenant.
    pub name: ToolName,
    /// Text for the model.
    pub description: String,
    /// The schema of its input.
    pub input_schema: InputSchema,
    /// The schema of its structured results.
    pub output_schema: Option<InputSchema>,
    /// What runs it.
    pub handler: HandlerRef,
    /// What we tell a provider about it.
    pub options: ToolOptions,
    /// How we run it.
    pub limits: Limits,
    /// Words to filter by, in the order in which they were written.
    pub tags: Vec<String>,
    /// Whether it is listed and may be called.
    pub enabled: bool,
}

/// What runs a tool.
#[derive(Clone, Debug)]
pub enum HandlerRef {
    /// A handler that was made by itself and may serve several tools.
    Named(HandlerName),
    /// A handler that was written in place: it belongs to this tool alone, and lives and dies with it.
    Owned(Box<Handler>),
}

/// A tool as it was received.
#[derive(Clone, Debug)]
pub struct ToolDraft {
    fields: Fields,
}

impl ToolDraft {
    /// The members of a tool's body that a merge patch replaces as a whole instead of merging into.
    pub const REPLACED_WHOLE: [&str; 4] = ["input_schema", "output_schema", "input_examples", "provider_options"];

    /// A body as it was received.
    pub const fn new(fields: Fields) -> Self {
        Self { fields }
    }

    /// The one door to a [`Tool`]. `name` is the name in the URL, where there is one: the body may leave its own out,
    /// and may not say another. `formats` are the names of the formats. `stored` is the handler that
    /// the tool owned before, from which a written `"***"` keeps.
    pub fn check(self, name: Option<&ToolName>, formats: &[&str], stored: Option<&Handler>) -> Result<Tool, Faults> {
        let mut faults = Faults::none();
        let mut reader = Reader::new(&self.fields, Pointer::root(), &mut faults);
        let name = read_name(&mut reader, name);
        let description = reader.text("description", MAX_DESCRIPTION, true);
        let input_schema = read_schema(&mut reader, "input_schema", true, InputSchema::compile);
        let output_schema = read_schema(&mut reader, "output_schema", false, InputSchema::compile_output);
        let handler = read_handler(&mut reader, stored);
        let options = ToolOptions::read(&mut reader, input_schema.as_ref(), formats);
        let limits = Limits::read(&mut reader);
        let tags = read_tags(&mut reader);
        let enabled = reader.optional("enabled", "a boolean").unwrap_or(true);
        reader.finish();
        match (name, description, input_schema, handler) {
            (Some(name), Some(description), Some(input_schema), Some(handler)) if faults.is_empty() => {
                Ok(Tool { name, description, input_schema, output_schema, handler, options, limits, tags, enabled })
            }
            _ => Err(faults),
        }
    }
}

fn read_name(reader: &mut Reader<'_>, given: Option<&ToolName>) -> Option<ToolName> {
    if given.is_some() && reader.raw("name").is_none() {
        return given.cloned();
    }
    let written: String = reader.required("name", "a string")?;
    let Some(name) = ToolName::parse(&written) else {
        reader.fault("name", format!("{:?} is no name that can be used: {}", cut(&written), ToolName::EXPECTED));
        return None;
    };
    if given.is_some_and(|given| *given != name) {
        reader.fault("name", "a tool's name is fixed; a rename is a new tool");
    }
    Some(name)
}

/// As much of a refused name as helps to find it.
fn cut(name: &str) -> String {
    name.chars().take(80).collect()
}

fn read_schema(
    reader: &mut Reader<'_>,
    name: &'static str,
    required: bool,
    compile: fn(&RawValue) -> Result<InputSchema, Vec<SchemaFault>>,
) -> Option<InputSchema> {
    let raw = match reader.raw(name) {
        Some(raw) if required || raw.get() != "null" => raw,
        None if required => {
            reader.fault(name, "is required: a JSON Schema of an object");
            return None;
        }
        _ => return None,
    };
    match compile(raw) {
        Ok(schema) => Some(schema),
        Err(faults) => {
            let place = reader.place(name);
            for fault in faults {
                reader.faults().add(place.join(&fault.pointer), fault.detail);
            }
            None
        }
    }
}

fn read_handler(reader: &mut Reader<'_>, stored: Option<&Handler>) -> Option<HandlerRef> {
    let Some(raw) = reader.raw("handler") else {
        reader.fault("handler", "is required: the name of a handler, or a handler written in place");
        return None;
    };
    if raw.get().starts_with('{') {
        let at = reader.place("handler");
        let fields = match Fields::parse(raw.get().as_bytes()) {
            Ok(fields) => fields,
            Err(detail) => {
                reader.fault("handler", detail);
                return None;
            }
        };
        let handler = HandlerDraft::new(&fields, at).check(stored, false, reader.faults())?;
        return Some(HandlerRef::Owned(Box::new(handler)));
    }
    let written: String = reader.required("handler", "the name of a handler, or a handler written in place")?;
    let name = HandlerName::parse(&written);
    if name.is_none() {
        reader.fault("handler", HandlerName::EXPECTED);
    }
    name.map(HandlerRef::Named)
}

fn read_tags(reader: &mut Reader<'_>) -> Vec<String> {
    let tags: Vec<String> = reader.optional("tags", "an array of strings").unwrap_or_default();
    if tags.len() > MAX_TAGS {
        reader.fault("tags", format!("at most {MAX_TAGS} tags"));
    }
    let place = reader.place("tags");
    let mut kept: Vec<String> = Vec::new();
    for (index, tag) in tags.into_iter().enumerate() {
        if let Some(detail) = super::fields::text_fault(&tag, MAX_TAG) {
            reader.faults().add(place.index(index), detail);
        } else if !kept.contains(&tag) {
            kept.push(tag);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Tool, Vec<String>> {
        let draft = ToolDraft::new(Fields::parse(text.as_bytes()).unwrap());
        draft
            .check(None, &["anthropic"], None)
            .map_err(|faults| faults.into_iter().map(|f| f.pointer.to_string()).collect())
    }

    #[test]
    fn names_are_what_every_provider_accepts() {
        for good in ["a", "_", "get_weather", "a-1", &"x".repeat(64)] {
            assert!(ToolName::parse(good).is_some(), "{good}");
        }
        for bad in ["", "1a", "-a", "a.b", "a b", "é", &"x".repeat(65)] {
            assert!(ToolName::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn absent_fields_take_their_defaults() {
        let tool = check(r#"{"name":"a","description":"d","input_schema":{},"handler":"h"}"#).unwrap();
        assert_eq!(tool.options, ToolOptions::default());
        assert_eq!(tool.limits, Limits::default());
        assert!(tool.enabled && tool.limits.concurrent && tool.output_schema.is_none());
    }

    #[test]
    fn absent_null_and_empty_are_three_states_of_allowed_callers() {
        let with = |callers: &str| {
            let text = format!(r#"{{"name":"a","description":"d","input_schema":{{}},"handler":"h"{callers}}}"#);
            check(&text).unwrap().options.allowed_callers
        };
        assert_eq!(with(""), None);
        assert_eq!(with(r#","allowed_callers":null"#), None);
        assert_eq!(with(r#","allowed_callers":[]"#), Some(vec![]));
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let text = r#"{"name":"1x","description":" ","input_schema":{"type":"object","properties":{"a":{"type":"strin"}}},
            "handler":{"kind":"webhook","url":"nonsense"},"strict":"yes","max_result_chars":0,"timeout_ms":1.5,
            "allowed_callers":["robot"],"input_examples":[5],"provider_options":{"nobody":{}},"annotations":{"x":1},
            "tags":[""],"colour":"red"}"#;
        let told = check(text).unwrap_err();
        for place in [
            "/name",
            "/description",
            "/input_schema/properties/a/type",
            "/handler/url",
            "/strict",
            "/max_result_chars",
            "/timeout_ms",
            "/allowed_callers",
            "/input_examples/0",
            "/provider_options/nobody",
            "/annotations/x",
            "/tags/0",
            "/colour",
        ] {
            assert!(told.iter().any(|at| at == place), "{place} is not in {told:?}");
        }
    }

    #[test]
    fn examples_are_held_against_the_schema() {
        let text = r#"{"name":"a","description":"d","handler":"h","input_schema":{"required":["q"],"properties":{"q":{"type":"string"}}},
            "input_examples":[{"q":"x"},{"q":1}]}"#;
        assert_eq!(check(text).unwrap_err(), ["/input_examples/1/q"]);
    }
}
