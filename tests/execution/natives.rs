//! Tools that are Rust code.

use crate::receiver::Receiver;
use crate::setup::{call, executor, failure, registry, request, text, tool};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use toolhook::domain::json::Object;
use toolhook::domain::{CallStatus, Outcome};
use toolhook::execution::{HandlerResult, NativeHandler, Natives};

/// Serves several tools, by their names.
struct Script;

impl NativeHandler for Script {
    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: Object,
        context: &'a Object,
    ) -> BoxFuture<'a, Result<HandlerResult, String>> {
        assert_ne!(tool, "panics_at_once", "as it was told");
        Box::pin(async move {
            match tool {
                "panics" => panic!("the secret is 42"),
                "hangs" => std::future::pending().await,
                "refuses" => Err("SKU A-7 is discontinued".to_owned()),
                "structured" => Ok(HandlerResult::json(json!({"n": input["n"], "user": context.get("user")}))),
                _ => Ok(HandlerResult::text(input["n"].to_string())),
            }
        })
    }
}

fn definition(name: &str) -> Value {
    json!({"name": name, "description": "For a test", "input_schema": {"required": ["n"]}, "timeout_ms": 200})
}

#[tokio::test]
async fn they_stand_beside_stored_tools_and_break_alone() {
    let receiver = Receiver::echo().await;
    let names = ["plain", "panics", "panics_at_once", "hangs", "refuses", "structured"];
    let natives = names
        .iter()
        .try_fold(Natives::default().handler("script", Arc::new(Script)), |natives, name| {
            natives.tool(&definition(name), "script")
        })
        .unwrap()
        .tool(&definition("orphan"), "nobody")
        .unwrap();
    let mut entries = natives.entries();
    entries.push(tool("hook", &receiver.url(), &Value::Null));
    let registry = registry(entries);
    let calls = names.iter().chain(&["orphan", "hook"]).map(|name| call(name, json!({"n": 7}))).collect();
    let mut request = request(&registry, calls, Duration::from_secs(10));
    request.context = json!({"user": "u_1"}).as_object().cloned();
    let executed = executor(natives).run(request).await;

    assert_eq!((text(&executed[0]), text(&executed[7])), ("7".to_owned(), "7".to_owned()));
    for crashed in &executed[1..3] {
        let failure = failure(crashed);
        assert_eq!((failure.status, failure.code), (CallStatus::Failed, "handler_crashed"));
        assert!(!failure.message.contains("secret") && failure.diagnostic.is_some());
    }
    assert_eq!((failure(&executed[3]).status, failure(&executed[3]).code), (CallStatus::TimedOut, "timed_out"));
    assert_eq!(
        (failure(&executed[4]).code, failure(&executed[4]).message.as_str()),
        ("handler_error", "SKU A-7 is discontinued")
    );
    let Outcome::Success(structured) = &executed[5].outcome else { panic!("{executed:?}") };
    assert_eq!(structured.data.clone().map(Value::Object), Some(json!({"n": 7, "user": "u_1"})));
    assert_eq!((failure(&executed[6]).code, executed[6].attempts), ("handler_unreachable", 0));
}

#[tokio::test]
async fn the_built_in_ones_work() {
    let natives = Natives::built_in().unwrap();
    let registry = registry(natives.entries());
    let calls = vec![
        call("calculate", json!({"expression": "0.1 + 0.2"})),
        call("calculate", json!({"expression": "1 / 0"})),
        call("count_text", json!({"text": "strawberry", "find": "r"})),
        call("current_time", json!("")),
        call("current_time", json!({"utc_offset": "+19:00"})),
    ];
    let executed = executor(natives).run(request(&registry, calls, Duration::from_secs(5))).await;
    assert_eq!(text(&executed[0]), "0.3");
    assert_eq!(failure(&executed[1]).message, "a division by zero");
    assert!(text(&executed[2]).ends_with("occurrences: 3"));
    assert!(text(&executed[3]).contains("Z ("));
    assert_eq!(failure(&executed[4]).code, "invalid_input");
}
