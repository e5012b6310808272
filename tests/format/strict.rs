//! Strict schemas and renamed properties, and the way back of what a model sends under them.

use crate::accepted::{positions, schemas};
use crate::given::tool;
use serde_json::{Value, json};
use toolhook::domain::Tool;
use toolhook::format::{FormatName, ListOptions};

const OPENAI: [FormatName; 2] = [FormatName::OpenaiChat, FormatName::OpenaiResponses];

fn strict(input_schema: &Value) -> Tool {
    tool(json!({"name": "t", "strict": true, "input_schema": input_schema}))
}

fn restored(format: FormatName, tool: &Tool, arguments: &Value) -> Value {
    Value::Object((format.format().restore)(tool, arguments.as_object().unwrap().clone()))
}

/// Whether the declaration says strict.
fn says_strict(format: FormatName, tool: &Tool) -> bool {
    let rendered = (format.format().tools)(&[tool], &ListOptions::default());
    ["/strict", "/function/strict", "/toolSpec/strict"]
        .iter()
        .any(|place| rendered.tools[0].pointer(place) == Some(&json!(true)))
}

/// `OpenAI`'s rules for the shape, checked apart from the code that makes it.
fn check_openai(schema: &Value) {
    for position in positions(schema) {
        assert!(position.is_object() || position == &json!(false), "{position}");
        let object = position["type"] == "object" || position.get("properties").is_some();
        if object {
            assert_eq!(position["additionalProperties"], false, "{position}");
            let names: Vec<Value> =
                position["properties"].as_object().unwrap().keys().map(|name| json!(name)).collect();
            assert_eq!(position["required"], json!(names), "{position}");
        }
        for word in ["allOf", "oneOf", "not", "default", "minLength", "patternProperties", "uniqueItems"] {
            assert!(position.get(word).is_none(), "{word}: {position}");
        }
    }
}

#[test]
fn optional_properties_become_required_and_nullable_at_depth() {
    let menu =
        strict(&json!({"type": "object", "properties": {"title": {"type": "string"}, "prefs": {"type": "object",
        "properties": {"vegan": {"type": "boolean"}}}}, "required": ["title"]}));
    for format in OPENAI {
        let (_, schema) = schemas(format, std::slice::from_ref(&menu)).remove(0);
        assert!(says_strict(format, &menu));
        check_openai(&schema);
        let prefs = &schema["properties"]["prefs"]["anyOf"];
        assert_eq!(prefs[1], json!({"type": "null"}));
        assert_eq!(prefs[0]["properties"]["vegan"]["type"], json!(["boolean", "null"]));
        let sent = json!({"title": "x", "prefs": {"vegan": null}});
        assert_eq!(restored(format, &menu, &sent), json!({"title": "x", "prefs": {}}));
        assert_eq!(restored(format, &menu, &json!({"title": "x", "prefs": null})), json!({"title": "x"}));
    }
    for format in [FormatName::Anthropic, FormatName::Bedrock] {
        let (_, schema) = schemas(format, std::slice::from_ref(&menu)).remove(0);
        assert!(says_strict(format, &menu));
        assert!(positions(&schema).iter().all(|p| p["type"] != "object" || p["additionalProperties"] == false));
        assert_eq!(schema["required"], json!(["title"]));
    }
}

#[test]
fn unions_and_definitions_are_closed_inside() {
    let log = strict(&json!({"type": "object", "properties": {
        "detail": {"anyOf": [{"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}}, {"type": "null"}]},
        "who": {"$ref": "#/$defs/person", "description": "Who did it"}, "mode": {"type": "string", "enum": ["a", "b"]},
        "n": {"const": 1}, "any": {"oneOf": [{"type": "string"}, {"type": "integer"}], "default": 5}},
        "required": ["detail"], "$defs": {"person": {"properties": {"name": {"type": "string", "minLength": 1}}}}}));
    let (_, schema) = schemas(FormatName::OpenaiChat, std::slice::from_ref(&log)).remove(0);
    assert!(says_strict(FormatName::OpenaiChat, &log));
    check_openai(&schema);
    assert_eq!(schema.pointer("/properties/detail/anyOf/0/items/additionalProperties"), Some(&json!(false)));
    assert_eq!(schema["properties"]["mode"], json!({"type": ["string", "null"], "enum": ["a", "b", null]}));
    assert_eq!(schema["properties"]["n"], json!({"enum": [1, null]}));
    let sent = json!({"detail": null, "who": {"name": null}, "mode": null, "n": null, "any": null});
    assert_eq!(restored(FormatName::OpenaiChat, &log, &sent), json!({"detail": null, "who": {}}));
}

#[test]
fn what_cannot_be_said_goes_without_strict() {
    for inner in [
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object"}),
        json!({}),
        json!({"type": "array"}),
        json!({"not": {"type": "string"}}),
        json!({"type": "object", "patternProperties": {"^x": {"type": "string"}}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]}),
    ] {
        let open = strict(&json!({"type": "object", "properties": {"labels": inner}, "required": ["labels"]}));
        for format in OPENAI.into_iter().chain([FormatName::Anthropic, FormatName::Bedrock]) {
            assert!(!says_strict(format, &open), "{format:?}: {inner}");
            let rendered = (format.format().tools)(&[&open], &ListOptions::default());
            assert!(rendered.notes.iter().any(|note| note.pointer.as_str() == "/strict"), "{format:?}: {inner}");
        }
    }
}

#[test]
fn a_keyword_that_binds_nobody_does_not_cost_strict() {
    let tool = strict(
        &json!({"type": "object", "x-order": ["a"], "propertyOrdering": ["a"], "required": ["a"], "properties": {
        "a": {"type": "string", "nullable": true, "markdownDescription": "**a**", "examples": ["x"]}}}),
    );
    for format in [FormatName::OpenaiChat, FormatName::Anthropic, FormatName::Bedrock] {
        assert!(says_strict(format, &tool), "{format:?}");
        let (_, schema) = schemas(format, std::slice::from_ref(&tool)).remove(0);
        assert_eq!(schema["properties"], json!({"a": {"type": "string"}}), "{format:?}");
        let rendered = (format.format().tools)(&[&tool], &ListOptions::default());
        let noted: Vec<&str> = rendered.notes.iter().map(|note| note.pointer.as_str()).collect();
        assert!(noted.contains(&"/input_schema/x-order"), "{format:?}: {noted:?}");
        assert!(!noted.contains(&"/input_schema/properties/a/examples"), "{format:?}: {noted:?}");
    }
}

#[test]
fn recursion_is_strict_for_openai() {
    let tree = strict(
        &json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "required": ["root"], "$defs": {
        "node": {"type": "object", "properties": {"label": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}, "required": ["label"]}}}),
    );
    assert!(says_strict(FormatName::OpenaiChat, &tree) && !says_strict(FormatName::Anthropic, &tree));
    let sent = json!({"root": {"label": "a", "next": {"label": "b", "next": null}}});
    let stored = json!({"root": {"label": "a", "next": {"label": "b"}}});
    assert_eq!(restored(FormatName::OpenaiChat, &tree, &sent), stored);
}

#[test]
fn a_null_that_the_schema_takes_stays() {
    let nullable = strict(
        &json!({"type": "object", "properties": {"note": {"type": ["string", "null"]}, "free": {"type": "object",
        "properties": {"x": {"type": "string"}}, "additionalProperties": false}}}),
    );
    let sent = json!({"note": null, "free": {"x": null}});
    assert_eq!(restored(FormatName::OpenaiChat, &nullable, &sent), json!({"note": null, "free": {}}));
    let plain = tool(json!({"name": "t", "input_schema": {"properties": {"a": {"type": "string"}}}}));
    assert_eq!(restored(FormatName::OpenaiChat, &plain, &json!({"a": null})), json!({"a": null}));
}

#[test]
fn property_names_that_a_provider_refuses_are_renamed_and_mapped_back() {
    let apps =
        tool(json!({"name": "list_apps", "input_examples": [{"filter[name]": "x", "meta": {"filter[name]": 1}}],
        "input_schema": {"type": "object", "required": ["filter[name]"], "properties": {
            "filter[name]": {"type": "string"}, "filter_name": {"type": "string"}, "limit": {"type": "integer"},
            "sort": {"type": "array", "items": {"type": "object", "properties": {"by (key)": {"type": "string"}}}},
            "meta": {"type": "object"}}}}));
    for format in [FormatName::Anthropic, FormatName::Bedrock, FormatName::Gemini] {
        let (_, schema) = schemas(format, std::slice::from_ref(&apps)).remove(0);
        assert_eq!(schema["required"], json!(["filter_name_2"]), "{format:?}");
        let sent = json!({"filter_name_2": "atlas", "filter_name": "y", "limit": 5, "sort": [{"by__key": "a"}], "meta": {"by__key": 1}});
        let stored = json!({"filter[name]": "atlas", "filter_name": "y", "limit": 5, "sort": [{"by (key)": "a"}], "meta": {"by__key": 1}});
        assert_eq!(restored(format, &apps, &sent).to_string(), stored.to_string(), "{format:?}");
    }
    let rendered = (FormatName::Anthropic.format().tools)(&[&apps], &ListOptions::default());
    assert_eq!(rendered.tools[0]["input_examples"], json!([{"filter_name_2": "x", "meta": {"filter[name]": 1}}]));
    let (_, schema) = schemas(FormatName::OpenaiChat, &[apps]).remove(0);
    assert_eq!(schema["required"], json!(["filter[name]"]));
}

#[test]
fn names_are_mapped_back_below_patterns_too_and_never_onto_another_value() {
    let one = json!({"type": "object", "properties": {"by (key)": {"type": "integer"}}});
    let patterns =
        tool(json!({"name": "t", "input_schema": {"type": "object", "properties": {"free": {"type": "object",
        "patternProperties": {"^x": one}, "additionalProperties": {"type": "array", "items": one}}}}}));
    let sent = json!({"free": {"x1": {"by__key": 1}, "y": [{"by__key": 2}], "by__key": 3}});
    let stored = json!({"free": {"x1": {"by (key)": 1}, "y": [{"by (key)": 2}], "by__key": 3}});
    assert_eq!(restored(FormatName::Anthropic, &patterns, &sent), stored);
    let plain = tool(json!({"name": "t", "input_schema": one}));
    let both = json!({"by__key": 1, "by (key)": 2});
    assert_eq!(restored(FormatName::Anthropic, &plain, &both), both);
}
