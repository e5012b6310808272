//! Who owns tools: a customer of the platform that runs Toolhook.

use super::fault::{Faults, Pointer};
use super::fields::{Fields, Reader};
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// A tenant's name: lower-case letters, digits, `-` and `_`, first a letter or digit, at most 63 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct TenantName(String);

impl TenantName {
    /// Reads a name; the error says what a name looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_');
        let first = text.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if first && text.len() <= 63 && text.chars().all(allowed) {
            return Ok(Self(text.to_owned()));
        }
        Err("a tenant's name has 1 to 63 lower-case letters, digits, - and _, and starts with a letter or digit"
            .to_owned())
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What is to be known of a tenant while serving it.
#[derive(Clone, Debug)]
pub struct TenantFacts {
    /// Its row's id, which no API shows: a tenant that is removed and made anew has another.
    pub id: Uuid,
    /// Its name.
    pub name: TenantName,
    /// What the operator lets it have.
    pub limits: TenantLimits,
}

/// What the operator lets a tenant have. What is absent takes the server's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantLimits {
    /// How many tools it may store (default 1,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 100_000)]
    pub tools: Option<u32>,
    /// Calls it may start in a second, and as many at once (default 10,000, unless the operator chose another).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub calls_per_second: Option<u32>,
    /// Calls it may have running at one time (default 64, unless the operator chose another); four times as many may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub concurrent_calls: Option<u32>,
    /// The longest a call may take, in milliseconds (at most and by default 300,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 300_000)]
    pub max_timeout_ms: Option<u32>,
    /// The cap on a result's text for tools that set none, in grapheme clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000_000)]
    pub max_result_chars: Option<u32>,
    /// How long the call log is kept, in days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3_650)]
    pub log_days: Option<u32>,
}

impl TenantLimits {
    /// Tools a tenant may store where the operator says nothing.
    pub const DEFAULT_TOOLS: u32 = 1_000;

    fn read(fields: &Fields, at: Pointer, faults: &mut Faults) -> Self {
        let mut reader = Reader::new(fields, at, faults);
        let limits = Self {
            tools: bounded(&mut reader, "tools", 0, 100_000),
            calls_per_second: bounded(&mut reader, "calls_per_second", 1, 1_000_000),
            concurrent_calls: bounded(&mut reader, "concurrent_calls", 1, 1_000_000),
            max_timeout_ms: bounded(&mut reader, "max_timeout_ms", 1, 300_000),
            max_result_chars: bounded(&mut reader, "max_result_chars", 1, 100_000_000),
            log_days: bounded(&mut reader, "log_days", 1, 3_650),
        };
        reader.finish();
        limits
    }
}

/// An integer between two bounds.
pub(super) fn bounded(reader: &mut Reader<'_>, name: &'static str, min: u32, max: u32) -> Option<u32> {
    let expected = format!("an integer from {min} to {max}");
    let value: u32 = reader.optional(name, &expected)?;
    if (min..=max).contains(&value) {
        return Some(value);
    }
    reader.fault(name, format!("expected {expected}"));
    None
}

/// A tenant's body as the operator writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantDraft {
    /// What people call it.
    pub display_name: Option<String>,
    /// Its limits.
    pub limits: TenantLimits,
}

impl TenantDraft {
    /// Reads and checks a body.
    pub fn read(fields: &Fields) -> Result<Self, Faults> {
        let mut faults = Faults::none();
        let mut reader = Reader::new(fields, Pointer::root(), &mut faults);
        let display_name = reader.text("display_name", 200, false);
        let limits = reader.object("limits");
        let at = reader.place("limits");
        reader.finish();
        let limits = limits.map(|fields| TenantLimits::read(&fields, at, &mut faults)).unwrap_or_default();
        if faults.is_empty() { Ok(Self { display_name, limits }) } else { Err(faults) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "0", "acme", "acme-eu_2", &"a".repeat(63)] {
            assert!(TenantName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "Acme", "a b", "é", "a/b", &"a".repeat(64)] {
            assert!(TenantName::parse(bad).is_err(), "{bad}");
        }
    }
}
