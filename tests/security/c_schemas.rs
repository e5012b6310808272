//! Schemas and arguments that are made to hang, overflow or confuse.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::receiver::Receiver;
use crate::stage::{OK, Tenant, exchange, outcome, somewhere, tool, written};

/// How long an attack may take here, where nothing is optimised and other tests run beside.
const SOON: Duration = Duration::from_secs(10);

/// Writes a tool with this schema, given as its text, and gives the status of the answer.
fn write_schema(tenant: &Tenant, schema: &str) -> (u16, String) {
    let body = tool("t", &somewhere()).to_string().replace(r#"{"type":"object"}"#, schema);
    assert!(body.contains(schema), "{body}");
    let began = Instant::now();
    let answer = tenant.ask_in_words(&tenant.stage.strict, "PUT", "/v1/tools/t", &body);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    (answer.status, answer.text)
}

fn refused(tenant: &Tenant, schema: &str) {
    let shown: String = schema.chars().take(80).collect();
    let (status, text) = write_schema(tenant, schema);
    assert_eq!(status, 422, "{shown}: {text}");
    assert!(text.contains("/input_schema"), "{shown}: {text}");
}

#[test]
fn c01_references_reach_neither_the_network_nor_files() {
    let tenant = Tenant::new();
    let listener = Receiver::answering(OK);
    let at = listener.address;
    let secret = tenant.stage.scratch.path().join("secret.json");
    std::fs::write(&secret, r#"{"const": "planted-in-a-file"}"#).unwrap();
    for schema in [
        format!(r#"{{"$ref":"http://{at}/x"}}"#),
        format!(r#"{{"properties":{{"a":{{"$ref":"http://{at}/x#/$defs/y"}}}}}}"#),
        format!(r#"{{"properties":{{"a":{{"$dynamicRef":"http://{at}/x"}}}}}}"#),
        format!(r#"{{"$id":"http://{at}/base/","properties":{{"a":{{"$ref":"relative"}}}}}}"#),
        format!(r#"{{"properties":{{"a":{{"$id":"http://{at}/","$ref":"x"}}}}}}"#),
        format!(r#"{{"$schema":"http://{at}/schema"}}"#),
        format!(r#"{{"properties":{{"a":{{"$ref":"file://{}"}}}}}}"#, secret.display()),
        format!(r#"{{"$id":"file:///","properties":{{"a":{{"$ref":"{}"}}}}}}"#, secret.display()),
        r#"{"properties":{"a":{"$ref":"other.json"}}}"#.to_owned(),
        r#"{"properties":{"a":{"$ref":"urn:x:y"}}}"#.to_owned(),
    ] {
        let (status, text) = write_schema(&tenant, &schema);
        assert_eq!(status, 422, "{schema}: {text}");
        assert!(!text.contains("planted-in-a-file"), "{text}");
    }
    assert_eq!(listener.connections(), 0);
}

#[test]
fn c02_unknown_dialects_and_vocabularies_are_refused() {
    let tenant = Tenant::new();
    for schema in [
        r#"{"$schema":"https://example.com/mine"}"#,
        r#"{"$schema":"http://json-schema.org/draft-03/schema#"}"#,
        r#"{"$schema":"nonsense"}"#,
        r#"{"$schema":7}"#,
    ] {
        refused(&tenant, schema);
    }
    // A vocabulary is a meta-schema's to name; in a schema of a known dialect the word means nothing.
    let (status, text) = write_schema(&tenant, r#"{"$vocabulary":{"https://example.com/mine":true}}"#);
    assert_eq!(status, 201, "{text}");
}

#[test]
fn c03_references_that_go_round_end() {
    let tenant = Tenant::new();
    let deep = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"properties":{"a":{"$ref":"#"}}}"##,
        r##"{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"$ref":"#/$defs/x"}}}"##,
        r##"{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}}}"##,
        r##"{"not":{"$ref":"#"}}"##,
        r##"{"if":{"$ref":"#"},"unevaluatedProperties":{"$ref":"#"}}"##,
    ] {
        let (status, text) = write_schema(&tenant, schema);
        assert!(matches!(status, 200 | 201 | 422), "{schema}: {text}");
        if status == 422 {
            continue;
        }
        let began = Instant::now();
        let call =
            tenant.ask_of(&tenant.stage.strict, "POST", "/v1/tools/t/calls?dry_run=true", &json!({"input": deep}));
        assert!(call.status == 200 && began.elapsed() < SOON, "{schema}: {}", call.text);
    }
}

#[test]
fn c06_schemas_over_their_bounds_are_refused() {
    let tenant = Tenant::new();
    let of = |bytes: usize| {
        let empty = r#"{"type":"object","description":""}"#.len();
        format!(r#"{{"type":"object","description":"{}"}}"#, "d".repeat(bytes - empty))
    };
    assert_eq!(write_schema(&tenant, &of(64 * 1024)).0, 201);
    refused(&tenant, &of(64 * 1024 + 1));
    let many = |count: usize| {
        let members: Vec<String> = (0..count).map(|n| format!(r#""{n}":{{}}"#)).collect();
        format!(r#"{{"properties":{{{}}}}}"#, members.join(","))
    };
    refused(&tenant, &many(10_000));
}

#[test]
fn c09_a_thousand_patterns_are_refused() {
    let tenant = Tenant::new();
    let members: Vec<String> = (0..1_500).map(|n| format!(r#""p{n}":{{"pattern":"^\\p{{L}}{{1,50}}$"}}"#)).collect();
    refused(&tenant, &format!(r#"{{"properties":{{{}}}}}"#, members.join(",")));
}

#[test]
fn c10_long_lists_of_values_are_refused() {
    let tenant = Tenant::new();
    let numbers: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    refused(&tenant, &format!(r#"{{"properties":{{"a":{{"enum":[{}]}}}}}}"#, numbers.join(",")));
    let names: Vec<String> = (0..20_000).map(|n| format!("\"{n}\"")).collect();
    refused(&tenant, &format!(r#"{{"required":[{}]}}"#, names.join(",")));
}

/// The bounds are those of the contract: 1 MiB and 64 levels.
#[test]
fn c13_arguments_over_their_bounds_are_not_sent() {
    let tenant = Tenant::new();
    let receiver = Receiver::answering(OK);
    tenant.tool("t", &json!({"kind": "webhook", "url": receiver.url()}));
    let deep = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    let long = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
    for (fine, wrong) in [(deep(64), deep(65)), (long(1 << 20), long((1 << 20) + 1))] {
        assert_eq!(outcome(&tenant.call("t", &fine)), ("succeeded", ""));
        assert_eq!(outcome(&tenant.call("t", &wrong)), ("rejected", "invalid_arguments"));
    }
    assert_eq!(receiver.requests().len(), 2);
    // Deeper than any reader of JSON goes.
    let body = format!("{{\"input\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = exchange(&tenant.stage.open.base_url, &written(&tenant.key, "/v1/tools/t/calls", body.as_bytes()));
    assert!(answer.unwrap().starts_with("HTTP/1.1 400"));
}

#[test]
fn c17_arguments_that_cannot_be_read_fail_alone() {
    let tenant = Tenant::new();
    let receiver = Receiver::answering(OK);
    tenant.tool("t", &json!({"kind": "webhook", "url": receiver.url()}));
    let texts = [r#"{"a":1}"#, "", "{\"a\":", "[]", "7", "nonsense", r#""{\"a\":1}""#, r#"{"a":1,"\u0061":2}"#];
    let calls: Vec<Value> = (0_u32..)
        .zip(texts)
        .map(|(n, text)| json!({"id": format!("c{n}"), "type": "function", "function": {"name": "t", "arguments": text}}))
        .collect();
    let reply = json!({"reply": {"role": "assistant", "content": null, "tool_calls": calls}});
    let answer = tenant.ask("POST", "/v1/formats/openai-chat/calls", &reply);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let told: Vec<&str> = answer.body["calls"].as_array().unwrap().iter().map(|call| outcome(call).0).collect();
    assert_eq!(
        told,
        ["succeeded", "succeeded", "rejected", "rejected", "rejected", "rejected", "succeeded", "rejected"]
    );
    assert_eq!(answer.body["append"].as_array().unwrap().len(), texts.len());
    assert_eq!(receiver.requests().len(), 3);
}

#[test]
fn c18_errors_do_not_repeat_values() {
    let tenant = Tenant::new();
    let schema = r#"{"properties":{"n":{"type":"integer"},"e":{"enum":["a"]},"p":{"pattern":"^a$"},"c":{"const":1},"m":{"maxLength":3},
        "x":{"not":{"type":"string"}},"o":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"additionalProperties":false}"#;
    assert_eq!(write_schema(&tenant, schema).0, 201);
    let planted = "planted-in-a-value";
    for name in ["n", "e", "p", "c", "m", "x", "o"] {
        let call = tenant.call_by(&tenant.stage.strict, "t", &json!({ name: planted }));
        assert_eq!(outcome(&call), ("rejected", "invalid_input"), "{name}: {call}");
        let message = call["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("/{name}")) && !message.contains(planted), "{message}");
    }
    assert!(!tenant.stage.strict.logged().contains(planted));
}

#[test]
fn c20_numbers_are_passed_on_digit_for_digit_or_refused() {
    let tenant = Tenant::new();
    let receiver = Receiver::answering(OK);
    let handler = json!({"kind": "webhook", "url": receiver.url()});
    let mut body = tool("t", &handler);
    body["input_schema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    assert_eq!(tenant.ask("PUT", "/v1/tools/t", &body).status, 201);
    let run = |text: &str| {
        let body = format!("{{\"input\":{text}}}");
        tenant.ask_in_words(&tenant.stage.open, "POST", "/v1/tools/t/calls", &body).body
    };
    for text in [
        r#"{"n":18446744073709551616}"#,
        r#"{"n":9007199254740993}"#,
        r#"{"n":-0}"#,
        r#"{"n":1.0}"#,
        r#"{"m":0.10000000000000000000000001}"#,
        r#"{"m":123456789012345678901234567890.5}"#,
    ] {
        assert_eq!(outcome(&run(text)), ("succeeded", ""), "{text}");
        let sent = receiver.requests().pop().unwrap();
        assert!(sent.contains(&format!("\"input\":{text}")), "{text}: {sent}");
    }
    let sent = receiver.requests().len();
    for (text, code) in [
        (r#"{"n":1.5}"#, "invalid_input"),
        (r#"{"m":1e400}"#, "invalid_arguments"),
        (r#"{"m":-1e99999}"#, "invalid_arguments"),
    ] {
        assert_eq!(outcome(&run(text)), ("rejected", code), "{text}");
    }
    assert_eq!(receiver.requests().len(), sent);
}

#[test]
fn c21_what_is_no_json_is_refused_on_every_route() {
    let tenant = Tenant::new();
    tenant.tool("t", &somewhere());
    let bodies: [&[u8]; 7] = [
        b"{\"input\":{\"a\":\"\xff\"}}",
        b"\xef\xbb\xbf{\"input\":{}}",
        b"{\"input\":{\"a\":\"\\ud800\"}}",
        b"{\"input\":{}} x",
        b"{\"input\":{\"a\":NaN}}",
        b"{\"input\":{\"a\":1,\"\\u0061\":2}}",
        b"{\"input\":{\"a\":\"\x00\"}}",
    ];
    for body in bodies {
        for path in ["/v1/tools/t/calls", "/v1/tools", "/v1/handlers", "/v1/formats/toolhook/calls", "/v1/keys"] {
            let answer = exchange(&tenant.stage.open.base_url, &written(&tenant.key, path, body)).unwrap();
            let refused = answer.starts_with("HTTP/1.1 400") || answer.starts_with("HTTP/1.1 422");
            assert!(refused, "{path} {:?}: {answer}", String::from_utf8_lossy(body));
        }
    }
}
