//! The log while the database is away.

use crate::support::{Line, Reaction, Receiver, Tenant, TestService, eventually, json_answer, tool};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolhook::execution::CallLog;
use toolhook::http::Settings;

/// A service over a line to its database, with a tool whose webhook takes its time.
struct Scene {
    line: Line,
    service: TestService,
    acme: Tenant,
    receiver: Receiver,
    first: TestService,
}

impl Scene {
    async fn set(call_log: CallLog, after: Duration) -> Self {
        let first = TestService::start().await;
        let receiver = Receiver::start(move |_| Reaction { after, bytes: json_answer(&json!({"text": "done"})) }).await;
        let acme = first.tenant("acme").await;
        let handler = json!({"kind": "webhook", "url": receiver.url()});
        acme.editor.post("/v1/tools", &tool("t", &handler, &json!({}))).await.with(201);
        let line = Line::to(&first.database.url());
        let service = first.restart_as(&line, Settings { call_log, ..Settings::default() }).await;
        let acme = acme.at(&service);
        let scene = Self { line, service, acme, receiver, first };
        scene.run().await.with(200);
        scene
    }

    async fn run(&self) -> crate::support::Answer {
        self.acme.agent.post("/v1/tools/t/calls", &json!({"input": {"city": "x"}})).await
    }

    async fn logged(&self, id: &Value) -> Value {
        let path = format!("/v1/calls/{}", id.as_str().unwrap());
        eventually(async || {
            let answer = self.acme.viewer.get(&path).await;
            (answer.status == 200).then(|| answer.json())
        })
        .await
    }
}

#[tokio::test]
async fn nothing_is_sent_until_the_database_is_back() {
    let scene = Scene::set(CallLog::Durable, Duration::ZERO).await;
    tokio::time::sleep(Duration::from_millis(60)).await; // what was heard of the database is old by now
    scene.line.cut();
    let began = Instant::now();
    for refused in futures_util::future::join_all((0..20).map(|_| scene.run())).await {
        refused.problem(503, "unavailable");
    }
    assert!(began.elapsed() < Duration::from_secs(4), "they waited in line: {:?}", began.elapsed());
    assert_eq!(scene.receiver.seen().len(), 1);
    scene.line.mend();
    let call = eventually(async || {
        let answer = scene.run().await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(scene.logged(&call["id"]).await["status"], "succeeded");
}

#[tokio::test]
async fn a_call_that_was_sent_is_answered_and_its_record_follows() {
    let scene = Scene::set(CallLog::Durable, Duration::from_millis(300)).await;
    let cut = async {
        eventually(async || (scene.receiver.seen().len() == 2).then_some(())).await;
        scene.line.cut();
    };
    let (answer, ()) = futures_util::future::join(scene.run(), cut).await;
    let call = answer.with(200);
    assert_eq!(call["status"], "succeeded");
    scene.line.mend();
    assert_eq!(scene.logged(&call["id"]).await["result"]["text"], "done");
    scene.service.state.drain().await;
}

#[tokio::test]
async fn a_relaxed_log_holds_no_call_up_and_is_written_at_the_end() {
    let scene = Scene::set(CallLog::Relaxed, Duration::ZERO).await;
    scene.line.cut();
    let mut ids = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        ids.push(scene.run().await.with(200)["id"].clone());
        assert!(began.elapsed() < Duration::from_secs(1));
    }
    scene.line.mend();
    scene.service.state.drain().await;
    for id in ids {
        let path = format!("/v1/calls/{}", id.as_str().unwrap());
        assert_eq!(scene.acme.at(&scene.first).viewer.get(&path).await.with(200)["status"], "succeeded");
    }
}
