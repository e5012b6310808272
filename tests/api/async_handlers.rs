//! Handlers that answer 202 and report later: who waits, who does not, and what the log says meanwhile.

use crate::support::{Client, Later, Line, TestService, eventually, in_city, pointers, tool};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolhook::http::Settings;

const RUN: &str = "/v1/tools/later/calls";

#[tokio::test]
async fn the_webhook_is_told_where_to_report_and_until_when() {
    let later = Later::set().await;
    later.pending(0).await;
    later.acme.agent.post("/v1/tools/now/calls", &in_city("here")).await.with(200);
    let seen = later.receiver.seen();
    let event = seen[0].json();
    let members: Vec<&String> = event["data"].as_object().unwrap().keys().collect();
    assert_eq!(members[7..], ["deadline", "callback_expires_at", "callback_url"]);
    let url = event["data"]["callback_url"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://{}/v1/callbacks/", later.service.address)), "{url}");
    let time = |text: &Value| {
        use time::format_description::well_known::Rfc3339;
        time::OffsetDateTime::parse(text.as_str().unwrap(), &Rfc3339).unwrap()
    };
    let left = time(&event["data"]["callback_expires_at"]) - time(&event["timestamp"]);
    assert!((86_390..=86_401).contains(&left.whole_seconds()), "{left}");
    assert!(seen[1].json()["data"].get("callback_url").is_none(), "an ordinary handler has nothing to report");

    let dry = later.acme.agent.post(&format!("{RUN}?dry_run=true"), &in_city("soon")).await.with(200);
    let shown = dry["request"]["body"]["data"]["callback_url"].as_str().unwrap();
    assert!(shown.ends_with("/v1/callbacks/***") && dry["egress"]["allowed"] == true, "{dry}");
    assert_eq!(later.receiver.seen().len(), 2);
}

#[tokio::test]
async fn the_setting_is_kept_as_it_is_written() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let body = json!({"kind": "webhook", "url": "https://a.example/", "async": true});
    assert_eq!(acme.editor.put("/v1/handlers/h", &body).await.with(201)["async"], true);
    assert_eq!(acme.editor.patch("/v1/handlers/h", &json!({"timeout_ms": 5})).await.with(200)["async"], true);
    assert_eq!(acme.editor.get("/v1/handlers/h").await.with(200)["async"], true);
    assert_eq!(acme.editor.patch("/v1/handlers/h", &json!({"async": null})).await.with(200)["async"], false);
    let owned = acme.editor.post("/v1/tools", &tool("t", &body, &json!({}))).await.with(201);
    assert_eq!(owned["handler"]["async"], true);
    let native = json!({"kind": "native", "function": "calculate", "async": true});
    let told = acme.editor.put("/v1/handlers/n", &native).await.problem(422, "invalid_body");
    assert_eq!(pointers(&told), ["/async"]);
}

#[tokio::test]
async fn without_a_public_url_none_is_taken_and_a_stored_one_is_not_sent() {
    let later = Later::set().await;
    let line = Line::to(&later.service.database.url());
    let deaf = later.service.restart_as(&line, Settings::default()).await;
    let acme = later.acme.at(&deaf);
    let body = json!({"kind": "webhook", "url": "https://a.example/", "async": true});
    let refused = acme.editor.put("/v1/handlers/h", &body).await.problem(422, "invalid_body");
    assert_eq!(pointers(&refused), ["/async"]);
    assert!(refused["detail"].as_str().unwrap().contains("TOOLHOOK_PUBLIC_URL"), "{refused}");
    for agent in [acme.agent.clone(), acme.agent.with("idempotency-key", "k")] {
        let call = agent.post(RUN, &in_city("soon")).await.with(200);
        assert_eq!((&call["status"], &call["error"]["code"]), (&json!("failed"), &json!("handler_misconfigured")));
        assert_eq!(later.logged(call["id"].as_str().unwrap()).await["status"], "failed");
    }
    let dry = acme.agent.post(&format!("{RUN}?dry_run=true"), &in_city("soon")).await.with(200);
    assert_eq!(dry["egress"]["allowed"], false);
    assert_eq!(later.receiver.connections(), 0);
}

#[tokio::test]
async fn a_caller_waits_for_the_report() {
    let later = Later::set().await;
    for (n, agent) in [later.acme.agent.clone(), later.acme.agent.with("idempotency-key", "k")].into_iter().enumerate()
    {
        let body = in_city("soon");
        let report = async {
            let path = later.callback(n).await;
            let id = later.standing("pending").await;
            assert_eq!(later.logged(&id).await["attempts"], 1);
            let report = json!({"text": "22°C", "data": {"celsius": 22}});
            let taken = later.report(&path, &report).await.with(200);
            assert_eq!(taken, json!({"accepted": true, "status": "succeeded", "cancel_requested": false}));
            id
        };
        let (call, id) = futures_util::future::join(agent.post(RUN, &body), report).await;
        let call = call.with(200);
        assert_eq!(call["result"], json!({"text": "22°C", "data": {"celsius": 22}, "truncated": false}));
        let logged = later.logged(&id).await;
        for member in ["id", "status", "result", "error", "attempts", "duration_ms", "tool_version"] {
            assert_eq!(call[member], logged[member], "{member}");
        }
    }
    let again = later.acme.agent.with("idempotency-key", "k").post(RUN, &in_city("soon")).await.with(200);
    assert_eq!((&again["replayed"], &again["result"]["text"]), (&json!(true), &json!("22°C")));
    assert_eq!(later.receiver.seen().len(), 2);
}

#[tokio::test]
async fn a_report_may_come_to_another_replica() {
    let later = Later::set().await;
    let other = later.service.restart().await;
    let reply = json!({"reply": [{"type": "tool_use", "id": "toolu_1", "name": "later", "input": {"city": "soon"}},
        {"type": "tool_use", "id": "toolu_2", "name": "later", "input": {"city": "soon"}}]});
    let report = async {
        let (first, second) = (later.callback(0).await, later.callback(1).await);
        let id = later.standing("pending").await;
        let watch = later.acme.at(&later.service.restart().await).viewer;
        let path = format!("/v1/calls/{id}?wait_ms=20000");
        let waited = watch.get(&path);
        let tell = async {
            let png = b"\x89PNG\r\n\x1a\n0123456789ab";
            let client = other.anonymous().with("content-type", "image/png");
            client.send("POST", &first, Some(png)).await.with(200);
            client.send("POST", &second, Some(png)).await.with(200);
        };
        let (waited, ()) = futures_util::future::join(waited, tell).await;
        assert_eq!(waited.with(200)["status"], "succeeded");
    };
    let path = "/v1/formats/anthropic/calls";
    let (answer, ()) = futures_util::future::join(later.acme.agent.post(path, &reply), report).await;
    let content = &answer.with(200)["append"][0]["content"];
    for n in 0..2 {
        assert_eq!(content[n]["content"][0]["source"]["media_type"], "image/png", "a picture stays one: {content}");
    }
}

#[tokio::test]
async fn any_other_answer_is_the_result() {
    let later = Later::set().await;
    for (n, key) in [None, Some("k")].into_iter().enumerate() {
        let agent = |city: &str| {
            key.map_or(later.acme.agent.clone(), |key| {
                later.acme.agent.with("idempotency-key", &format!("{key}{city}"))
            })
        };
        let call = agent("here").post(RUN, &in_city("here")).await.with(200);
        assert_eq!((&call["status"], &call["result"]["text"]), (&json!("succeeded"), &json!("here at once")));
        let broken = agent("broken").post(RUN, &in_city("broken")).await.with(200);
        assert_eq!((&broken["status"], &broken["error"]["code"]), (&json!("failed"), &json!("handler_status")));
        let path = later.callback(2 * n).await;
        later.report(&path, &json!({"text": "late"})).await.problem(409, "call_ended");
        let logged = later.logged(call["id"].as_str().unwrap()).await;
        assert_eq!((&logged["result"], &logged["duration_ms"]), (&call["result"], &call["duration_ms"]));
        assert_eq!(later.logged(broken["id"].as_str().unwrap()).await["error"], broken["error"]);
    }
    // 202 of an ordinary handler is an empty success, as ever.
    let call = later.acme.agent.post("/v1/tools/now/calls", &in_city("soon")).await.with(200);
    assert_eq!((&call["status"], &call["result"]["text"]), (&json!("succeeded"), &json!("")));
}

#[tokio::test]
async fn who_prefers_not_to_wait_is_answered_at_once() {
    let later = Later::set().await;
    let agent = later.acme.agent.with("prefer", "wait=5, respond-async");
    let calls = |names: [(&str, &str); 2]| {
        let calls = names.map(|(name, city)| json!({"id": name, "name": name, "input": {"city": city}}));
        json!({ "reply": calls })
    };
    let path = "/v1/formats/toolhook/calls";
    let mixed = agent.post(path, &calls([("now", "here"), ("later", "soon")])).await;
    assert_eq!(mixed.header("preference-applied"), Some("respond-async"));
    let mixed = mixed.with(202);
    assert_eq!(mixed["append"][0]["text"], "here at once");
    let (told, call) = (&mixed["append"][1], &mixed["calls"][1]);
    assert_eq!((&told["status"], &call["status"]), (&json!("pending"), &json!("pending")));
    assert_eq!((&call["result"], &call["error"], &call["attempts"]), (&Value::Null, &Value::Null, &json!(1)));
    let text = told["text"].as_str().unwrap();
    assert!(text.contains("still working") && text.contains(call["id"].as_str().unwrap()), "{text}");
    let ready = agent.post(path, &calls([("now", "here"), ("later", "here")])).await;
    assert_eq!((ready.status, ready.header("preference-applied")), (200, Some("respond-async")));
    // A repeat gets what was answered, also after the report.
    let keyed = agent.with("idempotency-key", "k");
    let first = keyed.post(RUN, &in_city("soon")).await;
    assert_eq!(first.with(202)["replayed"], false);
    let last = later.receiver.seen().len() - 1;
    later.report(&later.callback(last).await, &json!({"text": "done"})).await.with(200);
    let again = keyed.post(RUN, &in_city("soon")).await.with(202);
    assert_eq!((&again["status"], &again["replayed"]), (&json!("pending"), &json!(true)));
    assert_eq!(later.logged(again["id"].as_str().unwrap()).await["result"]["text"], "done");
}

#[tokio::test]
async fn at_the_deadline_a_call_is_pending_and_its_report_still_counts() {
    let later = Later::set().await;
    let hasty = later.acme.agent.with("toolhook-timeout-ms", "400");
    for agent in [hasty.clone(), hasty.with("idempotency-key", "k")] {
        let answer = agent.post(RUN, &in_city("soon")).await;
        assert_eq!(answer.header("preference-applied"), None);
        let call = answer.with(200);
        assert_eq!((&call["status"], &call["error"]), (&json!("pending"), &Value::Null));
        assert!(call["duration_ms"].as_u64().unwrap() >= 300, "{call}");
    }
    let mcp = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "later", "arguments": {"city": "soon"}}});
    let result = hasty.post("/mcp", &mcp).await.with(200)["result"].clone();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("still working"), "{result}");
    assert_ne!(result["isError"], true);
    // A client that knows an output schema throws a success without structure away, so it is told by the one thing that it heeds.
    let schema = json!({"output_schema": {"type": "object"}});
    later.acme.editor.patch("/v1/tools/later", &schema).await.with(200);
    let result = hasty.post("/mcp", &mcp).await.with(200)["result"].clone();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("still working"), "{result}");
    assert_eq!(result["isError"], true);
    for n in 0..4 {
        let id = later.asked(n).await.header("webhook-id").unwrap().to_owned();
        later.report(&later.callback(n).await, &json!({"error": "no such city"})).await.with(200);
        let logged = later.logged(&id).await;
        assert_eq!((&logged["status"], &logged["error"]["message"]), (&json!("failed"), &json!("no such city")));
    }
}

#[tokio::test]
async fn nobody_waits_for_a_report_while_the_service_shuts_down() {
    let later = Later::set().await;
    let other = later.service.restart().await;
    let (agent, body) = (later.agent_at(&other).with("idempotency-key", "k"), in_city("soon"));
    let drain = async {
        later.standing("pending").await;
        other.state.start_draining();
    };
    let began = Instant::now();
    let (call, ()) = futures_util::future::join(agent.post(RUN, &body), drain).await;
    assert_eq!(call.with(200)["status"], "pending");
    assert!(began.elapsed() < Duration::from_secs(15), "it waited");
    let again = later.acme.agent.with("idempotency-key", "k").post(RUN, &body).await.with(200);
    assert_eq!((&again["status"], &again["replayed"]), (&json!("pending"), &json!(true)));
}

#[tokio::test]
async fn a_repeat_takes_a_pending_call_over_and_sends_nothing() {
    let later = Later::set().await;
    let other = later.service.restart().await;
    let body = json!({"reply": [{"id": "1", "name": "later", "input": {"city": "soon"}}, {"id": "2", "name": "later", "input": {"city": "soon"}}]});
    let path = "/v1/formats/toolhook/calls";
    let first = later.acme.agent.with("idempotency-key", "k");
    let second = Client { address: other.address, ..first.clone() };
    let lose = async {
        let (one, two) = (later.callback(0).await, later.callback(1).await);
        let two_pend = async || {
            later.acme.viewer.get("/v1/calls?status=pending").await.json()["data"].as_array().unwrap().len() == 2
        };
        eventually(async || two_pend().await.then_some(())).await;
        later.report(&one, &json!({"text": "one"})).await.with(200);
        later.service.database.execute("update idempotency_keys set lease_until = now() - interval '1 s'").await;
        let tell = async {
            // The repeat is waiting by now, or will find it told.
            tokio::time::sleep(Duration::from_millis(300)).await;
            later.report(&two, &json!({"text": "two"})).await.with(200);
        };
        futures_util::future::join(second.post(path, &body), tell).await.0.with(200)
    };
    let (late, taken) = futures_util::future::join(first.post(path, &body), lose).await;
    let texts = |answer: &Value| [0, 1].map(|n| answer["append"][n]["text"].as_str().unwrap().to_owned());
    assert_eq!(texts(&taken), ["one", "two"]);
    assert_eq!(texts(&late.with(200)), ["one", "two"], "who was taken for dead says the same");
    assert_eq!(later.receiver.seen().len(), 2, "nothing is sent twice");
}

#[tokio::test]
async fn a_call_that_nobody_reports_on_ends() {
    let later = Later::set().await;
    let (id, path) = later.pending(0).await;
    later.service.database.execute("update calls set due_at = now() - interval '1 s'").await;
    later.upkeep_until(async || later.logged(&id).await["status"] == "timed_out").await;
    assert_eq!(later.logged(&id).await["error"]["code"], "callback_expired");
    later.report(&path, &json!({"text": "too late"})).await.problem(409, "call_ended");
}

#[tokio::test]
async fn a_report_settles_a_call_that_was_lost_sight_of() {
    let later = Later::set().await;
    let body = in_city("late");
    let lose = async {
        let path = later.callback(0).await;
        let id = later.standing("running").await;
        later.service.database.execute("update calls set due_at = now() - interval '1 s'").await;
        later.upkeep_until(async || later.logged(&id).await["status"] == "unknown").await;
        later.report(&path, &json!({"text": "done all the same"})).await.with(200);
        id
    };
    let (call, id) = futures_util::future::join(later.acme.agent.post(RUN, &body), lose).await;
    let call = call.with(200);
    assert_eq!((call["id"].as_str(), &call["result"]["text"]), (Some(id.as_str()), &json!("done all the same")));
    assert_eq!(later.logged(&id).await["result"], call["result"]);
}

#[tokio::test]
async fn the_log_keeps_what_is_pending_until_it_has_ended() {
    let later = Later::set().await;
    let operator = later.service.operator();
    operator.put("/v1/tenants/acme", &json!({"limits": {"log_days": 1}})).await.with(200);
    operator.put("/v1/tenants/long", &json!({"limits": {"log_days": 90}})).await.with(201);
    later.pending(0).await;
    let copy = |status: &str, id: &str| {
        format!(
            "insert into calls (tenant_id, id, tool, caller, status, repairs, attempts, duration_ms, request_id, key_id, created_at, due_at)
             select tenant_id, {id}, '{status}', caller, '{status}', repairs, attempts, duration_ms, request_id, key_id, created_at, due_at
             from calls where tool = 'later'"
        )
    };
    let database = &later.service.database;
    database.execute(&copy("pending", "id_at(now() - interval '70 hours')")).await;
    database.execute(&copy("failed", "id_at(now() - interval '71 hours')")).await;
    let there = async |tool: &str| {
        let page = later.acme.viewer.get(&format!("/v1/calls?tool={tool}")).await.with(200);
        page["data"].as_array().unwrap().len()
    };
    assert_eq!((there("pending").await, there("failed").await), (1, 1));
    later.upkeep_until(async || there("failed").await == 0).await;
    assert_eq!(there("pending").await, 1);
    // Of a tenant that is gone, nothing is.
    operator.delete("/v1/tenants/acme").await.with(204);
    later.upkeep_until(async || !later.service.database.dump().await.contains(",pending,")).await;
}
