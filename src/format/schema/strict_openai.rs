//! A schema in `OpenAI`'s strict subset (**D**, "Structured Outputs: supported schemas").
//!
//! Objects are closed, every property is required, and an optional one that takes no null gets null as its way of being
//! left out; [`way_back`](super::way_back) takes that null away again. Rules about values that the subset lacks, such as
//! lengths, are left out and noted: the service still holds the model to the shape, and calls are held to all of it.
//! What would change the shape itself (an open map, an object of any form, conditions) cannot be said at all.

use super::merge::{ANNOTATIONS, joined};
use super::references::{Sizes, follow};
use super::strict::{self, FORMATS, Unfit, is_object, is_recursive};
use super::walk::{self, has_type, rename, take};
use super::way_back::admits_null;
use super::{Adapted, Change, Effect};
use crate::domain::Pointer;
use crate::domain::json::Object;
use serde_json::{Value, json};

/// The keywords of the subset.
const KNOWN: [&str; 21] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "enum",
    "const",
    "anyOf",
    "items",
    "$ref",
    "$defs",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];
/// The schema, which [`super::openai`] made, in the strict subset; or why it cannot be said there.
pub(in crate::format) fn fit(schema: &Value) -> Result<Adapted, Unfit> {
    let mut fitting =
        Fitting { root: schema, recursive: is_recursive(schema), sizes: Sizes::default(), changes: Vec::new() };
    let mut fitted = schema.clone();
    let definitions = fitted.as_object_mut().and_then(|root| take(root, "$defs"));
    fitting.schema(&mut fitted, &Pointer::root())?;
    if let Some(Value::Object(mut definitions)) = definitions {
        for (name, definition) in &mut definitions {
            fitting.schema(definition, &Pointer::root().key("$defs").key(name))?;
        }
        if let Some(root) = fitted.as_object_mut() {
            root.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }
    within_limits(&fitted)?;
    Ok(Adapted { schema: fitted, changes: fitting.changes })
}

struct Fitting<'a> {
    root: &'a Value,
    recursive: bool,
    sizes: Sizes,
    changes: Vec<Change>,
}

impl Fitting<'_> {
    fn note(&mut self, pointer: Pointer, effect: Effect, detail: &str) {
        self.changes.push(Change { pointer, effect, detail: detail.to_owned() });
    }

    fn schema(&mut self, schema: &mut Value, at: &Pointer) -> Result<(), Unfit> {
        let Value::Object(members) = schema else { return Unfit::at(at, "any value is allowed, or none") };
        self.reference(members, at)?;
        if members.contains_key("$ref") {
            return Ok(());
        }
        self.parts(members, at)?;
        self.keywords(members, at)?;
        if is_object(members) {
            self.object(members, at)?;
        }
        if has_type(members, "array") {
            let Some(items) = members.get_mut("items") else { return Unfit::at(at, "the items may be anything") };
            self.schema(items, &at.key("items"))?;
        }
        for (index, branch) in members.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
        {
            self.schema(branch, &at.key("anyOf").index(index))?;
        }
        if !["type", "enum", "const", "anyOf"].iter().any(|key| members.contains_key(*key)) {
            return Unfit::at(at, "any value is allowed");
        }
        Ok(())
    }

    /// A reference has nothing beside it: the definition takes its place, or words beside it go.
    fn reference(&mut self, members: &mut Object, at: &Pointer) -> Result<(), Unfit> {
        let Some(Value::String(reference)) = members.get("$ref") else { return Ok(()) };
        if members.len() == 1 {
            return Ok(());
        }
        if !self.recursive
            && let Some(definition @ Value::Object(target)) = follow(self.root, reference)
            && self.sizes.allow(reference, definition)
        {
            take(members, "$ref");
            let Some(whole) = joined(members, target) else { return Unfit::at(at, "a reference has rules beside it") };
            *members = whole;
            return self.reference(members, at);
        }
        if members.keys().any(|key| key != "$ref" && !ANNOTATIONS.contains(&key.as_str())) {
            return Unfit::at(at, "a reference has rules beside it");
        }
        members.retain(|key, _| key == "$ref");
        Ok(())
    }

    fn parts(&mut self, members: &mut Object, at: &Pointer) -> Result<(), Unfit> {
        if let Some(Value::Array(parts)) = take(members, "allOf") {
            for part in parts {
                let part = match part.get("$ref").and_then(Value::as_str) {
                    Some(reference) if !self.recursive && part.as_object().is_some_and(|part| part.len() == 1) => {
                        match follow(self.root, reference) {
                            Some(definition) if self.sizes.allow(reference, definition) => definition.clone(),
                            _ => part,
                        }
                    }
                    _ => part,
                };
                match part.as_object().and_then(|part| joined(members, part)) {
                    Some(whole) if !whole.contains_key("allOf") => *members = whole,
                    _ => return Unfit::at(&at.key("allOf"), "the parts cannot be said as one schema"),
                }
            }
            self.note(at.key("allOf"), Effect::Rewritten, "the parts are said as one schema");
        }
        if members.contains_key("oneOf") {
            if members.contains_key("anyOf") {
                return Unfit::at(&at.key("oneOf"), "there are two unions in one place");
            }
            rename(members, "oneOf", "anyOf");
            self.note(at.key("oneOf"), Effect::Rewritten, "is said as anyOf");
        }
        let beside = ["properties", "required", "additionalProperties"];
        if members.contains_key("anyOf") && beside.iter().any(|key| members.contains_key(*key)) {
            return Unfit::at(
                &at.key("anyOf"),
                "a union stands beside properties, and closed objects exclude each other",
            );
        }
        if let Some(Value::Array(branches)) = members.get_mut("anyOf")
            && branches.iter().all(|branch| branch.as_object().is_some_and(is_object))
        {
            take(members, "type"); // the branches say it
        }
        Ok(())
    }

    fn keywords(&mut self, members: &mut Object, at: &Pointer) -> Result<(), Unfit> {
        if let Some(default) = take(members, "default")
            && !default.is_null()
        {
            walk::say(members, &format!("Default: {default}."));
            self.note(at.key("default"), Effect::Rewritten, "is said in the description");
        }
        if members.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format)) {
            take(members, "format");
            self.note(at.key("format"), Effect::Lost, "the strict subset does not have this format");
        }
        strict::keep(&KNOWN, members, at, &mut self.changes)
    }

    fn object(&mut self, members: &mut Object, at: &Pointer) -> Result<(), Unfit> {
        match members.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(_) => return Unfit::at(at, "the object is an open map"),
        }
        let closed = members.contains_key("additionalProperties");
        // Taken out of their places and put back there: the order of keys stays.
        let mut properties = match members.get_mut("properties").map(Value::take) {
            Some(Value::Object(properties)) => properties,
            _ => Object::new(),
        };
        if properties.is_empty() && !closed && !at.as_str().is_empty() {
            return Unfit::at(at, "the object may have any form");
        }
        let required = members.get_mut("required").map(Value::take);
        let required: Vec<&str> =
            required.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect();
        if let Some(ghost) = required.iter().find(|name| !properties.contains_key(**name)) {
            return Unfit::at(&at.key("required"), format!("{ghost:?} is required and not described"));
        }
        for (name, property) in &mut properties {
            let place = at.key("properties").key(name);
            // Asked before the fitting, which may say things in another way.
            let takes_null = admits_null(self.root, property, 0);
            self.schema(property, &place)?;
            if !required.contains(&name.as_str()) && !takes_null {
                or_null(property);
                self.note(place, Effect::Rewritten, "is optional, which strict says as null");
            }
        }
        let names: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
        if !members.contains_key("type") {
            members.insert("type".to_owned(), json!("object"));
        }
        members.insert("properties".to_owned(), Value::Object(properties));
        members.insert("required".to_owned(), Value::Array(names));
        members.insert("additionalProperties".to_owned(), json!(false));
        Ok(())
    }
}

/// Lets a schema that takes no null take it.
fn or_null(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        if !branches.iter().any(|branch| branch.get("type").is_some_and(|kind| kind == "null")) {
            branches.push(json!({ "type": "null" }));
        }
    } else if members.contains_key("$ref") || is_object(members) {
        let description = take(members, "description");
        let mut union = Object::new();
        if let Some(description) = description {
            union.insert("description".to_owned(), description);
        }
        union.insert("anyOf".to_owned(), json!([members, { "type": "null" }]));
        *members = union;
        return;
    }
    if let Some(only) = take(members, "const") {
        members.insert("enum".to_owned(), json!([only]));
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match members.get_mut("type") {
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => kinds.push(json!("null")),
        Some(kind @ Value::String(_)) => *kind = json!([kind, "null"]),
        _ => {}
    }
}

/// The limits of one schema: 5,000 properties, 10 levels, 1,000 values of enums, 120,000 characters of names and values.
fn within_limits(schema: &Value) -> Result<(), Unfit> {
    let (mut properties, mut values, mut characters) = (0, 0, 0);
    walk::any(schema, &mut |members| {
        for keyword in ["properties", "$defs"] {
            let named = members.get(keyword).and_then(Value::as_object);
            characters += named.into_iter().flat_map(Object::keys).map(|name| name.chars().count()).sum::<usize>();
            properties += if keyword == "properties" { named.map_or(0, Object::len) } else { 0 };
        }
        let listed = members.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        values += listed.len();
        let texts = listed.iter().chain(members.get("const")).filter_map(Value::as_str);
        let length = texts.map(|text| text.chars().count()).sum::<usize>();
        characters += if listed.len() > 250 && length > 15_000 { usize::from(u16::MAX) * 2 } else { length };
        false
    });
    let over = [
        (properties > 5_000, "properties"),
        (values > 1_000, "values in enums"),
        (characters > 120_000, "characters in names and values"),
        (levels(schema, 0) > 10, "levels of nesting"),
    ];
    over.iter()
        .find(|(over, _)| *over)
        .map_or(Ok(()), |(_, what)| Unfit::at(&Pointer::root(), format!("too many {what}")))
}

fn levels(schema: &Value, above: usize) -> usize {
    let own =
        above + usize::from(schema.as_object().is_some_and(|members| is_object(members) || has_type(members, "array")));
    let mut deepest = own;
    let mut copy = schema.clone();
    walk::children(&mut copy, &Pointer::root(), &mut |child, place| {
        let from = if place.as_str().starts_with("/$defs") { 0 } else { own };
        deepest = deepest.max(levels(child, from));
    });
    deepest
}
