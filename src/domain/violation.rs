//! A schema's verdict on a value, in words that a model can act on.

use super::fault::Pointer;
use super::schema::meter::MAX_MATCHED;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonTypeSet, ValidationError};
use serde::Serialize;
use serde_json::Value;

/// One place where a value does not fit its schema. The text names the place and the rule, never the value, since
/// values may be secrets and may be long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The place in the value, as a JSON Pointer.
    pub pointer: String,
    /// What was expected there.
    pub detail: String,
}

/// The longest text of a violation, in characters.
const MAX_DETAIL: usize = 500;
/// The longest pointer that is shown whole, in characters: a property's name may be long.
const MAX_POINTER: usize = 300;
/// How deep unions are looked into, one inside another.
const MAX_UNIONS: usize = 2;
/// How many branches of a union are told.
const MAX_BRANCHES: usize = 6;

impl Violation {
    pub(super) fn from_error(error: &ValidationError<'_>) -> Self {
        Self::within(error, MAX_UNIONS)
    }

    fn within(error: &ValidationError<'_>, unions: usize) -> Self {
        let pointer = error.instance_path().as_str();
        let detail = match error.kind() {
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                union(pointer, context, unions)
            }
            kind => expectation(kind, error.instance()),
        };
        Self { pointer: cut_to(pointer, MAX_POINTER), detail: cut_to(&detail, MAX_DETAIL) }
    }

    /// The value as a whole takes too long to check.
    pub(super) fn too_much() -> Self {
        Self { pointer: String::new(), detail: TOO_MUCH.to_owned() }
    }

    /// The value does not fit, and to say where takes too long.
    pub(super) fn untold() -> Self {
        let detail = "does not fit the schema, and has too many possible readings to say where; send something simpler";
        Self { pointer: String::new(), detail: detail.to_owned() }
    }

    /// A text or name inside `value`, found by its address, is too long for a pattern.
    pub(super) fn too_long(value: &Value, address: usize) -> Self {
        let pointer = pointer_to(value, address).unwrap_or_default();
        let detail = format!("is too long to be held against a pattern: at most {MAX_MATCHED} bytes");
        Self { pointer: cut_to(&pointer, MAX_POINTER), detail }
    }

    /// The violation as a phrase: `/city: expected a string, got a number`.
    pub fn phrase(&self) -> String {
        if self.pointer.is_empty() { self.detail.clone() } else { format!("{}: {}", self.pointer, self.detail) }
    }
}

/// The longest text about all violations of a value, in characters.
const MAX_TOLD: usize = 3_500;

/// All violations in one line, for a model.
pub fn told(violations: &[Violation]) -> String {
    let all: Vec<String> = violations.iter().map(Violation::phrase).collect();
    cut_to(&all.join("; "), MAX_TOLD)
}

/// What is said of a value that takes too many steps.
pub const TOO_MUCH: &str = "is too much to check against this schema; send something simpler";

/// Finds a part of a value by its address, without recursion.
fn pointer_to(value: &Value, address: usize) -> Option<String> {
    let mut open = vec![(value, Pointer::root())];
    while let Some((value, at)) = open.pop() {
        if std::ptr::from_ref(value).addr() == address {
            return Some(at.as_str().to_owned());
        }
        match value {
            Value::Array(all) => open.extend(all.iter().enumerate().map(|(index, inner)| (inner, at.index(index)))),
            Value::Object(all) => open.extend(all.iter().map(|(name, inner)| (inner, at.key(name)))),
            _ => {}
        }
    }
    None
}

/// What the branches of a union say of a value that fits none of them.
fn union(own: &str, context: &[Vec<ValidationError<'static>>], unions: usize) -> String {
    let Some(unions) = unions.checked_sub(1) else { return "fits none of the allowed forms".to_owned() };
    let inner = |inner: &ValidationError<'static>| {
        let inner = Violation::within(inner, unions);
        let rest = inner.pointer.strip_prefix(own).unwrap_or(&inner.pointer);
        if rest.is_empty() { inner.detail } else { format!("{rest}: {}", inner.detail) }
    };
    let told = context.iter().filter(|branch| !branch.is_empty()).take(MAX_BRANCHES);
    let branches: Vec<String> =
        told.map(|branch| branch.iter().take(3).map(inner).collect::<Vec<_>>().join(" and ")).collect();
    format!("fits none of the allowed forms ({})", branches.join("; or "))
}

fn expectation(kind: &ValidationErrorKind, instance: &Value) -> String {
    use ValidationErrorKind as K;
    match kind {
        K::Required { property } => format!("the required property {} is missing", short(property)),
        K::Type { kind } => format!("expected {}, got {}", types(kind), super::json::kind(instance)),
        K::AdditionalProperties { unexpected } | K::UnevaluatedProperties { unexpected } => {
            format!("unknown {}", named(unexpected))
        }
        K::Enum { options } => format!("expected one of {}", listed(options)),
        K::Constant { expected_value } => format!("expected exactly {}", short(expected_value)),
        K::Minimum { limit } => format!("expected a number of at least {limit}"),
        K::Maximum { limit } => format!("expected a number of at most {limit}"),
        K::ExclusiveMinimum { limit } => format!("expected a number greater than {limit}"),
        K::ExclusiveMaximum { limit } => format!("expected a number less than {limit}"),
        K::MultipleOf { multiple_of } => format!("expected a multiple of {multiple_of}"),
        K::MinLength { limit } => format!("expected at least {limit} characters"),
        K::MaxLength { limit } => format!("expected at most {limit} characters"),
        K::MinItems { limit } => format!("expected at least {limit} items"),
        K::MaxItems { limit } => format!("expected at most {limit} items"),
        K::AdditionalItems { limit } => format!("expected at most {limit} items"),
        K::MinProperties { limit } => format!("expected at least {limit} properties"),
        K::MaxProperties { limit } => format!("expected at most {limit} properties"),
        K::Pattern { pattern } => format!("expected a text that matches {}", cut(pattern)),
        K::Format { format } => format!("expected a text in the format {}", cut(format)),
        K::PropertyNames { error } => {
            format!("a property's name is not allowed: {}", Violation::from_error(error).detail)
        }
        K::UniqueItems => "expected items that all differ".to_owned(),
        K::Contains => "expected an item of the kind that the schema asks for".to_owned(),
        K::OneOfMultipleValid { .. } => "fits more than one of the allowed forms, exactly one must fit".to_owned(),
        K::FalseSchema => "no value is allowed here".to_owned(),
        K::Not { .. } => "has a form that is not allowed".to_owned(),
        other => format!("does not fit the schema's {}", other.keyword()),
    }
}

fn types(kind: &TypeKind) -> String {
    let article = |word: &str| match word {
        "null" => "null".to_owned(),
        "array" | "object" | "integer" => format!("an {word}"),
        _ => format!("a {word}"),
    };
    match kind {
        TypeKind::Single(one) => article(one.as_str()),
        TypeKind::Multiple(set) => {
            let set: &JsonTypeSet = set;
            set.iter().map(|one| article(one.as_str())).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn named(properties: &[String]) -> String {
    let names: Vec<String> = properties.iter().take(5).map(|name| format!("\"{}\"", cut(name))).collect();
    let more = if properties.len() > 5 { " and more" } else { "" };
    format!("{} {}{more}", if properties.len() == 1 { "property" } else { "properties" }, names.join(", "))
}

fn listed(options: &Value) -> String {
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let shown: Vec<String> = options.iter().take(20).map(short).collect();
    format!("{}{}", shown.join(", "), if options.len() > 20 { ", …" } else { "" })
}

/// A value of the *schema* as text; schemas are shown to models anyway.
fn short(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    cut_to(text, 100)
}

fn cut_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => text[..end].chars().chain(['…']).collect(),
    }
}
