//! The way back: arguments that fit an adapted schema, as the stored one has them.
//!
//! Two things are taken back: new names of properties, and nulls that stand for a property left out, which a strict
//! mode asks for. A value is walked beside all schemas that may describe it, through references and unions, so a key
//! is only touched where it is a property of the schema and never inside a free map.

use super::names::{NameRule, renamed};
use super::references::{self, follow};
use super::{Adapted, dialect, walk};
use crate::domain::json::Object;
use crate::domain::schema::meter;
use crate::domain::{InputSchema, Tool};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most schemas that are looked at for one value.
const MAX_FORMS: usize = 200;

/// Maps arguments that a model sent to the stored schema.
pub(in crate::format) fn restore(tool: &Tool, rule: Option<NameRule>, nulls: bool, arguments: Object) -> Object {
    let names = rule.map(|rule| renamed(tool.input_schema.value(), rule)).unwrap_or_default();
    let arguments = Value::Object(arguments);
    let nothing_to_do = names.is_empty() && (!nulls || tool.input_schema.check(&arguments).is_ok());
    let restored = if nothing_to_do {
        arguments
    } else {
        let names = names.into_iter().map(|(stored, new)| (new, stored)).collect();
        Walk::of(&tool.input_schema, names, nulls, true).walked(arguments)
    };
    match restored {
        Value::Object(members) => members,
        _ => Object::new(), // an object stays one
    }
}

/// Maps a value that fits the stored schema to the names that a provider sees.
pub(in crate::format) fn rename_value(schema: &InputSchema, rule: NameRule, value: Value) -> Value {
    let names = renamed(schema.value(), rule);
    if names.is_empty() { value } else { Walk::of(schema, names, false, false).walked(value) }
}

struct Walk {
    root: Value,
    /// From the names in the value to the names that it gets.
    names: BTreeMap<String, String>,
    nulls: bool,
    /// Whether the new names are the ones that the schema has.
    back: bool,
}

impl Walk {
    fn of(schema: &InputSchema, names: BTreeMap<String, String>, nulls: bool, back: bool) -> Self {
        let mut adapted = Adapted::new(schema);
        dialect::modernise(&mut adapted);
        references::lift(&mut adapted);
        Self { root: adapted.schema, names, nulls, back }
    }

    fn walked(&self, mut value: Value) -> Value {
        self.value(&mut value, vec![&self.root]);
        value
    }

    fn value<'a>(&'a self, value: &mut Value, schemas: Vec<&'a Value>) {
        let forms = self.forms(schemas);
        match value {
            Value::Object(members) => self.object(members, &forms),
            Value::Array(elements) => {
                let inner: Vec<&Value> = forms
                    .iter()
                    .flat_map(|form| {
                        let tuple = form.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
                        ["items", "contains", "unevaluatedItems"].iter().filter_map(|key| form.get(key)).chain(tuple)
                    })
                    .collect();
                for element in elements {
                    self.value(element, inner.clone());
                }
            }
            _ => {}
        }
    }

    fn object<'a>(&'a self, members: &mut Object, forms: &[&'a Value]) {
        let described = |name: &str| property(forms, name).next().is_some();
        let sent = std::mem::take(members);
        let taken: Vec<String> =
            sent.keys().filter(|key| self.names.values().any(|new| new == *key)).cloned().collect();
        *members = sent
            .into_iter()
            .map(|(key, inner)| match self.names.get(&key) {
                // Two values under one name would be one value less: both keep theirs, and the schema decides.
                Some(new) if described(if self.back { new } else { &key }) && !taken.contains(new) => {
                    (new.clone(), inner)
                }
                _ => (key, inner),
            })
            .collect();
        let said = |key: &str| {
            self.names.iter().find(|(_, new)| *new == key).map_or_else(|| key.to_owned(), |(old, _)| old.clone())
        };
        let mut unasked = Vec::new();
        for (key, inner) in members.iter_mut() {
            let name = if self.back { key.clone() } else { said(key) };
            let mut schemas: Vec<&Value> = property(forms, &name).collect();
            if schemas.is_empty() {
                schemas.extend(forms.iter().flat_map(|form| rest(form)));
            } else if self.nulls && inner.is_null() && !schemas.iter().any(|schema| admits_null(&self.root, schema, 0))
            {
                unasked.push(key.clone());
            }
            self.value(inner, schemas);
        }
        for key in unasked {
            walk::take(members, &key);
        }
    }

    /// The schemas that may describe a value, with what they refer to and are made of.
    fn forms<'a>(&'a self, schemas: Vec<&'a Value>) -> Vec<&'a Value> {
        let mut forms: Vec<&Value> = Vec::new();
        let mut waiting = schemas;
        while let Some(schema) = waiting.pop() {
            if forms.len() >= MAX_FORMS || forms.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            forms.push(schema);
            meter::work(1 + forms.len() as u64 / 8);
            if let Some(Value::String(reference)) = schema.get("$ref") {
                waiting.extend(follow(&self.root, reference));
            }
            for keyword in ["allOf", "anyOf", "oneOf"] {
                waiting.extend(schema.get(keyword).and_then(Value::as_array).into_iter().flatten());
            }
            for keyword in ["if", "then", "else"] {
                waiting.extend(schema.get(keyword));
            }
            waiting
                .extend(schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Object::values));
        }
        forms
    }
}

/// The schemas that may describe a member that is no property: which pattern its name matches is left open.
fn rest(form: &Value) -> impl Iterator<Item = &Value> {
    let patterns = form.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Object::values);
    ["additionalProperties", "unevaluatedProperties"].iter().filter_map(|key| form.get(key)).chain(patterns)
}

fn property<'a>(forms: &[&'a Value], name: &str) -> impl Iterator<Item = &'a Value> {
    forms.iter().filter_map(move |form| form.get("properties")?.get(name)).collect::<Vec<_>>().into_iter()
}

/// Whether a lifted schema admits null, as far as can be told without a validator; in doubt it does.
pub(super) fn admits_null(root: &Value, schema: &Value, depth: usize) -> bool {
    let Value::Object(members) = schema else { return *schema != Value::Bool(false) };
    if depth > 8 {
        return true;
    }
    let one = |branch: &Value| admits_null(root, branch, depth + 1);
    members.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value == "null" || value.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "null")),
        "enum" => value.as_array().is_some_and(|values| values.contains(&Value::Null)),
        "const" => value.is_null(),
        "anyOf" | "oneOf" => value.as_array().is_some_and(|branches| branches.iter().any(one)),
        "allOf" => value.as_array().is_some_and(|branches| branches.iter().all(one)),
        "$ref" => value.as_str().and_then(|reference| follow(root, reference)).is_none_or(one),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_admits_null() {
        let root =
            json!({"$defs": {"n": {"type": ["string", "null"]}, "s": {"type": "string"}, "r": {"$ref": "#/$defs/r"}}});
        for yes in [
            json!({}),
            json!(true),
            json!({"type": "null"}),
            json!({"enum": ["a", null]}),
            json!({"$ref": "#/$defs/n"}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"description": "x", "minLength": 1}),
            json!({"$ref": "#/$defs/r"}),
        ] {
            assert!(admits_null(&root, &yes, 0), "{yes}");
        }
        for no in [
            json!(false),
            json!({"type": "string"}),
            json!({"type": ["string", "null"], "enum": ["a"]}),
            json!({"const": 1}),
            json!({"$ref": "#/$defs/s"}),
            json!({"allOf": [{}, {"type": "string"}]}),
        ] {
            assert!(!admits_null(&root, &no, 0), "{no}");
        }
    }
}
