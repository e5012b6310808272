//! Fitting a tool's JSON Schema to a provider.
//!
//! The stored schema is never touched: every function here works on a copy. A copy only ever gets *wider*: what a
//! provider cannot express is left out, the loss is noted, and calls are still held to the stored schema. So no model
//! is kept from an input that the tool takes, save where a note says so.
//!
//! Each pass is a file: [`dialect`] (older drafts in the words of 2020-12), [`references`] (references that lead to
//! `$defs` alone, or none at all), [`root`] (one object at the root), [`mod@gemini`] (the keywords that Gemini knows),
//! [`names`] (property names that a provider takes), [`strict_openai`] and [`strict_anthropic`] (what the strict modes take).
//! [`way_back`] maps arguments back to the stored schema.

mod dialect;
mod gemini;
mod merge;
mod names;
mod references;
mod root;
pub(super) mod strict;
pub(super) mod strict_anthropic;
pub(super) mod strict_openai;
mod walk;
mod way_back;

pub(super) use super::list::Effect;
pub(super) use names::NameRule;
pub(super) use way_back::{rename_value, restore};

use crate::domain::json::Object;
use crate::domain::{InputSchema, Pointer};
use serde_json::{Value, json};

/// A schema that fits a provider, and how it differs from the stored one.
#[derive(Clone, Debug)]
pub(super) struct Adapted {
    pub(super) schema: Value,
    pub(super) changes: Vec<Change>,
}

/// One difference, at its place in the stored schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) pointer: Pointer,
    pub(super) effect: Effect,
    pub(super) detail: String,
}

impl Change {
    /// The difference at a place that the stored schema has: a pass may work on what an earlier one has moved.
    pub(super) fn placed_in(mut self, stored: Option<&Value>) -> Self {
        let mut place = self.pointer.as_str();
        while !place.is_empty() && stored.is_none_or(|stored| stored.pointer(place).is_none()) {
            place = place.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        if place.len() < self.pointer.as_str().len() {
            self.detail = format!("{} (at {})", self.detail, self.pointer);
            self.pointer = Pointer::root().join(place);
        }
        self
    }
}

impl Adapted {
    fn new(schema: &InputSchema) -> Self {
        Self { schema: schema.to_value(), changes: Vec::new() }
    }

    fn change(&mut self, pointer: Pointer, effect: Effect, detail: impl Into<String>) {
        self.changes.push(Change { pointer, effect, detail: detail.into() });
    }

    fn root(&mut self) -> Option<&mut Object> {
        self.schema.as_object_mut()
    }
}

/// The stored schema with the type of its root said.
pub(super) fn as_stored(schema: &InputSchema) -> Adapted {
    let mut adapted = Adapted::new(schema);
    say_object(&mut adapted);
    adapted
}

/// For MCP: any keyword of 2020-12 goes (**S**), but `x-mcp-header` would put argument values into HTTP headers, or make
/// a client drop the tool (**S**, revision 2026-07-28).
pub(super) fn mcp(schema: &InputSchema) -> Adapted {
    let mut adapted = as_stored(schema);
    strip_header_marks(&mut adapted);
    adapted
}

/// For MCP's output: the same, and the root is an object's, as revisions before 2026-07-28 want it (**S**). `None` if it
/// is not.
pub(super) fn mcp_output(schema: &InputSchema) -> Option<Adapted> {
    let root = schema.to_value();
    let root = root.as_object()?;
    if root.get("type").is_some_and(|kind| kind != "object") {
        return None;
    }
    if !root.contains_key("type") && !root.contains_key("properties") {
        return None; // may be anything, and a type would say otherwise
    }
    Some(mcp(schema))
}

/// For providers that read JSON Schema: `OpenAI`, Anthropic, Bedrock (which serves Anthropic's models) and Cohere. The
/// root is an object without unions (**E** for `OpenAI` and Anthropic), and arrays say what they hold (**E** for
/// `OpenAI`; nobody minds).
pub(super) fn json_schema(schema: &InputSchema) -> Adapted {
    let mut adapted = output(schema);
    root::open(&mut adapted);
    say_object(&mut adapted);
    fill_arrays(&mut adapted);
    adapted
}

/// The same for Anthropic and for Bedrock, with names of properties that Anthropic takes.
pub(super) fn anthropic(schema: &InputSchema) -> Adapted {
    let mut adapted = json_schema(schema);
    names::rename(&mut adapted, &schema.to_value(), NameRule::Anthropic);
    adapted
}

/// The same for `OpenAI`, which also wants `properties` at the root (**E**).
pub(super) fn openai(schema: &InputSchema) -> Adapted {
    let mut adapted = json_schema(schema);
    if let Some(root) = adapted.root()
        && !root.contains_key("properties")
    {
        root.insert("properties".to_owned(), json!({}));
    }
    adapted
}

/// For Gemini. `None` if the tool takes no arguments: a declaration without parameters says so (**E** for `parameters`,
/// which refuses an empty object; **U** for `parametersJsonSchema`).
pub(super) fn gemini(schema: &InputSchema) -> Option<Adapted> {
    let mut adapted = json_schema(schema);
    references::inline(&mut adapted);
    gemini::narrow_keywords(&mut adapted);
    names::rename(&mut adapted, &schema.to_value(), NameRule::Gemini);
    let root = adapted.schema.as_object()?;
    let takes_any = root.get("additionalProperties").is_some_and(|rest| *rest != json!(false));
    if !root.contains_key("properties") && !takes_any {
        return None;
    }
    Some(adapted)
}

/// For Gemini's `responseJsonSchema`.
pub(super) fn gemini_output(schema: &InputSchema) -> Adapted {
    let mut adapted = output(schema);
    references::inline(&mut adapted);
    gemini::narrow_keywords(&mut adapted);
    names::leave_out(&mut adapted, NameRule::Gemini);
    adapted
}

/// For `OpenAI` Responses' `output_schema`: any root, in the words of 2020-12.
pub(super) fn output(schema: &InputSchema) -> Adapted {
    let mut adapted = Adapted::new(schema);
    dialect::modernise(&mut adapted);
    references::lift(&mut adapted);
    adapted
}

/// Those of the values that a schema admits; none if the schema cannot be compiled.
pub(super) fn admitted(schema: &Value, values: Vec<Value>) -> Vec<Value> {
    let raw = serde_json::value::to_raw_value(schema).ok();
    let Some(compiled) = raw.and_then(|raw| InputSchema::compile(&raw).ok()) else { return Vec::new() };
    values.into_iter().filter(|value| compiled.check(value).is_ok()).collect()
}

/// Arguments are always an object, so the type can be said safely. Every provider wants it said.
fn say_object(adapted: &mut Adapted) {
    if let Some(root) = adapted.root()
        && !root.contains_key("type")
    {
        root.shift_insert(0, "type".to_owned(), json!("object"));
    }
}

/// Arrays that say nothing of their items hold anything. A tuple that is closed by `items: false` is closed by its
/// length instead, since `OpenAI` asks for a schema there.
fn fill_arrays(adapted: &mut Adapted) {
    walk::visit(&mut adapted.schema, &Pointer::root(), &mut |schema, _| {
        if !walk::has_type(schema, "array") || schema.get("items").is_some_and(Value::is_object) {
            return;
        }
        if schema.get("items") == Some(&json!(false)) {
            let length = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len) as u64;
            let most = schema.get("maxItems").and_then(Value::as_u64).map_or(length, |most| most.min(length));
            schema.insert("maxItems".to_owned(), json!(most));
        }
        schema.insert("items".to_owned(), json!({}));
    });
}

fn strip_header_marks(adapted: &mut Adapted) {
    let mut found = Vec::new();
    walk::visit(&mut adapted.schema, &Pointer::root(), &mut |schema, at| {
        if walk::take(schema, "x-mcp-header").is_some() {
            found.push(at.key("x-mcp-header"));
        }
    });
    for place in found {
        adapted.change(place, Effect::Dropped, "would put argument values into HTTP headers");
    }
}
