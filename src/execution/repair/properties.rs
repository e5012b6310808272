//! What a repair is, and what holds for every one: by examples, and over generated schemas and values.

use super::*;
use serde_json::value::to_raw_value;
use serde_json::{Map, json};

fn compiled(schema: &Value) -> InputSchema {
    InputSchema::compile(&to_raw_value(schema).unwrap()).unwrap_or_else(|faults| panic!("{faults:?}: {schema}"))
}

fn repaired(schema: &Value, value: &Value) -> Option<(Value, Vec<String>)> {
    let schema = compiled(schema);
    assert!(schema.check(value).is_err(), "{value} fits already");
    let done = repair(&schema, value.as_object().unwrap(), &|object| object)?;
    Some((Value::Object(done.object), done.repairs))
}

/// What becomes of the one property of an object.
fn alone(schema: &Value, value: Value) -> Option<String> {
    let value = Map::from_iter([("p".to_owned(), value)]);
    let (value, _) = repaired(&json!({"properties": {"p": schema}}), &Value::Object(value))?;
    Some(value["p"].to_string())
}

#[test]
fn exact_texts_are_read() {
    let kind = |name: &str| json!({ "type": name });
    for (schema, text, read) in [
        (kind("integer"), "42", "42"),
        (kind("integer"), "-7", "-7"),
        (kind("integer"), "4093117758201946517999", "4093117758201946517999"),
        (kind("number"), "3.50", "3.50"),
        (kind("number"), "0.1", "0.1"),
        (kind("boolean"), "true", "true"),
        (json!({"type": ["integer", "null"]}), "5", "5"),
        (json!({"enum": [15, 90]}), "90", "90"),
        (json!({"type": "integer", "enum": [15, 90]}), "90", "90"),
        (json!({"const": true}), "true", "true"),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "5", "5"),
        (json!({"oneOf": [{"type": "boolean"}, {"type": "array"}]}), "false", "false"),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
            "[\"1\",2]",
            "[1,2]",
        ),
        (json!({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]}), "5", "5"),
        (json!({"allOf": [{"type": "integer"}, {"not": {"type": "string"}}]}), "5", "5"),
        (json!({"type": "array", "items": {"type": "boolean"}}), " [true, \"false\"] ", "[true,false]"),
        (
            json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            "{\"n\":\"1\",\"s\":\"1\"}",
            "{\"n\":1,\"s\":\"1\"}",
        ),
        (
            json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
            r#"["[1]","[\"2\"]"]"#,
            "[[1],[2]]",
        ),
    ] {
        assert_eq!(alone(&schema, json!(text)).as_deref(), Some(read), "{text:?}: {schema}");
    }
}

#[test]
fn nothing_is_guessed() {
    for (kind, texts) in [
        (
            "integer",
            &[
                "", " 5", "5 ", "+5", "05", "5.", "3.0", "3.5", "1e3", "1E3", "0x10", "1_000", "1,000", "12abc",
                "many", "true", "[1]", "NaN", "null", "٣",
            ][..],
        ),
        ("number", &["", ".5", "1e3", "1e999", "Infinity", "1/2", "5%", "--1"]),
        ("boolean", &["", "True", "TRUE", "yes", "1", "0", "on", " true", "\"true\""]),
        (
            "array",
            &["", "a,b", "[1", "[1,]", "[1] [2]", "{\"a\":1}", "\"[1]\"", "[NaN]", "5", "['a']", "[{\"a\":1,\"a\":2}]"],
        ),
        ("object", &["", "{}{}", "{'a':1}", "[{}]", "{a:1}", "{\"a\":1,\"a\":2}", "null"]),
    ] {
        for text in texts {
            assert_eq!(alone(&json!({ "type": kind }), json!(text)), None, "{kind}: {text:?}");
        }
    }
    for (schema, value) in [
        (json!({"type": "string"}), json!(5)),
        (json!({"type": "string"}), json!({"a": 1})),
        (json!({"type": "boolean"}), json!(1)),
        (json!({"type": "integer"}), json!(3.5)),
        (json!({"type": "array", "items": {"type": "integer"}}), json!(5)),
        (json!({"type": "array", "items": {"type": "integer"}}), json!([1, null])),
        (json!({"type": ["string", "integer"], "maxLength": 2}), json!("123")),
        (json!({"enum": [1, 2]}), json!("3")),
        (json!({"type": "integer", "maximum": 5}), json!("6")),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"k": null})),
        (json!({"type": "number"}), json!("9".repeat(400))),
        (json!({"type": "array"}), json!("[".repeat(64) + &"]".repeat(64))),
    ] {
        assert_eq!(alone(&schema, value.clone()), None, "{value}: {schema}");
    }
}

#[test]
fn a_null_is_left_out_where_the_property_is_optional_and_takes_none() {
    let schema = json!({"type": "object", "required": ["must"], "properties": {"must": {"type": "integer"}, "may": {"type": "string"},
        "takes": {"type": ["string", "null"]}, "a/b~": {"$ref": "#/$defs/one"}, "in": {"properties": {"x": {"enum": ["a"]}}},
        "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, "$defs": {"one": {"allOf": [{"type": "integer"}]}}});
    let sent =
        json!({"must": "1", "may": null, "takes": null, "a/b~": null, "in": {"x": null}, "any": null, "else": null});
    let (value, repairs) = repaired(&schema, &sent).unwrap();
    assert_eq!(value.to_string(), r#"{"must":1,"takes":null,"in":{},"else":null}"#);
    assert_eq!(
        repairs,
        [
            "/any: null, left out",
            "/a~1b~0: null, left out",
            "/in/x: null, left out",
            "/may: null, left out",
            "/must: read from its text as a number"
        ]
    );
    assert_eq!(repaired(&schema, &json!({"must": null})), None);
    let closed = json!({"properties": {"a": {"type": "string"}}, "additionalProperties": false});
    assert_eq!(repaired(&closed, &json!({"b": null})), None);
}

#[test]
fn two_readings_that_fit_are_a_guess() {
    let form = |a: &str, b: &str| json!({"properties": {"a": {"type": a}, "b": {"type": b}}, "required": ["a", "b"]});
    let schema = json!({"anyOf": [form("integer", "string"), form("string", "integer")]});
    assert_eq!(repaired(&schema, &json!({"a": "1", "b": "2"})), None);
    assert_eq!(repaired(&schema, &json!({"a": "1", "b": "x"})).unwrap().0, json!({"a": 1, "b": "x"}));
    let marked = |kind: &str, of: &str| json!({"properties": {"kind": {"const": kind}, "n": {"type": of}}, "required": ["kind"]});
    let schema = json!({"oneOf": [marked("whole", "integer"), marked("text", "array")]});
    assert_eq!(repaired(&schema, &json!({"kind": "whole", "n": "5"})).unwrap().0, json!({"kind": "whole", "n": 5}));
    assert_eq!(repaired(&schema, &json!({"kind": "text", "n": "5"})), None);
    // One branch too many to choose from in each of many places.
    let schema = json!({"properties": {"list": {"type": "array", "items": {"anyOf": [form("integer", "string"), form("string", "integer")]}}}});
    let many: Vec<Value> = (0..500).map(|_| json!({"a": "1", "b": "2"})).collect();
    assert_eq!(repaired(&schema, &json!({ "list": many })), None);
}

#[test]
fn a_long_list_is_repaired_and_an_endless_one_is_not() {
    let schema = json!({"properties": {"list": {"type": "array", "items": {"type": "integer"}}}});
    let texts = |count: usize| json!({"list": (0..count).map(|n| n.to_string()).collect::<Vec<_>>()});
    assert_eq!(repaired(&schema, &texts(1_000)).unwrap().1.len(), 1_000);
    assert_eq!(repaired(&schema, &texts(5_000)), None);
}

/// A small generator of its own, so that a seed says all.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// A schema, and a value that fits it. `plain`: without unions, so that a broken value has one reading.
    fn pair(&mut self, depth: u64, plain: bool) -> (Value, Value) {
        match self.below(if depth == 0 {
            6
        } else if plain {
            9
        } else {
            11
        }) {
            0 => {
                let texts = ["", "5", "true", "[1]", "{}", "null", "plain", "1e3"];
                (json!({"type": "string"}), json!(texts[usize::try_from(self.below(8)).unwrap()]))
            }
            1 => (json!({"type": "integer"}), json!(i64::try_from(self.below(1 << 40)).unwrap() - (1 << 39))),
            2 => (json!({"type": "number"}), json!(self.below(1000)).as_f64().map(|n| json!(n / 8.0)).unwrap()),
            3 => (json!({"type": "boolean"}), json!(self.below(2) == 0)),
            4 => (json!({"enum": [1, 25, true]}), json!(25)),
            5 => (json!({"type": ["integer", "null"]}), if self.below(2) == 0 { Value::Null } else { json!(7) }),
            6 | 7 => self.object(depth - 1, plain),
            8 => {
                let (schema, value) = self.pair(depth - 1, plain);
                (json!({"type": "array", "items": schema}), json!([value, value]))
            }
            _ => {
                let ((one, value), (other, _)) = (self.pair(depth - 1, plain), self.pair(depth - 1, plain));
                (json!({"anyOf": [other, one]}), value)
            }
        }
    }

    fn object(&mut self, depth: u64, plain: bool) -> (Value, Value) {
        let (mut properties, mut members, mut required) = (Map::new(), Map::new(), Vec::new());
        for name in ["a", "b/c", "anyOf", "properties", "d~e", ""] {
            let (schema, value) = self.pair(depth, plain);
            match self.below(4) {
                0 => continue,
                1 => {}
                2 => drop(members.insert(name.to_owned(), value)),
                _ => {
                    members.insert(name.to_owned(), value);
                    required.push(name);
                }
            }
            properties.insert(name.to_owned(), schema);
        }
        (
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
            Value::Object(members),
        )
    }

    /// The value in the spellings that are repaired, here and there.
    fn misspelled(&mut self, schema: &Value, value: &Value) -> Value {
        let inner = match value {
            Value::Array(elements) => {
                elements.iter().map(|element| self.misspelled(&schema["items"], element)).collect()
            }
            Value::Object(members) => {
                let mut written = Map::new();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    match members.get(name) {
                        Some(value) => drop(written.insert(name.clone(), self.misspelled(property, value))),
                        None if compiled(&json!({"properties": {"p": property}}))
                            .check(&json!({"p": null}))
                            .is_err()
                            && self.below(2) == 0 =>
                        {
                            written.insert(name.clone(), Value::Null);
                        }
                        None => {}
                    }
                }
                Value::Object(written)
            }
            other => other.clone(),
        };
        let keep = inner.is_string() || inner.is_null() || self.below(3) > 0;
        if keep { inner } else { json!(inner.to_string()) }
    }
}

/// Whether one value is what another was meant to be: the same, but for texts that are the JSON of what was meant, and
/// members that are null.
fn means(sent: &Value, meant: &Value) -> bool {
    match (sent, meant) {
        (Value::Object(sent), Value::Object(meant)) => {
            meant.iter().all(|(name, value)| sent.get(name).is_some_and(|sent| means(sent, value)))
                && sent.iter().all(|(name, value)| meant.contains_key(name) || value.is_null())
        }
        (Value::Array(sent), Value::Array(meant)) => {
            sent.len() == meant.len() && sent.iter().zip(meant).all(|(sent, meant)| means(sent, meant))
        }
        (Value::String(text), meant) if !meant.is_string() => {
            let read: Value = serde_json::from_str(text).unwrap();
            if meant.is_object() || meant.is_array() { means(&read, meant) } else { read == *meant }
        }
        (sent, meant) => sent == meant, // numbers by their digits
    }
}

#[test]
fn what_has_one_reading_is_read_as_it_was_meant() {
    let mut repairs = 0;
    for seed in 0..1_000 {
        let mut dice = Dice(seed);
        let (schema, value) = dice.object(3, true);
        let schema_of = compiled(&schema);
        assert!(schema_of.check(&value).is_ok(), "{value} {schema}");
        let mut sent = dice.misspelled(&schema, &value);
        if let Value::String(text) = &sent {
            sent = serde_json::from_str(text).unwrap(); // the whole is not this module's
        }
        if schema_of.check(&sent).is_ok() {
            assert!(means(&sent, &value));
            continue;
        }
        let (read, told) = repaired(&schema, &sent).unwrap_or_else(|| panic!("{seed}: {sent}\n{schema}"));
        assert_eq!(read, value, "{seed}: {sent}\n{schema}");
        assert!(!told.is_empty());
        repairs += told.len();
    }
    assert!(repairs > 1_500, "{repairs}");
}

#[test]
fn a_repaired_value_fits_and_means_what_was_sent() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..2_000 {
        let mut dice = Dice(seed);
        let (schema, value) = dice.object(3, false);
        let mut sent = dice.misspelled(&schema, &value);
        if let Value::String(text) = &sent {
            sent = serde_json::from_str(text).unwrap();
        }
        let compiled = compiled(&schema);
        if compiled.check(&sent).is_ok() {
            continue;
        }
        match repair(&compiled, sent.as_object().unwrap(), &|object| object) {
            None => refused += 1,
            Some(Repaired { object, .. }) => {
                done += 1;
                let read = Value::Object(object);
                assert!(compiled.check(&read).is_ok() && means(&sent, &read), "{seed}: {sent}\n{read}\n{schema}");
            }
        }
    }
    assert!(done > 5 * refused && done > 1_000, "{done} {refused}");
}
