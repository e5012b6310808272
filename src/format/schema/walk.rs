//! Where the schemas are inside a schema. Keywords are keywords at these places alone: below `properties` the keys are
//! the author's own names, and in `enum`, `const`, `default` and `examples` everything is data.

use crate::domain::Pointer;
use crate::domain::json::Object;
use crate::domain::schema::keywords::{LIST, NAMED, ONE};
use serde_json::Value;

/// Calls `edit` on every schema object, a parent before its children, with its place. Children are looked for after the
/// edit, so what it takes away is not visited and what it adds is.
pub(super) fn visit(schema: &mut Value, at: &Pointer, edit: &mut dyn FnMut(&mut Object, &Pointer)) {
    let Value::Object(members) = schema else { return };
    edit(members, at);
    children(schema, at, &mut |child, place| visit(child, &place, edit));
}

/// Calls `each` on every schema that stands directly in this one, with its place.
pub(super) fn children(schema: &mut Value, at: &Pointer, each: &mut dyn FnMut(&mut Value, Pointer)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members.iter_mut() {
        let place = at.key(keyword);
        match value {
            Value::Array(all) if LIST.contains(&keyword.as_str()) => {
                for (index, inner) in all.iter_mut().enumerate() {
                    each(inner, place.index(index));
                }
            }
            Value::Object(all) if NAMED.contains(&keyword.as_str()) => {
                for (name, inner) in all.iter_mut() {
                    each(inner, place.key(name));
                }
            }
            Value::Object(_) if ONE.contains(&keyword.as_str()) => each(value, place),
            _ => {}
        }
    }
}

/// Whether any schema object is so.
pub(super) fn any(schema: &Value, test: &mut dyn FnMut(&Object) -> bool) -> bool {
    let Value::Object(members) = schema else { return false };
    test(members)
        || members.iter().any(|(keyword, value)| match value {
            Value::Array(all) if LIST.contains(&keyword.as_str()) => all.iter().any(|inner| any(inner, test)),
            Value::Object(all) if NAMED.contains(&keyword.as_str()) => all.values().any(|inner| any(inner, test)),
            Value::Object(_) if ONE.contains(&keyword.as_str()) => any(value, test),
            _ => false,
        })
}

/// Removes a member; the others keep their order.
pub(super) fn take(members: &mut Object, key: &str) -> Option<Value> {
    members.shift_remove(key)
}

/// Gives members other names in their places. A name that is taken already stays with its holder.
pub(super) fn rename(members: &mut Object, from: &str, to: &str) {
    if members.contains_key(from) && !members.contains_key(to) {
        *members = std::mem::take(members)
            .into_iter()
            .map(|(key, value)| if key == from { (to.to_owned(), value) } else { (key, value) })
            .collect();
    }
}

/// Whether a schema admits values of this type as far as its `type` says: one type, or a list of them.
pub(super) fn has_type(members: &Object, kind: &str) -> bool {
    match members.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(all)) => all.iter().any(|one| one == kind),
        _ => false,
    }
}

/// Says something in a schema's description, behind what stands there.
pub(super) fn say(members: &mut Object, sentence: &str) {
    let text = match members.get("description").and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => format!("{} {sentence}", text.trim_end()),
        _ => sentence.to_owned(),
    };
    members.insert("description".to_owned(), Value::String(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_are_found_and_data_is_not() {
        let mut schema = json!({
            "properties": {"enum": {"type": "string"}, "list": {"items": [{}, {"not": {}}]}, "yes": true},
            "default": {"properties": {"x": {}}}, "enum": [{"properties": {}}], "anyOf": [{}, false]
        });
        let mut places = Vec::new();
        visit(&mut schema, &Pointer::root(), &mut |_, at| places.push(at.to_string()));
        assert_eq!(
            places,
            [
                "",
                "/properties/enum",
                "/properties/list",
                "/properties/list/items/0",
                "/properties/list/items/1",
                "/properties/list/items/1/not",
                "/anyOf/0"
            ]
        );
    }
}
