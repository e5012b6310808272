//! A schema in Anthropic's strict subset (**D**, "Structured outputs: JSON Schema limitations"), which Bedrock's is "much
//! like".
//!
//! Objects are closed; optional properties stay optional. Rules about values that the subset lacks, such as ranges, are
//! left out and noted: calls are held to them anyway. What would change the shape itself cannot be said at all.

use super::strict::{self, FORMATS, Unfit, is_object, is_recursive};
use super::walk::{self, rename, take, visit};
use super::{Adapted, Change, Effect};
use crate::domain::Pointer;
use crate::domain::json::Object;
use serde_json::{Value, json};

/// The keywords of the subset.
const KNOWN: [&str; 17] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "enum",
    "const",
    "anyOf",
    "allOf",
    "items",
    "$ref",
    "$defs",
    "pattern",
    "format",
    "minItems",
    "default",
];
/// The schema, which [`super::anthropic`] made, in the strict subset; or why it cannot be said there.
pub(in crate::format) fn fit(schema: &Value) -> Result<Adapted, Unfit> {
    if is_recursive(schema) {
        return Unfit::at(&Pointer::root(), "the schema refers to itself");
    }
    let mut adapted = Adapted { schema: schema.clone(), changes: Vec::new() };
    let mut unfit = Ok(());
    visit(&mut adapted.schema, &Pointer::root(), &mut |members, at| {
        if unfit.is_ok() {
            values(members, at, &mut adapted.changes);
            unfit = strict::keep(&KNOWN, members, at, &mut adapted.changes).and_then(|()| shape(members, at));
        }
    });
    unfit.map(|()| adapted)
}

/// Optional parameters, and parameters with a union, of a schema: they are counted over a request.
pub(in crate::format) fn optional_and_unions(schema: &Value) -> (usize, usize) {
    let (mut optional, mut unions) = (0, 0);
    walk::any(schema, &mut |members| {
        let properties = members.get("properties").and_then(Value::as_object);
        let required = members.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        optional += properties.map_or(0, Object::len).saturating_sub(required);
        unions += properties
            .into_iter()
            .flat_map(Object::values)
            .filter(|property| property.get("anyOf").is_some() || property.get("type").is_some_and(Value::is_array))
            .count();
        false
    });
    (optional, unions)
}

/// Takes away the rules about values that the subset lacks.
fn values(members: &mut Object, at: &Pointer, changes: &mut Vec<Change>) {
    let mut note = |key: &str, effect, detail: &str| {
        changes.push(Change { pointer: at.key(key), effect, detail: detail.to_owned() });
    };
    if members.get("minItems").is_some_and(|least| *least != json!(0) && *least != json!(1)) {
        members.insert("minItems".to_owned(), json!(1));
        note("minItems", Effect::Lost, "the strict subset has 0 and 1 alone");
    }
    if members.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format) && format != "uri")
    {
        take(members, "format");
        note("format", Effect::Lost, "the strict subset does not have this format");
    }
    if members
        .get("pattern")
        .and_then(Value::as_str)
        .is_some_and(|pattern| pattern.contains("\\b") || pattern.contains("\\B"))
    {
        take(members, "pattern");
        note("pattern", Effect::Lost, "the strict subset has no word boundaries");
    }
    if members.contains_key("oneOf") && !members.contains_key("anyOf") {
        rename(members, "oneOf", "anyOf");
        note("oneOf", Effect::Rewritten, "is said as anyOf");
    }
}

/// Closes an object, or says why the shape cannot be said.
fn shape(members: &mut Object, at: &Pointer) -> Result<(), Unfit> {
    if members
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|one| one.is_object() || one.is_array()))
    {
        return Unfit::at(&at.key("enum"), "has members that are objects or arrays");
    }
    if let Some(parts) = members.get("allOf") {
        let parts = json!({ "allOf": parts });
        // Closed parts shut out each other's properties, and a reference may not stand there.
        if walk::any(&parts, &mut |part| part.contains_key("$ref") || is_object(part)) {
            return Unfit::at(&at.key("allOf"), "the parts are objects or references");
        }
    }
    if !["type", "enum", "const", "anyOf", "allOf", "$ref"].iter().any(|key| members.contains_key(*key)) {
        return Unfit::at(at, "any value is allowed");
    }
    if members.get("items").is_some_and(Value::is_boolean) {
        return Unfit::at(&at.key("items"), "any value is allowed, or none");
    }
    if members.get("properties").and_then(Value::as_object).is_some_and(|all| all.values().any(Value::is_boolean)) {
        return Unfit::at(&at.key("properties"), "a property may be anything, or nothing");
    }
    if !is_object(members) {
        return Ok(());
    }
    let described = members.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    if members.contains_key("anyOf") {
        return Unfit::at(&at.key("anyOf"), "a union stands beside properties, and closed objects exclude each other");
    }
    match members.get("additionalProperties") {
        Some(Value::Bool(false)) => {}
        Some(_) => return Unfit::at(at, "the object is an open map"),
        None if !described && !at.as_str().is_empty() => return Unfit::at(at, "the object may have any form"),
        None => {
            members.insert("additionalProperties".to_owned(), json!(false));
        }
    }
    let has = |name: &&Value| {
        let properties = members.get("properties").and_then(Value::as_object);
        name.as_str().is_some_and(|name| properties.is_some_and(|properties| properties.contains_key(name)))
    };
    match members.get("required").and_then(Value::as_array).into_iter().flatten().find(|name| !has(name)) {
        Some(ghost) => Unfit::at(&at.key("required"), format!("{ghost} is required and not described")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(properties: &Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn objects_are_closed_and_rules_about_values_go() {
        let schema = open(
            &json!({"a": {"type": "integer", "minimum": 1}, "b": {"type": "string", "format": "uri", "default": "x"},
            "c": {"type": "array", "items": open(&json!({"d": {"type": "string"}})), "minItems": 3}}),
        );
        let fitted = fit(&schema).unwrap();
        assert_eq!(fitted.schema["additionalProperties"], false);
        assert_eq!(fitted.schema.pointer("/properties/c/items/additionalProperties"), Some(&json!(false)));
        assert_eq!(fitted.schema.pointer("/properties/a/minimum"), None);
        assert_eq!(fitted.schema.pointer("/properties/c/minItems"), Some(&json!(1)));
        assert_eq!(fitted.schema.get("required"), None);
        assert_eq!(fitted.changes.len(), 2);
        assert_eq!(optional_and_unions(&fitted.schema), (4, 0));
    }

    #[test]
    fn what_would_change_the_shape_is_not_said() {
        for bad in [
            json!({"a": {}}),
            json!({"a": true}),
            json!({"a": {"enum": [{}]}}),
            json!({"a": {"$ref": "#"}}),
            json!({"a": {"type": "object"}}),
            json!({"a": {"type": "object", "additionalProperties": {"type": "string"}}}),
            json!({"a": {"allOf": [open(&json!({})), open(&json!({}))]}}),
            json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}, "anyOf": [{"required": ["b"]}]}}),
            json!({"a": {"not": {"type": "string"}}}),
        ] {
            assert!(fit(&open(&bad)).is_err(), "{bad}");
        }
    }
}
