//! Results of every kind in every format, as golden files and held to each provider's rules.

use crate::given::{answered, call, outcomes, pretty};
use serde_json::{Value, json};
use toolhook::domain::{Content, Outcome, Success};
use toolhook::format::FormatName;

/// What a format renders for one outcome.
fn rendered(format: FormatName) -> Vec<(&'static str, Vec<Value>)> {
    outcomes()
        .iter()
        .map(|(name, caller, result_type, outcome)| {
            let mut call = call("call_1");
            call.caller = *caller;
            (*name, (format.format().results)(&[answered(&call, outcome, *result_type)]))
        })
        .collect()
}

#[test]
fn every_format_has_its_golden_results() {
    for format in FormatName::ALL {
        let all: serde_json::Map<String, Value> =
            rendered(format).into_iter().map(|(name, results)| (name.to_owned(), json!(results))).collect();
        insta::assert_snapshot!(format.as_str(), pretty(&all));
    }
}

#[test]
fn results_come_in_the_order_of_the_calls_and_together_where_the_provider_wants_it() {
    let outcomes = outcomes();
    let calls = ["a", "b", "c"].map(call);
    let all: Vec<_> =
        calls.iter().zip(&outcomes).map(|(call, (_, _, kind, outcome))| answered(call, outcome, *kind)).collect();
    for (format, list, id) in [
        (FormatName::Anthropic, "/0/content", "/tool_use_id"),
        (FormatName::Bedrock, "/0/content", "/toolResult/toolUseId"),
        (FormatName::Gemini, "/0/parts", "/functionResponse/id"),
        (FormatName::OpenaiChat, "", "/tool_call_id"),
        (FormatName::OpenaiResponses, "", "/call_id"),
        (FormatName::Cohere, "", "/tool_call_id"),
        (FormatName::Toolhook, "", "/id"),
    ] {
        let results = json!((format.format().results)(&all));
        let found = results.pointer(list).unwrap().as_array().unwrap();
        let ids: Vec<_> = found.iter().map(|one| one.pointer(id).unwrap().as_str().unwrap()).collect();
        assert_eq!(ids, ["a", "b", "c"], "{format:?}");
        let one_message = !list.is_empty();
        assert_eq!(results.as_array().unwrap().len() == 1, one_message, "{format:?}");
    }
    for format in FormatName::ALL {
        assert!((format.format().results)(&[]).is_empty(), "{format:?}");
    }
}

#[test]
fn a_paused_program_gets_its_caller_and_namespace_back() {
    let caller = json!({"type": "program", "caller_id": "call_p"});
    let item = json!({"type": "function_call", "call_id": "call_b", "name": "ping", "arguments": "{}", "namespace": "ping",
        "caller": caller});
    let call = (FormatName::OpenaiResponses.format().calls)(&item).unwrap().calls.remove(0);
    let outcome = &outcomes()[0].3;
    let results = (FormatName::OpenaiResponses.format().results)(&[answered(&call, outcome, None)]);
    assert_eq!(results[0]["caller"], caller);
    assert_eq!(results[0]["namespace"], "ping");
}

#[test]
fn structured_content_has_no_numbers_that_readers_lose() {
    let text = r#"{"": 1, "a": [1e999]}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    let data = value.as_object().cloned();
    let content = Content::Json { value, text: text.to_owned() };
    let outcome = Outcome::Success(Success { content, data, truncated: false });
    let call = call("call_1");
    let results = (FormatName::Mcp.format().results)(&[answered(&call, &outcome, None)]);
    assert_eq!(results, [json!({"content": [{"type": "text", "text": text}]})]);
}

#[test]
fn errors_are_marked_and_diagnostics_stay_inside() {
    for format in FormatName::ALL {
        for (name, results) in rendered(format) {
            let text = json!(results).to_string();
            assert!(!text.contains("10.0.0.1"), "{format:?}: {name}");
            let failed = name.starts_with("failed") || name == "rejected";
            let marked = match format {
                FormatName::Anthropic => results[0]["content"][0]["is_error"] == true,
                FormatName::Bedrock => results[0]["content"][0]["toolResult"]["status"] == "error",
                FormatName::Gemini => results[0]["parts"][0]["functionResponse"]["response"].get("error").is_some(),
                FormatName::Mcp => results[0]["isError"] == true,
                FormatName::Toolhook => !matches!(results[0]["status"].as_str(), Some("succeeded" | "pending")),
                FormatName::OpenaiResponses => {
                    results[0]["output"].as_str().is_some_and(|text| text.starts_with("Error: "))
                }
                FormatName::OpenaiChat | FormatName::Cohere => {
                    results[0]["content"].as_str().is_some_and(|text| text.starts_with("Error: "))
                }
            };
            assert_eq!(marked, failed, "{format:?}: {name}: {text}");
        }
    }
}

#[test]
fn no_result_breaks_its_provider_s_rules() {
    let blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    for (name, results) in rendered(FormatName::Anthropic) {
        let result = &results[0]["content"][0];
        assert!(!blank(&result["content"]), "{name}");
        assert!(result.get("content").is_none_or(|content| content.is_string() || content.is_array()), "{name}");
    }
    for (name, results) in rendered(FormatName::Bedrock) {
        for block in results[0]["content"][0]["toolResult"]["content"].as_array().unwrap() {
            assert_eq!(block.as_object().unwrap().len(), 1, "{name}");
            assert!(!blank(&block["text"]), "{name}");
            assert!(
                block.get("json").is_none_or(|json| json.is_object() && !json.to_string().contains("\"\":")),
                "{name}"
            );
        }
    }
    for (name, results) in rendered(FormatName::Gemini) {
        assert!(results[0]["parts"][0]["functionResponse"]["response"].is_object(), "{name}");
    }
    for (name, results) in rendered(FormatName::OpenaiChat) {
        assert!(results[0]["content"].is_string(), "{name}");
    }
    for (name, results) in rendered(FormatName::OpenaiResponses) {
        assert!(results[0]["output"].is_string() || results[0]["output"].is_array(), "{name}");
    }
    for (name, results) in rendered(FormatName::Cohere) {
        let content = &results[0]["content"];
        assert!(content.is_string() || content[0]["document"]["data"].is_object(), "{name}");
    }
    for (name, results) in rendered(FormatName::Mcp) {
        assert!(results[0]["content"].is_array(), "{name}");
        assert!(results[0].get("structuredContent").is_none_or(Value::is_object), "{name}");
        assert!(results[0]["isError"] != true || results[0].get("structuredContent").is_none(), "{name}");
    }
}
