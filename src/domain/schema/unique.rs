//! Whether the elements of an array all differ, in time that grows with their size alone.
//!
//! The validator's own way hashes numbers as floats and arrays without their brackets, so that a list can be written
//! whose elements all hash alike, and each is compared with each.

use super::meter;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Write as _;

/// Whether no two elements are equal as JSON Schema means it: numbers by their value, objects in any order.
pub(super) fn all_differ(elements: &[Value]) -> bool {
    let mut seen = HashSet::with_capacity(elements.len());
    elements.iter().all(|element| {
        let mut text = String::new();
        write(element, &mut text);
        seen.insert(text)
    })
}

/// Writes a value so that equal values have equal texts.
fn write(value: &Value, out: &mut String) {
    meter::step(4);
    match value {
        Value::Number(number) => out.push_str(&canonical(number.as_str())),
        Value::String(text) => {
            meter::step(text.len() as u64 / 64);
            let _ = write!(out, "{text:?}");
        }
        Value::Array(elements) => {
            out.push('[');
            for element in elements {
                write(element, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in sorted {
                let _ = write!(out, "{name:?}:");
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Bool(_) | Value::Null => {
            let _ = write!(out, "{value}");
        }
    }
}

/// A number's digits without zeros at either end, and the power of ten that they are times.
fn canonical(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (written, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    let zeros = all.len() - all.trim_end_matches('0').len();
    let places = i128::try_from(zeros).unwrap_or(0) - i128::try_from(fraction.len()).unwrap_or(0);
    match exponent.parse::<i128>().ok().and_then(|exponent| exponent.checked_add(places)) {
        Some(exponent) => format!("{sign}{digits}e{exponent}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_meaning_of_json_schema() {
        for (text, differ) in [
            ("[]", true),
            ("[1]", true),
            ("[1, 1.0]", false),
            ("[0, -0.0]", false),
            ("[100, 1e2]", false),
            ("[0.1, 1e-1]", false),
            ("[10, 1]", true),
            ("[9007199254740993, 9007199254740992]", true),
            ("[1, true, \"1\", \"true\", null, \"null\"]", true),
            ("[[1, 2], [[1], 2], [[1, 2]], [], [[]]]", true),
            ("[{\"a\": 1, \"b\": 2}, {\"b\": 2.0, \"a\": 1}]", false),
            ("[{\"a\": 1}, {\"a\": 2}]", true),
            ("[\"a\", \"a\"]", false),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(all_differ(value.as_array().unwrap()), differ, "{text}");
        }
    }
}
