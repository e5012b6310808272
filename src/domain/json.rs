//! JSON read strictly: what two parsers could read differently is refused.
//!
//! `serde_json` keeps the last of two equal keys in silence, so a signature or a check over one reading says nothing
//! about another. Here a repeated key is an error, nesting is bounded, and numbers keep every digit.

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// An object in the order in which it was written.
pub type Object = Map<String, Value>;

/// The most values in one text: a text of two bytes a value would take fifty times its size in memory.
pub const MAX_VALUES: usize = 200_000;

/// The keys by which `serde_json`, built with `arbitrary_precision` and `raw_value`, tells itself what an object stands
/// for: the digits of a number, and a text that is kept. It takes them from a text too, so an object with such a key
/// would be read as something else than what was written, by us or by whoever reads what we wrote.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";
const RAW_TOKEN: &str = "$serde_json::private::RawValue";

/// Reads a JSON text. Refuses repeated keys, NaN, text after the value, more than `max_depth` levels of arrays and
/// objects, and more than [`MAX_VALUES`] values. The error is a sentence for the author of the text; it does not repeat
/// the text.
pub fn parse(text: &[u8], max_depth: usize) -> Result<Value, String> {
    check_keys(text)?;
    let mut source = serde_json::Deserializer::from_slice(text);
    let values = Cell::new(MAX_VALUES);
    let strict = Strict { levels_left: max_depth, max_depth, values_left: &values };
    let value = strict.deserialize(&mut source).map_err(|e| describe(&e))?;
    source.end().map_err(|e| describe(&e))?;
    Ok(value)
}

/// Refuses a text with a key that `serde_json` gives a meaning of its own, however it is spelled. Whether the rest is
/// JSON is the parser's to say.
pub fn check_keys(text: &[u8]) -> Result<(), String> {
    let mut rest = text;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        let inside = rest.get(start + 1..).unwrap_or_default();
        let mut end = 0;
        while let Some(byte) = inside.get(end)
            && *byte != b'"'
        {
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        let written = inside.get(..end).unwrap_or_default();
        rest = inside.get(end + 1..).unwrap_or_default();
        let key = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        if key && is_token(written) {
            return Err("an object has a key that is kept for other uses; give it another name".to_owned());
        }
    }
    Ok(())
}

/// Whether the inside of a string is one of the tokens. An escape takes at most six bytes for one.
fn is_token(written: &[u8]) -> bool {
    let lengths = NUMBER_TOKEN.len()..=6 * RAW_TOKEN.len();
    if !lengths.contains(&written.len()) || !matches!(written.first(), Some(b'$' | b'\\')) {
        return false;
    }
    let quoted = [b"\"", written, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|key| key == NUMBER_TOKEN || key == RAW_TOKEN)
}

/// A parser's error as a sentence with its place.
pub fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    if error.line() == 0 {
        what.to_owned()
    } else {
        format!("{what} (line {}, column {})", error.line(), error.column())
    }
}

/// The word for a value's type, as JSON Schema says it, with its article.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[derive(Clone, Copy)]
struct Strict<'c> {
    levels_left: usize,
    max_depth: usize,
    values_left: &'c Cell<usize>,
}

impl Strict<'_> {
    fn count<E: de::Error>(self) -> Result<(), E> {
        let left = self.values_left.get().checked_sub(1);
        left.map(|left| self.values_left.set(left))
            .ok_or_else(|| E::custom(format!("has more than {MAX_VALUES} values")))
    }

    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(Self { levels_left, ..self }),
            None => Err(E::custom(format!("nested deeper than {} levels", self.max_depth))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        self.count()?;
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut elements = Vec::new();
        while let Some(element) = source.next_element_seed(inner)? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let Some(first) = source.next_key::<String>()? else { return Ok(Value::Object(Map::new())) };
        if first == NUMBER_TOKEN {
            let digits = source.next_value::<String>()?;
            return digits.parse::<Number>().map(Value::Number).map_err(de::Error::custom);
        }
        let inner = self.deeper()?;
        let mut members = Map::new();
        members.insert(first, source.next_value_seed(inner)?);
        while let Some(key) = source.next_key::<String>()? {
            if members.contains_key(&key) {
                return Err(de::Error::custom(format!("the key {key:?} stands twice in one object")));
            }
            members.insert(key, source.next_value_seed(inner)?);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_digits() {
        let text = r#"{"b":1.10,"a":[123456789012345678901234567890,1e400,-0],"":null}"#;
        assert_eq!(parse(text.as_bytes(), 64).unwrap().to_string(), text.replace("1e400", "1e+400"));
    }

    #[test]
    fn refuses_a_repeated_key_however_it_is_spelled() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"a":1,"\u0061":2}]"#] {
            assert!(parse(text.as_bytes(), 64).unwrap_err().contains("twice"), "{text}");
        }
    }

    #[test]
    fn bounds_the_depth() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(nested(64).as_bytes(), 64).is_ok());
        assert!(parse(nested(65).as_bytes(), 64).unwrap_err().contains("64 levels"));
        assert!(parse(nested(100_000).as_bytes(), 64).is_err());
    }

    #[test]
    fn refuses_the_keys_that_the_parser_gives_a_meaning() {
        for text in [
            r#"{"$serde_json::private::Number":"7"}"#,
            r#"[{"a":{"$serde_json::private::RawValue" : "[1]"}}]"#,
            r#"{"a":"\\\"","\u0024serde_json::private::Number":"7"}"#,
            r#"{"a":1,"$serde_json::privat\u0065::RawValue":{}}"#,
        ] {
            assert!(parse(text.as_bytes(), 64).unwrap_err().contains("key"), "{text}");
        }
        for text in [r#"["$serde_json::private::Number"]"#, r#"{"$serde_json":1,"a":"$serde_json::private::Number"}"#] {
            assert_eq!(parse(text.as_bytes(), 64).unwrap().to_string(), text);
        }
        for broken in ["\"", "\"\\", "{\"a\\", "{\"$"] {
            assert!(check_keys(broken.as_bytes()).is_ok() && parse(broken.as_bytes(), 64).is_err());
        }
    }

    #[test]
    fn bounds_the_number_of_values() {
        let many = |count: usize| format!("[{}1]", "[],".repeat(count - 2));
        assert!(parse(many(MAX_VALUES).as_bytes(), 64).is_ok());
        assert!(parse(many(MAX_VALUES + 1).as_bytes(), 64).unwrap_err().contains("values"));
    }

    #[test]
    fn refuses_what_is_not_json() {
        for text in ["", "NaN", "{} {}", r#""\ud800""#, "{'a':1}", "\u{feff}{}", "[1,]"] {
            assert!(parse(text.as_bytes(), 64).is_err(), "{text:?}");
        }
        assert!(parse(b"\"\xff\"", 64).is_err());
    }
}
