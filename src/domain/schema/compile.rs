//! From a schema's text to its validator.

use super::gate::Facts;
use super::meter::Prices;
use super::metered::Counted;
use super::{MAX_BYTES, MAX_DEPTH, MAX_VIOLATIONS, SchemaFault};
use crate::domain::json;
use crate::domain::violation::Violation;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use serde_json::value::RawValue;
use std::thread;

/// Bytes that one compiled pattern may take; bounds the time of a match too.
const PATTERN_BYTES: usize = 256 * 1024;
/// Up to how many bytes a compiled pattern is taken for an ordinary one.
const SMALL_PATTERN_BYTES: usize = 16 * 1024;
/// About how many bytes a byte of a schema's text becomes.
const BYTES_PER_BYTE: usize = 32;
/// How many levels the compiler, which recurses over them, is trusted with on any thread's stack. (In a debug build 250
/// levels take more than a mebibyte.)
const ORDINARY_LEVELS: usize = 96;
/// The stack for what is deeper.
const LARGE_STACK: usize = 16 * 1024 * 1024;

/// The drafts that are understood, as `$schema` names them.
const DRAFTS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
];

/// Compiles a schema that was let through.
pub(super) fn compile(schema: &Value, facts: Facts) -> Result<(Validator<Counted>, Prices), SchemaFault> {
    if facts.compiler_levels <= ORDINARY_LEVELS {
        return build(schema, facts);
    }
    thread::scope(|scope| {
        let deep = thread::Builder::new().stack_size(LARGE_STACK).spawn_scoped(scope, || build(schema, facts));
        let built = deep.map(thread::ScopedJoinHandle::join);
        match built {
            Ok(Ok(built)) => built,
            _ => Err(SchemaFault::at("", "cannot be compiled")),
        }
    })
}

fn build(schema: &Value, facts: Facts) -> Result<(Validator<Counted>, Prices), SchemaFault> {
    let with = |bytes: usize| {
        jsonschema::options_for::<Counted>()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(bytes).dfa_size_limit(PATTERN_BYTES))
            .build(schema)
    };
    let Facts { weight, patterns, repeated, .. } = facts;
    let prices = |large_patterns: bool| Prices { weight, patterns: patterns > 0, large_patterns, repeated };
    if let Ok(validator) = with(SMALL_PATTERN_BYTES) {
        return Ok((validator, prices(false)));
    }
    let built = with(PATTERN_BYTES).map(|validator| (validator, prices(true)));
    built.map_err(|error| SchemaFault::at(error.instance_path().to_string(), unbuildable(&error)))
}

/// About how many bytes a compiled schema takes: rather too many than too few.
pub(super) fn footprint(raw: &RawValue, facts: Facts, prices: Prices) -> usize {
    let pattern = if prices.large_patterns { PATTERN_BYTES } else { SMALL_PATTERN_BYTES };
    // A pattern is there as what was compiled, and as what its matches fill in.
    raw.get().len() * BYTES_PER_BYTE + facts.patterns * pattern * 2
}

/// Reads a schema's text.
pub(super) fn read(raw: &RawValue) -> Result<Value, SchemaFault> {
    let text = raw.get();
    if text.len() > MAX_BYTES {
        return Err(SchemaFault::at(
            "",
            format!("a schema has at most {MAX_BYTES} bytes, this one has {}", text.len()),
        ));
    }
    match json::parse(text.as_bytes(), MAX_DEPTH) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(other) => Err(SchemaFault::at("", format!("expected a schema object, got {}", json::kind(&other)))),
        Err(detail) => Err(SchemaFault::at("", detail)),
    }
}

/// Where a schema breaks the rules of its draft.
pub(super) fn broken_rules(schema: &Value) -> Vec<SchemaFault> {
    let validator = match jsonschema::meta::validator_for(schema) {
        Ok(validator) => validator,
        Err(why) => return vec![SchemaFault::at("/$schema", Violation::from_error(&why).detail)],
    };
    let told = validator.iter_errors(schema).take(MAX_VIOLATIONS).map(|error| Violation::from_error(&error));
    let fault =
        |told: Violation| SchemaFault::at(told.pointer, format!("is no valid JSON Schema here: {}", told.detail));
    told.map(fault).collect()
}

/// Refuses what `$schema` names if it is not known here.
pub(super) fn check_draft(schema: &Value) -> Result<(), SchemaFault> {
    match schema.get("$schema") {
        None => Ok(()),
        Some(Value::String(uri)) if DRAFTS.contains(&uri.trim_end_matches('#')) => Ok(()),
        Some(_) => Err(SchemaFault::at("/$schema", format!("expected one of {}", DRAFTS.join(", ")))),
    }
}

fn unbuildable(error: &ValidationError<'_>) -> String {
    use jsonschema::error::ValidationErrorKind as K;
    match error.kind() {
        K::Format { format } if format == "regex" => {
            "is no pattern that is taken here: no look-around, no back-references, and not too large when compiled"
                .to_owned()
        }
        K::Referencing(why) => format!("a reference leads nowhere: {why}"),
        _ => format!("cannot be compiled: {}", Violation::from_error(error).detail),
    }
}
