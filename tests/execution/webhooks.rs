//! What a webhook gets, and what its answers become.

use crate::receiver::{Reaction, Receiver, Seen, answer, json};
use crate::setup::{SECRET, call, executor, failure, registry, registry_with, request, run, text, tool};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toolhook::domain::{CallStatus, Content, Outcome, TenantLimits, ToolCall};
use toolhook::execution::Natives;

fn verifies(seen: &Seen, body: &str) -> bool {
    let headers: HeaderMap =
        seen.headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    standardwebhooks::Webhook::new(SECRET).unwrap().verify(body.as_bytes(), &headers).is_ok()
}

#[tokio::test]
async fn the_request_is_the_contracts_and_its_signature_verifies() {
    let receiver = Receiver::start(|_| Reaction::Answer(json(r#"{"ok":true}"#))).await;
    let registry = registry(vec![tool("get_row", &receiver.url(), &json!({"input_schema": {}}))]);
    let arguments = json!(r#"{"z":1.50,"row_id":4093117758201946517,"a":"ü / <b>","big":12345678901234567890123}"#);
    let mut request = request(&registry, vec![call("get_row", arguments)], Duration::from_secs(10));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    request.traceparent = Some(trace.to_owned());
    request.context = json!({"user_id": "u_1"}).as_object().cloned();
    let executed = executor(Natives::default()).run(request).await;

    let seen = &receiver.seen()[0];
    assert!(verifies(seen, &seen.body));
    assert!(!verifies(seen, &seen.body.replace("1.50", "1.5")));
    let input = r#""input":{"z":1.50,"row_id":4093117758201946517,"a":"ü / <b>","big":12345678901234567890123},"context":{"user_id":"u_1"},"attempt":1,"deadline":""#;
    let start = r#"{"type":"tool.call","timestamp":""#;
    assert!(seen.body.starts_with(start) && seen.body.contains(input), "{}", seen.body);
    let data = seen.data();
    assert_eq!((&data["tool"], &data["tool_version"], &data["tenant"]), (&json!("get_row"), &json!(3), &json!("acme")));
    let id = executed[0].id.to_string();
    for same in [seen.header("webhook-id"), seen.header("idempotency-key"), data["id"].as_str()] {
        assert_eq!(same, Some(id.as_str()));
    }
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("traceparent"), Some(trace));
    assert_eq!(seen.header("authorization"), Some("Bearer s3cret"));
    let left = OffsetDateTime::parse(data["deadline"].as_str().unwrap(), &Rfc3339).unwrap() - OffsetDateTime::now_utc();
    assert!((5..=10).contains(&left.whole_seconds()), "{left}");

    assert_eq!(executed[0].tool.as_ref().map(|(name, version)| (name.as_str(), *version)), Some(("get_row", 3)));
    assert_eq!((executed[0].attempts, executed[0].id.get_version_num()), (1, 7));
    assert_eq!(executed[0].input.as_ref().map(serde_json::Map::len), Some(4));
}

#[tokio::test]
async fn a_json_answer_keeps_its_text_and_its_digits() {
    let receiver = Receiver::start(|_| Reaction::Answer(json("{\"b\": 1.10, \"a\": [4093117758201946517]}"))).await;
    let registry = registry(vec![tool("t", &receiver.url(), &json!({"result_type": "structured"}))]);
    let executed = run(&registry, vec![call("t", json!({"n": 1}))]).await;
    let Outcome::Success(success) = &executed[0].outcome else { panic!("{executed:?}") };
    assert_eq!(success.content.text(), "{\"b\": 1.10, \"a\": [4093117758201946517]}");
    let data = Value::Object(success.data.clone().unwrap());
    assert_eq!(data.to_string(), r#"{"b":1.10,"a":[4093117758201946517]}"#);
}

#[tokio::test]
async fn answers_become_results_and_errors() {
    let receiver = Receiver::start(|seen| {
        Reaction::Answer(match seen.n() {
            0 => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            1 => answer("422 Unprocessable", "application/json", r#"{"error":"already shipped"}"#),
            2 => answer("502 Bad Gateway", "text/html", "<html><body>upstream down</body></html>"),
            3 => b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n".to_vec(),
            4 => b"HTTP/1.1 429 Slow\r\nretry-after: 30\r\ncontent-type: application/json\r\ncontent-length: 21\r\n\r\n{\"error\":\"slow down\"}"
                .to_vec(),
            5 => b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1099511627776\r\n\r\nx".to_vec(),
            6 => b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b".to_vec(),
            _ => answer("200 OK", "text/plain", "a\0b\u{202e}"),
        })
    })
    .await;
    let registry = registry(vec![tool("t", &receiver.url(), &Value::Null)]);
    let executed = run(&registry, (0..8).map(|n| call("t", json!({"n": n}))).collect()).await;
    assert_eq!(text(&executed[0]), "");
    assert_eq!(failure(&executed[1]).message, "already shipped");
    let bad_gateway = failure(&executed[2]);
    assert!(bad_gateway.message.contains("502") && !bad_gateway.message.contains('<'), "{}", bad_gateway.message);
    assert!(bad_gateway.diagnostic.as_ref().is_some_and(|text| text.contains("upstream down")));
    assert!(failure(&executed[3]).message.contains("302"));
    assert!(
        failure(&executed[4]).message.contains("slow down") && failure(&executed[4]).message.contains("30 seconds")
    );
    assert_eq!(failure(&executed[5]).code, "answer_too_large");
    assert_eq!(failure(&executed[6]).code, "answer_undecodable");
    assert_eq!(text(&executed[7]), "a\0b\u{202e}");
    assert_eq!(receiver.seen().len(), 8);
}

#[tokio::test]
async fn nobody_learns_from_a_handler_that_cannot_be_reached() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = [format!("http://{closed}/run"), "http://10.0.0.7/run".into(), "http://nowhere.invalid/".into()];
    let tools = unreachable.iter().enumerate().map(|(n, url)| tool(&format!("t{n}"), url, &Value::Null)).collect();
    let executed = run(&registry(tools), (0..3).map(|n| call(&format!("t{n}"), json!({"n": n}))).collect()).await;
    for one in &executed {
        let failure = failure(one);
        assert_eq!((failure.status, failure.code), (CallStatus::Failed, "handler_unreachable"));
        assert_eq!(failure.message, crate::setup::failure(&executed[0]).message);
        assert!(failure.diagnostic.is_some());
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_is_not_known() {
    let receiver = Receiver::start(|seen| match seen.n() {
        0 => Reaction::Close(b""),
        1 => Reaction::Close(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel"),
        _ => Reaction::Close(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel"),
    })
    .await;
    let registry = registry(vec![tool("t", &receiver.url(), &Value::Null)]);
    let executed = run(&registry, (0..3).map(|n| call("t", json!({"n": n}))).collect()).await;
    for one in &executed {
        let lost = failure(one);
        assert_eq!((lost.status, lost.code), (CallStatus::Unknown, "answer_lost"));
        assert!(lost.message.contains("connection") && lost.message.contains("check before"), "{}", lost.message);
    }
    assert_eq!(receiver.seen().len(), 3, "each was sent once");
}

#[tokio::test]
async fn long_text_is_cut_and_errors_are_not() {
    let long = "0123456789".repeat(300);
    let body = long.clone();
    let receiver = Receiver::start(move |seen| {
        Reaction::Answer(match seen.n() {
            0 => answer("200 OK", "text/plain", &body),
            _ => json(&json!({"error": body}).to_string()),
        })
    })
    .await;
    let limits = TenantLimits { max_result_chars: Some(20), ..TenantLimits::default() };
    let uncut = json!({"max_result_chars": "unlimited"});
    let tools = vec![tool("t", &receiver.url(), &Value::Null), tool("u", &receiver.url(), &uncut)];
    let registry = registry_with(limits, tools);
    let calls: Vec<ToolCall> = [("t", 0), ("u", 0), ("t", 1)].map(|(name, n)| call(name, json!({"n": n}))).into();
    let executed = run(&registry, calls).await;
    let cut = text(&executed[0]);
    assert!(cut.starts_with("0123456789012345\n") && cut.ends_with("\n6789"), "{cut}");
    assert!(cut.contains("3000") && cut.contains("20"), "{cut}");
    assert!(matches!(&executed[0].outcome, Outcome::Success(success) if success.truncated));
    assert!(
        matches!(&executed[1].outcome, Outcome::Success(success) if success.content == Content::Text(long.clone()))
    );
    assert_eq!(failure(&executed[2]).message, long);
}
