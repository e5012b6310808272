//! Every declared schema, held to its provider's rules by a checker that shares no code with the renderers.

use crate::given::{tool, tools};
use serde_json::{Value, json};
use toolhook::domain::Tool;
use toolhook::format::{FormatName, ListOptions};

/// The argument schemas that a format declares, by tool.
pub(crate) fn schemas(format: FormatName, tools: &[Tool]) -> Vec<(String, Value)> {
    let tools: Vec<&Tool> = tools.iter().collect();
    let options =
        ListOptions { code_execution: Some("20260120".to_owned()), programmatic: true, ..ListOptions::default() };
    let rendered = (format.format().tools)(&tools, &options);
    let (entries, name, schema) = match format {
        FormatName::OpenaiChat | FormatName::Cohere => (rendered.tools, "/function/name", "/function/parameters"),
        FormatName::OpenaiResponses => (rendered.tools, "/name", "/parameters"),
        FormatName::Anthropic | FormatName::Toolhook => (rendered.tools, "/name", "/input_schema"),
        FormatName::Bedrock => (rendered.tools, "/toolSpec/name", "/toolSpec/inputSchema/json"),
        FormatName::Mcp => (rendered.tools, "/name", "/inputSchema"),
        FormatName::Gemini => {
            (rendered.tools[0]["functionDeclarations"].as_array().unwrap().clone(), "/name", "/parametersJsonSchema")
        }
    };
    let text = |entry: &Value| entry.pointer(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    entries.iter().filter_map(|entry| Some((text(entry), entry.pointer(schema)?.clone()))).collect()
}

/// Every schema position, found by a walk of its own.
pub(crate) fn positions(schema: &Value) -> Vec<&Value> {
    let mut found = vec![schema];
    let Some(members) = schema.as_object() else { return found };
    for (key, value) in members {
        match key.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                found.extend(value.as_object().into_iter().flat_map(serde_json::Map::values).flat_map(positions));
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                found.extend(value.as_array().into_iter().flatten().flat_map(positions));
            }
            "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
                found.extend(positions(value));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn the_root_is_an_object_without_unions() {
    for format in FormatName::ALL {
        for (name, schema) in schemas(format, &tools()) {
            assert_eq!(schema["type"], "object", "{format:?}: {name}");
            if matches!(format, FormatName::Mcp | FormatName::Toolhook) {
                continue; // these take any schema
            }
            for key in ["oneOf", "anyOf", "allOf", "not", "enum", "$ref", "$schema"] {
                assert!(schema.get(key).is_none(), "{format:?}: {name}: {key}");
            }
        }
    }
}

#[test]
fn arrays_say_what_they_hold_and_tuples_are_said_in_the_new_way() {
    for format in FormatName::ALL {
        if matches!(format, FormatName::Mcp | FormatName::Toolhook) {
            continue;
        }
        for (name, schema) in schemas(format, &tools()) {
            for position in positions(&schema) {
                let array = position["type"] == "array"
                    || position["type"].as_array().is_some_and(|all| all.contains(&json!("array")));
                assert!(!array || position["items"].is_object(), "{format:?}: {name}: {position}");
                assert!(position.get("additionalItems").is_none(), "{format:?}: {name}");
            }
        }
    }
}

#[test]
fn references_lead_somewhere() {
    for format in FormatName::ALL {
        for (name, schema) in schemas(format, &tools()) {
            for position in positions(&schema) {
                if let Some(reference) = position.get("$ref").and_then(Value::as_str) {
                    assert!(
                        schema.pointer(reference.trim_start_matches('#')).is_some(),
                        "{format:?}: {name}: {reference}"
                    );
                    assert_ne!(format, FormatName::Gemini, "{name}");
                }
            }
        }
    }
}

#[test]
fn gemini_gets_the_keywords_that_it_knows() {
    let declared = schemas(FormatName::Gemini, &tools());
    assert!(declared.iter().all(|(name, _)| name != "no_arguments"));
    for (name, schema) in declared {
        for position in positions(&schema).into_iter().filter_map(Value::as_object) {
            assert!(position.keys().all(|key| crate::rules::GEMINI.contains(&key.as_str())), "{name}: {position:?}");
            let has = |name: &Value| position["properties"].get(name.as_str().unwrap()).is_some();
            assert!(position.get("required").and_then(Value::as_array).into_iter().flatten().all(has), "{name}");
            let plain = |value: &Value| value.is_number() || value.as_str().is_some_and(|text| !text.is_empty());
            assert!(position.get("enum").and_then(Value::as_array).into_iter().flatten().all(plain), "{name}");
        }
    }
}

#[test]
fn a_schema_that_needs_nothing_is_sent_as_it_was_written() {
    let schema = json!({"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": ["integer", "null"],
        "minimum": 1.10}}, "required": ["z", "a"], "additionalProperties": false});
    for strict in [false, true] {
        let plain = [tool(json!({"name": "plain", "input_schema": schema, "strict": strict}))];
        for format in FormatName::ALL {
            if strict && matches!(format, FormatName::Anthropic | FormatName::Bedrock) {
                continue; // whose strict subset has no minimum
            }
            assert_eq!(schemas(format, &plain)[0].1.to_string(), schema.to_string(), "{format:?}");
        }
    }
}

#[test]
fn headers_are_not_written_by_a_schema() {
    let marked =
        [tool(json!({"name": "a", "input_schema": {"properties": {"x": {"type": "string", "x-mcp-header": "X-A"}}}}))];
    assert!(!schemas(FormatName::Mcp, &marked)[0].1.to_string().contains("x-mcp-header"));
}

#[test]
fn definitions_that_refer_to_each_other_stay_small() {
    let names: Vec<String> = (0..6).map(|n| format!("d{n}")).collect();
    let all: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({"$ref": format!("#/$defs/{name}")}))).collect();
    let definitions: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({"type": "object", "properties": all}))).collect();
    let tangled = [tool(json!({"name": "tangled", "input_schema": {"properties": all, "$defs": definitions}}))];
    for format in FormatName::ALL {
        assert!(schemas(format, &tangled)[0].1.to_string().len() < 1_000_000, "{format:?}");
    }
}

#[test]
fn a_long_text_that_many_refer_to_is_not_written_out_for_each() {
    let many: serde_json::Map<String, Value> =
        (0..900).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/d", "title": "x"}))).collect();
    let long = [tool(json!({"name": "long", "strict": true, "input_schema": {"properties": many,
        "$defs": {"d": {"type": "string", "description": "y".repeat(20_000)}}}}))];
    for format in FormatName::ALL {
        assert!(schemas(format, &long)[0].1.to_string().len() < 400_000, "{format:?}");
    }
}
