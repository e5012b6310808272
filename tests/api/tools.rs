//! `/v1/tools`.

use crate::support::{Receiver, TestService, pointers, tool, webhook};
use futures_util::future::join_all;
use serde_json::{Value, json};

#[tokio::test]
async fn a_tool_is_answered_with_every_field() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    let made = acme.editor.post("/v1/tools", &tool("get_weather", &json!("h"), &json!({}))).await;
    assert_eq!(made.header("location"), Some("/v1/tools/get_weather"));
    let mut view = made.with(201);
    assert!(view["warnings"].is_array(), "{view}");
    let (created, updated) = (view["created_at"].take(), view["updated_at"].take());
    assert!(created.as_str().unwrap().ends_with('Z') && created == updated, "{created} {updated}");
    view.as_object_mut().unwrap().remove("warnings");
    let expected = json!({"name": "get_weather", "description": "For a test",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "handler": "h", "concurrent": true, "max_result_chars": null, "timeout_ms": null, "allowed_callers": null,
        "result_type": null, "strict": false, "input_examples": [], "defer_loading": false, "provider_options": {},
        "annotations": {"title": null, "read_only": null, "destructive": null, "idempotent": null, "open_world": null},
        "output_schema": null, "tags": [], "enabled": true, "version": 1, "created_at": null, "updated_at": null});
    assert_eq!(view, expected);
    let got = acme.viewer.get("/v1/tools/get_weather").await;
    assert_eq!(got.etag(), made.etag());
    assert!(got.with(200).get("warnings").is_none());
}

#[tokio::test]
async fn every_field_comes_back_as_it_was_written_and_null_is_the_default() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    let written = json!({"concurrent": false, "max_result_chars": 7, "timeout_ms": 1000, "allowed_callers": ["human", "code_execution"],
        "result_type": "structured", "strict": true, "input_examples": [{"city": "Sydney"}], "defer_loading": true,
        "provider_options": {"anthropic": {"z": 1, "a": {"y": 1.10, "b": null}}, "openai-chat": {}},
        "annotations": {"title": "Weather", "read_only": true, "destructive": false, "idempotent": true, "open_world": false},
        "output_schema": {"type": "object", "properties": {"z": {}, "a": {}}}, "tags": ["b", "a"], "enabled": false});
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &written)).await.with(201);
    let after = service.restart().await;
    let got = acme.at(&after).viewer.get("/v1/tools/t").await.with(200);
    for (field, value) in written.as_object().unwrap() {
        assert_eq!(&got[field], value, "{field}");
        // Also the order of keys, which equality does not see.
        assert_eq!(got[field].to_string(), value.to_string(), "{field}");
    }
    let nulls: Value = written.as_object().unwrap().keys().map(|field| (field.clone(), Value::Null)).collect();
    let reset = acme.editor.put("/v1/tools/t", &tool("t", &json!("h"), &nulls)).await.with(200);
    let plain = acme.editor.post("/v1/tools", &tool("plain", &json!("h"), &json!({}))).await.with(201);
    for field in written.as_object().unwrap().keys() {
        assert_eq!(reset[field], plain[field], "{field}");
    }
    let unlimited = acme
        .editor
        .patch("/v1/tools/t", &json!({"max_result_chars": "unlimited", "allowed_callers": []}))
        .await
        .with(200);
    assert_eq!((&unlimited["max_result_chars"], &unlimited["allowed_callers"]), (&json!("unlimited"), &json!([])));
}

#[tokio::test]
async fn schemas_come_back_byte_for_byte_after_a_restart() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    let input = "{ \"type\" :\t\"object\",\r\n \"properties\":{\"zeta\" : {\"multipleOf\":1.10,\"description\":\"caf\\u00e9 \\/ \u{e9}\"},\"alpha\":{ \"maximum\": 1E2, \"minimum\":-0 ,\"const\":123456789012345678901234567890}} ,\"x-null\":\"\\u0000\" }";
    let output = "{\"properties\" : { \"b\":{},\n\n\"a\":{}}}";
    let body =
        format!(r#"{{"name":"t","description":"d","handler":"h","input_schema":{input},"output_schema":  {output}}}"#);
    let holds = |text: &str| text.contains(input) && text.contains(output);
    let made = acme.editor.send("POST", "/v1/tools", Some(body.as_bytes())).await;
    made.with(201);
    assert!(holds(made.text()), "{}", made.text());
    // The same again is no change; the same in other bytes is one.
    let same = acme.editor.send("PUT", "/v1/tools/t", Some(body.as_bytes())).await;
    assert_eq!(same.with(200)["version"], 1);
    let patched = acme.editor.patch("/v1/tools/t", &json!({"description": "e"})).await;
    assert!(holds(patched.text()), "{}", patched.text());
    let after = acme.at(&service.restart().await);
    for path in ["/v1/tools/t", "/v1/tools", "/v1/tools/t/versions/1", "/v1/tools/t/versions"] {
        let got = after.viewer.get(path).await;
        assert!(holds(got.text()), "{path}: {}", got.text());
    }
    let spaced = body.replace("\"zeta\" :", "\"zeta\":").replace("\"d\"", "\"e\"");
    assert_eq!(acme.editor.send("PUT", "/v1/tools/t", Some(spaced.as_bytes())).await.with(200)["version"], 3);
}

#[tokio::test]
async fn a_put_makes_replaces_and_leaves_alone() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    let mut body = tool("t", &json!("h"), &json!({"tags": ["a"]}));
    body.as_object_mut().unwrap().remove("name"); // it stands in the path
    let made = acme.editor.put("/v1/tools/t", &body).await;
    assert_eq!((made.with(201)["version"].clone(), made.header("location")), (json!(1), Some("/v1/tools/t")));
    let same = acme.editor.put("/v1/tools/t", &body).await;
    assert_eq!(same.with(200)["version"], 1);
    assert_eq!(same.etag(), made.etag());
    let version = async || acme.agent.get("/v1/formats/toolhook/tools").await.with(200)["registry_version"].clone();
    let before = version().await;
    acme.editor.put("/v1/tools/t", &body).await.with(200);
    assert_eq!(version().await, before, "a PUT that changes nothing costs every prompt cache");
    body["tags"] = json!([]);
    let changed = acme.editor.put("/v1/tools/t", &body).await;
    assert_eq!(changed.with(200)["version"], 2);
    assert_ne!(changed.etag(), made.etag());
    body["name"] = json!("u");
    assert_eq!(pointers(&acme.editor.put("/v1/tools/t", &body).await.problem(422, "invalid_body")), ["/name"]);
    assert_eq!(
        pointers(
            &acme.editor.put("/v1/tools/9t", &tool("9t", &json!("h"), &json!({}))).await.problem(422, "invalid_body")
        ),
        ["/name"]
    );
}

#[tokio::test]
async fn a_post_does_not_take_a_taken_name() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = tool("t", &webhook(), &json!({}));
    acme.editor.post("/v1/tools", &body).await.with(201);
    acme.editor.post("/v1/tools", &body).await.problem(409, "name_taken");
    let native = tool("calculate", &webhook(), &json!({}));
    acme.editor.post("/v1/tools", &native).await.problem(409, "name_taken");
    acme.editor.put("/v1/tools/calculate", &native).await.problem(409, "name_taken");
}

#[tokio::test]
async fn of_eight_that_make_one_name_one_wins() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for round in 0..3 {
        let body = tool(&format!("t{round}"), &webhook(), &json!({}));
        let answers = join_all((0..8).map(|_| acme.editor.post("/v1/tools", &body))).await;
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        for refused in answers.iter().filter(|answer| answer.status != 201) {
            refused.problem(409, "name_taken");
        }
        assert_eq!(made, 1);
    }
    let put = tool("p", &webhook(), &json!({}));
    let answers = join_all((0..8).map(|_| acme.editor.put("/v1/tools/p", &put))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 201)), "{answers:?}");
}

#[tokio::test]
async fn concurrent_patches_lose_nothing() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    let patches = [
        json!({"strict": true}),
        json!({"concurrent": false}),
        json!({"defer_loading": true}),
        json!({"tags": ["a"]}),
        json!({"timeout_ms": 5}),
        json!({"annotations": {"title": "T"}}),
        json!({"annotations": {"read_only": true}}),
        json!({"description": "other"}),
    ];
    let answers = join_all(patches.iter().map(|patch| acme.editor.patch("/v1/tools/t", patch))).await;
    for answer in &answers {
        answer.with(200);
    }
    let got = acme.viewer.get("/v1/tools/t").await.with(200);
    for patch in &patches {
        let mut merged = got.clone();
        json_merge(&mut merged, patch);
        assert_eq!(merged, got, "lost: {patch}");
    }
    assert_eq!(got["version"], 9);
}

fn json_merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                json_merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

#[tokio::test]
async fn a_patch_merges_except_where_a_whole_is_meant() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let first = json!({"annotations": {"title": "T", "read_only": true}, "provider_options": {"anthropic": {"a": 1}, "gemini": {"b": 1}},
        "input_examples": [{"city": "a"}], "output_schema": {"properties": {"a": {}}}, "tags": ["x"], "timeout_ms": 9});
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &first)).await.with(201);
    let patch = json!({"annotations": {"title": null, "idempotent": true}, "provider_options": {"gemini": {"c": 2}},
        "input_schema": {"properties": {"town": {}}}, "input_examples": [{"town": "b"}], "output_schema": null, "tags": null, "timeout_ms": null});
    let got = acme.editor.patch("/v1/tools/t", &patch).await.with(200);
    assert_eq!(
        got["annotations"],
        json!({"title": null, "read_only": true, "destructive": null, "idempotent": true, "open_world": null})
    );
    assert_eq!(got["provider_options"], json!({"gemini": {"c": 2}}));
    assert_eq!(got["input_schema"], json!({"properties": {"town": {}}}));
    assert_eq!(got["input_examples"], json!([{"town": "b"}]));
    assert_eq!((&got["output_schema"], &got["tags"], &got["timeout_ms"]), (&Value::Null, &json!([]), &Value::Null));
    for (patch, place) in [
        (json!({"description": null}), "/description"),
        (json!({"input_schema": null}), "/input_schema"),
        (json!({"handler": null}), "/handler"),
        (json!({"name": "u"}), "/name"),
        (json!({"colour": 1}), "/colour"),
        (json!({"version": 2}), "/version"),
        (json!({"input_examples": [{"town": 1}, 2]}), "/input_examples/1"),
    ] {
        let problem = acme.editor.patch("/v1/tools/t", &patch).await.problem(422, "invalid_body");
        assert!(pointers(&problem).contains(&place.to_owned()), "{patch}: {problem}");
    }
    // The other content type that a merge patch may have.
    acme.editor.send("PATCH", "/v1/tools/t", Some(br#"{"enabled": false}"#)).await.with(200);
    acme.editor.patch("/v1/tools/missing", &json!({})).await.problem(404, "not_found");
}

#[tokio::test]
async fn if_match_guards_a_tool() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = tool("t", &webhook(), &json!({}));
    let first = acme.editor.post("/v1/tools", &body).await.etag();
    let any = acme.editor.with("if-match", "*").patch("/v1/tools/t", &json!({"tags": ["a"]})).await;
    any.with(200);
    let stale = acme.editor.with("if-match", &first);
    stale.put("/v1/tools/t", &body).await.problem(412, "precondition_failed");
    stale.patch("/v1/tools/t", &json!({"tags": []})).await.problem(412, "precondition_failed");
    stale.delete("/v1/tools/t").await.problem(412, "precondition_failed");
    stale.send("POST", "/v1/tools/t/versions/1/restore", None).await.problem(412, "precondition_failed");
    stale.put("/v1/tools/new", &tool("new", &webhook(), &json!({}))).await.problem(412, "precondition_failed");
    assert_eq!(acme.viewer.get("/v1/tools/t").await.with(200)["tags"], json!(["a"]));
    let fresh = acme.editor.with("if-match", &format!("\"other\", {}", any.etag()));
    fresh.delete("/v1/tools/t").await.with(204);
    acme.viewer.get("/v1/tools/t").await.problem(404, "not_found");
    // Of eight that hold the same tag, one may write.
    let tag = acme.editor.post("/v1/tools", &body).await.etag();
    let holder = acme.editor.with("if-match", &tag);
    let patches: Vec<Value> = (0..8).map(|n| json!({"tags": [n.to_string()]})).collect();
    let answers = join_all(patches.iter().map(|patch| holder.patch("/v1/tools/t", patch))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
}

#[tokio::test]
async fn a_tools_faults_are_told_together_each_at_its_place() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = json!({"name": "a b", "description": "", "input_schema": {"properties": {"a": {"type": "strung"}}},
        "handler": {"kind": "webhook", "url": "nonsense", "headers": {"host": "x"}}, "concurrent": "yes", "max_result_chars": 0,
        "allowed_callers": ["robot"], "result_type": "xml", "strict": 1, "input_examples": {}, "defer_loading": "x",
        "output_schema": [], "provider_options": {"acme": {}, "gemini": 1}, "annotations": {"titel": 1}, "tags": ["", 5],
        "enabled": "no", "timeout_ms": 300_001, "surprise": true});
    let problem = acme.editor.post("/v1/tools", &body).await.problem(422, "invalid_body");
    let mut told = pointers(&problem);
    told.sort();
    let expected = [
        "/allowed_callers",
        "/annotations/titel",
        "/concurrent",
        "/defer_loading",
        "/description",
        "/enabled",
        "/handler/headers/host",
        "/handler/url",
        "/input_examples",
        "/input_schema/properties/a/type",
        "/max_result_chars",
        "/name",
        "/output_schema",
        "/provider_options/acme",
        "/provider_options/gemini",
        "/result_type",
        "/strict",
        "/surprise",
        "/tags",
        "/timeout_ms",
    ];
    assert_eq!(told, expected, "{problem:#}");
    let unknown = problem["errors"].as_array().unwrap().iter().find(|error| error["pointer"] == "/surprise").unwrap();
    assert!(unknown["detail"].as_str().unwrap().contains("\"surprise\""), "{unknown}");
    assert_eq!(
        pointers(&acme.editor.post("/v1/tools", &json!({})).await.problem(422, "invalid_body")),
        ["/name", "/description", "/input_schema", "/handler"]
    );
    let missing = acme.editor.post("/v1/tools", &tool("t", &json!("nobody"), &json!({}))).await;
    assert_eq!(pointers(&missing.problem(422, "invalid_body")), ["/handler"]);
}

#[tokio::test]
async fn an_example_that_breaks_the_schema_is_refused() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let bad = json!({"input_examples": [{"city": "Sydney"}, {"city": 5}, {}]});
    let problem = acme.editor.post("/v1/tools", &tool("t", &webhook(), &bad)).await.problem(422, "invalid_body");
    let told = pointers(&problem);
    assert!(
        told.iter().all(|place| place.starts_with("/input_examples/1") || place.starts_with("/input_examples/2")),
        "{told:?}"
    );
    assert_eq!(told.len(), 2, "{problem}");
}

#[tokio::test]
async fn a_handler_in_place_lives_and_dies_with_its_tool() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let owned = json!({"kind": "webhook", "url": receiver.url(), "headers": {"x-key": "k1"}});
    let made = acme.editor.post("/v1/tools", &tool("t", &owned, &json!({}))).await.with(201);
    let secret = made["handler"]["signing_secret"].as_str().unwrap().to_owned();
    let call = async || {
        acme.agent.post("/v1/tools/t/calls", &json!({"input": {"city": "Sydney"}})).await.with(200);
        receiver.seen().pop().unwrap()
    };
    assert!(call().await.is_signed_with(&secret));
    // It is nobody else's, and stands in no list.
    assert_eq!(acme.editor.get("/v1/handlers").await.with(200)["data"], json!([]));
    let read = acme.viewer.get("/v1/tools/t").await.with(200)["handler"].clone();
    assert_eq!((&read["signing_secret"], &read["headers"]), (&json!("***"), &json!({"x-key": "***"})));
    // What was read can be written back, and is no change.
    let same = acme.editor.put("/v1/tools/t", &tool("t", &read, &json!({}))).await.with(200);
    assert_eq!((&same["version"], &same["handler"]["signing_secret"]), (&json!(1), &json!("***")));
    let patched = acme.editor.patch("/v1/tools/t", &json!({"handler": {"headers": {"x-more": "m"}}})).await.with(200);
    assert_eq!((&patched["version"], &patched["handler"]["signing_secret"]), (&json!(2), &json!("***")));
    let seen = call().await;
    assert_eq!((seen.header("x-key"), seen.header("x-more")), (Some("k1"), Some("m")));
    assert!(seen.is_signed_with(&secret));
    acme.editor.delete("/v1/tools/t").await.with(204);
    let dump = service.database.dump().await;
    let handlers = dump.split("handlers\n").nth(1).and_then(|rest| rest.split("idempotency_keys\n").next()).unwrap();
    assert_eq!(handlers.trim(), "", "the handler outlived its tool");
}

#[tokio::test]
async fn a_tool_may_change_between_a_handlers_name_and_one_in_place() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    let owned = acme.editor.patch("/v1/tools/t", &json!({"handler": webhook()})).await.with(200);
    assert!(owned["handler"]["signing_secret"].as_str().unwrap().starts_with("whsec_"), "{owned}");
    acme.editor.delete("/v1/handlers/h").await.with(204);
    acme.editor.put("/v1/handlers/i", &webhook()).await.with(201);
    assert_eq!(acme.editor.patch("/v1/tools/t", &json!({"handler": "i"})).await.with(200)["handler"], "i");
}

#[tokio::test]
async fn warnings_tell_what_a_provider_will_not_get() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let nobody = json!({"allowed_callers": []});
    let made = acme.editor.post("/v1/tools", &tool("t", &webhook(), &nobody)).await.with(201);
    let warnings = made["warnings"].to_string();
    assert!(warnings.contains("openai-chat") && warnings.contains("left out"), "{warnings}");
    let recursive = json!({"input_schema": {"type": "object", "properties": {"child": {"$ref": "#"}}}});
    let made = acme.editor.post("/v1/tools", &tool("u", &webhook(), &recursive)).await.with(201);
    assert!(made["warnings"].to_string().contains("gemini"), "{made}");
}
