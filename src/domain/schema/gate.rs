//! What a schema may cost, told before anything is compiled: local references only, bounded patterns, and a bounded
//! number of schema positions once references are followed.

use super::{MAX_PATTERNS, MAX_WEIGHT, SchemaFault};
use crate::domain::fault::Pointer;
use serde_json::Value;
use std::collections::HashMap;

/// Keywords whose value is one schema.
const ONE: [&str; 14] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "extends",
    "disallow",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords whose value is a map from names to schemas.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

struct Gate<'a> {
    root: &'a Value,
    /// The weight behind each reference; `None` while it is being counted, which is what a cycle meets.
    behind: HashMap<&'a str, Option<u64>>,
    patterns: usize,
}

pub(super) fn check(root: &Value) -> Result<(), SchemaFault> {
    let mut gate = Gate { root, behind: HashMap::new(), patterns: 0 };
    let weight = gate.weigh(root, &Pointer::root())?;
    if weight > MAX_WEIGHT {
        return Err(SchemaFault::at(
            "",
            format!("too much to check: more than {MAX_WEIGHT} places once references are followed"),
        ));
    }
    Ok(())
}

impl<'a> Gate<'a> {
    fn weigh(&mut self, schema: &'a Value, at: &Pointer) -> Result<u64, SchemaFault> {
        let Value::Object(members) = schema else { return Ok(1) };
        let mut weight: u64 = 1;
        for (keyword, value) in members {
            let place = at.key(keyword);
            let more = match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => self.follow(value, &place)?,
                "$id" | "id" if value.is_string() => {
                    return Err(SchemaFault::at(
                        place.as_str(),
                        "is not taken: it would move what the references below it mean",
                    ));
                }
                "pattern" => self.count_pattern(&place)?,
                "enum" => value.as_array().map_or(0, |all| all.len() as u64 / 10),
                name => self.weigh_keyword(name, value, &place)?,
            };
            weight = weight.saturating_add(more);
        }
        Ok(weight)
    }

    fn weigh_keyword(&mut self, keyword: &str, value: &'a Value, place: &Pointer) -> Result<u64, SchemaFault> {
        let mut weight: u64 = 0;
        match value {
            Value::Array(all) if LIST.contains(&keyword) => {
                for (index, inner) in all.iter().enumerate() {
                    weight = weight.saturating_add(self.weigh(inner, &place.index(index))?);
                }
            }
            Value::Object(all) if NAMED.contains(&keyword) => {
                let definitions = matches!(keyword, "$defs" | "definitions");
                for (name, inner) in all {
                    if keyword == "patternProperties" {
                        self.count_pattern(&place.key(name))?;
                    }
                    let inner = self.weigh(inner, &place.key(name))?;
                    // A definition is only checked where something refers to it.
                    weight = weight.saturating_add(if definitions { 1 } else { inner });
                }
            }
            Value::Object(_) if ONE.contains(&keyword) => weight = self.weigh(value, place)?,
            _ => {}
        }
        Ok(weight)
    }

    fn count_pattern(&mut self, place: &Pointer) -> Result<u64, SchemaFault> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(SchemaFault::at(place.as_str(), format!("a schema has at most {MAX_PATTERNS} patterns")));
        }
        Ok(1)
    }

    fn follow(&mut self, reference: &'a Value, place: &Pointer) -> Result<u64, SchemaFault> {
        let Value::String(reference) = reference else { return Ok(1) };
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(SchemaFault::at(
                place.as_str(),
                "refers outside this document; only references that start with # are followed",
            ));
        };
        if let Some(known) = self.behind.get(reference.as_str()) {
            return Ok(known.unwrap_or(1));
        }
        // Anchors are found by the compiler; a pointer that it cannot resolve is its error to tell.
        let Some(target) = self.root.pointer(&percent_decoded(fragment)) else { return Ok(1) };
        self.behind.insert(reference, None);
        let weight = self.weigh(target, &Pointer::root().join(fragment))?;
        self.behind.insert(reference, Some(weight));
        Ok(weight)
    }
}

pub(super) fn percent_decoded(fragment: &str) -> String {
    let mut bytes = fragment.bytes();
    let mut decoded = Vec::with_capacity(fragment.len());
    while let Some(byte) = bytes.next() {
        let pair = (byte == b'%').then(|| [bytes.clone().next(), bytes.clone().nth(1)]);
        match pair {
            Some([Some(high), Some(low)]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |c: u8| char::from(c).to_digit(16).unwrap_or(0);
                decoded.push(u8::try_from(digit(high) * 16 + digit(low)).unwrap_or(b'%'));
                bytes.nth(1);
            }
            _ => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
