//! One object at the root, without unions: the properties of the root are the tool's parameters.
//!
//! `OpenAI` refuses `oneOf`, `anyOf`, `allOf`, `enum` and `not` at the root, Anthropic the first three (**E**, both
//! without strict), and Gemini's declaration describes "an object where the properties are the parameters" (**S**). So
//! all forms of a union are shown as one object that requires what every form requires.

use super::merge::{both, either};
use super::references::follow;
use super::walk::take;
use super::{Adapted, Effect};
use crate::domain::Pointer;
use crate::domain::json::Object;
use serde_json::{Value, json};

/// The deepest nesting of unions and references at a root that is looked into.
const MAX_DEPTH: usize = 8;
/// The most branches that are looked into, over all levels.
const MAX_BRANCHES: usize = 200;

/// What is known of the properties of an object.
#[derive(Default)]
struct Shape {
    properties: Object,
    required: Vec<Value>,
    /// Names of which only some forms of a union say anything: what they say does not bind the others.
    partial: Vec<String>,
    /// Whether no property but these is admitted.
    closed: bool,
    description: Option<Value>,
}

/// Says the root as one object.
pub(super) fn open(adapted: &mut Adapted) {
    let whole = adapted.schema.clone();
    let Some(root) = adapted.root() else { return };
    let unions: Vec<&str> = ["allOf", "anyOf", "oneOf"].into_iter().filter(|key| root.contains_key(*key)).collect();
    let refused: Vec<&str> = ["enum", "not"].into_iter().filter(|key| root.contains_key(*key)).collect();
    let reference = root.contains_key("$ref");
    if unions.is_empty() && refused.is_empty() && !reference {
        return;
    }
    let mut reader = Reader { root: &whole, branches: 0 };
    let shape = reader.shape(&whole, 0);
    for key in unions.iter().chain(&refused).chain(&["$ref"]) {
        take(root, key);
    }
    write(root, shape);
    for key in unions {
        let (effect, detail) = match key {
            "allOf" => (Effect::Rewritten, "the parts are said as one object"),
            _ => (
                Effect::Lost,
                "the forms are merged into one object, since the provider takes no union at the root; \
                 which members go together is checked when the tool is called",
            ),
        };
        adapted.change(Pointer::root().key(key), effect, detail);
    }
    for key in refused {
        adapted.change(Pointer::root().key(key), Effect::Lost, "the provider does not take this at the root");
    }
    if reference {
        adapted.change(
            Pointer::root().key("$ref"),
            Effect::Rewritten,
            "the definition stands in the reference's place",
        );
    }
}

fn write(root: &mut Object, shape: Shape) {
    if !shape.properties.is_empty() || root.contains_key("properties") {
        root.insert("properties".to_owned(), Value::Object(shape.properties));
    }
    if shape.required.is_empty() {
        take(root, "required");
    } else {
        root.insert("required".to_owned(), Value::Array(shape.required));
    }
    if shape.closed {
        root.entry("additionalProperties").or_insert(json!(false));
    }
    if let Some(description) = shape.description {
        root.entry("description").or_insert(description);
    }
    // Definitions stay at the end, where people put them.
    if let Some(definitions) = take(root, "$defs") {
        root.insert("$defs".to_owned(), definitions);
    }
}

struct Reader<'a> {
    root: &'a Value,
    branches: usize,
}

impl Reader<'_> {
    fn shape(&mut self, schema: &Value, depth: usize) -> Shape {
        self.branches += 1;
        let Value::Object(members) = schema else { return Shape::default() };
        if depth > MAX_DEPTH || self.branches > MAX_BRANCHES {
            return Shape::default();
        }
        let mut shape = Shape {
            properties: members.get("properties").and_then(Value::as_object).cloned().unwrap_or_default(),
            required: members.get("required").and_then(Value::as_array).cloned().unwrap_or_default(),
            partial: Vec::new(),
            closed: members.get("additionalProperties") == Some(&json!(false))
                && !members.contains_key("patternProperties"),
            description: members.get("description").cloned(),
        };
        if let Some(Value::String(reference)) = members.get("$ref")
            && reference != "#"
            && let Some(target) = follow(self.root, reference)
        {
            let inner = self.shape(target, depth + 1);
            shape.and(inner);
        }
        for branch in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let inner = self.shape(branch, depth + 1);
            shape.and(inner);
        }
        for union in ["anyOf", "oneOf"] {
            let Some(branches) = members.get(union).and_then(Value::as_array) else { continue };
            let forms: Vec<Shape> = branches
                .iter()
                .filter(|branch| **branch != json!(false))
                .map(|branch| self.shape(branch, depth + 1))
                .collect();
            shape.and(Shape { description: None, ..one_of(forms) });
        }
        shape
    }
}

impl Shape {
    /// What holds if this and the other hold.
    fn and(&mut self, other: Self) {
        for (name, schema) in other.properties {
            let schema = match self.properties.get(&name) {
                None => schema,
                Some(_) if other.partial.contains(&name) => continue,
                Some(own) => both(own, &schema),
            };
            self.properties.insert(name, schema);
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        // A part that is closed would shut out the other parts' properties; the whole is closed around all of them.
        self.closed |= other.closed;
        if self.description.is_none() {
            self.description = other.description;
        }
    }
}

/// What holds if one of these holds: every form's properties, required where every form requires them.
fn one_of(forms: Vec<Shape>) -> Shape {
    let mut required: Option<Vec<Value>> = None;
    let mut admitted: Vec<(String, Vec<Value>)> = Vec::new();
    let closed = !forms.is_empty() && forms.iter().all(|form| form.closed);
    let count = forms.len();
    for form in forms {
        required = Some(match required {
            None => form.required,
            Some(required) => required.into_iter().filter(|name| form.required.contains(name)).collect(),
        });
        for (name, schema) in form.properties {
            match admitted.iter_mut().find(|(known, _)| *known == name) {
                Some((_, schemas)) => schemas.push(schema),
                None => admitted.push((name, vec![schema])),
            }
        }
    }
    let partial = admitted.iter().filter(|(_, said)| said.len() < count).map(|(name, _)| name.clone()).collect();
    Shape {
        partial,
        properties: admitted.into_iter().map(|(name, schemas)| (name, either(schemas))).collect(),
        required: required.unwrap_or_default(),
        closed,
        description: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(schema: Value) -> (Value, usize) {
        let mut adapted = Adapted { schema, changes: Vec::new() };
        open(&mut adapted);
        (adapted.schema, adapted.changes.len())
    }

    #[test]
    fn forms_become_one_object_that_requires_what_all_require() {
        let form = |name: &str, kind: &str| json!({"type": "object", "properties": {"id": {"type": "string"}, name: {"type": kind}}, "required": ["id", name]});
        let (schema, changes) =
            opened(json!({"type": "object", "oneOf": [form("day", "string"), form("hours", "integer")]}));
        let whole = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"},
            "day": {"type": "string"}, "hours": {"type": "integer"}}});
        assert_eq!((schema, changes), (whole, 1));
    }

    #[test]
    fn what_one_form_says_does_not_bind_the_others() {
        let (schema, _) = opened(json!({"properties": {"amount": {"type": "number"}}, "anyOf": [
            {"properties": {"amount": {"maximum": 10}}}, {"properties": {"approved": {"const": true}}, "required": ["approved"]}]}));
        assert_eq!(schema["properties"]["amount"], json!({"type": "number"}));
        assert_eq!(schema.get("required"), None);
    }

    #[test]
    fn forms_that_are_all_closed_close_the_whole_around_all_of_them() {
        let closed = |name: &str| json!({"properties": {name: {}}, "additionalProperties": false});
        assert_eq!(opened(json!({"oneOf": [closed("a"), closed("b")]})).0["additionalProperties"], false);
        assert_eq!(
            opened(json!({"oneOf": [closed("a"), {"properties": {"b": {}}}]})).0.get("additionalProperties"),
            None
        );
    }

    #[test]
    fn parts_and_references_are_followed() {
        let (schema, _) =
            opened(json!({"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {}}, "required": ["b"]}],
            "not": {"required": ["c"]}, "$defs": {"base": {"properties": {"a": {}}, "required": ["a"]}}}));
        assert_eq!(schema["properties"], json!({"a": {}, "b": {}}));
        assert_eq!(schema["required"], json!(["a", "b"]));
        assert!(schema.get("not").is_none() && schema.get("allOf").is_none());
    }

    #[test]
    fn a_root_that_holds_itself_ends() {
        let (schema, _) = opened(
            json!({"$ref": "#/$defs/r", "$defs": {"r": {"anyOf": [{"$ref": "#/$defs/r"}, {"properties": {"a": {}}}]}}}),
        );
        assert!(schema.get("$ref").is_none());
    }
}
