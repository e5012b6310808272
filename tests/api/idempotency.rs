//! `Idempotency-Key`: the first request runs, its repeats get its answer, over replicas and over the end of a process.

use crate::support::{Client, Line, Reaction, Receiver, Tenant, TestService, eventually, json_answer, tool};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhook::execution::upkeep;

const RUN: &str = "/v1/tools/t/calls";

/// A service with the tools `t` and `again`, the second one idempotent; their webhook takes its time.
struct Scene {
    service: TestService,
    acme: Tenant,
    receiver: Receiver,
}

impl Scene {
    async fn set(after: u64) -> Self {
        let service = TestService::start().await;
        let acme = service.tenant("acme").await;
        let receiver = Receiver::start(move |seen| {
            let data = &seen.json()["data"];
            let text = format!("{} in {}", data["tool"].as_str().unwrap(), data["input"]["city"]);
            Reaction { after: Duration::from_millis(after), bytes: json_answer(&json!({"text": text})) }
        })
        .await;
        acme.editor.put("/v1/handlers/h", &json!({"kind": "webhook", "url": receiver.url()})).await.with(201);
        for (name, more) in [("t", json!({})), ("again", json!({"annotations": {"idempotent": true}}))] {
            acme.editor.post("/v1/tools", &tool(name, &json!("h"), &more)).await.with(201);
        }
        Self { service, acme, receiver }
    }

    fn agent(&self, key: &str) -> Client {
        self.acme.agent.with("idempotency-key", key)
    }

    async fn calls(&self, query: &str) -> Vec<Value> {
        self.acme.viewer.get(&format!("/v1/calls?{query}")).await.with(200)["data"].as_array().unwrap().clone()
    }

    /// The process that runs what is running dies, as far as anybody else can tell, and somebody notices.
    async fn lose_sight(&self) {
        self.service
            .database
            .execute("update idempotency_keys set lease_until = now() - interval '1 s' where answer is null")
            .await;
        let stop = CancellationToken::new();
        TaskTracker::new().spawn(upkeep::run(self.service.state.ledger(), self.service.state.metrics(), stop.clone()));
        eventually(async || self.calls("status=running").await.is_empty().then_some(())).await;
        stop.cancel();
    }
}

fn input(city: &str) -> Value {
    json!({"input": {"city": city}})
}

fn reply(names: &[&str]) -> Value {
    let calls = names.iter().enumerate();
    let calls = calls
        .map(|(n, name)| json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": {"city": "x"}}));
    json!({"reply": calls.collect::<Vec<_>>()})
}

/// The same without the mark of a repeat.
fn unmarked(mut answer: Value, replayed: bool) -> Value {
    let one = answer.get("calls").is_none();
    let calls =
        if one { std::slice::from_mut(&mut answer) } else { answer["calls"].as_array_mut().unwrap().as_mut_slice() };
    for call in calls {
        assert_eq!(call["replayed"].take(), replayed);
    }
    answer
}

#[tokio::test]
async fn f04_a_repeat_gets_the_first_answer_and_sends_nothing() {
    let scene = Scene::set(0).await;
    let first = scene.agent("k").post(RUN, &input("Sydney")).await.with(200);
    let again = scene.agent("k").post(RUN, &input("Sydney")).await.with(200);
    assert_eq!(first["result"]["text"], "t in \"Sydney\"");
    assert_eq!(unmarked(first, false), unmarked(again, true));

    let client = scene.agent("k");
    let path = "/v1/formats/anthropic/calls";
    let first = client.post(path, &reply(&["t", "nobody", "again"])).await.with(200);
    let again = client.post(path, &reply(&["t", "nobody", "again"])).await.with(200);
    assert_eq!(first["append"][0]["content"].as_array().unwrap().len(), 3);
    assert_eq!(unmarked(first, false), unmarked(again, true));
    assert_eq!(scene.receiver.seen().len(), 3);
    assert_eq!(scene.calls("").await.len(), 4, "a repeat is no call of its own");
    assert_eq!(scene.calls("status=succeeded").await.len(), 3);
    assert_eq!(scene.calls("status=rejected").await[0]["error"]["code"], "unknown_tool");
}

#[tokio::test]
async fn f01_a_hundred_at_once_over_two_replicas_are_one_call() {
    let scene = Scene::set(100).await;
    let other = scene.service.restart().await;
    let clients = [scene.agent("k"), Client { address: other.address, ..scene.agent("k") }];
    let bodies = [input("Sydney"), json!({"caller": "human", "input": {"city": "Perth"}})];
    let calls = (0..100).map(|n| clients[n % 2].post(RUN, &bodies[0]));
    let answers: Vec<Value> = futures_util::future::join_all(calls).await.into_iter().map(|it| it.with(200)).collect();
    assert_eq!(scene.receiver.seen().len(), 1);
    let first: Vec<&Value> = answers.iter().filter(|answer| answer["replayed"] == false).collect();
    assert_eq!(first.len(), 1, "{answers:?}");
    let expected = unmarked(first[0].clone(), false);
    for answer in answers.iter().filter(|answer| answer["replayed"] == true) {
        assert_eq!(unmarked(answer.clone(), true), expected);
    }
    clients[1].post(RUN, &bodies[1]).await.problem(409, "idempotency_key_reused");
    assert_eq!(scene.receiver.seen().len(), 1);
}

#[tokio::test]
async fn f03_c22_what_the_same_body_is() {
    let scene = Scene::set(0).await;
    let send = async |path: &str, text: &str| scene.agent("k").send("POST", path, Some(text.as_bytes())).await;
    let first = r#"{"input": {"city": "Sydney", "n": 1.50}, "context": {"a": 1, "b": 2}}"#;
    send(RUN, first).await.with(200);
    for same in [
        r#"{"context":{"b":2,"a":1},"input":{"n":15e-1,"city":"S\u0079dney"}}"#,
        r#"{"context":{"b":2.0,"a":1},"input":{"n":1.5,"city":"Sydney"}}"#,
    ] {
        assert_eq!(send(RUN, same).await.with(200)["replayed"], true, "{same}");
    }
    for other in [
        r#"{"input": {"city": "Sydney", "n": 1.51}, "context": {"a": 1, "b": 2}}"#,
        r#"{"input": {"city": "Sydney", "n": 1.50}}"#,
        r#"{"input": "{\"city\": \"Sydney\", \"n\": 1.50}", "context": {"a": 1, "b": 2}}"#,
    ] {
        send(RUN, other).await.problem(409, "idempotency_key_reused");
    }
    assert_eq!(scene.receiver.seen().len(), 1);
    // A key is one tenant's, on one path.
    assert_eq!(send("/v1/tools/again/calls", first).await.with(200)["replayed"], false);
    let other = scene.service.tenant("other").await;
    let calculate = json!({"input": {"expression": "1"}});
    for (client, replayed) in [(&scene.acme.agent, false), (&other.agent, false), (&other.agent, true)] {
        let answer = client.with("idempotency-key", "k2").post("/v1/tools/calculate/calls", &calculate).await.with(200);
        assert_eq!(answer["replayed"], replayed);
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_read_leaves_its_key_unused() {
    let scene = Scene::set(0).await;
    let client = scene.agent("k");
    client.post(RUN, &json!({"input": {"city": "x"}, "nonsense": 1})).await.problem(422, "invalid_body");
    client.send("POST", RUN, Some(b"{")).await.problem(400, "malformed_body");
    client.post("/v1/tools/nobody/calls", &input("x")).await.problem(404, "not_found");
    client.post("/v1/formats/openai-chat/calls", &json!({"reply": 7})).await.problem(422, "invalid_reply");
    assert!(client.post(&format!("{RUN}?dry_run=true"), &input("x")).await.with(200).get("request").is_some());
    assert_eq!(client.post(RUN, &input("x")).await.with(200)["replayed"], false);
    // An input that does not fit is a call that was answered.
    let client = scene.agent("k2");
    for replayed in [false, true] {
        let answer = client.post(RUN, &json!({"input": {}})).await.with(200);
        assert_eq!((&answer["status"], &answer["replayed"]), (&json!("rejected"), &json!(replayed)));
    }
    for bad in ["", "a b", "ä", &"x".repeat(256)] {
        scene.agent(bad).post(RUN, &input("x")).await.problem(400, "invalid_header");
    }
    scene.agent(&"~".repeat(255)).post(RUN, &input("x")).await.with(200);
}

#[tokio::test]
async fn a_running_call_is_in_the_log_and_can_be_waited_for() {
    let scene = Scene::set(1000).await;
    let other = scene.service.restart().await;
    let watch = async {
        let call = eventually(async || scene.calls("status=running").await.pop()).await;
        assert_eq!(
            (&call["input"], &call["result"], &call["error"]),
            (&json!({"city": "x"}), &Value::Null, &Value::Null)
        );
        let path = format!("/v1/calls/{}", call["id"].as_str().unwrap());
        assert_eq!(scene.acme.viewer.get(&format!("{path}?wait_ms=20")).await.with(200)["status"], "running");
        // Who has no time to wait is told that it runs.
        let hasty = scene.agent("k").with("toolhook-timeout-ms", "50");
        hasty.post(RUN, &input("x")).await.problem(409, "request_in_progress");
        let waited = scene.acme.at(&other).viewer.get(&format!("{path}?wait_ms=10000")).await.with(200);
        assert_eq!((&waited["status"], &waited["attempts"]), (&json!("succeeded"), &json!(1)));
        waited["id"].clone()
    };
    let client = scene.agent("k");
    let body = input("x");
    let (answer, id) = futures_util::future::join(client.post(RUN, &body), watch).await;
    assert_eq!(answer.with(200)["id"], id);
    assert_eq!(scene.receiver.seen()[0].header("webhook-id"), id.as_str());
}

#[tokio::test]
async fn f09_a_caller_that_hangs_up_changes_nothing() {
    let scene = Scene::set(200).await;
    let request = scene.agent("k").request("POST", RUN, Some(input("x").to_string().as_bytes()));
    let mut connection = tokio::net::TcpStream::connect(scene.service.address).await.unwrap();
    connection.write_all(&request).await.unwrap();
    eventually(async || (!scene.receiver.seen().is_empty()).then_some(())).await;
    drop(connection);
    let answer = scene.agent("k").post(RUN, &input("x")).await.with(200);
    assert_eq!((&answer["status"], &answer["replayed"]), (&json!("succeeded"), &json!(true)));
    assert_eq!(scene.receiver.seen().len(), 1);
}

#[tokio::test]
async fn nothing_is_sent_without_a_claim() {
    let scene = Scene::set(0).await;
    let line = Line::to(&scene.service.database.url());
    let cut = scene.service.restart_over(&line).await;
    let client = Client { address: cut.address, ..scene.agent("k") };
    client.get("/v1/formats/toolhook/tools").await.with(200);
    line.cut();
    client.post(RUN, &input("x")).await.problem(503, "unavailable");
    assert_eq!(scene.receiver.connections(), 0);
    line.mend();
    let answer =
        eventually(async || Some(client.post(RUN, &input("x")).await).filter(|answer| answer.status == 200)).await;
    assert_eq!((answer.json()["replayed"].clone(), scene.receiver.seen().len()), (json!(false), 1));
}

#[tokio::test]
async fn an_owner_that_was_taken_for_dead_changes_nothing_any_more() {
    let scene = Scene::set(1500).await;
    let lose = async {
        eventually(async || (!scene.receiver.seen().is_empty()).then_some(())).await;
        scene.lose_sight().await;
    };
    let (client, body) = (scene.agent("k"), input("x"));
    let (late, ()) = futures_util::future::join(client.post(RUN, &body), lose).await;
    let late = late.with(200);
    assert_eq!((&late["status"], &late["error"]["code"]), (&json!("unknown"), &json!("outcome_unknown")));
    let logged = &scene.calls("").await[0];
    assert_eq!((&logged["status"], &logged["id"]), (&json!("unknown"), &late["id"]));
    let again = client.post(RUN, &body).await.with(200);
    assert_eq!((&again["status"], &again["id"]), (&json!("unknown"), &late["id"]));
    assert_eq!(scene.receiver.seen().len(), 1, "what may have run is not run again");
}

#[tokio::test]
async fn after_unknown_only_what_may_run_twice_runs_again() {
    let scene = Scene::set(1500).await;
    let path = "/v1/formats/anthropic/calls?unknown=skip";
    let (client, body) = (scene.agent("k"), reply(&["nobody", "t", "again"]));
    let lose = async {
        eventually(async || (scene.receiver.seen().len() == 2).then_some(())).await;
        scene.lose_sight().await;
        client.post(path, &body).await.with(200)
    };
    let (_, again) = futures_util::future::join(client.post(path, &body), lose).await;
    let told: Vec<_> = again["calls"].as_array().unwrap().iter().map(|call| (&call["tool"], &call["status"])).collect();
    assert_eq!(told, [(&json!("t"), &json!("unknown")), (&json!("again"), &json!("succeeded"))]);
    let content = &again["append"][0]["content"];
    assert_eq!((&content[0]["is_error"], &content[1]["content"]), (&json!(true), &json!("again in \"x\"")));
    let seen = scene.receiver.seen();
    let ids: Vec<_> =
        seen.iter().filter(|seen| seen.body.contains("\"again\"")).map(|seen| seen.header("webhook-id")).collect();
    assert_eq!((seen.len(), ids.len()), (3, 2));
    assert_eq!((ids[0], ids[0]), (ids[1], again["calls"][1]["id"].as_str()));
    assert_eq!(scene.calls("status=succeeded").await.len(), 1);
    assert_eq!(unmarked(client.post(path, &body).await.with(200), true), unmarked(again, false));
}

#[tokio::test]
async fn a_key_lives_for_a_day() {
    let scene = Scene::set(0).await;
    let (client, body) = (scene.agent("k"), input("x"));
    let first = client.post(RUN, &body).await.with(200);
    let age = async |interval: &str| {
        let statement = format!("update idempotency_keys set created_at = now() - interval '{interval}'");
        scene.service.database.execute(&statement).await;
    };
    age("23 hours").await;
    assert_eq!(client.post(RUN, &body).await.with(200)["replayed"], true);
    age("25 hours").await;
    let second = client.post(RUN, &input("y")).await.with(200);
    assert_eq!((&second["replayed"], second["id"] == first["id"]), (&json!(false), false));
    age("25 hours").await;
    let stop = CancellationToken::new();
    TaskTracker::new().spawn(upkeep::run(scene.service.state.ledger(), scene.service.state.metrics(), stop.clone()));
    eventually(async || (!scene.service.database.dump().await.contains(",k,")).then_some(())).await;
    stop.cancel();
    assert_eq!(scene.receiver.seen().len(), 2);
}
