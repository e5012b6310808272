//! What stands where a call's arguments belong, read as an object.

use super::json::{self, Object};
use serde_json::Value;

/// The deepest arguments, in levels of arrays and objects.
pub const MAX_DEPTH: usize = 64;
/// The longest arguments, in bytes of their JSON text.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Reads arguments: an object as it is; text as the JSON that it holds; null and blank text as `{}`.
/// The error is a sentence that tells a model what to send instead.
pub fn read(arguments: &Value) -> Result<Object, String> {
    match arguments {
        Value::Null => Ok(Object::new()),
        Value::Object(members) => {
            if levels(arguments) > MAX_DEPTH {
                return Err(format!("the arguments are nested deeper than {MAX_DEPTH} levels; send a flatter object"));
            }
            in_range(members.clone())
        }
        Value::String(text) if text.trim().is_empty() => Ok(Object::new()),
        Value::String(text) => from_text(text),
        other => Err(not_an_object(other)),
    }
}

fn from_text(text: &str) -> Result<Object, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("the arguments have {} bytes, at most {MAX_BYTES} are taken; send less", text.len()));
    }
    match json::parse(text.as_bytes(), MAX_DEPTH) {
        Ok(Value::Object(members)) => in_range(members),
        Ok(other) => Err(not_an_object(&other)),
        Err(detail) => Err(format!("the arguments are not valid JSON: {detail}. Send one JSON object")),
    }
}

/// Refuses numbers that most readers of JSON turn into infinity: a handler would get another value than the model sent.
fn in_range(members: Object) -> Result<Object, String> {
    let mut open: Vec<&Value> = members.values().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Number(number) if !number.as_f64().is_some_and(f64::is_finite) => {
                return Err("a number in the arguments is too large for the JSON numbers of most programs; send a smaller one, or a text if the tool takes one".to_owned());
            }
            Value::Array(elements) => open.extend(elements),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    Ok(members)
}

fn not_an_object(value: &Value) -> String {
    format!("the arguments must be a JSON object, got {}", json::kind(value))
}

/// How many levels of arrays and objects a value has. Walks without recursion, since values may be composed deeper than
/// a stack is.
pub fn levels(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        match value {
            Value::Array(elements) => open.extend(elements.iter().map(|inner| (inner, level + 1))),
            Value::Object(members) => open.extend(members.values().map(|inner| (inner, level + 1))),
            _ => continue,
        }
        deepest = deepest.max(level);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_object_blank_and_null_are_understood() {
        for empty in [json!(null), json!(""), json!("  \n"), json!({}), json!("{}")] {
            assert_eq!(read(&empty), Ok(Object::new()), "{empty}");
        }
        let text = r#"{"n":12345678901234567890123.50}"#;
        assert_eq!(Value::Object(read(&json!(text)).unwrap()).to_string(), text);
    }

    #[test]
    fn anything_else_is_an_error_for_the_model() {
        for bad in
            [json!([1]), json!("[1]"), json!(7), json!("{\"a\":"), json!("{\"a\":1}{\"b\":2}"), json!("{\"a\":NaN}")]
        {
            assert!(read(&bad).is_err(), "{bad}");
        }
        assert!(read(&json!("{\"a\":1,\"a\":2}")).unwrap_err().contains("twice"));
        assert!(read(&json!(format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_BYTES)))).is_err());
    }
}
