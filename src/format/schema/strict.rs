//! What the providers' strict modes take.
//!
//! Each answer is `Ok`, or the first place that is not in the subset, with the reason. A schema that is not in it is sent
//! without `strict`.

use super::walk::{self, visit};
use crate::domain::Pointer;
use crate::domain::json::Object;
use serde_json::{Value, json};

/// Why a schema cannot be sent with `strict`.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::format) struct Unfit {
    pub(in crate::format) pointer: Pointer,
    pub(in crate::format) detail: String,
}

/// The keywords that `OpenAI`'s strict subset has (**D**, "Structured Outputs: supported schemas").
const OPENAI: [&str; 24] = [
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
    "$comment",
    "deprecated",
    "examples",
];
/// The formats of texts that both strict subsets have; Anthropic's has `uri` beside them.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// The keywords that Anthropic's strict subset has (**D**, "Structured outputs: JSON Schema limitations"). Bedrock's is
/// "much like" it.
const ANTHROPIC: [&str; 21] = [
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
    "definitions",
    "pattern",
    "format",
    "minItems",
    "default",
    "$comment",
    "deprecated",
    "examples",
];

/// Whether `OpenAI` takes the schema with `strict`.
pub(in crate::format) fn openai(schema: &Value) -> Result<(), Unfit> {
    first_unfit(schema, &|members| {
        if let Some(unknown) = unknown(members, &OPENAI) {
            return Some(unknown);
        }
        if let Some(unknown) = unknown_format(members, &[]) {
            return Some(unknown);
        }
        if is_object(members) {
            let properties = members.get("properties").and_then(Value::as_object);
            let required = members.get("required").and_then(Value::as_array);
            let optional = properties
                .into_iter()
                .flat_map(Object::keys)
                .find(|name| !required.is_some_and(|required| required.iter().any(|listed| listed == name.as_str())));
            if let Some(optional) = optional {
                return Some(("properties".to_owned(), format!("the property {optional:?} is optional")));
            }
        }
        None
    })
}

/// Whether Anthropic takes the schema with `strict`.
pub(in crate::format) fn anthropic(schema: &Value) -> Result<(), Unfit> {
    if is_recursive(schema) {
        return Err(Unfit { pointer: Pointer::root(), detail: "the schema refers to itself".to_owned() });
    }
    first_unfit(schema, &|members| {
        if let Some(unknown) = unknown(members, &ANTHROPIC) {
            return Some(unknown);
        }
        if let Some(unknown) = unknown_format(members, &["uri"]) {
            return Some(unknown);
        }
        if members.get("minItems").is_some_and(|least| *least != json!(0) && *least != json!(1)) {
            return Some(("minItems".to_owned(), "is more than 1".to_owned()));
        }
        if members
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(|one| one.is_object() || one.is_array()))
        {
            return Some(("enum".to_owned(), "has members that are objects or arrays".to_owned()));
        }
        let pattern = members.get("pattern").and_then(Value::as_str).unwrap_or_default();
        if pattern.contains("\\b") || pattern.contains("\\B") {
            return Some(("pattern".to_owned(), "has a word boundary".to_owned()));
        }
        if members.contains_key("allOf")
            && walk::any(&json!({ "allOf": members["allOf"] }), &mut |s| s.contains_key("$ref"))
        {
            return Some(("allOf".to_owned(), "has a reference inside".to_owned()));
        }
        None
    })
}

/// Optional parameters, and parameters with a union, of a schema: Anthropic counts them over a request (**D**).
pub(in crate::format) fn optional_and_unions(schema: &Value) -> (usize, usize) {
    let (mut optional, mut unions) = (0, 0);
    let mut copy = schema.clone();
    visit(&mut copy, &Pointer::root(), &mut |members, _| {
        let Some(properties) = members.get("properties").and_then(Value::as_object) else { return };
        let required = members.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        optional += properties.len().saturating_sub(required);
        unions += properties
            .values()
            .filter(|property| property.get("anyOf").is_some() || property.get("type").is_some_and(Value::is_array))
            .count();
    });
    (optional, unions)
}

/// Whether a lifted schema refers to itself.
pub(in crate::format) fn is_recursive(schema: &Value) -> bool {
    fn leads_back(root: &Value, schema: &Value, open: &mut Vec<String>, done: &mut Vec<String>) -> bool {
        let mut references = Vec::new();
        walk::any(schema, &mut |members| {
            references.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            false
        });
        for reference in references {
            if reference == "#" || open.contains(&reference) {
                return true;
            }
            if done.contains(&reference) {
                continue;
            }
            let Some(target) = super::references::follow(root, &reference) else { continue };
            open.push(reference);
            if leads_back(root, target, open, done) {
                return true;
            }
            done.extend(open.pop());
        }
        false
    }
    leads_back(schema, schema, &mut Vec::new(), &mut Vec::new())
}

type Misfit = (String, String);

fn first_unfit(schema: &Value, misfit: &dyn Fn(&Object) -> Option<Misfit>) -> Result<(), Unfit> {
    let mut unfit = None;
    let mut copy = schema.clone();
    visit(&mut copy, &Pointer::root(), &mut |members, at| {
        if unfit.is_some() {
            return;
        }
        if is_object(members) && members.get("additionalProperties") != Some(&json!(false)) {
            unfit = Some(Unfit { pointer: at.clone(), detail: "the object is open to other properties".to_owned() });
        } else if let Some((key, detail)) = misfit(members) {
            unfit = Some(Unfit { pointer: at.key(&key), detail });
        } else if !["type", "enum", "const", "anyOf", "allOf", "$ref"].iter().any(|key| members.contains_key(*key)) {
            unfit = Some(Unfit { pointer: at.clone(), detail: "any value is allowed here".to_owned() });
        }
    });
    unfit.map_or(Ok(()), Err)
}

fn is_object(members: &Object) -> bool {
    walk::has_type(members, "object") || members.contains_key("properties")
}

fn unknown(members: &Object, known: &[&str]) -> Option<Misfit> {
    let key = members.keys().find(|key| !known.contains(&key.as_str()))?;
    Some((key.clone(), format!("the strict subset has no {key}")))
}

fn unknown_format(members: &Object, more: &[&str]) -> Option<Misfit> {
    let format = members.get("format")?.as_str()?;
    let known = FORMATS.contains(&format) || more.contains(&format);
    (!known).then(|| ("format".to_owned(), format!("the strict subset has no format {format:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_openai_subset() {
        let good = json!({"type": "object", "additionalProperties": false, "required": ["a", "b"], "properties": {
            "a": {"type": ["string", "null"], "format": "date"}, "b": {"type": "array", "items": {"type": "integer"}}}});
        assert_eq!(openai(&good), Ok(()));
        let place = |schema: Value| openai(&schema).unwrap_err().pointer.to_string();
        assert_eq!(place(json!({"type": "object"})), "");
        let closed = |properties: Value, required: Value| json!({"type": "object", "additionalProperties": false, "properties": properties, "required": required});
        assert_eq!(place(closed(json!({"a": {"type": "string"}}), json!([]))), "/properties");
        assert_eq!(place(closed(json!({"a": {}}), json!(["a"]))), "/properties/a");
        assert_eq!(place(closed(json!({"a": {"type": "object"}}), json!(["a"]))), "/properties/a");
        assert_eq!(
            place(closed(json!({"a": {"type": "string", "minLength": 1}}), json!(["a"]))),
            "/properties/a/minLength"
        );
        assert_eq!(
            place(closed(json!({"a": {"type": "string", "format": "uri"}}), json!(["a"]))),
            "/properties/a/format"
        );
    }

    #[test]
    fn the_anthropic_subset() {
        let closed =
            |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
        assert_eq!(anthropic(&closed(json!({"a": {"type": "string", "format": "uri", "default": "x"}}))), Ok(()));
        for bad in [
            json!({"a": {"type": "integer", "minimum": 1}}),
            json!({"a": {"type": "array", "items": {"type": "string"}, "minItems": 2}}),
            json!({"a": {"enum": [{}]}}),
            json!({"a": {"$ref": "#"}}),
            json!({"a": {"type": "object", "properties": {}}}),
        ] {
            assert!(anthropic(&closed(bad.clone())).is_err(), "{bad}");
        }
        assert_eq!(optional_and_unions(&closed(json!({"a": {"type": ["string", "null"]}, "b": {}}))), (2, 1));
    }

    #[test]
    fn recursion_is_seen_through_definitions() {
        let schema =
            |inner: &str| json!({"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"$ref": inner}}});
        assert!(is_recursive(&schema("#/$defs/a")));
        let plain = json!({"properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}});
        assert!(!is_recursive(&plain));
    }
}
