//! What the strict modes share. A schema that cannot be said in a strict subset is sent without `strict`.

use super::{Change, Effect, walk};
use crate::domain::Pointer;
use crate::domain::json::Object;
use serde_json::Value;

/// Why a schema cannot be sent with `strict`: the first place that cannot be said in the subset.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::format) struct Unfit {
    pub(in crate::format) pointer: Pointer,
    pub(in crate::format) detail: String,
}

impl Unfit {
    pub(super) fn at<T>(pointer: &Pointer, detail: impl Into<String>) -> Result<T, Self> {
        Err(Self { pointer: pointer.clone(), detail: detail.into() })
    }
}

/// The formats of texts that the subsets of `OpenAI` and Anthropic have; Anthropic's has `uri` beside them.
pub(super) const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Rules about values, which a subset may lack: they are left out with a note.
const LOST: [&str; 15] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
];
/// Keywords that bind nobody, and are left out in silence.
const SILENT: [&str; 8] = [
    "$comment",
    "deprecated",
    "examples",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

/// Keywords that bind and change the shape: a subset that lacks one cannot say the schema. Every keyword that is nowhere
/// here binds nobody, so that a vendor's own goes without taking `strict` along.
const SHAPING: [&str; 17] = [
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "allOf",
    "anyOf",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Leaves the keywords that a subset knows, and notes what is left out; or says which one it cannot do without.
pub(super) fn keep(known: &[&str], members: &mut Object, at: &Pointer, changes: &mut Vec<Change>) -> Result<(), Unfit> {
    let unknown: Vec<String> = members.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect();
    for key in unknown {
        if SHAPING.contains(&key.as_str()) {
            return Unfit::at(&at.key(&key), format!("the strict subset has no {key}"));
        }
        walk::take(members, &key);
        let (effect, detail) = if LOST.contains(&key.as_str()) {
            (Effect::Lost, "the strict subset does not have this rule")
        } else if SILENT.contains(&key.as_str()) {
            continue;
        } else {
            (Effect::Dropped, "the strict subset does not have this keyword, which binds nobody")
        };
        changes.push(Change { pointer: at.key(&key), effect, detail: detail.to_owned() });
    }
    Ok(())
}

/// Whether a schema is an object's.
pub(super) fn is_object(members: &Object) -> bool {
    walk::has_type(members, "object") || members.contains_key("properties")
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recursion_is_seen_through_definitions() {
        let schema =
            |inner: &str| json!({"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"$ref": inner}}});
        assert!(is_recursive(&schema("#/$defs/a")));
        let plain = json!({"properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}});
        assert!(!is_recursive(&plain));
    }
}
