//! The words of a schema, which models read and people review. (Control characters are written as escapes in JSON, where
//! everybody sees them.)

use super::{MAX_VIOLATIONS, SchemaFault};
use crate::domain::fault::Pointer;
use crate::domain::fields::hidden_fault;
use serde_json::Value;

/// Finds names and texts with characters that only one of their readers sees. Patterns may hold any: they may be there
/// to keep them out.
pub(super) fn hidden(schema: &Value) -> Vec<SchemaFault> {
    let mut found = Vec::new();
    visit(schema, &Pointer::root(), &mut found);
    found.truncate(MAX_VIOLATIONS);
    found
}

/// Recurses over the document alone, whose depth was bounded when it was read.
fn visit(value: &Value, at: &Pointer, found: &mut Vec<SchemaFault>) {
    match value {
        Value::String(text) => {
            found.extend(hidden_fault(text).map(|detail| SchemaFault::at(at.as_str(), detail)));
        }
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, inner)| visit(inner, &at.index(index), found));
        }
        Value::Object(members) => {
            for (name, inner) in members {
                let pattern = name == "pattern" || at.as_str().ends_with("/patternProperties");
                if pattern && inner.is_string() {
                    continue;
                }
                if !pattern && let Some(detail) = hidden_fault(name) {
                    found.push(SchemaFault::at(at.as_str(), format!("a name in it {detail}")));
                }
                visit(inner, &at.key(name), found);
            }
        }
        _ => {}
    }
}
