//! Tool lists: golden files per format, and the rules of a list.

use crate::given::{pretty, tool, tools};
use serde_json::{Value, json};
use toolhook::domain::{Caller, Tool};
use toolhook::format::{CacheTtl, Effect, FormatName, ListOptions, Rendered, ToolSearch};

fn list(format: FormatName, tools: &[Tool], options: &ListOptions) -> Rendered {
    (format.format().tools)(&tools.iter().collect::<Vec<_>>(), options)
}

fn everything() -> ListOptions {
    ListOptions {
        cache: Some(CacheTtl::OneHour),
        code_execution: Some("20260120".to_owned()),
        programmatic: true,
        ..ListOptions::default()
    }
}

#[test]
fn every_format_has_its_golden_list() {
    for format in FormatName::ALL {
        insta::assert_snapshot!(format.as_str(), pretty(&list(format, &tools(), &ListOptions::default())));
        insta::assert_snapshot!(format!("{}-asked", format.as_str()), pretty(&list(format, &tools(), &everything())));
    }
}

#[test]
fn nobody_s_tools_and_code_s_tools_are_omitted_with_the_reason() {
    for format in FormatName::ALL {
        let rendered = list(format, &tools(), &ListOptions::default());
        let reason = |name: &str| rendered.omitted.iter().find(|one| one.name == name).map(|one| one.reason.as_str());
        assert!(reason("ask_nobody").unwrap().contains("nobody"), "{format:?}");
        assert!(reason("ask_code").unwrap().contains("only code"), "{format:?}");
    }
    assert!(list(FormatName::Anthropic, &tools(), &everything()).tools.iter().any(|entry| entry["name"] == "ask_code"));
}

#[test]
fn a_caller_filters_the_list() {
    let tools = [
        tool(json!({"name": "anybody"})),
        tool(json!({"name": "code", "allowed_callers": ["code_execution"]})),
        tool(json!({"name": "person", "allowed_callers": ["human"]})),
    ];
    let names = |format: FormatName, caller: Caller| -> Vec<String> {
        let rendered = list(format, &tools, &ListOptions { caller: Some(caller), ..everything() });
        let name = |entry: &Value| entry["name"].as_str().map(str::to_owned);
        rendered.tools.iter().filter_map(name).filter(|name| name != "code_execution").collect()
    };
    for format in [FormatName::Anthropic, FormatName::Toolhook] {
        assert_eq!(names(format, Caller::Human), ["anybody", "person"], "{format:?}");
        assert_eq!(names(format, Caller::CodeExecution), ["anybody", "code"], "{format:?}");
    }
}

#[test]
fn what_is_over_the_provider_s_limit_is_omitted() {
    let many: Vec<Tool> = (0..520).map(|n| tool(json!({"name": format!("tool_{n:03}")}))).collect();
    for (format, most) in [(FormatName::OpenaiChat, 128), (FormatName::OpenaiResponses, 128), (FormatName::Gemini, 512)]
    {
        let rendered = list(format, &many, &ListOptions::default());
        let count = match format {
            FormatName::Gemini => rendered.tools[0]["functionDeclarations"].as_array().unwrap().len(),
            _ => rendered.tools.len(),
        };
        assert_eq!((count, rendered.omitted.len()), (most, 520 - most));
        assert_eq!(rendered.omitted[0].name, format!("tool_{most}"));
        assert!(rendered.omitted[0].reason.contains(&most.to_string()));
    }
    assert!(list(FormatName::Anthropic, &many, &ListOptions::default()).omitted.is_empty());
}

#[test]
fn an_empty_list_declares_nothing() {
    for format in FormatName::ALL {
        assert_eq!(list(format, &[], &everything()).tools, [] as [Value; 0], "{format:?}");
    }
}

#[test]
fn deferred_tools_bring_their_search_and_one_tool_is_not_deferred() {
    let two = [tool(json!({"name": "a", "defer_loading": true})), tool(json!({"name": "b", "defer_loading": true}))];
    let with = |search| {
        let options = ListOptions { search, cache: Some(CacheTtl::FiveMinutes), ..ListOptions::default() };
        list(FormatName::Anthropic, &two, &options)
    };
    let rendered = with(None);
    assert_eq!(rendered.tools[0]["type"], "tool_search_tool_bm25_20251119");
    assert_eq!(rendered.tools[1].get("defer_loading"), None);
    assert_eq!(rendered.tools[1]["cache_control"], json!({"type": "ephemeral", "ttl": "5m"}));
    assert_eq!(rendered.tools[2].get("cache_control"), None);
    assert!(rendered.notes.iter().any(|note| note.name == "a" && note.effect == Effect::Dropped));
    assert_eq!(with(Some(ToolSearch::Regex)).tools[0]["name"], "tool_search_tool_regex");
    assert_eq!(with(Some(ToolSearch::None)).tools.len(), 2);
    let responses = list(FormatName::OpenaiResponses, &two, &ListOptions::default());
    assert_eq!(responses.tools[0], json!({"type": "tool_search"}));
}

#[test]
fn combinations_that_anthropic_refuses_are_kept_out() {
    let plain = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let tools = [
        tool(json!({"name": "marked", "defer_loading": true,
            "provider_options": {"anthropic": {"cache_control": {"type": "ephemeral"}}}})),
        tool(
            json!({"name": "strict_code", "strict": true, "allowed_callers": ["human", "code_execution"], "input_schema": plain}),
        ),
        tool(json!({"name": "tree_code", "allowed_callers": ["human", "code_execution"],
            "input_schema": {"properties": {"x": {"$ref": "#"}}}})),
    ];
    let rendered = list(FormatName::Anthropic, &tools, &everything());
    let entry = |name: &str| rendered.tools.iter().find(|entry| entry["name"] == name).unwrap();
    assert_eq!(entry("marked").get("cache_control"), None);
    assert_eq!(entry("strict_code").get("strict"), None);
    assert_eq!(entry("tree_code")["allowed_callers"], json!(["direct"]));
}

#[test]
fn anthropic_s_strict_tools_are_counted_over_the_list() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    let many: Vec<Tool> =
        (0..30).map(|n| tool(json!({"name": format!("t{n:02}"), "strict": true, "input_schema": schema}))).collect();
    let rendered = list(FormatName::Anthropic, &many, &ListOptions::default());
    assert_eq!(rendered.tools.iter().filter(|entry| entry["strict"] == true).count(), 20);
    assert_eq!(rendered.notes.iter().filter(|note| note.pointer.as_str() == "/strict").count(), 10);
}

#[test]
fn a_tool_does_not_take_the_name_of_the_provider_s_own() {
    let tools = [
        tool(json!({"name": "a", "defer_loading": true, "allowed_callers": ["human", "code_execution"]})),
        tool(json!({"name": "b"})),
        tool(json!({"name": "code_execution"})),
        tool(json!({"name": "tool_search_tool_bm25"})),
    ];
    let rendered = list(FormatName::Anthropic, &tools, &everything());
    let names: Vec<&Value> = rendered.tools.iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["tool_search_tool_bm25", "code_execution", "a", "b"]);
    assert_eq!(rendered.tools[3]["cache_control"]["ttl"], "1h");
    assert_eq!(rendered.omitted.len(), 2);
    // Where the list needs none of them, the names are free.
    assert_eq!(list(FormatName::Anthropic, &tools[1..], &everything()).omitted, []);
}

#[test]
fn output_schemas_are_only_declared_where_they_are_taken() {
    let output = json!({"type": "object", "properties": {"a b": {"type": "string"}, "ok": {"type": "string"}},
        "required": ["a b", "ok"], "additionalProperties": false});
    let tools = [
        tool(json!({"name": "list", "output_schema": {"type": "array"}})),
        tool(json!({"name": "names", "output_schema": output})),
    ];
    let rendered = list(FormatName::Mcp, &tools, &ListOptions::default());
    assert_eq!(rendered.tools[0].get("outputSchema"), None);
    assert!(rendered.notes[0].detail.contains("no object"), "{:?}", rendered.notes);
    assert_eq!(rendered.tools[1]["outputSchema"], output);
    let rendered = list(FormatName::Gemini, &tools, &ListOptions::default());
    let declared = &rendered.tools[0]["functionDeclarations"][1]["responseJsonSchema"];
    assert_eq!(*declared, json!({"type": "object", "properties": {"ok": {"type": "string"}}, "required": ["ok"]}));
}
