//! A schema's verdict on a value, in words that a model can act on.

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

impl Violation {
    pub(super) fn from_error(error: &ValidationError<'_>) -> Self {
        let detail = match error.kind() {
            // Where a union failed, the branch that got furthest says what to do.
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                return union(error, context);
            }
            kind => expectation(kind, error.instance()),
        };
        Self { pointer: error.instance_path().to_string(), detail }
    }

    /// The violation as a phrase: `/city: expected a string, got a number`.
    pub fn phrase(&self) -> String {
        if self.pointer.is_empty() { self.detail.clone() } else { format!("{}: {}", self.pointer, self.detail) }
    }
}

fn union(error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> Violation {
    let own = error.instance_path().to_string();
    let branches: Vec<String> = context
        .iter()
        .filter(|branch| !branch.is_empty())
        .take(8)
        .map(|branch| {
            let parts: Vec<String> = branch
                .iter()
                .take(3)
                .map(|inner| {
                    let inner = Violation::from_error(inner);
                    let rest = inner.pointer.strip_prefix(&own).unwrap_or(&inner.pointer);
                    if rest.is_empty() { inner.detail } else { format!("{rest}: {}", inner.detail) }
                })
                .collect();
            parts.join(" and ")
        })
        .collect();
    Violation { pointer: own, detail: format!("fits none of the allowed forms ({})", branches.join("; or ")) }
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
    const MOST: usize = 100;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain(['…']).collect() }
}
