//! Which keywords of JSON Schema hold schemas, and how. At any other place of a document the same words are data, or names
//! that an author chose.

/// Keywords whose value is one schema.
pub const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
pub const LIST: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords whose value is a map from names to schemas.
pub const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// The part of a reference behind its `#`, percent-encoding taken off (RFC 6901, section 6).
pub fn fragment(reference: &str) -> String {
    percent_encoding::percent_decode_str(reference.trim_start_matches('#')).decode_utf8_lossy().into_owned()
}
