//! The providers' rules for a declared schema, held by a checker that shares no code with the renderers.

use crate::accepted::positions;
use serde_json::{Map, Value, json};
use toolhook::format::FormatName;

/// The keywords that Gemini's `parametersJsonSchema` has.
pub(crate) const GEMINI: [&str; 18] = [
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
    "nullable",
];
/// The string formats of both strict subsets.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Holds a declared schema to all rules of its provider. `told` says which one it is if it breaks one.
pub(crate) fn check(format: FormatName, schema: &Value, strict: bool, told: &dyn Fn() -> String) {
    assert_eq!(schema["type"], "object", "{}", told());
    assert!(schema.to_string().len() < 1_000_000, "{}", told());
    if matches!(format, FormatName::Mcp | FormatName::Toolhook) {
        return; // these take any schema
    }
    for word in ["oneOf", "anyOf", "allOf", "not", "enum", "$ref", "$schema"] {
        assert!(schema.get(word).is_none(), "{word} at the root: {}", told());
    }
    for position in positions(schema) {
        arrays(position, told);
        if let Some(reference) = position.get("$ref").and_then(Value::as_str) {
            assert_ne!(format, FormatName::Gemini, "{}", told());
            assert!(schema.pointer(reference.trim_start_matches('#')).is_some(), "{reference}: {}", told());
        }
        names(format, position, told);
        match format {
            FormatName::Gemini => gemini(position, told),
            FormatName::OpenaiChat | FormatName::OpenaiResponses if strict => openai(position, told),
            FormatName::Anthropic | FormatName::Bedrock if strict => anthropic(position, told),
            _ => {}
        }
    }
}

fn arrays(position: &Value, told: &dyn Fn() -> String) {
    let kind = &position["type"];
    let array = kind == "array" || kind.as_array().is_some_and(|all| all.contains(&json!("array")));
    assert!(!array || position["items"].is_object(), "{position}: {}", told());
    assert!(position.get("additionalItems").is_none(), "{position}: {}", told());
}

fn names(format: FormatName, position: &Value, told: &dyn Fn() -> String) {
    let plain = |name: &str, more: &[char]| {
        let length = (1..=64).contains(&name.len());
        length && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || more.contains(&c))
    };
    for name in position.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        let fits = match format {
            FormatName::Anthropic | FormatName::Bedrock => plain(name, &['.', '-']),
            FormatName::Gemini => plain(name, &[]) && !name.starts_with(|c: char| c.is_ascii_digit()),
            _ => true,
        };
        assert!(fits, "{name:?}: {}", told());
    }
}

fn gemini(position: &Value, told: &dyn Fn() -> String) {
    let Some(members) = position.as_object() else { return };
    assert!(members.keys().all(|key| GEMINI.contains(&key.as_str())), "{position}: {}", told());
    assert!(
        members.get("properties").is_none_or(|all| all.as_object().is_some_and(|all| !all.is_empty())),
        "{}",
        told()
    );
    let has = |name: &Value| position["properties"].get(name.as_str().unwrap()).is_some();
    assert!(listed(position, "required").iter().all(has), "{position}: {}", told());
    let plain = |value: &Value| value.is_number() || value.as_str().is_some_and(|text| !text.is_empty());
    assert!(listed(position, "enum").iter().all(plain), "{position}: {}", told());
}

/// `OpenAI`'s strict subset.
fn openai(position: &Value, told: &dyn Fn() -> String) {
    if is_object(position) {
        let names: Vec<&String> = position["properties"].as_object().unwrap().keys().collect();
        assert_eq!(position["required"], json!(names), "{position}: {}", told());
    }
    strict(
        position,
        &["allOf", "oneOf", "not", "default", "minLength", "maxLength", "patternProperties", "uniqueItems"],
        &[],
        told,
    );
}

/// Anthropic's strict subset.
fn anthropic(position: &Value, told: &dyn Fn() -> String) {
    let ranges = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
    let lost =
        ["oneOf", "not", "minLength", "maxLength", "patternProperties", "uniqueItems", "maxItems", "prefixItems"];
    strict(position, &[&ranges[..], &lost[..]].concat(), &["uri"], told);
    assert!(position.get("minItems").is_none_or(|least| *least == 0 || *least == 1), "{position}: {}", told());
    assert!(listed(position, "enum").iter().all(|value| !value.is_object() && !value.is_array()), "{}", told());
}

fn strict(position: &Value, words: &[&str], formats: &[&str], told: &dyn Fn() -> String) {
    assert!(position.is_object() || position == &json!(false), "{position}: {}", told());
    assert!(!is_object(position) || position["additionalProperties"] == false, "{position}: {}", told());
    for word in words.iter().chain(&["if", "dependentRequired", "dependentSchemas", "propertyNames"]) {
        assert!(position.get(word).is_none(), "{word}: {}", told());
    }
    let format = position.get("format").and_then(Value::as_str);
    assert!(format.is_none_or(|name| FORMATS.contains(&name) || formats.contains(&name)), "{position}: {}", told());
}

fn is_object(position: &Value) -> bool {
    let kind = &position["type"];
    kind == "object"
        || kind.as_array().is_some_and(|all| all.contains(&json!("object")))
        || position.get("properties").is_some()
}

fn listed<'a>(position: &'a Value, key: &str) -> &'a [Value] {
    position.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
