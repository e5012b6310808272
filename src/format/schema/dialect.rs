//! Older drafts said in the words of 2020-12, which is what the providers read.

use super::walk::{rename, take, visit};
use super::{Adapted, Effect};
use crate::domain::Pointer;
use crate::domain::json::Object;
use serde_json::{Value, json};

/// Keywords beside a `$ref` that say nothing about values. Up to draft 7 the others had no effect there.
const BESIDE_A_REFERENCE: [&str; 9] =
    ["$comment", "$defs", "$ref", "$schema", "default", "definitions", "description", "examples", "title"];

/// Translates the keywords that changed since the draft that `$schema` names, and takes `$schema` away.
pub(super) fn modernise(adapted: &mut Adapted) {
    let Some(root) = adapted.schema.as_object_mut() else { return };
    let draft = take(root, "$schema");
    let draft = draft.as_ref().and_then(Value::as_str).unwrap_or_default();
    let old = draft.contains("draft-0");
    let mut changed = Vec::new();
    visit(&mut adapted.schema, &Pointer::root(), &mut |schema, at| {
        if old && schema.contains_key("$ref") {
            schema.retain(|key, _| BESIDE_A_REFERENCE.contains(&key.as_str()));
        }
        if tuple(schema) {
            changed.push((at.key("items"), "the tuple form is said with prefixItems"));
        }
        if schema.contains_key("dependencies") {
            let dependencies = take(schema, "dependencies");
            if !draft.contains("2020-12") && !draft.is_empty() {
                depend(schema, dependencies);
                changed.push((at.key("dependencies"), "is said with dependentRequired and dependentSchemas"));
            }
        }
        for (flag, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            if let Some(Value::Bool(exclusive)) = schema.get(flag) {
                let exclusive = *exclusive;
                take(schema, flag);
                if exclusive {
                    rename(schema, limit, flag);
                }
                changed.push((at.key(flag), "is said as a number"));
            }
        }
        if schema.get("$recursiveRef").is_some_and(|target| target == "#") {
            rename(schema, "$recursiveRef", "$ref");
        }
        take(schema, "$recursiveAnchor");
        rename(schema, "$dynamicRef", "$ref");
        rename(schema, "$dynamicAnchor", "$anchor");
    });
    for (place, detail) in changed {
        adapted.change(place, Effect::Rewritten, detail);
    }
}

/// `items` as a list, with `additionalItems` for the rest.
fn tuple(schema: &mut Object) -> bool {
    if !schema.get("items").is_some_and(Value::is_array) {
        take(schema, "additionalItems"); // has a meaning beside a list only
        return false;
    }
    rename(schema, "items", "prefixItems");
    rename(schema, "additionalItems", "items");
    if schema.get("prefixItems").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        take(schema, "prefixItems"); // draft 4 to 7 allow an empty list, 2020-12 does not
    }
    true
}

fn depend(schema: &mut Object, dependencies: Option<Value>) {
    let Some(Value::Object(dependencies)) = dependencies else { return };
    let (mut required, mut schemas) = (Object::new(), Object::new());
    for (name, needs) in dependencies {
        match needs {
            Value::Array(_) => required.insert(name, needs),
            Value::String(one) => required.insert(name, json!([one])),
            _ => schemas.insert(name, needs),
        };
    }
    for (keyword, members) in [("dependentRequired", required), ("dependentSchemas", schemas)] {
        if !members.is_empty() && !schema.contains_key(keyword) {
            schema.insert(keyword.to_owned(), Value::Object(members));
        }
    }
}
