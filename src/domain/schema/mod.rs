//! A tool's JSON Schema: its text as written, and the validator compiled from it.

#[cfg(test)]
mod attacks;
mod compile;
mod gate;
pub mod keywords;
pub mod meter;
mod metered;
mod places;
mod shared;
mod unique;
mod words;
mod write_only;

use super::json::Object;
use super::mismatch::{self, Mismatch};
use super::violation::Violation;
use jsonschema::Validator;
use meter::{Budget, Exhausted, Prices, Stop};
use metered::{Counted, Metered};
use serde_json::Value;
use serde_json::value::RawValue;
pub use shared::SharedSchemas;
use std::sync::{Arc, OnceLock};

/// The longest schema, in bytes of its text.
pub const MAX_BYTES: usize = 64 * 1024;
/// The deepest schema, in levels of arrays and objects. (A compiler that recurses over 1,000 levels overflows its stack,
/// and takes every tenant down with it.)
pub const MAX_DEPTH: usize = 32;
/// The deepest a schema may be once references are followed, in schemas inside schemas; see [`MAX_DEPTH`].
pub const MAX_LEVELS: usize = 128;
/// The most schemas and values in lists of one schema, as it is written.
pub const MAX_PLACES: usize = 10_000;
/// The most schema positions, counted after references are followed: doubled references make a short text a long check.
pub const MAX_WEIGHT: u64 = 10_000;
/// The most `pattern`s.
pub const MAX_PATTERNS: usize = 32;
/// How many violations of one value are told.
const MAX_VIOLATIONS: usize = 10;

/// A schema that was checked against its meta-schema and compiled. Cheap to clone.
#[derive(Clone)]
pub struct InputSchema(Arc<Compiled>);

struct Compiled {
    raw: Box<RawValue>,
    /// Read from the text again when it is first needed: it takes as much as all the rest, and most tools are only listed.
    value: OnceLock<Value>,
    validator: Validator<Counted>,
    prices: Prices,
    has_write_only: bool,
    /// About how many bytes this takes.
    footprint: usize,
}

/// What is wrong with a schema: a JSON Pointer into it, and a sentence for its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFault {
    /// The place in the schema.
    pub pointer: String,
    /// What is wrong there.
    pub detail: String,
}

impl SchemaFault {
    fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

impl InputSchema {
    /// Checks and compiles the schema of a tool's input: an object's, by its root.
    pub fn compile(raw: &RawValue) -> Result<Self, Vec<SchemaFault>> {
        let value = compile::read(raw).map_err(|fault| vec![fault])?;
        let faults = match value.get("type") {
            Some(kind) if *kind != "object" => {
                vec![SchemaFault::at("/type", "the root of an input schema has the type \"object\", or none")]
            }
            _ => Vec::new(),
        };
        Self::build(raw, &value, faults)
    }

    /// Checks and compiles the schema of a tool's structured output. Any root is allowed.
    pub fn compile_output(raw: &RawValue) -> Result<Self, Vec<SchemaFault>> {
        let value = compile::read(raw).map_err(|fault| vec![fault])?;
        Self::build(raw, &value, Vec::new())
    }

    fn build(raw: &RawValue, value: &Value, mut faults: Vec<SchemaFault>) -> Result<Self, Vec<SchemaFault>> {
        compile::check_draft(value).map_err(|fault| vec![fault])?;
        faults.extend(compile::broken_rules(value));
        faults.extend(words::hidden(value));
        if !faults.is_empty() {
            return Err(faults);
        }
        let facts = gate::check(value).map_err(|fault| vec![fault])?;
        let (validator, prices) = compile::compile(value, facts).map_err(|fault| vec![fault])?;
        let has_write_only = write_only::occurs(value);
        let footprint = compile::footprint(raw, facts, prices);
        let (raw, value) = (raw.to_owned(), OnceLock::new());
        Ok(Self(Arc::new(Compiled { raw, value, validator, prices, has_write_only, footprint })))
    }

    /// The text, byte for byte as it was written.
    pub fn raw(&self) -> &RawValue {
        &self.0.raw
    }

    /// The schema as a value, keys in the order in which they were written. It is kept from then on, for what is done with
    /// every call.
    pub fn value(&self) -> &Value {
        self.0.value.get_or_init(|| self.to_value())
    }

    /// The same as a value of its own, which is not kept: for what is done once.
    pub fn to_value(&self) -> Value {
        // It was read before.
        compile::read(&self.0.raw).unwrap_or_default()
    }

    /// An input as the log may have it: values that the schema calls `writeOnly` are `"***"`, and all of them are where it
    /// takes too long to find out.
    pub fn masked(&self, input: &Object) -> Object {
        if !self.0.has_write_only {
            return input.clone();
        }
        let masked = meter::within(Budget::for_masking(), || write_only::masked(self.value(), input));
        masked.unwrap_or_else(|Exhausted| write_only::all_masked(input))
    }

    /// Holds a value against the schema; the violations are bounded in number and length and never repeat the value.
    ///
    /// Inside [`meter::within`] this takes from the budget given there, and unwinds to it when that is used up.
    /// Elsewhere it has [`Budget::full`], and a value that takes more has one violation that says so.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if meter::is_given() {
            return self.verdict(value);
        }
        meter::within(Budget::full(), || self.verdict(value))
            .unwrap_or_else(|Exhausted| Err(vec![Violation::too_much()]))
    }

    fn verdict(&self, value: &Value) -> Result<(), Vec<Violation>> {
        meter::price(self.0.prices);
        match meter::catch(|| self.0.validator.is_valid(Metered(value))) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(Stop::Long(place)) => return Err(vec![Violation::too_long(value, place)]),
            Err(Stop::Exhausted) => meter::exhaust(),
        }
        let validator = &self.0.validator;
        let all =
            || validator.iter_errors(Metered(value)).take(MAX_VIOLATIONS).map(|e| Violation::from_error(&e)).collect();
        let first =
            || validator.validate(Metered(value)).err().map(|e| Violation::from_error(&e)).into_iter().collect();
        let told = match meter::collecting(all) {
            Err(Stop::Exhausted) => meter::collecting(first),
            told => told,
        };
        Err(match told {
            Ok(told) => told,
            Err(Stop::Long(place)) => vec![Violation::too_long(value, place)],
            Err(Stop::Exhausted) => vec![Violation::untold()],
        })
    }

    /// What would have to be put right in a value that does not fit; `None` if that is more than [`mismatch::MOST`]
    /// things, or takes too long to find out.
    pub fn mismatches(&self, value: &Value) -> Option<Vec<Mismatch>> {
        let find = || {
            meter::price(self.0.prices);
            meter::collecting(|| mismatch::all(self.0.validator.iter_errors(Metered(value)))).ok().flatten()
        };
        if meter::is_given() { find() } else { meter::within(Budget::full(), find).ok().flatten() }
    }
}

impl std::fmt::Debug for InputSchema {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("InputSchema").field(&self.0.raw.get()).finish()
    }
}

impl PartialEq for InputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.raw.get() == other.0.raw.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(text: &str) -> Result<InputSchema, Vec<SchemaFault>> {
        InputSchema::compile(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn a_schema_comes_back_as_it_was_written() {
        let text = "{ \"type\":\"object\",\n \"properties\": {\"z\":{}, \"a\":{\"minimum\": 1.10}} }";
        assert_eq!(compile(text).unwrap().raw().get(), text);
    }

    #[test]
    fn the_root_is_an_object() {
        for good in ["{}", r#"{"type":"object"}"#, r#"{"oneOf":[{"required":["a"]},{"required":["b"]}]}"#] {
            assert!(compile(good).is_ok(), "{good}");
        }
        for bad in ["true", "[]", "null", r#"{"type":"array"}"#, r#"{"type":["object","null"]}"#] {
            assert!(compile(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_broken_rule_is_told_with_its_place() {
        let faults = compile(r#"{"type":"object","properties":{"":""},"required":null}"#).unwrap_err();
        let places: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert!(places.contains(&"/properties/") && places.contains(&"/required"), "{places:?}");
    }

    #[test]
    fn what_would_reach_outside_or_cost_too_much_is_refused() {
        let doubled = |keyword: &str, levels: usize| {
            let defs: Vec<String> = (0..levels)
                .map(|n| {
                    format!(
                        "\"d{n}\":{{\"{keyword}\":[{{\"$ref\":\"#/$defs/d{m}\"}},{{\"$ref\":\"#/$defs/d{m}\"}}]}}",
                        m = n + 1
                    )
                })
                .collect();
            format!(
                "{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{},\"d{levels}\":{{\"type\":\"object\"}}}}}}",
                defs.join(",")
            )
        };
        let patterns: Vec<String> = (0..33).map(|n| format!("\"p{n}\":{{\"pattern\":\"a\"}}")).collect();
        for bad in [
            r#"{"properties":{"a":{"$ref":"https://example.com/s.json"}}}"#.to_owned(),
            r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#.to_owned(),
            r#"{"$id":"file:///etc/","properties":{"a":{"$ref":"passwd"}}}"#.to_owned(),
            r#"{"$schema":"https://example.com/own"}"#.to_owned(),
            r##"{"properties":{"a":{"$ref":"#/$defs/none"}}}"##.to_owned(),
            r#"{"properties":{"a":{"pattern":"(?:\\w{1000}){100}"}}}"#.to_owned(),
            r#"{"properties":{"a":{"pattern":"(?=a)b"}}}"#.to_owned(),
            r#"{"type":"objekt"}"#.to_owned(),
            r#"{"required":"a"}"#.to_owned(),
            format!("{{\"properties\":{{{}}}}}", patterns.join(",")),
            doubled("anyOf", 16),
            doubled("allOf", 60),
            "{\"not\":".repeat(40) + "{}" + &"}".repeat(40),
            format!("{{\"description\":\"{}\"}}", "x".repeat(MAX_BYTES)),
        ] {
            assert!(compile(&bad).is_err(), "{}", &bad[..bad.len().min(120)]);
        }
        assert!(compile(&doubled("anyOf", 8)).is_ok());
        assert!(compile(r##"{"properties":{"next":{"$ref":"#"}}}"##).is_ok());
        assert!(compile(r#"{"properties":{"$ref":{"type":"string"},"pattern":{},"$id":{"type":"string"}}}"#).is_ok());
    }

    #[test]
    fn a_violation_names_the_place_and_what_was_expected_but_not_the_value() {
        let schema = compile(
            r#"{"type":"object","required":["city"],"additionalProperties":false,"properties":{
                "city":{"type":"string","maxLength":3},"days":{"type":"integer","minimum":1},
                "unit":{"enum":["C","F"]},"when":{"anyOf":[{"type":"string"},{"type":"object","required":["at"]}]}}}"#,
        )
        .unwrap();
        let told = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            schema.check(&value).unwrap_err().iter().map(Violation::phrase).collect::<Vec<_>>().join(" | ")
        };
        assert_eq!(told("{}"), "the required property \"city\" is missing");
        assert_eq!(told(r#"{"city":5}"#), "/city: expected a string, got a number");
        assert_eq!(told(r#"{"city":"hunter2"}"#), "/city: expected at most 3 characters");
        assert_eq!(
            told(r#"{"city":"a","days":0,"x":1}"#),
            "/days: expected a number of at least 1 | unknown property \"x\""
        );
        assert_eq!(told(r#"{"city":"a","unit":"K"}"#), "/unit: expected one of \"C\", \"F\"");
        assert!(told(r#"{"city":"a","when":{}}"#).contains("the required property \"at\" is missing"));
    }
}
