//! A dry run shows everything and sends nothing.

use crate::receiver::Receiver;
use crate::setup::{call, executor, registry, run, tool};
use serde_json::{Value, json};
use toolhook::egress::{Egress, Policy};
use toolhook::execution::{Executor, Natives};

#[tokio::test]
async fn it_shows_the_request_with_secrets_masked() {
    let receiver = Receiver::echo().await;
    let registry = registry(vec![tool("t", &receiver.url(), &Value::Null)]);
    let context = json!({"user_id": "u_1"}).as_object().cloned();
    let call = call("t", json!("{\"n\":1.0}"));
    let shown = executor(Natives::default()).dry_run(&registry, &call, context.as_ref(), None).await.unwrap();
    let shown = serde_json::to_value(shown).unwrap();
    assert_eq!(shown["validation"], json!({"valid": true, "errors": []}));
    assert_eq!(shown["egress"], json!({"allowed": true, "reason": null}));
    assert_eq!(shown["repairs"], json!([]));
    let request = &shown["request"];
    assert_eq!((&request["method"], &request["url"]), (&json!("POST"), &json!(receiver.url())));
    assert_eq!(request["body"]["data"]["input"].to_string(), r#"{"n":1.0}"#);
    assert_eq!(request["body"]["data"]["context"], json!({"user_id": "u_1"}));
    assert_eq!(request["headers"]["authorization"], json!("***"));
    assert_eq!(request["headers"]["webhook-signature"], json!("***"));
    assert_eq!(request["headers"]["webhook-id"], request["headers"]["idempotency-key"]);
    assert!(!shown.to_string().contains("s3cret") && !shown.to_string().contains("v1,"));
    assert!(receiver.seen().is_empty());
}

#[tokio::test]
async fn it_repairs_as_a_call_does() {
    let receiver = Receiver::echo().await;
    let registry = registry(vec![tool("t", &receiver.url(), &Value::Null)]);
    for (arguments, repair) in [
        (json!({"n": "7"}), "/n: read from its text as a number"),
        (json!("\"{\\\"n\\\":7}\""), "the arguments: read from JSON text inside JSON text"),
    ] {
        let call = call("t", arguments);
        let shown = executor(Natives::default()).dry_run(&registry, &call, None, None).await.unwrap();
        assert_eq!(shown.repairs, [repair]);
        assert!(shown.validation.valid);
        assert_eq!(shown.request.unwrap().body["data"]["input"], json!({"n": 7}));
        let executed = run(&registry, vec![call]).await;
        assert_eq!(
            (executed[0].repairs.as_slice(), &executed[0].input),
            (&[repair.to_owned()][..], &json!({"n": 7}).as_object().cloned())
        );
    }
}

#[tokio::test]
async fn it_gives_the_verdicts() {
    let receiver = Receiver::echo().await;
    let off = json!({"enabled": false});
    let registry = registry(vec![tool("t", &receiver.url(), &Value::Null), tool("off", &receiver.url(), &off)]);
    let guarded = Executor::new(Egress::new(Policy::production()).unwrap(), Natives::default());
    let verdicts = async |name: &str, arguments: Value| {
        let shown = guarded.dry_run(&registry, &call(name, arguments), None, None).await;
        shown.map(|shown| serde_json::to_value(shown).unwrap()).map_err(|failure| failure.code)
    };
    let shown = verdicts("t", json!({"n": "x"})).await.unwrap();
    assert_eq!(shown["validation"]["valid"], json!(false));
    assert_eq!(shown["validation"]["errors"][0]["pointer"], json!("/n"));
    assert_eq!(shown["egress"]["allowed"], json!(false));
    assert!(shown["egress"]["reason"].is_string() && shown["request"].is_object());
    let shown = verdicts("off", json!([])).await.unwrap();
    assert_eq!(shown["validation"]["errors"].as_array().map(Vec::len), Some(2));
    assert!(shown["request"].is_null());
    assert_eq!(verdicts("none", json!({})).await, Err("unknown_tool"));
    assert!(receiver.seen().is_empty());
}

#[tokio::test]
async fn native_code_sends_nothing() {
    let natives = Natives::built_in().unwrap();
    let registry = registry(natives.entries());
    let call = call("current_time", Value::Null);
    let shown = executor(natives).dry_run(&registry, &call, None, None).await.unwrap();
    assert!(shown.request.is_none() && shown.validation.valid && shown.egress.allowed);
}
