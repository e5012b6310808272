//! Arithmetic without rounding errors, which models make.

use super::decimal::Fraction;
use super::{HandlerResult, NativeHandler};
use crate::domain::json::Object;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// The native handler of the tool `calculate`.
#[derive(Clone, Copy, Debug)]
pub struct Calculate;

/// The deepest nesting of parentheses and signs.
const MAX_DEPTH: usize = 100;
/// The largest exponent: beyond it nothing but 0 and 1 fits.
const MAX_EXPONENT: u32 = 127;
const TOO_LARGE: &str = "a number on the way has too many digits for exact arithmetic; calculate in smaller steps";

pub(super) fn definition() -> Value {
    json!({
        "name": "calculate",
        "description": "Works out an arithmetic expression exactly, with decimals and fractions as they are: 0.1 + 0.2 is 0.3. Takes + - * / \
            ^ (whole exponents), % (remainder) and parentheses. Call this instead of calculating yourself.",
        "input_schema": {
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "The expression, such as \"(1299.90 * 3) * 1.081\".",
                    "minLength": 1,
                    "maxLength": 1000
                }
            },
            "required": ["expression"],
            "additionalProperties": false
        },
        "annotations": {"title": "Calculator", "read_only": true, "open_world": false},
        "tags": ["built-in"]
    })
}

impl NativeHandler for Calculate {
    fn call<'a>(
        &'a self,
        _tool: &'a str,
        input: Object,
        _context: &'a Object,
    ) -> BoxFuture<'a, Result<HandlerResult, String>> {
        Box::pin(async move {
            let expression = input.get("expression").and_then(Value::as_str).ok_or("expression must be a string")?;
            let (value, exact) = evaluate(expression)?.decimal();
            let text = if exact { value.clone() } else { format!("{value} (rounded)") };
            let data = [("value".to_owned(), value.into()), ("exact".to_owned(), exact.into())];
            Ok(HandlerResult::with_data(text, data.into_iter().collect()))
        })
    }
}

/// Works out an expression. The error says what is wrong and where.
fn evaluate(expression: &str) -> Result<Fraction, String> {
    let mut reader = Reader { text: expression, at: 0, depth: 0 };
    let value = reader.sum()?;
    match reader.peek() {
        None => Ok(value),
        Some(found) => Err(reader.unexpected(found)),
    }
}

/// Reads by precedence, from loose to tight: sums, products, signs, powers, then numbers and parentheses.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let found = self.peek().filter(|found| wanted.contains(found))?;
        self.at += found.len_utf8();
        Some(found)
    }

    fn unexpected(&self, found: char) -> String {
        let column = self.text[..self.at].chars().count() + 1;
        format!("unexpected {found:?} at character {column}; only numbers, + - * / ^ % and parentheses are understood")
    }

    fn sum(&mut self) -> Result<Fraction, String> {
        let mut value = self.product()?;
        while let Some(operator) = self.take(&['+', '-', '−']) {
            let next = self.product()?;
            let next = if operator == '+' { Some(next) } else { next.negate() };
            value = next.and_then(|next| value.add(next)).ok_or(TOO_LARGE)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Fraction, String> {
        let mut value = self.signed()?;
        while let Some(operator) = self.take(&['*', '×', '/', '÷', '%']) {
            let next = self.signed()?;
            if !matches!(operator, '*' | '×') && next.is_zero() {
                return Err("a division by zero".to_owned());
            }
            let result = match operator {
                '*' | '×' => value.multiply(next),
                '%' => value.remainder(next),
                _ => value.divide(next),
            };
            value = result.ok_or(TOO_LARGE)?;
        }
        Ok(value)
    }

    fn signed(&mut self) -> Result<Fraction, String> {
        self.deeper(|reader| match reader.take(&['+', '-', '−']) {
            None => reader.power(),
            Some('+') => reader.signed(),
            Some(_) => Ok(reader.signed()?.negate().ok_or(TOO_LARGE)?),
        })
    }

    /// Binds tighter than a sign in front of it and looser than one behind it: `-2^2` is -4, and `2^-1` is 0.5.
    fn power(&mut self) -> Result<Fraction, String> {
        let base = self.atom()?;
        if self.take(&['^']).is_none() {
            return Ok(base);
        }
        let exponent = self.signed()?;
        let (size, turned) = match exponent.small_whole(MAX_EXPONENT) {
            Some(size) => (size, false),
            None => match exponent.negate().and_then(|exponent| exponent.small_whole(MAX_EXPONENT)) {
                Some(size) => (size, true),
                None => {
                    return Err(format!("an exponent must be a whole number from -{MAX_EXPONENT} to {MAX_EXPONENT}"));
                }
            },
        };
        if turned && base.is_zero() {
            return Err("a division by zero".to_owned());
        }
        let raised = (0..size).try_fold(Fraction::whole(1), |value, _| value.multiply(base)).ok_or(TOO_LARGE)?;
        let raised = if turned { Fraction::whole(1).divide(raised) } else { Some(raised) };
        raised.ok_or_else(|| TOO_LARGE.to_owned())
    }

    fn atom(&mut self) -> Result<Fraction, String> {
        if self.take(&['(']).is_some() {
            let value = self.deeper(Self::sum)?;
            return match self.take(&[')']) {
                Some(_) => Ok(value),
                None => Err("a parenthesis is not closed".to_owned()),
            };
        }
        let Some(found) = self.peek() else { return Err("the expression ends where a number is expected".to_owned()) };
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.unexpected(found));
        }
        let number = Fraction::parse(&rest[..length])
            .ok_or_else(|| format!("the number at {found:?} cannot be read, or has over 38 digits"))?;
        self.at += length;
        Ok(number)
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} parentheses and signs inside each other"));
        }
        let result = read(self);
        self.depth -= 1;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_results() {
        for (expression, expected) in [
            ("0.1 + 0.2", "0.3"),
            ("1299.90 * 3 * 1.081", "4215.5757"),
            ("1 - 2 - 3", "-4"),
            ("2 + 3 * 4 ^ 2", "50"),
            ("(2+3)*4", "20"),
            ("-2^2", "-4"),
            ("2^3^2", "512"),
            ("2^-2", "0.25"),
            ("--5 × 2 ÷ 4 − 1", "1.5"),
            ("1/3*3", "1"),
            ("7 % 3", "1"),
            ("-7 % 3", "-1"),
            ("5.5 % 2", "1.5"),
            ("0^0", "1"),
            ("12345678901234567890 * 98765432109876543", "1219326311370217949644871231852004270"),
        ] {
            assert_eq!(evaluate(expression).map(Fraction::decimal), Ok((expected.to_owned(), true)), "{expression}");
        }
        assert_eq!(evaluate("2/3").unwrap().decimal(), ("0.666666666666667".to_owned(), false));
    }

    #[test]
    fn what_cannot_be_worked_out_says_why() {
        let deep = "(".repeat(5000);
        for (expression, part) in [
            ("", "ends"),
            ("1 +", "ends"),
            ("1 2", "'2' at character 3"),
            ("sin(1)", "'s' at character 1"),
            ("(1", "not closed"),
            ("1)", "')'"),
            ("1/0", "zero"),
            ("1 % (2 - 2)", "zero"),
            ("0^-1", "zero"),
            ("2^0.5", "whole"),
            ("2^1000", "whole"),
            ("10^100", "too many digits"),
            ("1.2.3", "cannot be read"),
            (&deep, "inside each other"),
        ] {
            let why = evaluate(expression).unwrap_err();
            assert!(why.contains(part), "{expression}: {why}");
        }
    }
}
