//! Tools, calls and outcomes for the tests.

use serde_json::{Value, json};
use toolhook::domain::{
    Answered, Caller, Content, Failure, Fields, Outcome, Success, Tool, ToolCall, ToolDraft, options::ResultType,
};
use toolhook::format::NAMES;

/// A checked tool; what the body leaves out is filled in.
pub(crate) fn tool(mut body: Value) -> Tool {
    for (key, value) in [("description", json!("Does it.")), ("handler", json!("h")), ("input_schema", json!({}))] {
        body.as_object_mut().unwrap().entry(key).or_insert(value);
    }
    let fields = Fields::parse(body.to_string().as_bytes()).unwrap();
    ToolDraft::new(fields).check(None, &NAMES, None).unwrap_or_else(|faults| panic!("{}: {body}", faults.summary()))
}

/// Tools as people write them, one for each thing that a provider may mind; ordered by name.
pub(crate) fn tools() -> Vec<Tool> {
    let plain = json!({"type": "object", "properties": {"city": {"type": "string", "description": "The city"}},
        "required": ["city"], "additionalProperties": false});
    vec![
        tool(json!({"name": "all_options", "input_schema": plain, "strict": true, "defer_loading": true,
            "input_examples": [{"city": "Sydney"}], "allowed_callers": ["human", "code_execution"],
            "result_type": "structured", "output_schema": {"type": "object", "properties": {"celsius": {"type": "number"}}},
            "annotations": {"title": "Weather", "read_only": true, "destructive": false},
            "provider_options": {"anthropic": {"eager_input_streaming": true}, "openai-chat": {"function": {"x": 1}},
                "bedrock": {"x": 1}, "gemini": {"behavior": "BLOCKING"}}})),
        tool(json!({"name": "ask_code", "allowed_callers": ["code_execution"]})),
        tool(json!({"name": "ask_nobody", "allowed_callers": []})),
        tool(json!({"name": "by_code_and_itself", "allowed_callers": ["code_execution"],
            "input_schema": {"properties": {"child": {"$ref": "#"}}}})),
        tool(json!({"name": "either", "input_examples": [{"kind": "a", "ticket": "T1"}], "input_schema": {"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "ticket": {"type": "string"}}, "required": ["kind", "ticket"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "url": {"type": "string", "format": "uri"}}, "required": ["kind", "url"]}
        ]}})),
        tool(json!({"name": "keywords", "input_schema": {"type": "object", "properties": {
            "pattern": {"type": "string", "pattern": "^.+$"}, "when": {"type": "string", "format": "date-time"},
            "mode": {"enum": ["", "on"], "default": "on"}, "level": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            "flag": {"const": true}, "unit": {"type": ["string", "null"], "enum": ["C", null]},
            "labels": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false},
            "list": {"type": "array"}, "both": {"allOf": [{"type": "string"}, {"minLength": 1}]}},
            "required": ["pattern", "ghost"]}})),
        tool(json!({"name": "no_arguments", "input_schema": {"type": "object", "properties": {}}})),
        tool(json!({"name": "old_draft", "input_schema": {"$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object", "definitions": {"op": {"type": "string"}}, "properties": {"query": {"type": "array",
            "items": [{"$ref": "#/definitions/op"}, {"type": "integer"}], "additionalItems": false},
            "again": {"$ref": "#/properties/query/items/1"}}}})),
        tool(
            json!({"name": "tree", "input_schema": {"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}},
            "required": ["root"], "$defs": {"node": {"type": "object", "properties": {"label": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["label"]}}}}),
        ),
        tool(json!({"name": "wide_open", "strict": true, "input_schema": {"type": "object",
            "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}, "required": ["labels"]}})),
    ]
}

/// A call of `get`, as a model made it.
pub(crate) fn call(id: &str) -> ToolCall {
    ToolCall {
        call_id: Some(id.to_owned()),
        name: "get".to_owned(),
        arguments: json!({}),
        caller: Caller::Human,
        echo: serde_json::Map::new(),
        cut_off: false,
    }
}

/// Everything that may become of a call, by name.
pub(crate) fn outcomes() -> Vec<(&'static str, Caller, Option<ResultType>, Outcome)> {
    let (human, code) = (Caller::Human, Caller::CodeExecution);
    let json = |text: &str| Content::Json { value: serde_json::from_str(text).unwrap(), text: text.to_owned() };
    let picture = |kind: &str| Content::Image { media_type: kind.to_owned(), base64: "aGVsbG8h".to_owned() };
    let plain = |content| Outcome::Success(Success { content, data: None, truncated: false });
    let with_data =
        |content, data: Value| Outcome::Success(Success { content, data: data.as_object().cloned(), truncated: false });
    let text = |text: &str| Content::Text(text.to_owned());
    vec![
        ("text", human, None, plain(text("22°C and clear"))),
        ("empty", human, None, plain(text(""))),
        ("blank", human, None, plain(text(" \n"))),
        ("text beside data", human, None, with_data(text("2 rows"), json!({"rows": [1, 2]}))),
        ("object", human, None, plain(json(r#"{ "state": "shipped", "total": 1.10 }"#))),
        ("object with keys of Gemini's", human, None, plain(json(r#"{"output": 1, "error": 2}"#))),
        ("object of a text tool", human, Some(ResultType::Text), plain(json(r#"{"a": 1}"#))),
        ("object with an empty key", human, Some(ResultType::Structured), plain(json(r#"{"a": {"": 1}}"#))),
        ("object with a huge number", human, None, plain(json(r#"{"a": 1e999}"#))),
        ("list", human, None, plain(json(r#"["Bern", "Basel"]"#))),
        ("null", human, None, plain(json("null"))),
        ("png", human, None, plain(picture("image/png"))),
        ("gif", human, None, plain(picture("image/gif"))),
        ("png for code", code, None, plain(picture("image/png"))),
        (
            "failed",
            human,
            None,
            Outcome::Failure(Failure::failed("handler_error", "already shipped").because("10.0.0.1")),
        ),
        ("rejected", code, None, Outcome::Failure(Failure::rejected("invalid_input", "/city: expected a string"))),
        (
            "pending",
            human,
            Some(ResultType::Structured),
            Outcome::Pending("The tool is still working on it.".to_owned()),
        ),
        ("failed without a word", human, None, Outcome::Failure(Failure::failed("handler_error", ""))),
    ]
}

/// One answered call.
pub(crate) fn answered<'a>(call: &'a ToolCall, outcome: &'a Outcome, result_type: Option<ResultType>) -> Answered<'a> {
    Answered { call, outcome, result_type }
}

/// JSON as the golden files have it.
pub(crate) fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}
