//! Schemas and values by chance: a small generator of its own, so that a seed says all.

use serde_json::{Map, Value, json};

pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    fn one(&mut self, of: &[&str]) -> String {
        let index = self.index(of.len());
        of[index].to_owned()
    }

    /// A schema as people write them, with definitions.
    pub(crate) fn whole(&mut self) -> Value {
        let mut root = self.object(3);
        root["$defs"] = json!({"one": self.schema(2), "two": self.object(2)});
        root["definitions"] = json!({"old": self.schema(1)});
        root
    }

    fn schema(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 7 } else { 15 }) {
            0 => {
                json!({"type": "string", "minLength": self.below(3), "format": self.one(&["uri", "date-time", "email"])})
            }
            1 => {
                json!({"type": self.one(&["integer", "number"]), "exclusiveMinimum": self.below(9), "description": "A number"})
            }
            2 => {
                let all = [json!(""), json!("a"), json!(1), json!(null), json!(true)];
                json!({"enum": all[self.index(4)..], "default": "a"})
            }
            3 => json!({"type": ["string", "null"], "enum": ["x", null]}),
            4 => json!({"$ref": self.one(&["#/$defs/one", "#/$defs/two", "#", "#/definitions/old"])}),
            5 => json!({"const": self.below(3)}),
            6 => json!({"type": self.one(&["string", "boolean", "integer"])}),
            7..=9 => self.object(depth),
            10 => {
                json!({"type": "array", "items": self.schema(depth - 1), "minItems": self.below(3), "uniqueItems": true})
            }
            11 => json!({"type": "array", "prefixItems": [self.schema(depth - 1), {}], "items": false}),
            12 => json!({"anyOf": [self.schema(depth - 1), self.schema(depth - 1)], "description": "Either"}),
            13 => {
                json!({"type": "object", "patternProperties": {"^x": self.schema(depth - 1)}, "additionalProperties": self.schema(depth - 1)})
            }
            _ => json!({"allOf": [self.schema(depth - 1), self.object(depth - 1)]}),
        }
    }

    fn object(&mut self, depth: u64) -> Value {
        let mut properties = Map::new();
        for _ in 0..self.below(4) {
            let name = self.one(&["a", "b", "filter[x]", "filter_x", "9", "type", "a.b", "properties", "é", ""]);
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

    /// Any value.
    pub(crate) fn value(&mut self, depth: u64) -> Value {
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

    /// Any input.
    pub(crate) fn input(&mut self, depth: u64) -> Value {
        let mut members = Map::new();
        for _ in 0..self.below(4) {
            members.insert(self.one(&["a", "b", "type", "z"]), self.value(depth));
        }
        Value::Object(members)
    }

    /// A value that goes by a schema, as far as a glance at it tells.
    pub(crate) fn by(&mut self, root: &Value, schema: &Value, depth: u64) -> Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|to| root.pointer(to.trim_start_matches('#'))).filter(|_| depth > 0) {
            return self.by(root, target, depth - 1);
        }
        for union in ["anyOf", "oneOf", "allOf"] {
            if let Some(branches) =
                schema.get(union).and_then(Value::as_array).filter(|all| !all.is_empty() && depth > 0)
            {
                let branch = self.index(branches.len());
                let mut value = self.by(root, &branches[branch], depth - 1);
                if let (Value::Object(value), Value::Object(more)) = (&mut value, self.typed(root, schema, depth)) {
                    value.extend(more);
                }
                return value;
            }
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array).filter(|all| !all.is_empty()) {
            let value = self.index(values.len());
            return values[value].clone();
        }
        schema.get("const").cloned().unwrap_or_else(|| self.typed(root, schema, depth))
    }

    fn typed(&mut self, root: &Value, schema: &Value, depth: u64) -> Value {
        let kinds = schema.get("type").and_then(Value::as_array).map_or(1, Vec::len);
        let kind = self.index(kinds);
        let kind = schema["type"].get(kind).unwrap_or(&schema["type"]);
        match kind.as_str().unwrap_or_default() {
            "null" => Value::Null,
            "string" => json!(self.one(&["", "ab", "2026-11-30T00:00:00Z", "https://example.com"])),
            "boolean" => json!(self.below(2) == 0),
            "integer" | "number" => json!(self.below(20)),
            "array" => {
                let tuple = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let rest = schema.get("items").filter(|_| tuple.is_empty() && depth > 0);
                let mut elements: Vec<Value> =
                    tuple.iter().map(|part| self.by(root, part, depth.saturating_sub(1))).collect();
                for _ in 0..self.below(3) {
                    elements.extend(rest.map(|rest| self.by(root, rest, depth - 1)));
                }
                Value::Array(elements)
            }
            _ if kind == "object" || schema.get("properties").is_some() => self.members(root, schema, depth),
            _ => self.value(1),
        }
    }

    fn members(&mut self, root: &Value, schema: &Value, depth: u64) -> Value {
        let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut members = Map::new();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if required.contains(&json!(name)) || (depth > 0 && self.below(2) == 0) {
                members.insert(name.clone(), self.by(root, property, depth.saturating_sub(1)));
            }
        }
        if let Some(rest) = schema.get("additionalProperties").filter(|rest| rest.is_object() && depth > 0) {
            members.insert(self.one(&["free", "a", "filter_x_2", "x1"]), self.by(root, rest, depth - 1));
        }
        Value::Object(members)
    }
}
