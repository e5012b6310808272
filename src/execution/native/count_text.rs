//! How long a text is, which models, who see tokens, cannot tell.

use super::{HandlerResult, NativeHandler};
use crate::domain::json::Object;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation as _;

/// The native handler of the tool `count_text`.
#[derive(Clone, Copy, Debug)]
pub struct CountText;

pub(super) fn definition() -> Value {
    json!({
        "name": "count_text",
        "description": "Counts a text's characters (as readers see them), words, lines and UTF-8 bytes, and how often another text \
            occurs in it. Call this instead of counting yourself.",
        "input_schema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The text to count in."},
                "find": {"type": "string", "minLength": 1, "description": "A text whose occurrences are counted too; letter case matters."}
            },
            "required": ["text"],
            "additionalProperties": false
        },
        "annotations": {"title": "Count text", "read_only": true, "open_world": false},
        "tags": ["built-in"]
    })
}

impl NativeHandler for CountText {
    fn call<'a>(
        &'a self,
        _tool: &'a str,
        input: Object,
        _context: &'a Object,
    ) -> BoxFuture<'a, Result<HandlerResult, String>> {
        Box::pin(async move {
            let text = input.get("text").and_then(Value::as_str).ok_or("text must be a string")?;
            Ok(count(text, input.get("find").and_then(Value::as_str)))
        })
    }
}

fn count(text: &str, find: Option<&str>) -> HandlerResult {
    let mut counts = vec![
        ("characters", text.graphemes(true).count()),
        ("words", text.unicode_words().count()),
        ("lines", text.lines().count()),
        ("bytes", text.len()),
    ];
    if let Some(find) = find.filter(|find| !find.is_empty()) {
        counts.push(("occurrences", text.matches(find).count()));
    }
    let told: Vec<String> = counts.iter().map(|(what, many)| format!("{what}: {many}")).collect();
    let data = counts.into_iter().map(|(what, many)| (what.to_owned(), many.into())).collect();
    HandlerResult::with_data(told.join(", "), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_readers_see() {
        let told = |text, find| count(text, find).content.text();
        assert_eq!(told("strawberry", Some("r")), "characters: 10, words: 1, lines: 1, bytes: 10, occurrences: 3");
        assert_eq!(told("e\u{301} 👨‍👩‍👧\nb", None), "characters: 5, words: 2, lines: 2, bytes: 24");
        assert_eq!(told("", None), "characters: 0, words: 0, lines: 0, bytes: 0");
    }
}
