//! A tenant with tools whose webhook takes calls and reports later.

use super::answer::Answer;
use super::client::Client;
use super::receiver::{Reaction, Receiver, Seen, json_answer};
use super::service::{Tenant, TestService, eventually};
use super::tool;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhook::execution::upkeep;

const TAKEN: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";

/// The tool `later` of an asynchronous handler, and `now` of an ordinary one. Their webhook answers what the city says: `soon` takes the
/// call at once, `late` and `never` after a while, `here` answers at once, `slow` after a while, and `broken` fails.
pub(crate) struct Later {
    pub(crate) service: TestService,
    pub(crate) acme: Tenant,
    pub(crate) receiver: Receiver,
}

fn react(seen: &Seen) -> Reaction {
    let city = seen.json()["data"]["input"]["city"].as_str().unwrap_or_default().to_owned();
    let answered = json_answer(&json!({"text": format!("{city} at once")}));
    let (after, bytes) = match city.as_str() {
        "here" => (0, answered),
        "slow" => (1500, answered),
        "late" => (1500, TAKEN.to_vec()),
        "never" => (20_000, TAKEN.to_vec()),
        "broken" => (0, b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n".to_vec()),
        _ => (0, TAKEN.to_vec()),
    };
    Reaction { after: Duration::from_millis(after), bytes }
}

impl Later {
    pub(crate) async fn set() -> Self {
        let service = TestService::start().await;
        let acme = service.tenant("acme").await;
        let receiver = Receiver::start(react).await;
        for (name, asynchronous) in [("later", true), ("now", false)] {
            let handler = json!({"kind": "webhook", "url": receiver.url(), "async": asynchronous});
            acme.editor.post("/v1/tools", &tool(name, &handler, &json!({}))).await.with(201);
        }
        Self { service, acme, receiver }
    }

    /// The nth request that the webhook got, once it is there.
    pub(crate) async fn asked(&self, n: usize) -> Seen {
        eventually(async || self.receiver.seen().get(n).cloned()).await
    }

    /// The path that the nth call is reported to.
    pub(crate) async fn callback(&self, n: usize) -> String {
        let url = self.asked(n).await.json()["data"]["callback_url"].as_str().unwrap().to_owned();
        url[url.find("/v1/").unwrap()..].to_owned()
    }

    /// Calls `later` without waiting for its report; the call's id, and the path to report to.
    pub(crate) async fn pending(&self, n: usize) -> (String, String) {
        let agent = self.acme.agent.with("prefer", "respond-async");
        let call = agent.post("/v1/tools/later/calls", &in_city("soon")).await.with(202);
        assert_eq!(call["status"], "pending", "{call}");
        (call["id"].as_str().unwrap().to_owned(), self.callback(n).await)
    }

    pub(crate) async fn report(&self, path: &str, body: &Value) -> Answer {
        self.service.anonymous().post(path, body).await
    }

    pub(crate) async fn logged(&self, id: &str) -> Value {
        self.acme.viewer.get(&format!("/v1/calls/{id}")).await.with(200)
    }

    /// The only call that stands there, once there is one.
    pub(crate) async fn standing(&self, status: &str) -> String {
        let path = format!("/v1/calls?status={status}");
        let found = eventually(async || self.acme.viewer.get(&path).await.with(200)["data"].get(0).cloned()).await;
        found["id"].as_str().unwrap().to_owned()
    }

    /// Has the work beside the requests done until something holds.
    pub(crate) async fn upkeep_until(&self, holds: impl AsyncFn() -> bool) {
        let stop = CancellationToken::new();
        TaskTracker::new().spawn(upkeep::run(self.service.state.ledger(), self.service.state.metrics(), stop.clone()));
        eventually(async || holds().await.then_some(())).await;
        stop.cancel();
    }

    /// The agent at another process.
    pub(crate) fn agent_at(&self, service: &TestService) -> Client {
        self.acme.at(service).agent
    }
}

/// A call's body.
pub(crate) fn in_city(city: &str) -> Value {
    json!({"input": {"city": city}})
}
