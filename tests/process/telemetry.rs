//! What operators see of a real process: metrics on a port of their own, traces at a collector, and a log without secrets.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use prost::Message;
use serde_json::{Value, json};

use crate::http::{send, send_with};
use crate::process::{Credentials, Scratch, Server, tool, toolhook};
use crate::webhook::{Posted, Webhook};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const MCP_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "00f067aa0ba902b7";

fn dev(scratch: &Scratch) -> Command {
    let mut command = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(scratch.data_dir());
    command
}

#[test]
fn metrics_have_a_port_of_their_own_if_they_are_given_one() {
    let scratch = Scratch::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(&scratch, dev(&scratch).env("TOOLHOOK_METRICS_LISTEN", free.to_string()));
    let metrics = format!("http://{free}");
    assert_eq!(server.get("", "/metrics").unwrap().body["code"], "unknown_route");
    let answer = send(&metrics, "", "GET", "/metrics", None).unwrap();
    assert_eq!(answer.status, 200);
    for line in ["toolhook_database_up 1\n", "toolhook_database_connections_limit 20\n"] {
        assert!(answer.text.contains(line), "{line} is missing from:\n{}", answer.text);
    }
    let waits =
        answer.text.lines().find_map(|line| line.strip_prefix("toolhook_database_connection_wait_seconds_count "));
    assert!(waits.unwrap().parse::<u64>().unwrap() > 3, "the pool's waits are not heard:\n{}", answer.text);
    assert_eq!(send(&metrics, "", "GET", "/v1/tools", None).unwrap().body["code"], "unknown_route");
    server.stop(Signal::SIGTERM);
}

fn spans(posted: &[Posted]) -> Vec<Span> {
    let read = |posted: &Posted| ExportTraceServiceRequest::decode(posted.body.as_slice()).unwrap();
    let exported = posted.iter().flat_map(|posted| read(posted).resource_spans);
    exported.flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => Some(text),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[test]
fn a_trace_goes_from_the_caller_over_the_call_to_the_webhook() {
    let scratch = Scratch::new();
    let (collector, webhook) = (Webhook::start(""), Webhook::start("planted-output"));
    let mut command = dev(&scratch);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url).env("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=k1");
    let server = Server::start(&scratch, &mut command);
    let key = Credentials::read(&scratch.data_dir()).demo_key;
    server.expect(201, &key, ("POST", "/v1/tools"), Some(&tool("seen", &webhook.url)));
    let block =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"x": "planted-input"}});
    let reply = json!({"reply": [block("toolu_1", "seen"), block("toolu_2", "unseen")]});
    let (authorization, traceparent) = (format!("Bearer {key}"), format!("00-{TRACE}-{CALLER}-01"));
    let headers = [("authorization", authorization.as_str()), ("traceparent", &traceparent)];
    let answer = send_with(&server.base_url, &headers, "POST", "/v1/formats/anthropic/calls", Some(&reply)).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    // MCP has a place of its own for the trace.
    let meta = json!({"traceparent": format!("00-{MCP_TRACE}-{CALLER}-01")});
    let params = json!({"name": "seen", "arguments": {}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [("authorization", authorization.as_str()), ("accept", "application/json, text/event-stream")];
    let answer = send_with(&server.base_url, &headers, "POST", "/mcp", Some(&message)).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    let over_mcp = webhook.posted(|posted| posted[1].header("traceparent").unwrap().to_owned());
    assert!(over_mcp.starts_with(&format!("00-{MCP_TRACE}-")) && !over_mcp.contains(CALLER), "{over_mcp}");
    let passed_on = webhook.posted(|posted| posted[0].header("traceparent").unwrap().to_owned());
    server.stop(Signal::SIGTERM); // which sends what is left

    let (all, key, body) = collector.posted(|posted| {
        let first = posted.first().expect("nothing was exported");
        assert!(first.head.starts_with("POST /v1/traces "), "{}", first.head);
        let text: Vec<u8> = posted.iter().flat_map(|posted| posted.body.clone()).collect();
        (spans(posted), first.header("x-collector-key").map(str::to_owned), String::from_utf8_lossy(&text).into_owned())
    });
    assert_eq!(key.as_deref(), Some("k1"));
    assert!(body.contains("service.name") && body.contains("toolhook"), "the service is not named");
    assert!(!body.contains("planted"), "inputs and outputs are not for traces");
    assert!(!body.contains("unknown_service"));
    let ours: Vec<&Span> = all.iter().filter(|span| hex(&span.trace_id) == TRACE).collect();
    let named = |name: &str| {
        let names: Vec<&str> = ours.iter().map(|span| span.name.as_str()).collect();
        *ours.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {names:?}"))
    };
    let request = named("POST /v1/formats/{format}/calls");
    assert_eq!(hex(&request.parent_span_id), CALLER);
    assert_eq!(request.kind(), SpanKind::Server);
    let call = named("execute_tool seen");
    assert_eq!(call.parent_span_id, request.span_id);
    assert_eq!(passed_on, format!("00-{TRACE}-{}-01", hex(&call.span_id)));
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "seen"),
        ("gen_ai.tool.call.id", "toolu_1"),
        ("gen_ai.tool.type", "function"),
    ] {
        assert_eq!(attribute(&call.attributes, key), Some(value), "{key}");
    }
    assert_eq!(attribute(&call.attributes, "error.type"), None);
    let refused = named("execute_tool");
    assert_eq!(attribute(&refused.attributes, "error.type"), Some("unknown_tool"));
    assert_eq!(refused.status.as_ref().unwrap().code(), StatusCode::Error);
    assert!(all.iter().all(|span| !span.name.contains("acquire") && !span.name.contains("connect")));
}

#[test]
fn without_a_collector_the_callers_trace_is_passed_on_as_it_came() {
    let scratch = Scratch::new();
    let webhook = Webhook::start("ok");
    let server = Server::start(&scratch, &mut dev(&scratch));
    let key = Credentials::read(&scratch.data_dir()).demo_key;
    server.expect(201, &key, ("POST", "/v1/tools"), Some(&tool("seen", &webhook.url)));
    let (authorization, traceparent) = (format!("Bearer {key}"), format!("00-{TRACE}-{CALLER}-01"));
    let headers = [("authorization", authorization.as_str()), ("traceparent", &traceparent)];
    let body = json!({"input": {}});
    assert_eq!(send_with(&server.base_url, &headers, "POST", "/v1/tools/seen/calls", Some(&body)).unwrap().status, 200);
    assert_eq!(webhook.posted(|posted| posted[0].header("traceparent").map(str::to_owned)), Some(traceparent));
    server.stop(Signal::SIGTERM);
}

#[test]
fn a_collector_that_is_away_holds_nothing_up() {
    let scratch = Scratch::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(&scratch, dev(&scratch).env("TOOLHOOK_OTLP_ENDPOINT", format!("http://{closed}")));
    let key = Credentials::read(&scratch.data_dir()).demo_key;
    let body = json!({"input": {"expression": "1"}});
    server.expect(200, &key, ("POST", "/v1/tools/calculate/calls"), Some(&body));
    let began = Instant::now();
    server.stop(Signal::SIGTERM);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

/// A busy run, at the level that operators use to look closely.
#[test]
fn i07_the_log_names_request_tenant_and_call_and_no_secret() {
    let scratch = Scratch::new();
    let webhook = Webhook::start("planted-output");
    let mut command = dev(&scratch);
    command.env("TOOLHOOK_LOG_FORMAT", "json").env("TOOLHOOK_LOG", "debug");
    let server = Server::start(&scratch, &mut command);
    let key = Credentials::read(&scratch.data_dir()).demo_key;
    let mut body = tool("seen", &webhook.url);
    body["handler"]["headers"] = json!({"authorization": "Bearer planted-header"});
    let made = server.expect(201, &key, ("POST", "/v1/tools"), Some(&body));
    let signing = made["handler"]["signing_secret"].as_str().unwrap().to_owned();
    let mut calls = Vec::new();
    for n in 0..40 {
        let body = json!({"input": {"x": format!("planted-input-{n}")}, "context": {"user": "planted-context"}});
        let answer = server.expect(200, &key, ("POST", "/v1/tools/seen/calls"), Some(&body));
        assert_eq!(answer["result"]["text"], "planted-output");
        calls.push(answer["id"].as_str().unwrap().to_owned());
        let wrong = json!({"input": {"expression": format!("planted-wrong-{n}")}});
        server.expect(200, &key, ("POST", "/v1/tools/calculate/calls"), Some(&wrong));
        let unreadable = json!({"reply": {"planted-reply": n}});
        server.expect(422, &key, ("POST", "/v1/formats/anthropic/calls"), Some(&unreadable));
    }
    let log = server.logged();
    for secret in ["planted", &key, signing.strip_prefix("whsec_").unwrap()] {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} is in {line:?}");
    }
    let records: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(records.len() > 200, "{}", records.len());
    for id in calls {
        let told = records.iter().find(|record| record["message"] == "call answered" && record["call"] == id.as_str());
        let told = told.unwrap_or_else(|| panic!("{id} is not in the log"));
        assert_eq!((&told["tenant"], &told["tool"]), (&json!("demo"), &json!("seen")), "{told}");
        assert!(told["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{told}");
    }
    let answered =
        records.iter().find(|record| record["message"] == "answered" && record["http.status"] == 422).unwrap();
    assert_eq!(answered["span"]["tenant.name"], "demo", "{answered}");
    assert!(answered["span"]["request.id"].is_string(), "{answered}");
    server.stop(Signal::SIGTERM);
}
