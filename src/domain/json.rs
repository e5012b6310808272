//! JSON read strictly: what two parsers could read differently is refused.
//!
//! `serde_json` keeps the last of two equal keys in silence, so a signature or a check over one reading says nothing
//! about another. Here a repeated key is an error, nesting is bounded, and numbers keep every digit.

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// An object in the order in which it was written.
pub type Object = Map<String, Value>;

/// The key under which `serde_json`, built with `arbitrary_precision`, hands the digits of a number to a visitor.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";

/// Reads a JSON text. Refuses repeated keys, NaN, text after the value, and more than `max_depth` levels of arrays and
/// objects. The error is a sentence for the author of the text; it does not repeat the text.
pub fn parse(text: &[u8], max_depth: usize) -> Result<Value, String> {
    let mut source = serde_json::Deserializer::from_slice(text);
    let value = Strict { levels_left: max_depth, max_depth }.deserialize(&mut source).map_err(|e| describe(&e))?;
    source.end().map_err(|e| describe(&e))?;
    Ok(value)
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
struct Strict {
    levels_left: usize,
    max_depth: usize,
}

impl Strict {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(Self { levels_left, ..self }),
            None => Err(E::custom(format!("nested deeper than {} levels", self.max_depth))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
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

/// A value read by [`parse`]'s rules wherever serde reads it, with `serde_json`'s own bound on depth (127 levels).
#[derive(Clone, Debug, PartialEq)]
pub struct StrictValue(pub Value);

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Strict { levels_left: 127, max_depth: 127 }.deserialize(source).map(StrictValue)
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
    fn refuses_what_is_not_json() {
        for text in ["", "NaN", "{} {}", r#""\ud800""#, "{'a':1}", "\u{feff}{}", "[1,]"] {
            assert!(parse(text.as_bytes(), 64).is_err(), "{text:?}");
        }
        assert!(parse(b"\"\xff\"", 64).is_err());
    }
}
