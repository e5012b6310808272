//! Many writers at one time.

use crate::support::{Client, TestService, tool, webhook};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// One change at random, of few things, so that everybody is in everybody's way; gives its status.
async fn change(client: &Client, dice: &mut Dice) -> u16 {
    let (name, handler) = (format!("t{}", dice.roll(3)), format!("h{}", dice.roll(2)));
    let (tool_path, handler_path) = (format!("/v1/tools/{name}"), format!("/v1/handlers/{handler}"));
    let by = if dice.roll(3) == 0 { webhook() } else { json!(handler) };
    let body = tool(&name, &by, &json!({"tags": [dice.roll(4).to_string()]}));
    let answer = match dice.roll(10) {
        0 => client.post("/v1/tools", &body).await,
        1 | 2 => client.put(&tool_path, &body).await,
        3 => client.patch(&tool_path, &json!({"strict": dice.roll(2) == 0, "handler": by})).await,
        4 => client.delete(&tool_path).await,
        5 => client.send("POST", &format!("{tool_path}/versions/1/restore"), None).await,
        6 => client.put(&handler_path, &webhook()).await,
        7 => client.delete(&handler_path).await,
        8 => client.send("POST", &format!("{handler_path}/rotate-secret"), None).await,
        _ => client.get("/v1/formats/toolhook/tools").await,
    };
    answer.status
}

#[tokio::test]
async fn a_crowd_of_writers_breaks_nothing() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    // Two processes, so that no cache hides what the database does.
    let there = acme.at(&service.restart().await);
    let writers = (0..8).map(|n| {
        let client = if n % 2 == 0 { &acme.editor } else { &there.editor };
        async move {
            let mut dice = Dice(n);
            let mut statuses = Vec::new();
            for _ in 0..25 {
                statuses.push(change(client, &mut dice).await);
            }
            statuses
        }
    });
    let statuses: Vec<u16> = join_all(writers).await.concat();
    // A fault of the service fails any test; here most changes also have to come through.
    let done = statuses.iter().filter(|status| **status < 300).count();
    assert!(done > statuses.len() / 3, "{statuses:?}");
    // What is there is whole: every tool can be read with all its versions, which have no gap.
    let tools = acme.viewer.get("/v1/tools").await.with(200);
    assert!(!tools["data"].as_array().unwrap().is_empty(), "nothing is left to look at");
    for tool in tools["data"].as_array().unwrap() {
        let path = format!("/v1/tools/{}/versions?limit=200", tool["name"].as_str().unwrap());
        let versions = acme.viewer.get(&path).await.with(200);
        let numbers: Vec<i64> =
            versions["data"].as_array().unwrap().iter().map(|one| one["version"].as_i64().unwrap()).collect();
        let expected: Vec<i64> = (1..=tool["version"].as_i64().unwrap()).rev().collect();
        assert_eq!(numbers, expected, "{path}");
        assert_eq!(versions["data"][0]["tags"], tool["tags"]);
    }
    // Every process comes to the same list; a fresh one has to.
    let fresh = acme.at(&service.restart().await);
    let list = fresh.agent.get("/v1/formats/toolhook/tools").await.with(200);
    let listed: Vec<&Value> = list["tools"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert!(tools["data"].as_array().unwrap().iter().all(|tool| listed.contains(&&tool["name"])), "{listed:?}");
    assert_eq!(list["omitted"], json!([]));
}

#[tokio::test]
async fn removing_and_rotating_get_through_a_crowd() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let mut named = webhook();
    named["name"] = json!("h");
    acme.editor.post("/v1/handlers", &named).await.with(201);
    let rotations = join_all((0..8).map(|_| acme.editor.send("POST", "/v1/handlers/h/rotate-secret", None))).await;
    assert!(rotations.iter().all(|answer| answer.status == 200), "every rotation is made, one after the other");
    for round in 0..4 {
        acme.editor.put("/v1/tools/t", &tool("t", &json!("h"), &json!({}))).await.with(201);
        let editor = &acme.editor;
        let writes = join_all((0..8).map(|n| {
            let change = json!({"tags": [format!("{round}-{n}")]});
            async move { editor.patch("/v1/tools/t", &change).await.status }
        }));
        let (gone, _) = futures_util::join!(acme.editor.delete("/v1/tools/t"), writes);
        assert_eq!(gone.status, 204, "{}", gone.text());
    }
}
