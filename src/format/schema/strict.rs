//! What the strict modes share. A schema that cannot be said in a strict subset is sent without `strict`.

use super::walk;
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
/// Keywords that bind nobody, and are left out in silence.
pub(super) const SILENT: [&str; 8] = [
    "$comment",
    "deprecated",
    "examples",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

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
