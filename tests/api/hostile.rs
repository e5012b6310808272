//! A tenant that means harm: schemas and values that are made to overflow a stack, to take for ever, or to spoil what is
//! stored. Each is refused, or answered in time, and the others notice nothing.

use crate::support::{Receiver, Tenant, TestService, pointers, tool, webhook};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long an attack may take here, where nothing is optimised and other tests run beside.
const SOON: Duration = Duration::from_secs(10);

fn nested(levels: usize, inner: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(inner, |value, _| wrap(value))
}

fn with_schema(name: &str, schema: &Value) -> Value {
    tool(name, &webhook(), &json!({ "input_schema": schema }))
}

/// The message about a call that is refused for its input.
async fn refusal(tenant: &Tenant, name: &str, input: &Value) -> String {
    let began = Instant::now();
    let call = tenant.agent.post(&format!("/v1/tools/{name}/calls"), &json!({ "input": input })).await.with(200);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(call["status"], "rejected", "{call}");
    let message = call["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.chars().count() <= 4_000, "{} characters", message.chars().count());
    message
}

#[tokio::test]
async fn long_chains_of_references_are_refused() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let chain = |links: usize, levels: usize, root: &str, refer: &dyn Fn(usize) -> Value, anchor: &str| {
        let mut definitions = serde_json::Map::new();
        for n in 0..links {
            let end = if n + 1 == links { json!({}) } else { refer(n + 1) };
            let mut link = nested(levels, end, |inner| json!({ "not": inner }));
            link[anchor] = json!(format!("a{n}"));
            definitions.insert(format!("d{n}"), link);
        }
        let mut schema = json!({ root: definitions });
        schema["properties"]["x"] = refer(0);
        schema
    };
    let pointer = |n: usize| json!({"$ref": format!("#/$defs/d{n}")});
    let anywhere = |n: usize| json!({"$ref": format!("#/unknown/d{n}")});
    let anchor = |n: usize| json!({"$ref": format!("#a{n}")});
    let dynamic = |n: usize| json!({"$dynamicRef": format!("#a{n}")});
    for schema in [
        chain(60, 28, "$defs", &pointer, "$comment"),
        chain(60, 28, "unknown", &anywhere, "$comment"),
        chain(1_000, 0, "$defs", &pointer, "$comment"),
        chain(60, 28, "$defs", &anchor, "$anchor"),
        chain(60, 28, "$defs", &dynamic, "$dynamicAnchor"),
    ] {
        let problem = acme.editor.put("/v1/tools/t", &with_schema("t", &schema)).await.problem(422, "invalid_body");
        assert!(problem["detail"].as_str().unwrap().contains("levels"), "{problem}");
    }
    // As deep as is allowed, also where the compiler recurses most.
    for (links, levels) in [(4, 29), (12, 8), (100, 0)] {
        for (refer, root, name) in [
            (&pointer as &dyn Fn(usize) -> Value, "$defs", "$comment"),
            (&anchor, "$defs", "$anchor"),
            (&dynamic, "$defs", "$dynamicAnchor"),
        ] {
            let mut schema = chain(links, levels, root, refer, name);
            schema["unevaluatedProperties"] = json!(false);
            let made = acme.editor.put("/v1/tools/deep", &with_schema("deep", &schema)).await;
            assert!(matches!(made.status, 200 | 201), "{}", made.text());
            acme.agent.post("/v1/tools/deep/calls?dry_run=true", &json!({"input": {"x": {}, "y": 1}})).await.with(200);
        }
    }
}

#[tokio::test]
async fn values_that_double_the_work_with_each_level_are_refused_in_time() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let doubling = |reference: &str| json!({"$anchor": "a1", "properties": {"c": {"anyOf": [{"$ref": reference}, {"$ref": reference}]}}, "additionalProperties": false});
    let value = nested(40, json!({"x": 1}), |inner| json!({ "c": inner }));
    for (name, schema) in [
        ("by_pointer", doubling("#")),
        ("by_anchor", doubling("#a1")),
        (
            "one_of",
            json!({"properties": {"c": {"oneOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "null"}]}}, "unevaluatedProperties": false}),
        ),
    ] {
        acme.editor.put(&format!("/v1/tools/{name}"), &with_schema(name, &schema)).await.with(201);
        refusal(&acme, name, &value).await;
        // The same as an example.
        let mut body = with_schema("example", &schema);
        body["input_examples"] = json!([value, value]);
        let began = Instant::now();
        let problem = acme.editor.put("/v1/tools/example", &body).await.problem(422, "invalid_body");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert!(pointers(&problem).iter().all(|place| place.starts_with("/input_examples")), "{problem}");
    }
}

#[tokio::test]
async fn one_tenants_long_checks_hold_nobody_else_up() {
    let service = TestService::start().await;
    let (evil, good) = (service.tenant("evil").await, service.tenant("good").await);
    let schema = json!({"properties": {"c": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    evil.editor.put("/v1/tools/t", &with_schema("t", &schema)).await.with(201);
    let value = nested(60, json!({"c": 1}), |inner| json!({ "c": inner }));
    let attack = json!({ "input": value });
    let attacks =
        futures_util::future::join_all((0..20).map(|_| evil.agent.post("/v1/tools/t/calls?dry_run=true", &attack)));
    let others = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let began = Instant::now();
            let call = json!({"input": {"expression": "1 + 1"}});
            assert_eq!(good.agent.post("/v1/tools/calculate/calls", &call).await.with(200)["status"], "succeeded");
            slowest = slowest.max(began.elapsed());
        }
        slowest
    };
    let (_, slowest) = tokio::join!(attacks, others);
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

#[tokio::test]
async fn a_mistake_deep_in_a_natural_filter_is_told_briefly() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let list = |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "array", "items": {"$ref": "#/$defs/f"}}}});
    let leaf = json!({"type": "object", "required": ["field", "value"], "properties": {"field": {"type": "string"}, "value": {"type": "number"}}});
    let schema = json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/f"}}, "$defs": {"f": {"anyOf": [list("and"), list("or"), leaf]}}});
    acme.editor.put("/v1/tools/find", &with_schema("find", &schema)).await.with(201);
    for depth in [1, 5, 14, 25] {
        let wrong = json!({"field": "age", "value": "old"});
        let input = json!({"f": nested(depth, wrong, |inner| json!({"and": [inner, {"field": "a", "value": 1}]}))});
        let message = refusal(&acme, "find", &input).await;
        assert!(message.contains("/f"), "{message}");
    }
}

#[tokio::test]
async fn c14_c15_texts_and_lists_that_are_made_to_be_slow_are_bounded() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let schema = json!({"properties": {"code": {"type": "string", "pattern": "^(?:\\w{1,20} ?){1,20}$"}, "list": {"uniqueItems": true}}});
    acme.editor.put("/v1/tools/t", &with_schema("t", &schema)).await.with(201);
    let message = refusal(&acme, "t", &json!({"code": "x".repeat(100_000)})).await;
    assert!(message.contains("/code") && message.len() < 400, "{message}");
    // Numbers that are all one float.
    let mut same: Vec<Value> = Vec::new();
    for n in 0..20_000 {
        same.push(serde_json::from_str(&format!("9007199254740992.0{n:05}1")).unwrap());
    }
    same.push(same[0].clone());
    let message = refusal(&acme, "t", &json!({ "list": same })).await;
    assert!(message.contains("all differ") || message.contains("too much"), "{message}");
    let many: Vec<usize> = (0..20_000).collect();
    let listed = with_schema("l", &json!({"properties": {"a": {"enum": many}}}));
    assert_eq!(
        pointers(&acme.editor.put("/v1/tools/l", &listed).await.problem(422, "invalid_body")),
        ["/input_schema"]
    );
}

#[tokio::test]
async fn keys_that_the_parser_gives_a_meaning_are_refused_everywhere() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let handler = json!({"kind": "webhook", "url": receiver.url()});
    acme.editor.put("/v1/tools/good", &tool("good", &handler, &json!({}))).await.with(201);
    for key in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        let object = json!({ key: "7" });
        for more in [
            json!({"provider_options": {"anthropic": {"x": object}}}),
            json!({"provider_options": {"anthropic": object}}),
            json!({"input_examples": [{"city": "x", "y": [object]}]}),
            json!({"input_schema": {"properties": {"a": {"const": object}}}}),
            json!({"input_schema": {"properties": {key: {"type": "string"}}}}),
        ] {
            acme.editor.put("/v1/tools/bad", &tool("bad", &handler, &more)).await.problem(400, "malformed_body");
            acme.editor.patch("/v1/tools/good", &more).await.problem(400, "malformed_body");
        }
        let call = json!({"input": {"city": "x", "n": object}});
        acme.agent.post("/v1/tools/good/calls", &call).await.problem(400, "malformed_body");
        let text = json!({"input": object.to_string()});
        let call = acme.agent.post("/v1/tools/good/calls", &text).await.with(200);
        assert_eq!(call["error"]["code"], "invalid_arguments", "{call}");
    }
    assert!(receiver.seen().is_empty());
    acme.agent.get("/v1/formats/anthropic/tools").await.with(200);
}

#[tokio::test]
async fn what_is_too_deep_to_be_read_again_is_not_stored() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for levels in [65, 100, 124, 125, 126, 127, 200] {
        let deep = nested(levels, json!(1), |inner| json!({ "a": inner }));
        for more in
            [json!({"provider_options": {"anthropic": deep}}), json!({"input_examples": [{"city": "x", "a": deep}]})]
        {
            let body = tool("t", &webhook(), &more).to_string();
            let answer = acme.editor.send("PUT", "/v1/tools/t", Some(body.as_bytes())).await;
            assert!(matches!(answer.status, 400 | 422), "{levels}: {}", answer.text());
        }
    }
    let deep = nested(62, json!(1), |inner| json!({ "a": inner }));
    let more = json!({"provider_options": {"anthropic": {"x": deep}}, "input_examples": [{"city": "x", "a": deep}]});
    acme.editor.put("/v1/tools/t", &tool("t", &webhook(), &more)).await.with(201);
    for path in [
        "/v1/tools",
        "/v1/tools/t",
        "/v1/tools/t/versions",
        "/v1/formats/anthropic/tools",
        "/v1/formats/toolhook/tools",
    ] {
        acme.operator.get(path).await.with(200);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_set_aside_and_can_be_deleted() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for name in ["a", "bad_options", "bad_limits", "bad_schema", "z"] {
        acme.editor.put(&format!("/v1/tools/{name}"), &tool(name, &webhook(), &json!({}))).await.with(201);
    }
    let deep = "[".repeat(150) + &"]".repeat(150);
    for statement in [
        format!(
            r#"update tools set options = '{{"provider_options": {{"mcp": {{"x": {deep}}}}}}}' where name = 'bad_options'"#
        ),
        r#"update tools set limits = '{"timeout_ms": {"$serde_json::private::Number": "x"}}' where name = 'bad_limits'"#.to_owned(),
        r#"update tools set input_schema = '{"type": "nonsense"}' where name = 'bad_schema'"#.to_owned(),
    ] {
        service.database.execute(&statement).await;
    }
    let service = service.restart().await;
    let acme = acme.at(&service);
    let names = |list: &Value, member: &str| -> Vec<String> {
        list[member].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let bad = ["bad_limits", "bad_options", "bad_schema"];
    let listed = acme.agent.get("/v1/formats/anthropic/tools").await.with(200);
    assert!(names(&listed, "tools").contains(&"z".to_owned()), "{listed}");
    assert!(bad.iter().all(|name| names(&listed, "omitted").contains(&(*name).to_owned())), "{listed}");
    let managed = acme.viewer.get("/v1/tools").await.with(200);
    assert_eq!(
        (names(&managed, "data"), names(&managed, "omitted")),
        (vec!["a".into(), "z".into()], bad.map(String::from).into())
    );
    acme.agent.post("/v1/tools/a/calls?dry_run=true", &json!({"input": {"city": "x"}})).await.with(200);
    for name in bad {
        let path = format!("/v1/tools/{name}");
        acme.viewer.get(&path).await.problem(409, "unreadable");
        acme.agent.post(&format!("{path}/calls"), &json!({"input": {"city": "x"}})).await.problem(409, "unreadable");
        acme.editor.put(&path, &tool(name, &webhook(), &json!({}))).await.problem(409, "unreadable");
        acme.editor.delete(&path).await.with(204);
        acme.editor.put(&path, &tool(name, &webhook(), &json!({}))).await.with(201);
    }
}

#[tokio::test]
async fn c16_an_object_as_input_is_held_to_the_same_length_as_text_and_a_body_to_a_number_of_values() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/tools/t", &tool("t", &webhook(), &json!({}))).await.with(201);
    let long = "x".repeat(1024 * 1024);
    for input in [json!({ "city": long }), json!(json!({ "city": long }).to_string())] {
        let message = refusal(&acme, "t", &input).await;
        assert!(message.contains("1048576"), "{message}");
    }
    let body = format!("{{\"input\":{{\"city\":[{}[]]}}}}", "[],".repeat(2_700_000));
    let began = Instant::now();
    let problem =
        acme.agent.send("POST", "/v1/tools/t/calls", Some(body.as_bytes())).await.problem(400, "malformed_body");
    assert!(problem["detail"].as_str().unwrap().contains("values") && began.elapsed() < SOON, "{problem}");
}

#[tokio::test]
async fn h02_what_only_a_model_would_see_is_refused_inside_schemas_too() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for hidden in ["\u{200b}", "\u{2060}", "\u{feff}", "\u{ad}", "\u{202e}", "\u{2066}", "\u{e0041}"] {
        let text = format!("a{hidden}b");
        for (schema, place) in [
            (json!({"description": text}), "/input_schema/description"),
            (json!({"properties": {"a": {"description": text}}}), "/input_schema/properties/a/description"),
            (json!({"properties": {"a": {"enum": [text]}}}), "/input_schema/properties/a/enum/0"),
            (json!({"properties": {text.clone(): {}}}), "/input_schema/properties"),
            (json!({"$defs": {"d": {"title": text}}}), "/input_schema/$defs/d/title"),
        ] {
            let problem = acme.editor.put("/v1/tools/t", &with_schema("t", &schema)).await.problem(422, "invalid_body");
            assert_eq!(pointers(&problem), [place], "{problem}");
        }
        let body = tool("t", &webhook(), &json!({"description": text}));
        assert_eq!(
            pointers(&acme.editor.put("/v1/tools/t", &body).await.problem(422, "invalid_body")),
            ["/description"]
        );
    }
    let fine = json!({"description": "👩\u{200d}👧 ❤\u{fe0f}", "properties": {"می\u{200c}خواهم": {"pattern": "^[^\u{200b}]*$"}}});
    acme.editor.put("/v1/tools/t", &with_schema("t", &fine)).await.with(201);
}
