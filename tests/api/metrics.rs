//! `/metrics`: held to the exposition format, counted against known requests, and bounded whatever is asked.

use crate::support::{Exposition, Reaction, Receiver, TestService, eventually, exchange, tool};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn known_requests_are_counted() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let receiver = Receiver::weather().await;
    let owned = json!({"kind": "webhook", "url": receiver.url()});
    acme.editor.post("/v1/tools", &tool("get_weather", &owned, &json!({}))).await.with(201);
    let before = Exposition::of(&service).await;
    for city in ["Sydney", "Oslo"] {
        acme.agent.post("/v1/tools/get_weather/calls", &json!({"input": {"city": city}})).await.with(200);
    }
    acme.agent.post("/v1/tools/get_weather/calls", &json!({"input": {}})).await.with(200);
    acme.agent.post("/v1/tools/nothing/calls", &json!({"input": {}})).await.with(404);
    let block =
        |name: &str, input| json!({"type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": input});
    let reply = json!({"reply": [block("calculate", json!({"expression": "1+1"})), block("nothing", json!({}))]});
    acme.agent.post("/v1/formats/anthropic/calls", &reply).await.with(200);
    for _ in 0..3 {
        acme.agent.get("/v1/formats/anthropic/tools").await.with(200);
    }
    service.anonymous().get("/v1/tools").await.with(401);
    let after = Exposition::of(&service).await;
    let grew = |sample: &str| after.count(sample) - before.count(sample);

    let requests = |route: &str, method: &str, status: &str| {
        grew(&format!(
            r#"toolhook_http_request_duration_seconds_count{{route="{route}",method="{method}",status="{status}"}}"#
        ))
    };
    let run_tool = "/v1/tools/{name}/calls";
    assert_eq!(requests(run_tool, "POST", "2xx"), 3);
    assert_eq!(requests(run_tool, "POST", "4xx"), 1);
    assert_eq!(requests("/v1/formats/{format}/calls", "POST", "2xx"), 1);
    assert_eq!(requests("/v1/formats/{format}/tools", "GET", "2xx"), 3);
    assert_eq!(requests("/v1/tools", "GET", "4xx"), 1);
    let calls = |format: &str, handler: &str, status: &str, code: &str| {
        grew(&format!(
            r#"toolhook_calls_total{{format="{format}",handler="{handler}",status="{status}",code="{code}"}}"#
        ))
    };
    assert_eq!(calls("none", "webhook", "succeeded", "none"), 2);
    assert_eq!(calls("none", "webhook", "rejected", "invalid_input"), 1);
    assert_eq!(calls("anthropic", "native", "succeeded", "none"), 1);
    assert_eq!(calls("anthropic", "none", "rejected", "unknown_tool"), 1);
    let handled = |handler: &str| {
        grew(&format!(r#"toolhook_handler_duration_seconds_count{{handler="{handler}",status="succeeded"}}"#))
    };
    assert_eq!((handled("webhook"), handled("native")), (2, 1));
    assert_eq!(grew("toolhook_log_writes_total{outcome=\"ok\"}"), 4);
    assert_eq!(grew("toolhook_log_write_calls_sum"), 5);
    assert_eq!(grew("toolhook_registry_loads_total{outcome=\"ok\"}"), 1, "after the tool was written");
    assert_eq!(grew("toolhook_registry_hits_total"), 7);
    assert_eq!(after.count("toolhook_database_up"), 1);
    assert_eq!(after.count("toolhook_database_connections_limit"), 10);
    assert_eq!(after.count("toolhook_http_requests_in_flight"), 1, "the one that asks");
    assert_eq!(after.count("toolhook_calls_in_flight"), 0);
    assert_eq!(after.count(&format!("toolhook_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))), 1);
}

#[tokio::test]
async fn what_is_under_way_is_seen_and_a_client_that_goes_is_counted() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let answer = crate::support::json_answer(&json!({"text": "late"}));
    let receiver =
        Receiver::start(move |_| Reaction { after: Duration::from_millis(300), bytes: answer.clone() }).await;
    let owned = json!({"kind": "webhook", "url": receiver.url()});
    acme.editor.post("/v1/tools", &tool("slow", &owned, &json!({}))).await.with(201);
    let body = json!({"input": {"city": "x"}}).to_string();
    let request = acme.agent.request("POST", "/v1/tools/slow/calls", Some(body.as_bytes()));
    let _ = tokio::time::timeout(Duration::from_millis(150), exchange(service.address, &request)).await;
    let seen = Exposition::of(&service).await;
    assert_eq!(seen.count("toolhook_calls_in_flight"), 1, "it goes on without its client");
    eventually(async || {
        let seen = Exposition::of(&service).await;
        let gone = r#"toolhook_http_request_duration_seconds_count{route="/v1/tools/{name}/calls",method="POST",status="gone"}"#;
        (seen.count(gone) == 1 && seen.count("toolhook_calls_in_flight") == 0).then_some(())
    })
    .await;
}

/// Tenants, tools, paths, methods, ids and texts are the callers' own: none of them may become a label.
#[tokio::test]
async fn a_thousand_odd_requests_make_no_new_labels() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let odd = async |n: usize| {
        let client = acme.agent.with("x-request-id", &format!("odd-{n}"));
        match n % 6 {
            0 => drop(client.get(&format!("/odd-{n}/x?odd={n}")).await),
            1 => drop(client.get(&format!("/v1/tools/odd-{n}")).await),
            2 => drop(client.get(&format!("/v1/formats/odd-{n}/tools")).await),
            3 => drop(exchange(service.address, &client.request(&format!("ODD{n}"), "/v1/tools", None)).await),
            4 => drop(client.post(&format!("/v1/tools/odd-{n}/calls"), &json!({"input": {"odd": n}})).await),
            _ => {
                let call =
                    json!({"type": "tool_use", "id": format!("odd-{n}"), "name": format!("odd-{n}"), "input": {}});
                drop(client.post("/v1/formats/anthropic/calls", &json!({"reply": [call]})).await);
            }
        }
    };
    for n in 0..30 {
        odd(n).await;
    }
    Exposition::of(&service).await; // looking is a request too
    let some: BTreeSet<String> = Exposition::of(&service).await.series().collect();
    for n in 30..1_030 {
        odd(n).await;
    }
    let exposition = Exposition::of(&service).await;
    // Their durations decide nothing either: a histogram has all its buckets from the start.
    let more: BTreeSet<String> = exposition.series().filter(|series| !some.contains(series)).collect();
    assert!(more.is_empty(), "{more:#?}");
    let text = exposition.text.to_ascii_lowercase();
    assert!(!text.contains("odd") && !text.contains("acme"), "{text}");
    assert!(text.contains("method=\"other\"") && text.contains("route=\"unknown\""), "{text}");
}
