//! What stands where a call's arguments belong, read as an object.

use super::json::{self, Object};
use serde_json::Value;

/// The deepest arguments, in levels of arrays and objects.
pub const MAX_DEPTH: usize = 64;
/// The longest arguments, in bytes of their JSON text.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Arguments that were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// The arguments.
    pub object: Object,
    /// Whether they were encoded twice: a JSON text inside a JSON text. A text can never be an object's value, so what is
    /// inside is plainly meant.
    pub twice: bool,
}

/// Reads arguments: an object as it is; text as the JSON that it holds, once or twice over; null and blank text as `{}`.
/// The error is a sentence that tells a model what to send instead.
pub fn read(arguments: &Value) -> Result<Arguments, String> {
    let (object, twice) = match arguments {
        Value::String(text) => match from_text(text)? {
            Value::String(inner) => (object(from_text(&inner)?)?, true),
            value => (object(value)?, false),
        },
        value => (object(value.clone())?, false),
    };
    Ok(Arguments { object: bounded(object)?, twice })
}

fn from_text(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    if text.len() > MAX_BYTES {
        return Err(format!("the arguments have {} bytes, at most {MAX_BYTES} are taken; send less", text.len()));
    }
    json::parse(text.as_bytes(), MAX_DEPTH)
        .map_err(|detail| format!("the arguments are not valid JSON: {detail}. Send one JSON object"))
}

fn object(value: Value) -> Result<Object, String> {
    match value {
        Value::Null => Ok(Object::new()),
        Value::Object(members) => Ok(members),
        other => Err(format!("the arguments must be a JSON object, got {}", json::kind(&other))),
    }
}

/// Refuses what is too long or nested too deep, and numbers that most readers of JSON turn into infinity: a handler would get another
/// value than the model sent.
pub fn bounded(members: Object) -> Result<Object, String> {
    let whole = Value::Object(members);
    if serde_json::to_writer(Room(MAX_BYTES), &whole).is_err() {
        return Err(format!("the arguments have more than {MAX_BYTES} bytes; send less"));
    }
    if levels(&whole) > MAX_DEPTH {
        return Err(format!("the arguments are nested deeper than {MAX_DEPTH} levels; send a flatter object"));
    }
    let mut open = vec![&whole];
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
    object(whole)
}

/// Takes as many bytes as there is room for, and keeps none.
struct Room(usize);

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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

    fn taken(arguments: &Value) -> Object {
        let read = read(arguments).unwrap();
        assert!(!read.twice, "{arguments}");
        read.object
    }

    #[test]
    fn text_object_blank_and_null_are_understood() {
        for empty in [json!(null), json!(""), json!("  \n"), json!({}), json!("{}"), json!("null")] {
            assert_eq!(taken(&empty), Object::new(), "{empty}");
        }
        let text = r#"{"n":12345678901234567890123.50}"#;
        assert_eq!(Value::Object(taken(&json!(text))).to_string(), text);
    }

    #[test]
    fn what_was_encoded_twice_is_read_and_what_was_encoded_thrice_is_not() {
        let once = r#"{ "n": 21 }"#;
        let twice = json!(once).to_string();
        let read_twice = read(&json!(twice)).unwrap();
        assert_eq!((Value::Object(read_twice.object), read_twice.twice), (json!({"n": 21}), true));
        assert_eq!(read(&json!("\"\"")), Ok(Arguments { object: Object::new(), twice: true }));
        assert!(read(&json!(json!(twice).to_string())).unwrap_err().contains("object, got a string"));
        assert!(read(&json!("\"{\\\"a\\\":1,\\\"a\\\":2}\"")).unwrap_err().contains("twice in one object"));
    }

    #[test]
    fn anything_else_is_an_error_for_the_model() {
        for bad in [
            json!([1]),
            json!("[1]"),
            json!(7),
            json!(true),
            json!("a"),
            json!("\"a\""),
            json!("{\"a\":"),
            json!("{\"a\":1}{\"b\":2}"),
            json!("{\"a\":NaN}"),
            json!("{\"a\":1e999}"),
        ] {
            assert!(read(&bad).is_err(), "{bad}");
        }
        assert!(read(&json!("{\"a\":1,\"a\":2}")).unwrap_err().contains("twice"));
        assert!(read(&json!(format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_BYTES)))).is_err());
        assert!(read(&json!({"a": "x".repeat(MAX_BYTES)})).unwrap_err().contains("bytes"));
        assert!(read(&json!({"a": "x".repeat(MAX_BYTES - 8)})).is_ok());
    }
}
