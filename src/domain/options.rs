//! What we tell a provider about a tool. **The home of a new option**: a field here, a line in each format that knows
//! the idea, and nothing else.

use super::fault::{Faults, Pointer};
use super::fields::{Fields, Reader};
use super::json::Object;
use super::schema::InputSchema;
use super::schema::meter::{self, Budget};
use super::violation::TOO_MUCH;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A tool's options. A renderer works on a copy and takes what it understands; what is left is reported as dropped.
///
/// Stored options are read tolerantly: a field that a later version added does not break an older one that runs beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct ToolOptions {
    /// Who may call: nothing said, or this set. An empty set means nobody.
    pub allowed_callers: Option<Vec<super::call::Caller>>,
    /// Whether the result is text or an object.
    pub result_type: Option<ResultType>,
    /// Ask the provider to hold the model to the schema.
    pub strict: bool,
    /// Inputs that show how the tool is used; each is valid against the schema.
    #[schema(value_type = Vec<Object>, max_items = 20)]
    pub input_examples: Vec<Object>,
    /// The provider loads the tool by search.
    pub defer_loading: bool,
    /// Ask the provider to stream inputs without holding them back for validation, or not to. Absent: as it likes.
    pub eager_input_streaming: Option<bool>,
    /// Per format, members that are merged into the declaration without replacing what is there.
    #[schema(value_type = Object)]
    pub provider_options: BTreeMap<String, Object>,
    /// MCP's hints.
    pub annotations: Annotations,
}

/// What kind of result a tool gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultType {
    /// Text for the model.
    Text,
    /// An object; a result without one is an error.
    Structured,
}

/// MCP's hints about a tool's behaviour. Absent means that the author says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Annotations {
    /// A title for people.
    pub title: Option<String>,
    /// Changes nothing; a call may be repeated.
    pub read_only: Option<bool>,
    /// May destroy something.
    pub destructive: Option<bool>,
    /// A repeated call has no further effect.
    pub idempotent: Option<bool>,
    /// Reaches things outside a closed domain.
    pub open_world: Option<bool>,
}

impl Annotations {
    /// Whether a call may be made again although an earlier one may have had its effect.
    pub fn may_repeat(&self) -> bool {
        self.idempotent == Some(true) || self.read_only == Some(true)
    }
}

/// The most examples of one tool.
const MAX_EXAMPLES: usize = 20;
/// The most bytes of all examples, and of all provider options, of one tool: as much as a schema may have.
const MAX_BYTES: usize = super::schema::MAX_BYTES;

impl ToolOptions {
    /// Every option, set; `format` has an entry in `provider_options`. A new option has to be added here, and is then in
    /// every table of what the formats can express.
    pub fn example(format: &str) -> Self {
        use super::call::Caller;
        let member = |name: &str, value: Value| std::iter::once((name.to_owned(), value)).collect::<Object>();
        Self {
            allowed_callers: Some(vec![Caller::Human, Caller::CodeExecution]),
            result_type: Some(ResultType::Structured),
            strict: true,
            input_examples: vec![member("q", Value::from("an example"))],
            defer_loading: true,
            eager_input_streaming: Some(true),
            provider_options: BTreeMap::from([(format.to_owned(), member("x_vendor", Value::Bool(true)))]),
            annotations: Annotations {
                title: Some("A title".to_owned()),
                read_only: Some(true),
                destructive: Some(false),
                idempotent: Some(true),
                open_world: Some(false),
            },
        }
    }

    /// Reads the fields of a tool's body that are options. `formats` are the names that `provider_options` may use.
    pub fn read(reader: &mut Reader<'_>, schema: Option<&InputSchema>, formats: &[&str]) -> Self {
        Self {
            allowed_callers: read_callers(reader),
            result_type: reader.optional("result_type", "\"text\", \"structured\" or null"),
            strict: reader.optional("strict", "a boolean").unwrap_or_default(),
            input_examples: read_examples(reader, schema),
            defer_loading: reader.optional("defer_loading", "a boolean").unwrap_or_default(),
            eager_input_streaming: reader.optional("eager_input_streaming", "a boolean or null"),
            provider_options: read_provider_options(reader, formats),
            annotations: read_annotations(reader),
        }
    }
}

fn read_callers(reader: &mut Reader<'_>) -> Option<Vec<super::call::Caller>> {
    let mut callers: Vec<super::call::Caller> =
        reader.optional("allowed_callers", "null or a set of \"human\" and \"code_execution\"")?;
    callers.sort_unstable();
    callers.dedup(); // a set: written order and repeats mean nothing
    Some(callers)
}

fn read_examples(reader: &mut Reader<'_>, schema: Option<&InputSchema>) -> Vec<Object> {
    let place = reader.place("input_examples");
    let elements = match reader.value("input_examples") {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(elements)) => elements,
        Some(other) => {
            reader.fault("input_examples", format!("expected an array of objects, got {}", super::json::kind(&other)));
            return Vec::new();
        }
    };
    let bytes: usize = elements.iter().map(|example| example.to_string().len()).sum();
    if elements.len() > MAX_EXAMPLES || bytes > MAX_BYTES {
        reader.fault("input_examples", format!("at most {MAX_EXAMPLES} examples of {MAX_BYTES} bytes in all"));
        return Vec::new();
    }
    let checked = meter::within(Budget::full(), || check_examples(elements, schema, &place, reader.faults()));
    checked.unwrap_or_else(|meter::Exhausted| {
        reader.fault("input_examples", TOO_MUCH);
        Vec::new()
    })
}

/// The examples that are valid; of the others, why they are not.
fn check_examples(
    elements: Vec<Value>,
    schema: Option<&InputSchema>,
    place: &Pointer,
    faults: &mut Faults,
) -> Vec<Object> {
    let mut examples = Vec::new();
    for (index, example) in elements.into_iter().enumerate() {
        let at = place.index(index);
        if super::arguments::levels(&example) > super::arguments::MAX_DEPTH {
            let most = super::arguments::MAX_DEPTH;
            faults.add(at, format!("is nested deeper than {most} levels, which no input may be"));
            continue;
        }
        for violation in schema.and_then(|schema| schema.check(&example).err()).unwrap_or_default() {
            faults.add(at.join(&violation.pointer), format!("is not valid against input_schema: {}", violation.detail));
        }
        match example {
            Value::Object(example) => examples.push(example),
            other => faults.add(at, format!("expected an object, got {}", super::json::kind(&other))),
        }
    }
    examples
}

fn read_provider_options(reader: &mut Reader<'_>, formats: &[&str]) -> BTreeMap<String, Object> {
    let place = reader.place("provider_options");
    let members = match reader.value("provider_options") {
        None | Some(Value::Null) => return BTreeMap::new(),
        Some(Value::Object(members)) => members,
        Some(other) => {
            reader.fault("provider_options", format!("expected an object, got {}", super::json::kind(&other)));
            return BTreeMap::new();
        }
    };
    if Value::Object(members.clone()).to_string().len() > MAX_BYTES {
        reader.fault("provider_options", format!("at most {MAX_BYTES} bytes"));
    }
    let mut options = BTreeMap::new();
    for (format, value) in members {
        match value {
            _ if !formats.contains(&format.as_str()) => {
                reader
                    .faults()
                    .add(place.key(&format), format!("no format has this name; there are {}", formats.join(", ")));
            }
            Value::Object(members) => {
                options.insert(format, members);
            }
            other => reader
                .faults()
                .add(place.key(&format), format!("expected an object, got {}", super::json::kind(&other))),
        }
    }
    options
}

fn read_annotations(reader: &mut Reader<'_>) -> Annotations {
    let at: Pointer = reader.place("annotations");
    let Some(fields): Option<Fields> = reader.object("annotations") else { return Annotations::default() };
    let mut inner = Reader::new(&fields, at, reader.faults());
    let annotations = Annotations {
        title: inner.text("title", 200, false),
        read_only: inner.optional("read_only", "a boolean or null"),
        destructive: inner.optional("destructive", "a boolean or null"),
        idempotent: inner.optional("idempotent", "a boolean or null"),
        open_world: inner.optional("open_world", "a boolean or null"),
    };
    inner.finish();
    annotations
}
