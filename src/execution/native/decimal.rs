//! Exact fractions, read from and written as decimals.

/// A fraction in lowest terms with a positive denominator. Every operation is exact or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    numerator: i128,
    denominator: i128,
}

/// How many digits after the point are written where a fraction has no end.
const ROUNDED_DIGITS: usize = 15;

impl Fraction {
    pub(super) const fn whole(number: i128) -> Self {
        Self { numerator: number, denominator: 1 }
    }

    /// `numerator / denominator` in lowest terms. Nothing for a zero denominator, or for numbers that cannot be turned around.
    fn new(numerator: i128, denominator: i128) -> Option<Self> {
        let divisor = i128::try_from(common_divisor(numerator.unsigned_abs(), denominator.unsigned_abs())).ok()?;
        let sign = if denominator < 0 { -1 } else { 1 };
        (denominator != 0).then_some(())?;
        Some(Self {
            numerator: (numerator / divisor).checked_mul(sign)?,
            denominator: (denominator / divisor).checked_mul(sign)?,
        })
    }

    /// Reads digits with at most one point among them.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Self::new(digits.parse().ok()?, 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?)
    }

    pub(super) fn add(self, other: Self) -> Option<Self> {
        // Over the least common denominator, so that long sums of like fractions stay small.
        let shared =
            i128::try_from(common_divisor(self.denominator.unsigned_abs(), other.denominator.unsigned_abs())).ok()?;
        let left = self.numerator.checked_mul(other.denominator / shared)?;
        let right = other.numerator.checked_mul(self.denominator / shared)?;
        Self::new(left.checked_add(right)?, self.denominator.checked_mul(other.denominator / shared)?)
    }

    pub(super) fn negate(self) -> Option<Self> {
        Some(Self { numerator: self.numerator.checked_neg()?, ..self })
    }

    pub(super) fn multiply(self, other: Self) -> Option<Self> {
        // Shortened crosswise first, so that only a product that is too large itself fails.
        let left = Self::new(self.numerator, other.denominator)?;
        let right = Self::new(other.numerator, self.denominator)?;
        let numerator = left.numerator.checked_mul(right.numerator)?;
        Self::new(numerator, left.denominator.checked_mul(right.denominator)?)
    }

    pub(super) fn divide(self, other: Self) -> Option<Self> {
        self.multiply(Self::new(other.denominator, other.numerator)?)
    }

    /// What is left of `self` after whole multiples of `other`, with the sign of `self`.
    pub(super) fn remainder(self, other: Self) -> Option<Self> {
        let quotient = self.divide(other)?;
        let whole = Self::whole(quotient.numerator / quotient.denominator);
        self.add(whole.multiply(other)?.negate()?)
    }

    pub(super) const fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// A whole number between 0 and `most`.
    pub(super) fn small_whole(self, most: u32) -> Option<u32> {
        (self.denominator == 1).then_some(self.numerator)?.try_into().ok().filter(|number| *number <= most)
    }

    /// The decimal, and whether it is exact. Rounded half away from zero where it has no end.
    pub(super) fn decimal(self) -> (String, bool) {
        let sign = if self.numerator < 0 { "-" } else { "" };
        let denominator = self.denominator.unsigned_abs();
        let (whole, mut rest) =
            (self.numerator.unsigned_abs() / denominator, self.numerator.unsigned_abs() % denominator);
        let terminates = without(without(denominator, 2), 5) == 1;
        let mut digits = Vec::new();
        while rest != 0 && (terminates || digits.len() < ROUNDED_DIGITS) {
            let (digit, left) = next_digit(rest, denominator);
            digits.push(digit);
            rest = left;
        }
        let mut whole = whole;
        if rest != 0 && rest >= denominator - rest {
            whole += round_up(&mut digits);
        }
        let fraction: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let fraction = if rest == 0 { fraction.as_str() } else { fraction.trim_end_matches('0') };
        let point = if fraction.is_empty() { "" } else { "." };
        (format!("{sign}{whole}{point}{fraction}"), rest == 0)
    }
}

/// The next digit of `rest / denominator`, and what is left: ten times `rest` need not fit.
fn next_digit(rest: u128, denominator: u128) -> (u8, u128) {
    let (mut digit, mut left) = (0_u8, 0_u128);
    for _ in 0..10 {
        // `left + rest` is below twice the denominator, which is at most 2^127.
        left += rest;
        if left >= denominator {
            left -= denominator;
            digit += 1;
        }
    }
    (digit, left)
}

/// Adds one to the last digit; the carry is what is left over for the whole number.
fn round_up(digits: &mut [u8]) -> u128 {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return 0;
        }
        *digit = 0;
    }
    1
}

const fn without(mut number: u128, factor: u128) -> u128 {
    while number.is_multiple_of(factor) {
        number /= factor;
    }
    number
}

const fn common_divisor(mut one: u128, mut other: u128) -> u128 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    if one == 0 { 1 } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_where_they_can_be() {
        let ratio = |over: i128, under: i128| Fraction::new(over, under).unwrap().decimal();
        for (over, under, text, exact) in [
            (1, 8, "0.125", true),
            (-7, 2, "-3.5", true),
            (7, -2, "-3.5", true),
            (6, 3, "2", true),
            (0, -5, "0", true),
            (1, 3, "0.333333333333333", false),
            (2, 3, "0.666666666666667", false),
            (-2, 3, "-0.666666666666667", false),
            (1, 1_000_000_000_000_000_000, "0.000000000000000001", true),
            (i128::MAX, 1, "170141183460469231731687303715884105727", true),
            (1, i128::MAX, "0", false),
            (i128::MAX - 1, i128::MAX, "1", false),
        ] {
            assert_eq!(ratio(over, under), (text.to_owned(), exact), "{over}/{under}");
        }
        assert_eq!(Fraction::new(1, 0), None);
    }

    #[test]
    fn reading() {
        assert_eq!(Fraction::parse("1.10"), Fraction::new(11, 10));
        assert_eq!(Fraction::parse(".5"), Fraction::new(1, 2));
        assert_eq!(Fraction::parse("5."), Some(Fraction::whole(5)));
        for bad in ["", ".", "1.2.3", "+1", "1e5", "９", &"9".repeat(40)] {
            assert_eq!(Fraction::parse(bad), None, "{bad}");
        }
    }
}
