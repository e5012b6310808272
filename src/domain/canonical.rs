//! When two documents say the same: one hash for all spellings of a JSON value.
//!
//! The order of keys, white space, escapes and the spelling of numbers do not count (`1`, `1.0` and `10e-1` are one number, however
//! many digits it has); everything else does, the order of elements and a null member beside an absent one too.

use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

/// The hash of a value and of what is said beside it.
pub fn canonical_hash(value: &Value, beside: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    text(&mut hash, beside);
    add(&mut hash, value);
    hash.finalize().into()
}

fn add(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Number(number) => {
            hash.update(b"#");
            text(hash, &plain(number));
        }
        Value::String(string) => {
            hash.update(b"s");
            text(hash, string);
        }
        Value::Array(elements) => {
            hash.update(b"[");
            count(hash, elements.len());
            for element in elements {
                add(hash, element);
            }
        }
        Value::Object(members) => {
            hash.update(b"{");
            count(hash, members.len());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            for (key, member) in members {
                text(hash, key);
                add(hash, member);
            }
        }
    }
}

/// With its length first, so that no two lists of texts run together to the same bytes.
fn text(hash: &mut Sha256, text: &str) {
    count(hash, text.len());
    hash.update(text.as_bytes());
}

fn count(hash: &mut Sha256, count: usize) {
    hash.update((count as u64).to_be_bytes());
}

/// A number's one spelling: its digits without zeros at either end, and the power of ten that they are multiplied by.
fn plain(number: &Number) -> String {
    let text = number.to_string();
    let (sign, rest) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (digits, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    // An exponent beyond any number that is written out: its text is as good.
    let Ok(exponent) = exponent.parse::<i128>() else { return text };
    let zeros = all.len() - all.trim_end_matches('0').len();
    let power = exponent - i128::try_from(fraction.len()).unwrap_or(0) + i128::try_from(zeros).unwrap_or(0);
    format!("{sign}{significant}e{power}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json::parse;

    fn hash(text: &str) -> [u8; 32] {
        canonical_hash(&parse(text.as_bytes(), 64).unwrap(), "")
    }

    #[test]
    fn spellings_of_one_value_are_one() {
        for (one, other) in [
            (r#"{"a":1,"b":[2,{"c":3,"d":4}]}"#, r#" { "b" : [2, {"d":4,"c":3}], "a" : 1 } "#),
            (r#""\u0041/""#, r#""A\/""#),
            ("[1, -0, 100, 0.10]", "[1.0, 0, 1e2, 1e-1]"),
            ("[123456789012345678901234567890.5]", "[1234567890123456789012345678905E-1]"),
            ("[1E400]", "[10e399]"),
        ] {
            assert_eq!(hash(one), hash(other), "{one} {other}");
        }
    }

    #[test]
    fn other_values_are_others() {
        let different = [
            "null",
            "false",
            "true",
            "0",
            "1",
            "-1",
            "10",
            "0.1",
            "9007199254740993",
            "9007199254740992",
            r#""""#,
            r#""1""#,
            "[]",
            "{}",
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "[[1,2]]",
            r#"["ab"]"#,
            r#"["a","b"]"#,
            r#"{"a":null}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":1,"b":1}"#,
            r#"{"ab":1}"#,
        ];
        let hashes: std::collections::HashSet<_> = different.iter().map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), different.len());
        assert_ne!(canonical_hash(&Value::Null, ""), canonical_hash(&Value::Null, "skip"));
    }
}
