//! `POST /v1/calls/{id}/cancel`: before a call is sent, while it runs, and while it is pending; through any replica.

use crate::support::{Later, in_city};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LATER: &str = "/v1/tools/later/calls";
const NOW: &str = "/v1/tools/now/calls";

fn cancel(id: &str) -> String {
    format!("/v1/calls/{id}/cancel")
}

/// Much less than what the webhook takes, and much more than a busy machine needs.
const AT_ONCE: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_call_in_the_log_is_cancelled_through_any_replica() {
    let later = Later::set().await;
    let other = later.service.restart().await;
    for (n, client) in [later.acme.agent.clone(), later.agent_at(&other)].into_iter().enumerate() {
        let (agent, body) = (later.acme.agent.with("idempotency-key", &format!("k{n}")), in_city("never"));
        let stop = async {
            let id = later.asked(n).await.header("webhook-id").unwrap().to_owned();
            let marked = client.send("POST", &cancel(&id), None).await.with(200);
            assert_eq!((&marked["id"], &marked["cancel_requested"]), (&json!(id), &json!(true)));
            id
        };
        let began = Instant::now();
        let (call, id) = futures_util::future::join(agent.post(NOW, &body), stop).await;
        let call = call.with(200);
        assert!(began.elapsed() < AT_ONCE, "the caller was kept waiting");
        assert_eq!((&call["status"], &call["error"]["code"]), (&json!("unknown"), &json!("cancelled")));
        assert!(call["error"]["message"].as_str().unwrap().contains("may have done its work"), "{call}");
        let logged = later.logged(&id).await;
        assert_eq!((&logged["status"], &logged["cancel_requested"]), (&json!("unknown"), &json!(true)));
        client.send("POST", &cancel(&id), None).await.problem(409, "call_ended");
        assert_eq!(agent.post(NOW, &body).await.with(200)["status"], "unknown", "a repeat is told the same");
    }
    let found = later.acme.viewer.get("/v1/calls?cancel_requested=true").await.with(200);
    assert_eq!(found["data"].as_array().unwrap().len(), 2);
    assert_eq!(later.acme.viewer.get("/v1/calls?cancel_requested=false").await.with(200)["data"], json!([]));
    assert_eq!(later.receiver.seen().len(), 2);
}

#[tokio::test]
async fn a_call_without_a_key_is_cancelled_where_it_runs() {
    let later = Later::set().await;
    let other = later.service.restart().await;
    let (agent, body) = (&later.acme.agent, in_city("never"));
    let stop = async {
        let id = later.asked(0).await.header("webhook-id").unwrap().to_owned();
        later.agent_at(&other).send("POST", &cancel(&id), None).await.problem(404, "not_found");
        let foreign = later.service.tenant("other").await;
        foreign.agent.send("POST", &cancel(&id), None).await.problem(404, "not_found");
        agent.send("POST", &cancel(&id), None).await.with(200)
    };
    let (call, shown) = futures_util::future::join(agent.post(NOW, &body), stop).await;
    let call = call.with(200);
    assert_eq!((&call["status"], &call["error"]["code"]), (&json!("unknown"), &json!("cancelled")));
    assert_eq!((&shown["status"], &shown["cancel_requested"]), (&json!("unknown"), &json!(true)));
    let logged = later.logged(call["id"].as_str().unwrap()).await;
    for member in ["id", "tool", "status", "error", "input", "cancel_requested", "request_id"] {
        assert_eq!(shown[member], logged[member], "{member}");
    }
}

#[tokio::test]
async fn a_call_that_was_not_sent_is_rejected_and_never_is() {
    let later = Later::set().await;
    later.acme.editor.patch("/v1/tools/now", &json!({"concurrent": false})).await.with(200);
    let reply = json!({"reply": [{"id": "1", "name": "now", "input": {"city": "slow"}}, {"id": "2", "name": "now", "input": {"city": "here"}}]});
    let path = "/v1/formats/toolhook/calls";
    let agent = later.acme.agent.with("idempotency-key", "k");
    let stop = async {
        let first = later.asked(0).await.header("webhook-id").unwrap().to_owned();
        let running = later.acme.viewer.get("/v1/calls?status=running").await.with(200);
        let second = running["data"].as_array().unwrap().iter().find(|call| call["id"] != first.as_str()).unwrap();
        let id = second["id"].as_str().unwrap().to_owned();
        let shown = later.acme.agent.send("POST", &cancel(&id), None).await.with(200);
        assert_eq!((&shown["status"], &shown["error"]["code"]), (&json!("rejected"), &json!("cancelled")));
        assert_eq!((&shown["cancel_requested"], &shown["attempts"]), (&json!(true), &json!(0)));
    };
    let (answer, ()) = futures_util::future::join(agent.post(path, &reply), stop).await;
    let answer = answer.with(200);
    let told = |n: usize| (answer["calls"][n]["status"].clone(), answer["calls"][n]["error"]["code"].clone());
    assert_eq!((told(0), told(1)), ((json!("succeeded"), Value::Null), (json!("rejected"), json!("cancelled"))));
    assert_eq!(later.receiver.seen().len(), 1, "it was not sent");
    assert_eq!(later.logged(answer["calls"][1]["id"].as_str().unwrap()).await["status"], "rejected");
}

#[tokio::test]
async fn a_pending_call_is_marked_and_may_still_be_reported_on() {
    let later = Later::set().await;
    let other = later.service.restart().await;
    for (n, client) in [later.acme.agent.clone(), later.agent_at(&other)].into_iter().enumerate() {
        let body = in_city("soon");
        let stop = async {
            let path = later.callback(n).await;
            let id = later.standing("pending").await;
            let shown = client.send("POST", &cancel(&id), None).await.with(200);
            assert_eq!((&shown["status"], &shown["cancel_requested"]), (&json!("pending"), &json!(true)));
            (id, path)
        };
        let began = Instant::now();
        let (call, (id, path)) = futures_util::future::join(later.acme.agent.post(LATER, &body), stop).await;
        assert_eq!(call.with(200)["status"], "pending");
        assert!(began.elapsed() < AT_ONCE, "the caller was kept waiting");
        client.send("POST", &cancel(&id), None).await.with(200);
        let taken = later.report(&path, &json!({"text": "stopped half-way"})).await.with(200);
        assert_eq!(taken["cancel_requested"], true);
        let logged = later.logged(&id).await;
        assert_eq!((&logged["status"], &logged["cancel_requested"]), (&json!("succeeded"), &json!(true)));
        client.send("POST", &cancel(&id), None).await.problem(409, "call_ended");
    }
}

#[tokio::test]
async fn an_asynchronous_call_that_was_not_taken_yet_is_unknown_until_it_is_reported_on() {
    let later = Later::set().await;
    let body = in_city("never");
    let stop = async {
        let path = later.callback(0).await;
        let id = later.standing("running").await;
        later.acme.agent.send("POST", &cancel(&id), None).await.with(200);
        (id, path)
    };
    let (call, (id, path)) = futures_util::future::join(later.acme.agent.post(LATER, &body), stop).await;
    let call = call.with(200);
    assert_eq!((&call["status"], &call["error"]["code"]), (&json!("unknown"), &json!("cancelled")));
    assert_eq!(later.logged(&id).await["error"], call["error"]);
    later.report(&path, &json!({"text": "it had begun"})).await.with(200);
    assert_eq!(later.logged(&id).await["result"]["text"], "it had begun");
}

#[tokio::test]
async fn what_has_ended_or_is_not_there_cannot_be_cancelled() {
    let later = Later::set().await;
    let call = later.acme.agent.post(NOW, &in_city("here")).await.with(200);
    let id = call["id"].as_str().unwrap();
    later.acme.agent.send("POST", &cancel(id), None).await.problem(409, "call_ended");
    assert_eq!(later.logged(id).await["cancel_requested"], false);
    for absent in ["01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11", "nonsense"] {
        later.acme.agent.send("POST", &cancel(absent), None).await.problem(404, "not_found");
    }
    later.acme.viewer.send("POST", &cancel(id), None).await.problem(403, "forbidden");
}

#[tokio::test]
async fn what_was_cancelled_is_not_run_again_by_whoever_takes_its_request_over() {
    let later = Later::set().await;
    later.acme.editor.patch("/v1/tools/now", &json!({"annotations": {"idempotent": true}})).await.with(200);
    let (agent, body) = (later.acme.agent.with("idempotency-key", "k"), in_city("never"));
    let stop = async {
        let id = later.asked(0).await.header("webhook-id").unwrap().to_owned();
        later.acme.agent.send("POST", &cancel(&id), None).await.with(200);
    };
    futures_util::future::join(agent.post(NOW, &body), stop).await.0.with(200);
    // As if the process had died between the end of the call and its answer.
    later.service.database.execute("update idempotency_keys set answer = null, lease_owner = null").await;
    let again = agent.post(NOW, &body).await.with(200);
    assert_eq!((&again["status"], &again["error"]["code"]), (&json!("unknown"), &json!("cancelled")));
    assert_eq!((&again["replayed"], later.receiver.seen().len()), (&json!(false), 1));
}
