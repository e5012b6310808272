//! A schema's verdict on a value as a program can use it: where something else would have to stand, and what.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use serde_json::Value;

/// The most mismatches of one value, those inside unions included.
pub const MOST: usize = 2_000;
/// The deepest union inside unions that is looked into.
const MAX_UNIONS: usize = 64;

/// Keywords that lead to another schema for the same value, each with how many steps of a path it takes.
const IN_PLACE: [(&str, usize); 9] = [
    ("$ref", 1),
    ("$dynamicRef", 1),
    ("$recursiveRef", 1),
    ("allOf", 2),
    ("anyOf", 2),
    ("oneOf", 2),
    ("if", 1),
    ("then", 1),
    ("else", 1),
];

/// One thing that keeps a value from fitting its schema. All of them have to be put right.
#[derive(Clone, Debug, PartialEq)]
pub enum Mismatch {
    /// Another kind of value is wanted at a place.
    Place {
        /// The place in the value, as a JSON Pointer.
        pointer: String,
        /// What is wanted there.
        wanted: Wanted,
        /// Whether the schema names the place as a property; not so the entries of a free map and the items of a list.
        property: bool,
    },
    /// One of these lists has to be put right: the branches of a union.
    Either(Vec<Vec<Mismatch>>),
    /// Another rule is broken at a place.
    Rule {
        /// The place in the value, as a JSON Pointer.
        pointer: String,
    },
}

/// What is wanted at a place.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A value of one of these types, by JSON Schema's names.
    Types(Vec<&'static str>),
    /// One of these values.
    Values(Vec<Value>),
}

/// All mismatches of a value; `None` if they are more than [`MOST`].
pub(super) fn all<'a>(errors: impl Iterator<Item = ValidationError<'a>>) -> Option<Vec<Mismatch>> {
    let mut left = MOST;
    let mut found = Vec::new();
    for error in errors {
        found.push(one(&error, &mut left, MAX_UNIONS)?);
    }
    Some(found)
}

fn one(error: &ValidationError<'_>, left: &mut usize, unions: usize) -> Option<Mismatch> {
    *left = left.checked_sub(1)?;
    let pointer = error.instance_path().to_string();
    let wanted = match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let unions = unions.checked_sub(1)?;
            let branch =
                |errors: &Vec<ValidationError<'static>>| errors.iter().map(|error| one(error, left, unions)).collect();
            return context.iter().map(branch).collect::<Option<Vec<Vec<Mismatch>>>>().map(Mismatch::Either);
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(only) } => {
            Wanted::Types(names(JsonTypeSet::empty().insert(*only)))
        }
        ValidationErrorKind::Type { kind: TypeKind::Multiple(several) } => Wanted::Types(names(*several)),
        ValidationErrorKind::Enum { options } => Wanted::Values(options.as_array().cloned().unwrap_or_default()),
        ValidationErrorKind::Constant { expected_value } => Wanted::Values(vec![expected_value.as_ref().clone()]),
        _ => return Some(Mismatch::Rule { pointer }),
    };
    let property = is_property(error.evaluation_path().as_str(), &pointer);
    Some(Mismatch::Place { pointer, wanted, property })
}

fn names(types: JsonTypeSet) -> Vec<&'static str> {
    types.iter().map(JsonType::as_str).collect()
}

/// Whether the path to a broken keyword came through `properties` to the value at `pointer`.
fn is_property(path: &str, pointer: &str) -> bool {
    let Some(name) = pointer.rsplit('/').next() else { return false };
    let mut steps: Vec<&str> = path.split('/').collect();
    steps.pop(); // the keyword itself
    loop {
        if let [.., "properties", last] = steps.as_slice()
            && *last == name
        {
            return true;
        }
        let in_place = IN_PLACE
            .iter()
            .find(|(keyword, length)| steps.len() > *length && steps.get(steps.len() - length) == Some(keyword));
        let Some((_, length)) = in_place else { return false };
        steps.truncate(steps.len() - length);
    }
}

impl Wanted {
    /// Whether this value would do as far as its type, or its being one of the values, says. An integer is one that is
    /// written without a fraction or an exponent.
    pub fn takes(&self, value: &Value) -> bool {
        match self {
            Self::Types(types) => types.iter().any(|kind| match (*kind, value) {
                ("object", Value::Object(_))
                | ("array", Value::Array(_))
                | ("boolean", Value::Bool(_))
                | ("string", Value::String(_))
                | ("null", Value::Null)
                | ("number", Value::Number(_)) => true,
                ("integer", Value::Number(number)) => !number.to_string().contains(['.', 'e', 'E']),
                _ => false,
            }),
            Self::Values(values) => values.contains(value),
        }
    }
}
