//! The keywords that Gemini knows.
//!
//! A declaration can carry its schema as `parameters`, a subset of `OpenAPI` 3.0, or as `parametersJsonSchema`. We send
//! the second. The first has no `$ref`, `const`, `oneOf`, lists of types, or enums of numbers (**S**), so more would be
//! lost, and arguments would come back changed; the SDK's own text recommends the second for both services (**S**).
//!
//! Its keywords are listed for a sibling field, `responseJsonSchema` (**S**); that they are the same here is an inference
//! (**U**). So what is not on that list is left out, and so are values that the API is known to refuse elsewhere: formats
//! that it does not name and empty members of an enum (**E**). References are on the list, yet only with no other keyword
//! beside them and with cycles cut (**S**): they are written out before this pass.

use super::merge::{self, joined};
use super::walk::{self, has_type, take, visit};
use super::{Adapted, Change, Effect};
use crate::domain::Pointer;
use crate::domain::json::Object;
use serde_json::{Value, json};

/// The keywords that are on the list and can be left after references were written out.
const KNOWN: [&str; 18] = [
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
/// The formats that are named.
const FORMATS: [&str; 8] = ["date-time", "date", "time", "enum", "float", "double", "int32", "int64"];
/// Keywords whose loss changes nothing that a model could send.
const SILENT: [&str; 9] = [
    "$comment",
    "$anchor",
    "$defs",
    "$vocabulary",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
];
/// The longest values that are written into a description.
const MAX_SAID: usize = 200;

/// Leaves what Gemini knows, and says the rest in its words or in the description where that can be done.
pub(super) fn narrow_keywords(adapted: &mut Adapted) {
    let mut changes = Vec::new();
    visit(&mut adapted.schema, &Pointer::root(), &mut |schema, at| {
        let mut pass = Pass { at, changes: &mut changes };
        pass.parts(schema);
        pass.named_values(schema);
        pass.bounds(schema);
        pass.object(schema);
        pass.rest(schema);
    });
    adapted.changes.append(&mut changes);
}

struct Pass<'a> {
    at: &'a Pointer,
    changes: &'a mut Vec<Change>,
}

impl Pass<'_> {
    fn note(&mut self, key: &str, effect: Effect, detail: impl Into<String>) {
        self.changes.push(Change { pointer: self.at.key(key), effect, detail: detail.into() });
    }

    /// `allOf`, as one schema.
    fn parts(&mut self, schema: &mut Object) {
        for _ in 0..8 {
            let Some(Value::Array(parts)) = take(schema, "allOf") else { return };
            let mut effect = Effect::Rewritten;
            for part in parts {
                let Value::Object(part) = part else { continue };
                if let Some(whole) = joined(schema, &part) {
                    *schema = whole;
                } else {
                    effect = Effect::Lost;
                    loosely(schema, part);
                }
            }
            let detail = match effect {
                Effect::Lost => "the parts cannot be said as one schema; some of their rules are not declared",
                _ => "the parts are said as one schema",
            };
            self.note("allOf", effect, detail);
        }
        take(schema, "allOf");
    }

    /// `const` and `enum`: texts and numbers stay, the rest is said in another way.
    fn named_values(&mut self, schema: &mut Object) {
        let constant = take(schema, "const");
        let keyword = if constant.is_some() { "const" } else { "enum" };
        if let Some(value) = constant {
            schema.insert("enum".to_owned(), json!([value]));
        }
        let Some(Value::Array(values)) = schema.get("enum").cloned() else { return };
        let plain = |value: &&Value| value.is_number() || value.as_str().is_some_and(|text| !text.is_empty());
        let kept: Vec<Value> = values.iter().filter(plain).cloned().collect();
        if kept.len() == values.len() {
            if keyword == "const" {
                self.note(keyword, Effect::Rewritten, "is said as an enum of one");
            }
            return;
        }
        if values.iter().all(Value::is_boolean) {
            take(schema, "enum");
            schema.insert("type".to_owned(), json!("boolean"));
            if let [only] = values.as_slice() {
                self.say(schema, keyword, &format!("Always {only}."));
            }
        } else if values.iter().all(|value| value.is_null() || plain(&value)) && !kept.is_empty() {
            let mut named = Object::new();
            if let Some(kind) = take(schema, "type").and_then(|kind| without_null(&kind)) {
                named.insert("type".to_owned(), kind);
            }
            take(schema, "enum");
            named.insert("enum".to_owned(), Value::Array(kept));
            if schema.contains_key("anyOf") {
                schema.extend(named);
            } else {
                schema.insert("anyOf".to_owned(), json!([named, {"type": "null"}]));
            }
            self.note(keyword, Effect::Rewritten, "null is said as a type of its own");
        } else if kept.is_empty() || values.iter().any(|value| !value.is_string()) {
            take(schema, "enum");
            self.say(schema, keyword, &format!("One of {}.", Value::Array(values)));
        } else {
            schema.insert("enum".to_owned(), Value::Array(kept));
            self.note(
                "enum",
                Effect::Lost,
                "the empty text is not declared to this provider, which refuses it in an enum",
            );
        }
    }

    /// Open bounds of integers as closed ones, formats that are named.
    fn bounds(&mut self, schema: &mut Object) {
        for (open, closed, step) in [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)] {
            let Some(bound) = take(schema, open) else { continue };
            match bound.as_i64().and_then(|bound| bound.checked_add(step)) {
                Some(bound) if schema.get("type") == Some(&json!("integer")) && !schema.contains_key(closed) => {
                    schema.insert(closed.to_owned(), json!(bound));
                    self.note(open, Effect::Rewritten, "is said as a closed bound");
                }
                _ => {
                    schema.entry(closed).or_insert(bound);
                    self.note(open, Effect::Lost, "is said as a closed bound, which admits the bound itself");
                }
            }
        }
        if let Some(Value::String(format)) = schema.get("format")
            && !FORMATS.contains(&format.as_str())
        {
            let detail = format!("the provider does not know the format {format:?}");
            take(schema, "format");
            self.note("format", Effect::Lost, detail);
        }
    }

    /// Properties: patterns of names open the object, names without a property are not required.
    fn object(&mut self, schema: &mut Object) {
        for key in ["patternProperties", "unevaluatedProperties"] {
            if take(schema, key).is_some() {
                if key == "patternProperties" {
                    take(schema, "additionalProperties"); // would shut out the names that the patterns let in
                }
                self.note(key, Effect::Lost, format!("the provider does not know {key}"));
            }
        }
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|_, property| *property != json!(false));
            properties
                .values_mut()
                .filter(|property| **property == json!(true))
                .for_each(|property| *property = json!({}));
            if properties.is_empty() {
                take(schema, "properties"); // refused where it is empty (**E** for `parameters`)
            }
        }
        let Some(Value::Array(required)) = schema.get("required") else { return };
        let has = |name: &&Value| {
            let properties = schema.get("properties").and_then(Value::as_object);
            name.as_str().is_some_and(|name| properties.is_some_and(|properties| properties.contains_key(name)))
        };
        let (known, ghosts): (Vec<Value>, Vec<Value>) = required.iter().cloned().partition(|name| has(&name));
        if !ghosts.is_empty() {
            if known.is_empty() {
                take(schema, "required");
            } else {
                schema.insert("required".to_owned(), Value::Array(known));
            }
            let detail = format!("requires what the properties do not describe: {}", Value::Array(ghosts));
            self.note("required", Effect::Lost, detail);
        }
        if schema.contains_key("properties") && !schema.contains_key("type") {
            schema.shift_insert(0, "type".to_owned(), json!("object"));
        }
    }

    /// Everything else that is not on the list.
    fn rest(&mut self, schema: &mut Object) {
        if let Some(default) = take(schema, "default") {
            self.say(schema, "default", &format!("Default: {default}."));
        }
        let unknown: Vec<String> = schema.keys().filter(|key| !KNOWN.contains(&key.as_str())).cloned().collect();
        for key in unknown {
            take(schema, &key);
            if !SILENT.contains(&key.as_str()) {
                let effect = if key == "examples" { Effect::Dropped } else { Effect::Lost };
                self.note(&key, effect, format!("the provider does not know {key}"));
            }
        }
        for key in ["items", "additionalProperties"] {
            if schema.get(key) == Some(&json!(true)) && key == "items" {
                schema.insert(key.to_owned(), json!({}));
            }
        }
        for key in ["anyOf", "oneOf", "prefixItems"] {
            if let Some(Value::Array(branches)) = schema.get_mut(key) {
                branches.retain(|branch| *branch != json!(false) || key == "prefixItems");
                branches.iter_mut().filter(|branch| branch.is_boolean()).for_each(|branch| *branch = json!({}));
                if branches.is_empty() {
                    take(schema, key);
                }
            }
        }
        if has_type(schema, "array") && !schema.contains_key("items") {
            schema.insert("items".to_owned(), json!({}));
        }
    }

    /// Says a rule in the description.
    fn say(&mut self, schema: &mut Object, key: &str, sentence: &str) {
        if sentence.len() > MAX_SAID {
            self.note(key, Effect::Lost, "the provider cannot hold these values");
            return;
        }
        walk::say(schema, sentence);
        self.note(key, Effect::Rewritten, "is said in the description");
    }
}

/// Two schemas of which both hold, as one that admits at least the values of both.
fn loosely(own: &mut Object, more: Object) {
    let closed_alike = own.get("additionalProperties") == more.get("additionalProperties");
    for (key, value) in more {
        match (own.get_mut(&key), value) {
            (Some(Value::Object(properties)), Value::Object(others)) if key == "properties" => {
                for (name, schema) in others {
                    let both = properties.get(&name).map_or_else(|| schema.clone(), |own| merge::both(own, &schema));
                    properties.insert(name, both);
                }
            }
            (Some(Value::Array(names)), Value::Array(others)) if key == "required" => {
                let new: Vec<Value> = others.into_iter().filter(|name| !names.contains(name)).collect();
                names.extend(new);
            }
            (Some(_), _) => {}
            (None, value) => {
                own.insert(key, value);
            }
        }
    }
    if !closed_alike {
        take(own, "additionalProperties");
    }
}

fn without_null(kind: &Value) -> Option<Value> {
    match kind {
        Value::Array(kinds) => {
            let kinds: Vec<&Value> = kinds.iter().filter(|kind| **kind != "null").collect();
            match kinds.as_slice() {
                [] => None,
                [one] => Some((*one).clone()),
                several => Some(json!(several)),
            }
        }
        Value::String(kind) if kind == "null" => None,
        other => Some(other.clone()),
    }
}
