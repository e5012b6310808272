//! Generated schemas: every format renders each of them by its provider's rules, and no wider input is shut out.

use crate::accepted::{positions, schemas};
use crate::given::tool;
use serde_json::{Map, Value, json, value::to_raw_value};
use toolhook::domain::InputSchema;
use toolhook::format::{FormatName, ListOptions};

/// A small generator of its own, so that a seed says all.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn one(&mut self, of: &[&str]) -> String {
        let index = usize::try_from(self.below(of.len() as u64)).unwrap();
        of[index].to_owned()
    }

    fn schema(&mut self, depth: u64) -> Value {
        let kinds = if depth == 0 { 6 } else { 12 };
        match self.below(kinds) {
            0 => {
                json!({"type": "string", "minLength": self.below(3), "format": self.one(&["uri", "date-time", "email"])})
            }
            1 => {
                json!({"type": self.one(&["integer", "number"]), "exclusiveMinimum": self.below(9), "description": "A number"})
            }
            2 => {
                let all = [json!(""), json!("a"), json!(1), json!(null), json!(true)];
                json!({"enum": all[usize::try_from(self.below(4)).unwrap()..], "default": "a"})
            }
            3 => json!({"type": ["string", "null"], "enum": ["x", null]}),
            4 => json!({"$ref": self.one(&["#/$defs/one", "#/$defs/two", "#", "#/definitions/old"])}),
            5 => json!({"const": self.below(3)}),
            6 | 7 => self.object(depth),
            8 => {
                json!({"type": "array", "items": self.schema(depth - 1), "minItems": self.below(3), "uniqueItems": true})
            }
            9 => json!({"type": "array", "prefixItems": [self.schema(depth - 1), {}], "items": false}),
            10 => json!({"anyOf": [self.schema(depth - 1), self.schema(depth - 1)], "description": "Either"}),
            _ => json!({"allOf": [self.schema(depth - 1), self.object(depth - 1)]}),
        }
    }

    fn object(&mut self, depth: u64) -> Value {
        let mut properties = Map::new();
        for _ in 0..self.below(4) {
            let name = self.one(&["a", "b", "filter[x]", "9", "type", "a.b", "properties"]);
            properties.insert(name, self.schema(depth.saturating_sub(1)));
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if self.below(3) == 0 {
            schema["additionalProperties"] = json!(self.below(2) == 0);
        }
        let required: Vec<&String> = properties.keys().take(1).collect();
        schema["required"] = json!(required);
        if self.below(6) == 0 {
            schema["oneOf"] = json!([self.object(0), self.object(0)]);
        }
        schema
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 => json!(null),
            1 => json!(self.below(4)),
            2 => json!("a"),
            3 => json!("2026-11-30T00:00:00Z"),
            4 => json!(true),
            5 => json!("https://example.com"),
            6 => json!([self.value(depth - 1), self.value(depth - 1)]),
            _ => self.input(depth - 1),
        }
    }

    fn input(&mut self, depth: u64) -> Value {
        let mut members = Map::new();
        for _ in 0..self.below(4) {
            members.insert(self.one(&["a", "b", "type", "z"]), self.value(depth));
        }
        Value::Object(members)
    }
}

fn generated(seed: u64) -> Value {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
    let mut root = dice.object(3);
    root["$defs"] = json!({"one": dice.schema(2), "two": dice.object(2)});
    root["definitions"] = json!({"old": dice.schema(1)});
    root
}

#[test]
fn every_generated_schema_is_declared_by_the_rules() {
    let mut taken = 0;
    for seed in 0..500 {
        let schema = generated(seed);
        let raw = to_raw_value(&schema).unwrap();
        if InputSchema::compile(&raw).is_err() {
            continue; // a definition that is nothing but a reference to itself, for one
        }
        taken += 1;
        let tool = tool(json!({"name": "t", "input_schema": schema, "strict": seed % 2 == 0}));
        for format in FormatName::ALL {
            for (_, declared) in schemas(format, std::slice::from_ref(&tool)) {
                assert_eq!(declared["type"], "object", "{seed}");
                check(format, &declared, seed);
            }
        }
    }
    assert!(taken > 300, "{taken}");
}

fn check(format: FormatName, declared: &Value, seed: u64) {
    if matches!(format, FormatName::Mcp | FormatName::Toolhook) {
        return;
    }
    for word in ["oneOf", "anyOf", "allOf", "not", "enum", "$ref", "$schema"] {
        assert!(declared.get(word).is_none(), "{format:?} {seed}: {word}: {declared}");
    }
    for position in positions(declared) {
        let array =
            position["type"] == "array" || position["type"].as_array().is_some_and(|all| all.contains(&json!("array")));
        assert!(!array || position["items"].is_object(), "{format:?} {seed}: {position}");
        if let Some(reference) = position.get("$ref").and_then(Value::as_str) {
            assert!(declared.pointer(reference.trim_start_matches('#')).is_some(), "{format:?} {seed}: {reference}");
        }
        let plain = |name: &String, dash: bool| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || (dash && matches!(c, '.' | '-')))
        };
        for name in position.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            match format {
                FormatName::Anthropic | FormatName::Bedrock => assert!(plain(name, true), "{seed}: {name}"),
                FormatName::Gemini => assert!(plain(name, false) && !name.starts_with('9'), "{seed}: {name}"),
                _ => {}
            }
        }
    }
}

#[test]
fn nothing_that_the_tool_takes_is_shut_out() {
    let mut tried = 0;
    for seed in 0..500 {
        let schema = generated(seed);
        let Ok(stored) = InputSchema::compile(&to_raw_value(&schema).unwrap()) else { continue };
        let tool = tool(json!({"name": "t", "input_schema": schema}));
        let mut dice = Dice(seed);
        let inputs: Vec<Value> = (0..60).map(|_| dice.input(2)).filter(|input| stored.check(input).is_ok()).collect();
        for format in FormatName::ALL {
            let rendered = (format.format().tools)(&[&tool], &ListOptions::default());
            if rendered.notes.iter().any(|note| note.detail.contains("forms") || note.detail.contains("empty text")) {
                continue; // here a note says that something is
            }
            for (_, declared) in schemas(format, std::slice::from_ref(&tool)) {
                let declared = InputSchema::compile(&to_raw_value(&declared).unwrap()).unwrap();
                for input in &inputs {
                    tried += 1;
                    let verdict = declared.check(input);
                    assert!(verdict.is_ok(), "{format:?} {seed}: {input}: {verdict:?}\n{schema}\n{declared:?}");
                }
            }
        }
    }
    assert!(tried > 2_000, "{tried}");
}
