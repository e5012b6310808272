//! Schemas that authors, or their generators, should not have written: refused at once, at their place, with the service alive.

use crate::support::{TestService, pointers};
use serde_json::json;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

fn doubled(keyword: &str, levels: usize) -> String {
    let mut definitions = String::new();
    for n in 0..levels {
        let next = format!("{{\"$ref\":\"#/$defs/d{}\"}}", n + 1);
        write!(definitions, "\"d{n}\":{{\"{keyword}\":[{next},{next}]}},").unwrap();
    }
    format!(r##"{{"$defs":{{{definitions}"d{levels}":{{}}}},"properties":{{"a":{{"$ref":"#/$defs/d0"}}}}}}"##)
}

#[tokio::test]
async fn c04_c05_c07_c08_c11_hostile_schemas_are_refused_quickly() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let nested = |levels: usize| format!("{}{{}}{}", "{\"not\":".repeat(levels), "}".repeat(levels));
    let pattern = |text: &str| json!({"properties": {"a": {"pattern": text}}}).to_string();
    let mut hostile: Vec<String> = vec![nested(33), nested(128), nested(1000), nested(100_000)];
    for keyword in ["anyOf", "allOf", "oneOf"] {
        hostile.extend([16, 24, 60].map(|levels| doubled(keyword, levels)));
    }
    hostile.extend(["(?:\\w{1000}){100}", "a{1000}{1000}", "(?=x)", "(a)\\1", "(", "[z-a]"].map(pattern));
    hostile.extend(
        [
            r#"{"$ref":"http://127.0.0.1:9/x"}"#,
            r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#,
            r##"{"properties":{"a":{"$ref":"#/$defs/none"}}}"##,
            r#"{"$schema":"http://example.com/mine"}"#,
            r#"{"type":"array"}"#,
            r#"{"type":["object"]}"#,
            "true",
            "null",
            "[]",
            "\"x\"",
            r#"{"type":"object","type":"object"}"#,
            r#"{"properties":{"a":{"minimum":"x"}}}"#,
            r#"{"required":"a"}"#,
            r#"{"properties":[]}"#,
        ]
        .map(str::to_owned),
    );
    for schema in &hostile {
        let shown: String = schema.chars().take(60).collect();
        let body = format!(
            r#"{{"name":"t","description":"d","handler":{{"kind":"native","function":"calculate"}},"input_schema":{schema}}}"#
        );
        let began = Instant::now();
        let answer = acme.editor.send("POST", "/v1/tools", Some(body.as_bytes())).await;
        assert!(began.elapsed() < Duration::from_secs(2), "{shown} took {:?}", began.elapsed());
        let problem = answer.problem(422, "invalid_body");
        assert!(pointers(&problem).iter().all(|place| place.starts_with("/input_schema")), "{shown}: {problem}");
    }
    service.anonymous().get("/livez").await.with(200);
}

#[tokio::test]
async fn c12_odd_names_of_properties_are_names() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let long = "k".repeat(10_000);
    let schema = json!({"type": "object", "properties": {"$ref": {"type": "string"}, "enum": {"type": "string"}, "__proto__": {"type": "string"},
        "": {"type": "string"}, "a/b~c": {"type": "string"}, long: {"type": "string"}}});
    let body = json!({"name": "t", "description": "d", "handler": {"kind": "native", "function": "calculate"}, "input_schema": schema});
    let made = acme.editor.post("/v1/tools", &body).await;
    assert_eq!(made.with(201)["input_schema"], schema);
    for format in ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock", "cohere", "mcp", "toolhook"] {
        acme.agent.get(&format!("/v1/formats/{format}/tools")).await.with(200);
    }
    let call =
        acme.agent.post("/v1/tools/t/calls", &json!({"input": {"a/b~c": 5, "": 6, "__proto__": 7}})).await.with(200);
    let message = call["error"]["message"].as_str().unwrap();
    assert!(message.contains("a~1b~0c") && message.contains("__proto__"), "{message}");
}
