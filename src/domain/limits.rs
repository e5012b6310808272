//! How we run a tool. No provider ever sees these.

use super::fields::Reader;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest a call may take, in milliseconds.
pub const MAX_TIMEOUT_MS: u32 = 300_000;

/// A tool's settings for execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Limits {
    /// Safe to run beside the other calls of the same reply; if not, it runs alone.
    pub concurrent: bool,
    /// The cap on a success text, in grapheme clusters: an integer of at least 1, `"unlimited"`, or null for the tenant's
    /// default.
    #[schema(schema_with = cap_schema)]
    pub max_result_chars: ResultCap,
    /// Bounds the whole call, in milliseconds. Absent: the handler's own.
    #[schema(minimum = 1, maximum = 300_000)]
    pub timeout_ms: Option<u32>,
}

fn cap_schema() -> utoipa::openapi::schema::Schema {
    use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)))
        .item(ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["unlimited"])))
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .into()
}

impl Default for Limits {
    fn default() -> Self {
        Self { concurrent: true, max_result_chars: ResultCap::Inherit, timeout_ms: None }
    }
}

/// The cap on a success text, in grapheme clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultCap {
    /// None of its own: the tenant's default applies.
    #[default]
    Inherit,
    /// No cap, whatever the tenant's default.
    Unlimited,
    /// At most so many grapheme clusters.
    Chars(u32),
}

impl Serialize for ResultCap {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inherit => out.serialize_none(),
            Self::Unlimited => out.serialize_str("unlimited"),
            Self::Chars(chars) => out.serialize_u32(*chars),
        }
    }
}

impl<'de> Deserialize<'de> for ResultCap {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(source)?;
        Self::parse(&value).ok_or_else(|| serde::de::Error::custom(Self::EXPECTED))
    }
}

impl ResultCap {
    const EXPECTED: &str = "expected an integer of at least 1, \"unlimited\" or null";

    fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Inherit),
            Value::String(word) if word == "unlimited" => Some(Self::Unlimited),
            Value::Number(number) => {
                let chars = number.as_u64().filter(|chars| *chars >= 1)?;
                // A cap beyond what fits is no cap that anybody reaches: results end at a mebibyte.
                Some(Self::Chars(u32::try_from(chars).unwrap_or(u32::MAX)))
            }
            _ => None,
        }
    }
}

impl Limits {
    /// Reads the fields of a tool's body that are limits.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let concurrent = reader.optional("concurrent", "a boolean").unwrap_or(true);
        let max_result_chars = match reader.value("max_result_chars") {
            None => ResultCap::Inherit,
            Some(value) => ResultCap::parse(&value).unwrap_or_else(|| {
                reader.fault("max_result_chars", ResultCap::EXPECTED);
                ResultCap::Inherit
            }),
        };
        let timeout_ms = super::tenant::bounded(reader, "timeout_ms", 1, MAX_TIMEOUT_MS);
        Self { concurrent, max_result_chars, timeout_ms }
    }
}
