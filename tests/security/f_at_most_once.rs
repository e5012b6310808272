//! Nothing is sent twice, whatever breaks. The crash points and the paused owner are in `tests/process/crash_points.rs`.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Answer, send_with};
use crate::process::{Scratch, Server, finish, toolhook};
use crate::receiver::Receiver;
use crate::stage::{OK, Tenant, admit, everywhere, serve, tool, until};

const REQUESTS: usize = 99;

fn call_once(server: &Server, key: &str, idempotency_key: &str) -> Option<Answer> {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", idempotency_key)];
    send_with(&server.base_url, &headers, "POST", "/v1/tools/t/calls", Some(&json!({"input": {"n": 1}}))).ok()
}

#[test]
fn f02_many_at_once_over_three_replicas_are_one_delivery() {
    let tenant = Tenant::new();
    let receiver = Receiver::new(|this, connection| {
        this.read_request(connection)?;
        std::thread::sleep(Duration::from_millis(200));
        connection.write_all(OK)
    });
    tenant.tool("t", &json!({"kind": "webhook", "url": receiver.url()}));
    let stage = &tenant.stage;
    let more = [(); 2].map(|()| {
        let mut command = serve(&stage.database(), "127.0.0.1:0");
        Server::start(&stage.scratch, everywhere(&mut command))
    });
    let replicas = [&stage.open, &more[0], &more[1]];
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for n in 0..REQUESTS {
            let (answers, tenant) = (&answers, &tenant);
            scope.spawn(move || {
                let answer = call_once(replicas[n % 3], &tenant.key, "one").unwrap();
                answers.lock().unwrap().push(answer);
            });
        }
    });
    let answers = answers.into_inner().unwrap();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer.body["id"]).collect();
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body["status"] == "succeeded"));
    assert!(ids.iter().all(|id| *id == ids[0]), "one result for all");
    assert_eq!(answers.iter().filter(|answer| answer.body["replayed"] == false).count(), 1);
    assert_eq!(receiver.requests().len(), 1);
}

/// Postgres goes down while the webhook is at work.
#[test]
fn f07_a_database_that_dies_after_sending_costs_no_answer_and_no_second_delivery() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let mut command = serve(&postgres.url("postgres"), "127.0.0.1:0");
    let server = Server::start(&scratch, everywhere(&mut command).env("TOOLHOOK_LEASE_GRACE_MS", "500"));
    let made =
        finish(toolhook(&["keys", "create", "--role", "operator"]).env("DATABASE_URL", postgres.url("postgres")));
    let key = admit(&server, made.out.trim(), "acme");
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let receiver = Receiver::new(move |this, connection| {
        this.read_request(connection)?;
        let _ = released.lock().unwrap().recv_timeout(Duration::from_secs(20));
        connection.write_all(OK)
    });
    let handler = json!({"kind": "webhook", "url": receiver.url(), "timeout_ms": 25_000});
    server.expect(201, &key, ("PUT", "/v1/tools/t"), Some(&tool("t", &handler)));
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| call_once(&server, &key, "one"));
        until("the webhook is asked", || receiver.requests().len() == 1);
        postgres.stop();
        release.send(()).unwrap();
        call.join().unwrap()
    });
    drop(release);
    // The caller is told the result, or that it cannot be known; never that the call failed.
    let answer = answer.unwrap();
    match answer.status {
        200 => assert!(["succeeded", "unknown"].contains(&answer.body["status"].as_str().unwrap()), "{}", answer.text),
        status => assert_eq!((status, &answer.body["code"]), (503, &json!("unavailable")), "{}", answer.text),
    }
    let postgres = scratch.postgres();
    until("it is back, and the call has an end", || {
        let log = server.get(&key, "/v1/calls").unwrap();
        log.status == 200 && ["succeeded", "unknown"].contains(&log.body["data"][0]["status"].as_str().unwrap_or(""))
    });
    let log = server.get(&key, "/v1/calls").unwrap();
    let again = call_once(&server, &key, "one").unwrap();
    assert_eq!((again.status, &again.body["id"]), (200, &log.body["data"][0]["id"]), "{}", again.text);
    assert_eq!(again.body["status"], log.body["data"][0]["status"], "{}", again.text);
    assert_eq!(receiver.requests().len(), 1);
    drop(server);
    postgres.stop();
}
