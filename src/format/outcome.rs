//! Text and objects of results that no provider refuses.

use crate::domain::json::Object;
use crate::domain::{Answered, Caller, Content, Outcome, arguments};
use serde_json::Value;

/// What stands for a text that is empty where a provider takes none.
pub(super) const NOTHING: &str = "(no output)";
/// The deepest object that goes to a provider as an object: protobuf readers stop at 100 levels, and the messages around
/// it have some of their own.
const MAX_DEPTH: usize = 64;

/// What a model is to see of an outcome.
pub(super) enum Seen<'a> {
    /// Text. May be empty.
    Text(String),
    /// An object, for a place that holds one, and its text, for the others.
    Object(&'a Object, &'a str),
    /// A picture, and the text that stands for it where there is no place for one.
    Picture { media_type: &'a str, base64: &'a str, text: String },
    /// An error's message; not empty.
    Error(&'a str),
}

/// What the model sees of an answered call. Code that the model runs gets text and objects, no pictures: the providers
/// that run it take only text from their callers' tools (**D** Anthropic, "Programmatic tool calling").
pub(super) fn seen<'a>(answered: &Answered<'a>) -> Seen<'a> {
    match answered.outcome {
        Outcome::Failure(failure) if failure.message.trim().is_empty() => Seen::Error("the tool failed"),
        Outcome::Failure(failure) => Seen::Error(&failure.message),
        Outcome::Pending(told) => Seen::Text(told.clone()),
        Outcome::Success(success) => match &success.content {
            Content::Json { value, text } => match plain_object(value) {
                Some(object) if answered.result_type != Some(crate::domain::options::ResultType::Text) => {
                    Seen::Object(object, text)
                }
                _ => Seen::Text(text.clone()),
            },
            Content::Image { media_type, base64 } if answered.call.caller == Caller::Human => {
                Seen::Picture { media_type, base64, text: success.content.text() }
            }
            other => Seen::Text(other.text()),
        },
    }
}

/// The text for a provider whose results are text alone: an error says so in its first word.
pub(super) fn text(answered: &Answered<'_>) -> String {
    match seen(answered) {
        Seen::Text(text) | Seen::Picture { text, .. } => text,
        Seen::Object(_, text) => text.to_owned(),
        Seen::Error(message) => error_text(message),
    }
}

/// An error as text.
pub(super) fn error_text(message: &str) -> String {
    format!("Error: {message}")
}

/// The text, or what stands for an empty one. Anthropic and Bedrock refuse text that is empty or blank (**E**).
pub(super) fn not_blank(text: String) -> String {
    if text.trim().is_empty() { NOTHING.to_owned() } else { text }
}

/// The value, if it is an object that every provider with a place for objects takes: Bedrock refuses empty keys (**E**),
/// readers turn numbers beyond a double into infinity, and depth is bounded.
pub(super) fn plain_object(value: &Value) -> Option<&Object> {
    let object = value.as_object()?;
    let plain = arguments::levels(value) <= MAX_DEPTH
        && all_inside(object, &|value| is_finite(value) && value.get("").is_none());
    (plain && !object.contains_key("")).then_some(object)
}

/// The object, if a reader finds in it what was written: numbers beyond a double become infinity, which is no JSON.
pub(super) fn readable_object(object: &Object) -> Option<&Object> {
    all_inside(object, &is_finite).then_some(object)
}

fn is_finite(value: &Value) -> bool {
    !matches!(value, Value::Number(number) if !number.as_f64().is_some_and(f64::is_finite))
}

/// Whether something holds of every value inside an object.
fn all_inside(object: &Object, holds: &impl Fn(&Value) -> bool) -> bool {
    let mut open: Vec<&Value> = object.values().collect();
    while let Some(value) = open.pop() {
        if !holds(value) {
            return false;
        }
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(elements) => open.extend(elements),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_plain_objects_go_as_objects() {
        assert!(plain_object(&json!({"a": [1, {"b": null}]})).is_some());
        assert!(plain_object(&json!({})).is_some());
        let huge: Value = serde_json::from_str(r#"{"a":1e400}"#).unwrap();
        let mut deep = json!(1);
        for _ in 0..70 {
            deep = json!({ "a": deep });
        }
        for bad in [json!([1]), json!("x"), json!(null), json!({"a": {"": 1}}), json!({"a": [{"": 1}]}), huge, deep] {
            assert!(plain_object(&bad).is_none(), "{bad}");
        }
        let keyed = json!({"": {"": 1}});
        assert!(readable_object(keyed.as_object().unwrap()).is_some());
        let huge: Value = serde_json::from_str(r#"{"a":[{"b":-1e400}]}"#).unwrap();
        assert!(readable_object(huge.as_object().unwrap()).is_none());
    }
}
