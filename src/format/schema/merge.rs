//! Two schemas said as one.

use super::walk::take;
use crate::domain::json::Object;
use serde_json::{Value, json};

/// Keywords that say nothing about values.
pub(super) const ANNOTATIONS: [&str; 8] =
    ["$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"];

/// A schema of the values that both admit.
pub(super) fn both(one: &Value, other: &Value) -> Value {
    match (one, other) {
        (Value::Bool(true), _) => other.clone(),
        (_, Value::Bool(true)) => one.clone(),
        (Value::Object(own), Value::Object(more)) => match joined(own, more) {
            Some(joined) => Value::Object(joined),
            None if one == other => one.clone(),
            None => json!({ "allOf": [one, other] }),
        },
        _ => json!(false),
    }
}

/// The members of both in one object, if no two of them contradict or depend on each other.
pub(super) fn joined(own: &Object, more: &Object) -> Option<Object> {
    let mut joined = own.clone();
    for (key, value) in more {
        match joined.get(key) {
            None => {
                joined.insert(key.clone(), value.clone());
            }
            Some(same) if same == value || ANNOTATIONS.contains(&key.as_str()) => {}
            Some(Value::Object(properties)) if key == "properties" => {
                let mut properties = properties.clone();
                for (name, schema) in value.as_object()? {
                    let schema = properties.get(name).map_or_else(|| schema.clone(), |own| both(own, schema));
                    properties.insert(name.clone(), schema);
                }
                joined.insert(key.clone(), Value::Object(properties));
            }
            Some(Value::Array(required)) if key == "required" => {
                let mut required = required.clone();
                required.extend(
                    value.as_array()?.iter().filter(|name| !required.contains(name)).cloned().collect::<Vec<_>>(),
                );
                joined.insert(key.clone(), Value::Array(required));
            }
            Some(_) => return None,
        }
    }
    // These look at their siblings: moving siblings in from elsewhere would change what they mean.
    let looks = ["additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems", "contains"];
    let moved = |key: &str| own.contains_key(key) != more.contains_key(key);
    (!looks.iter().any(|key| moved(key))).then_some(joined)
}

/// A schema of the values that at least one of these admits.
pub(super) fn either(branches: Vec<Value>) -> Value {
    let mut distinct: Vec<Value> = Vec::new();
    for branch in branches {
        if branch == json!(true) || branch == json!({}) {
            return json!({});
        }
        if branch != json!(false) && !distinct.contains(&branch) {
            distinct.push(branch);
        }
    }
    match distinct.as_slice() {
        [] => json!({}),
        [only] => only.clone(),
        several => listed(several).unwrap_or_else(|| json!({ "anyOf": several })),
    }
}

/// Branches that only name values, as one list of values: what tells the forms of a union apart usually does.
fn listed(branches: &[Value]) -> Option<Value> {
    let mut values: Vec<Value> = Vec::new();
    let mut said = Object::new();
    for (n, branch) in branches.iter().enumerate() {
        let mut branch = branch.as_object()?.clone();
        let named = match (take(&mut branch, "const"), take(&mut branch, "enum")) {
            (Some(one), None) => vec![one],
            (None, Some(Value::Array(all))) => all,
            _ => return None,
        };
        values.extend(named.into_iter().filter(|value| !values.contains(value)).collect::<Vec<_>>());
        branch.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
        if n == 0 {
            said = branch;
        } else if said != branch {
            return None;
        }
    }
    if said.keys().any(|key| key != "type") {
        return None;
    }
    said.insert("enum".to_owned(), Value::Array(values));
    Some(Value::Object(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_admit() {
        assert_eq!(
            both(&json!({"type": "string"}), &json!({"minLength": 1})),
            json!({"type": "string", "minLength": 1})
        );
        assert_eq!(
            both(&json!({"required": ["a"], "properties": {"a": {}}}), &json!({"required": ["b", "a"]})),
            json!({"required": ["a", "b"], "properties": {"a": {}}})
        );
        let (open, closed) = (json!({"properties": {"a": {}}}), json!({"additionalProperties": false}));
        assert_eq!(both(&open, &closed), json!({"allOf": [open, closed]}));
        assert_eq!(
            both(&json!({"type": "string"}), &json!({"type": "integer"})),
            json!({"allOf": [{"type": "string"}, {"type": "integer"}]})
        );
    }

    #[test]
    fn what_either_admits() {
        let kind = |name: &str| json!({"type": "string", "const": name, "description": "which"});
        assert_eq!(either(vec![kind("a"), kind("b"), kind("a")]), json!({"type": "string", "enum": ["a", "b"]}));
        assert_eq!(either(vec![json!({"type": "string"}), json!({})]), json!({}));
        assert_eq!(either(vec![json!({"type": "string"}), json!({"type": "string"})]), json!({"type": "string"}));
        assert_eq!(
            either(vec![json!({"type": "string"}), json!({"type": "null"})]),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]})
        );
    }
}
