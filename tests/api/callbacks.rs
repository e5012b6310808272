//! `POST /v1/callbacks/{token}`: what may be reported, by whom, and how often.

use crate::support::{Exposition, Later, in_city, traced};
use serde_json::{Value, json};
use toolhook::store::CallbackToken;

#[tokio::test]
async fn a_report_is_read_as_an_answer_is() {
    let later = Later::set().await;
    let client = later.service.anonymous();
    for (n, (kind, body, expected)) in [
        ("application/json", r#"{"text": "22", "data": {"n": 1.50}}"#, json!(["succeeded", "22", null])),
        ("application/json", r#"{"state": "shipped"}"#, json!(["succeeded", r#"{"state": "shipped"}"#, null])),
        ("application/vnd.x+json", "[1, 2]", json!(["succeeded", "[1, 2]", null])),
        ("application/json", r#"{"error": "no such order"}"#, json!(["failed", null, "handler_error"])),
        ("application/json", r#"{"text": 7}"#, json!(["failed", null, "bad_answer"])),
        ("application/json", "{", json!(["failed", null, "bad_answer"])),
        ("text/plain; charset=iso-8859-1", "plain", json!(["succeeded", "plain", null])),
        ("application/pdf", "%PDF", json!(["failed", null, "unsupported_answer"])),
        ("application/json", "", json!(["succeeded", "", null])),
    ]
    .into_iter()
    .enumerate()
    {
        let (id, path) = later.pending(n).await;
        let taken = client.with("content-type", kind).send("POST", &path, Some(body.as_bytes())).await.with(200);
        let logged = later.logged(&id).await;
        let told = json!([logged["status"], logged["result"]["text"], logged["error"]["code"]]);
        assert_eq!((&told, &taken["status"]), (&expected, &logged["status"]), "{body}");
        assert_eq!(logged["attempts"], 1);
    }
    // And one without any type.
    let (id, path) = later.pending(9).await;
    client.send("POST", &path, None).await.with(200);
    assert_eq!(later.logged(&id).await["result"], json!({"text": "", "data": null, "truncated": false}));
}

#[tokio::test]
async fn a_report_counts_once_and_a_repeated_delivery_is_no_second_one() {
    let later = Later::set().await;
    let other = later.service.restart().await;
    let (id, path) = later.pending(0).await;
    let report = json!({"text": "done"});
    let first = later.report(&path, &report).await.with(200);
    assert_eq!(later.report(&path, &report).await.with(200), first);
    assert_eq!(other.anonymous().post(&path, &report).await.with(200), first);
    for different in [json!({"text": "undone"}), json!({"error": "done"})] {
        other.anonymous().post(&path, &different).await.problem(409, "call_ended");
    }
    let as_text = later.service.anonymous().with("content-type", "text/plain");
    as_text.send("POST", &path, Some(report.to_string().as_bytes())).await.problem(409, "call_ended");
    assert_eq!(later.logged(&id).await["result"]["text"], "done");

    // However many come at once.
    let (id, path) = later.pending(1).await;
    let clients = [later.service.anonymous(), other.anonymous()];
    let bodies: Vec<Value> = (0..40).map(|n| json!({"text": n.to_string()})).collect();
    let all = bodies.iter().enumerate().map(|(n, body)| clients[n % 2].post(&path, body));
    let answers = futures_util::future::join_all(all).await;
    let taken: Vec<usize> = (0..40).filter(|n| answers[*n].status == 200).collect();
    assert_eq!(taken.len(), 1);
    assert!(answers.iter().filter(|answer| answer.status != 200).all(|answer| answer.json()["code"] == "call_ended"));
    assert_eq!(later.logged(&id).await["result"]["text"], taken[0].to_string());
}

#[tokio::test]
async fn only_a_token_of_ours_is_one_and_only_in_its_time() {
    let later = Later::set().await;
    let (id, path) = later.pending(0).await;
    let (before, token) = path.rsplit_once('/').unwrap();
    let (report, client) = (json!({"text": "forged"}), later.service.anonymous());
    let statements = later.service.database.statements();
    for at in (0..token.len()).step_by(7) {
        let other = if token.as_bytes()[at] == b'A' { 'B' } else { 'A' };
        let forged = format!("{before}/{}{other}{}", &token[..at], &token[at + 1..]);
        client.post(&forged, &report).await.problem(404, "not_found");
    }
    for nonsense in ["x", "***", &token[1..], &format!("{token}{token}"), "%00", &id] {
        client.post(&format!("{before}/{nonsense}"), &report).await.problem(404, "not_found");
    }
    assert_eq!(later.service.database.statements(), statements, "nobody is asked about a token that is none");

    let store = later.service.store().await;
    let tenant = store.verify_callback(token).unwrap().tenant;
    let signed = |call: &str, seconds: i64| {
        let expires_at = time::OffsetDateTime::now_utc() + time::Duration::seconds(seconds);
        store.sign_callback(&CallbackToken { tenant, call: call.parse().unwrap(), expires_at })
    };
    client.post(&format!("{before}/{}", signed(&id, -1)), &report).await.problem(410, "callback_expired");
    let absent = "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11";
    client.post(&format!("{before}/{}", signed(absent, 60)), &report).await.problem(404, "not_found");
    client.post(&format!("{path}?x=1"), &report).await.problem(400, "invalid_query");
    assert_eq!(later.logged(&id).await["status"], "pending");
    client.post(&path, &report).await.with(200);
}

#[tokio::test]
async fn a_report_that_cannot_be_read_changes_nothing() {
    let later = Later::set().await;
    let (id, path) = later.pending(0).await;
    let client = later.service.anonymous();
    let large = "x".repeat(1024 * 1024 + 1);
    client
        .with("content-type", "text/plain")
        .send("POST", &path, Some(large.as_bytes()))
        .await
        .problem(413, "body_too_large");
    client
        .with("content-encoding", "gzip")
        .send("POST", &path, Some(b"{}"))
        .await
        .problem(415, "unsupported_media_type");
    assert_eq!(later.logged(&id).await["status"], "pending");
    let most = &large[1..];
    client.with("content-type", "text/plain").send("POST", &path, Some(most.as_bytes())).await.with(200);
    assert_eq!(later.logged(&id).await["result"]["text"].as_str().unwrap().len(), most.len());
}

#[tokio::test]
async fn whoever_is_first_wins_and_the_caller_is_told_what_the_log_says() {
    let later = Later::set().await;
    // The report comes before the webhook's own answer, of either kind, and to another replica.
    let other = later.service.restart().await;
    for (n, city) in ["late", "slow"].into_iter().enumerate() {
        for (k, key) in [None, Some("k")].into_iter().enumerate() {
            let agent = later.acme.agent.clone();
            let agent = key.map_or(agent.clone(), |key| agent.with("idempotency-key", &format!("{key}{city}")));
            let body = in_city(city);
            let report = async {
                let path = later.callback(2 * n + k).await;
                let taken = other.anonymous().post(&path, &json!({"text": "reported"})).await.with(200);
                assert_eq!(taken["status"], "succeeded");
            };
            let (call, ()) = futures_util::future::join(agent.post("/v1/tools/later/calls", &body), report).await;
            let call = call.with(200);
            assert_eq!(call["result"]["text"], "reported", "{city} {key:?}");
            let logged = later.logged(call["id"].as_str().unwrap()).await;
            assert_eq!((&logged["result"], &logged["attempts"]), (&call["result"], &json!(1)));
        }
    }
}

#[tokio::test]
async fn a_report_is_held_to_what_the_tool_promises() {
    let later = Later::set().await;
    let editor = &later.acme.editor;
    let promise = async |more: Value| {
        editor.patch("/v1/tools/later", &more).await.with(200);
    };
    promise(json!({"output_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}))
        .await;
    for (n, (data, status, code)) in
        [(json!({"n": 1}), "succeeded", Value::Null), (json!({"n": "1"}), "failed", json!("result_does_not_fit"))]
            .into_iter()
            .enumerate()
    {
        let (id, path) = later.pending(n).await;
        assert_eq!(later.report(&path, &data).await.with(200)["status"], status);
        assert_eq!(later.logged(&id).await["error"]["code"], code);
    }
    promise(json!({"output_schema": null, "result_type": "structured"})).await;
    let (id, path) = later.pending(2).await;
    later.report(&path, &json!([1])).await.with(200);
    assert_eq!(later.logged(&id).await["error"]["code"], "result_not_structured");
    promise(json!({"result_type": null, "max_result_chars": 10})).await;
    let (id, path) = later.pending(3).await;
    later.report(&path, &json!({"text": "0123456789abcdef"})).await.with(200);
    let result = &later.logged(&id).await["result"];
    assert!(result["truncated"] == true && result["text"].as_str().unwrap().starts_with("01234567\n"), "{result}");
    // A tool that was removed promises nothing any more, and its last call ends all the same.
    let (id, path) = later.pending(4).await;
    editor.delete("/v1/tools/later").await.with(204);
    later.report(&path, &json!({"text": "0123456789abcdef"})).await.with(200);
    assert_eq!(later.logged(&id).await["result"]["truncated"], false);
    // Nor does a tenant that is gone.
    later.service.operator().delete("/v1/tenants/acme").await.with(204);
    later.report(&path, &json!({"text": "x"})).await.problem(404, "not_found");
}

#[tokio::test]
async fn the_token_and_write_only_values_are_nowhere_to_be_read() {
    let later = Later::set().await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}, "pin": {"type": "string", "writeOnly": true}}});
    later.acme.editor.patch("/v1/tools/later", &json!({"input_schema": schema})).await.with(200);
    let body = json!({"input": {"city": "soon", "pin": "4711-hidden"}});
    let agent = later.acme.agent.with("prefer", "respond-async");
    let call = agent.post("/v1/tools/later/calls", &body).await.with(202);
    let path = later.callback(0).await;
    let token = path.rsplit_once('/').unwrap().1;
    assert_eq!(later.logged(call["id"].as_str().unwrap()).await["input"]["pin"], "***");
    let before = Exposition::of(&later.service).await;
    later.report(&path, &json!({"text": "done"})).await.with(200);
    later.report(&path, &json!({"text": "done"})).await.with(200);
    later.report(&path, &json!({"text": "more"})).await.with(409);
    later.report("/v1/callbacks/forged", &json!({})).await.with(404);
    later.report(&format!("{path}/more"), &json!({})).await.problem(404, "unknown_route");
    let after = Exposition::of(&later.service).await;
    for outcome in ["taken", "repeated", "call_ended", "unknown"] {
        let series = format!("toolhook_callbacks_total{{outcome=\"{outcome}\"}}");
        assert_eq!(after.count(&series) - before.count(&series), 1, "{outcome}");
    }
    assert!(!after.text.contains(token));
    assert!(!traced().contains(token), "the token is in the log");
    let dump = later.service.database.dump().await;
    assert!(!dump.contains(token) && !dump.contains("4711-hidden"));
}

#[tokio::test]
async fn a_token_is_good_for_its_own_call_alone() {
    let later = Later::set().await;
    let (one, first) = later.pending(0).await;
    let (two, second) = later.pending(1).await;
    later.report(&second, &json!({"text": "second"})).await.with(200);
    assert_eq!(later.logged(&one).await["status"], "pending");
    later.report(&first, &json!({"text": "first"})).await.with(200);
    assert_eq!(later.logged(&one).await["result"]["text"], "first");
    assert_eq!(later.logged(&two).await["result"]["text"], "second");
}
