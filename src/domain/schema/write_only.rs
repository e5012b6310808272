//! Values that a schema calls write-only: handlers get them, the log does not.
//!
//! In doubt a value is masked: a branch of `anyOf` counts whether or not the value fits it.

use super::keywords;
use super::meter;
use serde_json::{Map, Value};

/// What stands in place of a value.
const MASK: &str = "***";
/// The deepest way through references and values together; what lies deeper is masked.
const MAX_STEPS: usize = 256;
/// Keywords whose schemas hold for the same value.
const SAME: [&str; 4] = ["allOf", "anyOf", "oneOf", "extends"];
/// The same, of one schema each.
const SAME_ONE: [&str; 5] = ["if", "then", "else", "not", "extends"];
/// Keywords that refer to a schema for the same value.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Whether anything in a schema is called write-only.
pub(super) fn occurs(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.get("writeOnly") == Some(&Value::Bool(true)) || members.values().any(occurs),
        Value::Array(elements) => elements.iter().any(occurs),
        _ => false,
    }
}

/// The members of an input with what is write-only masked.
pub(super) fn masked(root: &Value, input: &Map<String, Value>) -> Map<String, Value> {
    let mut value = Value::Object(input.clone());
    let mut schemas = Vec::new();
    let walk = Walk { root };
    let all = !walk.expand(root, 0, &mut schemas);
    match &mut value {
        Value::Object(members) if all => members.values_mut().for_each(|member| *member = MASK.into()),
        _ => walk.descend(&schemas, &mut value, 0),
    }
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The same where nothing is known: every member is masked.
pub(super) fn all_masked(input: &Map<String, Value>) -> Map<String, Value> {
    input.keys().map(|name| (name.clone(), MASK.into())).collect()
}

struct Walk<'a> {
    root: &'a Value,
}

impl<'a> Walk<'a> {
    /// Gathers every schema that speaks of the same value; false if one of them calls it write-only.
    fn expand(&self, schema: &'a Value, steps: usize, into: &mut Vec<&'a Map<String, Value>>) -> bool {
        let Value::Object(members) = schema else { return true };
        meter::work(1 + into.len() as u64 / 8);
        if into.iter().any(|known| std::ptr::eq(*known, members)) {
            return true; // a cycle of references
        }
        if steps > MAX_STEPS || members.get("writeOnly") == Some(&Value::Bool(true)) {
            return false;
        }
        into.push(members);
        let lists = SAME.iter().filter_map(|keyword| members.get(*keyword)?.as_array()).flatten();
        let ones = SAME_ONE.iter().filter_map(|keyword| members.get(*keyword));
        let dependent = ["dependentSchemas", "dependencies"];
        let dependent = dependent.iter().filter_map(|keyword| members.get(*keyword)?.as_object());
        let referred = REFERENCES.iter().filter_map(|keyword| self.target(members.get(*keyword)?.as_str()?));
        lists
            .chain(ones)
            .chain(dependent.flat_map(Map::values))
            .chain(referred)
            .all(|inner| self.expand(inner, steps + 1, into))
    }

    /// Masks what is write-only inside a value that all these schemas speak of.
    fn descend(&self, schemas: &[&'a Map<String, Value>], value: &mut Value, steps: usize) {
        meter::work(1 + schemas.len() as u64);
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.visit(schemas.iter().flat_map(|schema| for_member(schema, name)), member, steps);
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter_mut().enumerate() {
                    self.visit(schemas.iter().flat_map(|schema| for_element(schema, index)), element, steps);
                }
            }
            _ => {}
        }
    }

    fn visit(&self, schemas: impl Iterator<Item = &'a Value>, value: &mut Value, steps: usize) {
        let mut inner = Vec::new();
        for schema in schemas {
            if steps > MAX_STEPS || !self.expand(schema, steps + 1, &mut inner) {
                *value = MASK.into();
                return;
            }
        }
        self.descend(&inner, value, steps + 1);
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = keywords::fragment(reference.strip_prefix('#')?);
        self.root.pointer(&fragment).or_else(|| anchored(self.root, &fragment))
    }
}

/// The schema that has this anchor.
fn anchored<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema {
        Value::Object(members) => {
            let named =
                ["$anchor", "$dynamicAnchor"].iter().any(|keyword| members.get(*keyword).is_some_and(|it| it == name));
            if named { Some(schema) } else { members.values().find_map(|inner| anchored(inner, name)) }
        }
        Value::Array(elements) => elements.iter().find_map(|inner| anchored(inner, name)),
        _ => None,
    }
}

/// The schemas that speak of a member. Whether a pattern matches its name, or whether another keyword has spoken already, is not
/// asked.
fn for_member<'a>(schema: &'a Map<String, Value>, name: &str) -> Vec<&'a Value> {
    let named = schema.get("properties").and_then(|all| all.get(name));
    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let rest = ["additionalProperties", "unevaluatedProperties"].iter().filter_map(|keyword| schema.get(*keyword));
    let rest = rest.filter(|_| named.is_none());
    named.into_iter().chain(patterns).chain(rest).collect()
}

/// The schemas that speak of an element.
fn for_element(schema: &Map<String, Value>, index: usize) -> Vec<&Value> {
    let lists = ["prefixItems", "items"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array()?.get(index));
    let ones = ["items", "additionalItems", "contains", "unevaluatedItems"];
    lists.chain(ones.iter().filter_map(|keyword| schema.get(*keyword))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn logged(schema: &Value, input: &Value) -> Value {
        Value::Object(masked(schema, input.as_object().unwrap()))
    }

    #[test]
    fn what_is_write_only_is_masked_wherever_the_schema_says_so() {
        let secret = json!({"type": "string", "writeOnly": true});
        let of = |schema: Value| json!({"properties": {"a": schema}, "$defs": {"secret": secret, "at": {"$anchor": "x", "writeOnly": true}}});
        for (schema, value, expected) in [
            (secret.clone(), json!("s"), json!("***")),
            (json!({"$ref": "#/$defs/secret"}), json!({"deep": ["s"]}), json!("***")),
            (json!({"$ref": "#x"}), json!(7), json!("***")),
            (json!({"allOf": [{"type": "string"}, {"$ref": "#/$defs/secret"}]}), json!("s"), json!("***")),
            (json!({"anyOf": [{"type": "null"}, secret]}), json!("s"), json!("***")),
            (json!({"if": {}, "then": secret}), json!("s"), json!("***")),
            (json!({"items": secret}), json!(["s", 1]), json!(["***", "***"])),
            (json!({"prefixItems": [{}, secret]}), json!([1, "s", 2]), json!([1, "***", 2])),
            (json!({"properties": {"b": secret}}), json!({"b": null, "c": 1}), json!({"b": "***", "c": 1})),
            (
                json!({"additionalProperties": secret, "properties": {"c": {}}}),
                json!({"b": 1, "c": 1}),
                json!({"b": "***", "c": 1}),
            ),
            (json!({"patternProperties": {"^x": secret}}), json!({"xy": 1}), json!({"xy": "***"})),
            (
                json!({"items": {"properties": {"pin": secret}}}),
                json!([{"pin": 1, "n": 2}]),
                json!([{"pin": "***", "n": 2}]),
            ),
            (json!({"writeOnly": false}), json!("s"), json!("s")),
            (
                json!({"properties": {"writeOnly": {"const": true}}}),
                json!({"writeOnly": true}),
                json!({"writeOnly": true}),
            ),
        ] {
            let schema = of(schema);
            assert!(occurs(&schema));
            assert_eq!(logged(&schema, &json!({"a": value})), json!({"a": expected}), "{schema}");
        }
    }

    #[test]
    fn a_root_that_is_write_only_hides_every_member() {
        assert_eq!(logged(&json!({"writeOnly": true}), &json!({"a": 1, "b": []})), json!({"a": "***", "b": "***"}));
    }

    #[test]
    fn references_in_a_circle_end() {
        let schema = json!({"$ref": "#", "properties": {"next": {"$ref": "#"}, "pin": {"writeOnly": true}}});
        let input = json!({"next": {"next": {"pin": 1}, "n": 2}});
        assert_eq!(logged(&schema, &input), json!({"next": {"next": {"pin": "***"}, "n": 2}}));
        assert!(!occurs(&json!({"properties": {"a": {"enum": ["writeOnly"]}}})));
    }
}
