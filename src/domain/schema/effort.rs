//! How much there is to do to hold a value against a schema, told before it is done.
//!
//! A short schema whose unions refer to themselves doubles the work with each level of a value, and every branch of a
//! union that failed is kept as an error. Neither is bounded by the sizes of the two, so the steps are counted first, by a
//! walk that does nothing else and stops at a limit.

use super::gate::percent_decoded;
use serde_json::{Map, Value};

/// The most steps of a check.
const MOST: u64 = 2_000_000;
/// The most steps inside unions of which errors are made.
const MOST_TOLD: u64 = 100_000;
/// The most references and unions in a row that lead to no other place in the value.
const MOST_IN_PLACE: usize = 64;

/// What may be done with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// It may be checked, and its faults may be told.
    Told,
    /// It may be checked; its faults would be too many.
    Checked,
    /// It takes too long even to check.
    TooMuch,
}

/// Counts the steps.
pub(super) fn of(root: &Value, value: &Value) -> Effort {
    let mut count = Count { root, steps: 0, told: 0, in_place: 0 };
    match count.visit(root, value, false) {
        None => Effort::TooMuch,
        Some(()) if count.told > MOST_TOLD => Effort::Checked,
        Some(()) => Effort::Told,
    }
}

struct Count<'a> {
    root: &'a Value,
    steps: u64,
    /// Steps inside unions.
    told: u64,
    in_place: usize,
}

impl Count<'_> {
    /// Counts what one schema has to do with one value; nothing if it is too much.
    fn visit(&mut self, schema: &Value, value: &Value, union: bool) -> Option<()> {
        self.step(1, union)?;
        let Value::Object(members) = schema else { return Some(()) };
        for (keyword, inner) in members {
            match (keyword.as_str(), inner) {
                ("enum", Value::Array(listed)) => self.step(listed.len() as u64 / 10, union)?,
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let target = find(self.root, reference);
                    target.map_or(Some(()), |target| self.in_place(target, value, union))?;
                }
                ("anyOf" | "oneOf", Value::Array(branches)) => {
                    branches.iter().try_for_each(|branch| self.in_place(branch, value, true))?;
                }
                ("allOf", Value::Array(parts)) => {
                    parts.iter().try_for_each(|part| self.in_place(part, value, union))?;
                }
                ("not" | "if" | "then" | "else" | "extends" | "disallow", one) => self.in_place(one, value, union)?,
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    schemas.values().try_for_each(|schema| self.in_place(schema, value, union))?;
                }
                _ => match value {
                    Value::Object(values) => self.members(members, keyword, inner, values, union)?,
                    Value::Array(elements) => self.elements(keyword, inner, elements, union)?,
                    _ => {}
                },
            }
        }
        Some(())
    }

    fn step(&mut self, count: u64, union: bool) -> Option<()> {
        self.steps += count;
        self.told += if union { count } else { 0 };
        (self.steps <= MOST).then_some(())
    }

    fn in_place(&mut self, schema: &Value, value: &Value, union: bool) -> Option<()> {
        if self.in_place >= MOST_IN_PLACE {
            return Some(()); // goes in a circle, which the compiler does not take
        }
        self.in_place += 1;
        let seen = self.visit(schema, value, union);
        self.in_place -= 1;
        seen
    }

    fn inside(&mut self, schema: &Value, value: &Value, union: bool) -> Option<()> {
        let outer = std::mem::take(&mut self.in_place);
        let seen = self.visit(schema, value, union);
        self.in_place = outer;
        seen
    }

    fn members(
        &mut self,
        schema: &Map<String, Value>,
        keyword: &str,
        inner: &Value,
        values: &Map<String, Value>,
        union: bool,
    ) -> Option<()> {
        match (keyword, inner) {
            ("properties", Value::Object(properties)) => {
                let mut found = properties.iter().filter_map(|(name, property)| Some((property, values.get(name)?)));
                found.try_for_each(|(property, value)| self.inside(property, value, union))
            }
            // Which pattern matches is not looked at: all count.
            ("patternProperties", Value::Object(patterns)) => patterns
                .values()
                .try_for_each(|schema| values.values().try_for_each(|value| self.inside(schema, value, union))),
            ("additionalProperties" | "unevaluatedProperties", rest) => {
                let named = |name: &String| schema.get("properties").is_some_and(|all| all.get(name).is_some());
                let mut others = values.iter().filter(|(name, _)| !named(name));
                others.try_for_each(|(_, value)| self.inside(rest, value, union))
            }
            ("propertyNames", _) => self.step(values.len() as u64, union),
            _ => Some(()),
        }
    }

    fn elements(&mut self, keyword: &str, inner: &Value, elements: &[Value], union: bool) -> Option<()> {
        match (keyword, inner) {
            ("prefixItems" | "items", Value::Array(tuple)) => {
                let mut pairs = tuple.iter().zip(elements);
                pairs.try_for_each(|(schema, element)| self.inside(schema, element, union))
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", rest) => {
                elements.iter().try_for_each(|element| self.inside(rest, element, union))
            }
            _ => Some(()),
        }
    }
}

/// What a reference leads to, by its pointer or its anchor.
fn find<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = percent_decoded(reference.strip_prefix('#')?);
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&fragment);
    }
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                let named = |key: &str| members.get(key).is_some_and(|anchor| *anchor == *fragment);
                if named("$anchor") || named("$dynamicAnchor") {
                    return Some(value);
                }
                open.extend(members.values());
            }
            Value::Array(elements) => open.extend(elements),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::InputSchema;
    use serde_json::{json, value::to_raw_value};

    fn nested(levels: usize, inside: Value) -> Value {
        (0..levels).fold(inside, |value, _| json!({ "x": value }))
    }

    #[test]
    fn unions_that_refer_to_themselves_are_bounded() {
        let branch = |target: &str| json!({"type": "object", "properties": {"x": {"$ref": target}}, "required": ["x"]});
        for (target, more) in [("#/$defs/n", json!({})), ("#n", json!({"$anchor": "n"}))] {
            let mut node = json!({"anyOf": [branch(target), branch(target), {"const": 5}]});
            node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": node}});
            assert_eq!(of(&schema, &nested(5, json!(7))), Effort::Told);
            assert_eq!(of(&schema, &nested(16, json!(7))), Effort::Checked);
            assert_eq!(of(&schema, &nested(60, json!(7))), Effort::TooMuch);
            let compiled = InputSchema::compile(&to_raw_value(&schema).unwrap()).unwrap();
            assert!(compiled.check(&nested(12, json!(5))).is_ok());
            assert!(compiled.check(&nested(16, json!(7))).unwrap_err()[0].detail.contains("too large"));
            assert!(compiled.check(&nested(60, json!(5))).unwrap_err()[0].detail.contains("too large"));
        }
    }

    #[test]
    fn large_values_are_checked_and_their_faults_told_outside_of_unions() {
        let list = |items: &Value| json!({"properties": {"list": {"type": "array", "items": items}}});
        let many = json!({ "list": vec![json!("a"); 200_000] });
        assert_eq!(of(&list(&json!({"type": "integer"})), &many), Effort::Told);
        assert_eq!(of(&list(&json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})), &many), Effort::Checked);
        let parts: Vec<Value> = (0..100).map(|n| json!({ "minLength": n })).collect();
        assert_eq!(of(&list(&json!({ "allOf": parts })), &many), Effort::TooMuch);
        assert_eq!(of(&json!({"$ref": "#"}), &json!({})), Effort::Told);
    }
}
