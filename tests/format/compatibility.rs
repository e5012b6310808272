//! The verdicts of the compatibility report.

use crate::given::tool;
use serde_json::{Value, json};
use toolhook::format::{Effect, FormatName, Verdict};

const PLAIN: [Verdict; 8] = [Verdict::Exact; 8];

fn verdicts(body: &Value) -> Vec<Verdict> {
    let tool = tool(body.clone());
    FormatName::ALL.into_iter().map(|format| format.report(&tool).verdict).collect()
}

fn body(more: &Value) -> Value {
    let mut body = json!({"name": "t", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}},
        "required": ["q"], "additionalProperties": false}});
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    body
}

#[test]
fn what_is_declared_as_it_is_written_is_exact() {
    assert_eq!(verdicts(&body(&json!({}))), PLAIN);
    // These are about how a tool runs; no format declares them, and none misses them.
    assert_eq!(
        verdicts(&body(&json!({"concurrent": false, "max_result_chars": 5, "result_type": "structured"}))),
        PLAIN
    );
}

#[test]
fn hints_that_have_no_place_adapt_and_options_lose() {
    use Verdict::{Adapted, Exact, Lossy};
    let hints = json!({"annotations": {"read_only": true}, "output_schema": {"type": "object"}});
    let verdicts_of = |more: Value| verdicts(&body(&more));
    assert_eq!(verdicts_of(hints), [Adapted, Adapted, Adapted, Adapted, Adapted, Adapted, Exact, Adapted]);
    let strict = [Exact, Exact, Exact, Lossy, Exact, Lossy, Lossy, Lossy];
    assert_eq!(verdicts_of(json!({"strict": true})), strict);
    let deferred = [Lossy, Exact, Exact, Lossy, Lossy, Lossy, Lossy, Lossy];
    assert_eq!(verdicts_of(json!({"defer_loading": true})), deferred);
    let examples = [Lossy, Lossy, Exact, Lossy, Lossy, Lossy, Lossy, Lossy];
    assert_eq!(verdicts_of(json!({"input_examples": [{"q": "x"}]})), examples);
}

#[test]
fn a_schema_that_is_said_in_another_way_is_adapted_and_a_rule_that_is_not_said_is_lost() {
    let schema = |inner: Value| json!({"name": "t", "input_schema": {"type": "object", "properties": {"p": inner}}});
    let of = |inner: Value, format: FormatName| format.report(&tool(schema(inner))).verdict;
    assert_eq!(of(json!({"const": 5}), FormatName::Gemini), Verdict::Adapted);
    assert_eq!(of(json!({"type": "string", "pattern": "^a"}), FormatName::Gemini), Verdict::Lossy);
    assert_eq!(of(json!({"type": "string", "examples": ["a"]}), FormatName::Gemini), Verdict::Adapted);
    assert_eq!(of(json!({"type": "string", "pattern": "^a"}), FormatName::Anthropic), Verdict::Exact);
    // Two passes over one place: the loss counts, not the first that was said of it.
    let parts = json!({"allOf": [{"allOf": [{"type": "boolean"}, {"type": "object"}]}, {"type": "object"}]});
    assert_eq!(of(parts, FormatName::Gemini), Verdict::Lossy);
    let union = json!({"name": "t", "input_schema": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}});
    assert_eq!(FormatName::OpenaiChat.report(&tool(union)).verdict, Verdict::Lossy);
}

#[test]
fn a_tool_that_is_left_out_says_why() {
    let report = FormatName::Cohere.report(&tool(body(&json!({"allowed_callers": ["code_execution"]}))));
    assert_eq!((report.verdict, report.declaration), (Verdict::Omitted, None));
    assert_eq!(report.notes[0].effect, Effect::Dropped);
    assert!(report.notes[0].detail.contains("only code"));
}

#[test]
fn the_declaration_is_the_tool_s_own() {
    // Names that formats use for entries of their own, and the name of the tool that stands beside.
    for name in ["t", "beside", "code_execution", "tool_search_tool_regex"] {
        let tool = tool(body(
            &json!({"name": name, "defer_loading": true, "provider_options": {"bedrock": {"cachePoint": {"type": "default"}}}}),
        ));
        for format in FormatName::ALL {
            let declaration = format.report(&tool).declaration.unwrap().to_string();
            assert!(
                declaration.contains(&format!("\"{name}\"")) && declaration.contains("Does it."),
                "{format:?}: {declaration}"
            );
        }
    }
}
