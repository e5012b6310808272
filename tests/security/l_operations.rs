//! Ends, outages and shortages.

use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::http::send;
use crate::process::{Scratch, Server, finish, toolhook};
use crate::receiver::Receiver;
use crate::stage::{OK, Tenant, admit, everywhere, serve, tool, until};

/// A session with the database, run from here.
struct Session(tokio::runtime::Runtime, PgConnection);

impl Session {
    fn of(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connection = runtime.block_on(PgConnection::connect(url)).unwrap();
        Self(runtime, connection)
    }

    fn execute(&mut self, statement: &'static str) {
        self.0.block_on(self.1.execute(statement)).unwrap();
    }

    fn count(&mut self, statement: &'static str, tenant: &str) -> i64 {
        self.0.block_on(sqlx::query_scalar(statement).bind(tenant).fetch_one(&mut self.1)).unwrap()
    }
}

#[test]
fn l01_a_stop_under_load_loses_no_call() {
    let tenant = Tenant::new();
    let stage = &tenant.stage;
    let receiver = Receiver::new(|this, connection| {
        loop {
            this.read_request(connection)?;
            std::thread::sleep(Duration::from_millis(20));
            connection.write_all(OK)?;
        }
    });
    tenant.tool("t", &json!({"kind": "webhook", "url": receiver.url()}));
    let mut command = serve(&stage.database(), "127.0.0.1:0");
    let mut server = Server::start(&stage.scratch, everywhere(&mut command));
    let answers = Mutex::new((0, Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Ok(answer) =
                    send(&server.base_url, &tenant.key, "POST", "/v1/tools/t/calls", Some(&json!({"input": {}})))
                {
                    let mut answers = answers.lock().unwrap();
                    if answer.status == 200 && answer.body["status"] == "succeeded" {
                        answers.0 += 1;
                    } else {
                        answers.1.push(answer.text);
                    }
                }
            });
        }
        until("there is load", || receiver.requests().len() >= 40);
        server.signal(Signal::SIGTERM);
    });
    assert_eq!(server.ended().code(), Some(0), "{}", server.logged());
    let (succeeded, others) = answers.into_inner().unwrap();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(receiver.requests().len(), succeeded, "who was delivered was answered");
    let logged = "select count(*) from calls c join tenants t on t.id = c.tenant_id where t.name = $1 and c.status = 'succeeded'";
    assert_eq!(Session::of(&stage.database()).count(logged, &tenant.name), i64::try_from(succeeded).unwrap());
}

/// Something with a database of its own.
fn alone(environment: &[(&str, &str)], then: impl FnOnce(&Server, &str, &mut Session)) {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let mut command = serve(&url, "127.0.0.1:0");
    let server = Server::start(&scratch, everywhere(&mut command).envs(environment.iter().copied()));
    let made = finish(toolhook(&["keys", "create", "--role", "operator"]).env("DATABASE_URL", &url));
    let key = admit(&server, made.out.trim(), "acme");
    then(&server, &key, &mut Session::of(&url));
    drop(server);
    postgres.stop();
}

#[test]
fn l05_a_primary_that_became_read_only_refuses_calls_and_serves_lists() {
    alone(&[], |server, key, session| {
        let receiver = Receiver::answering(OK);
        let body = tool("t", &json!({"kind": "webhook", "url": receiver.url()}));
        server.expect(201, key, ("PUT", "/v1/tools/t"), Some(&body));
        let call = || send(&server.base_url, key, "POST", "/v1/tools/t/calls", Some(&json!({"input": {}}))).unwrap();
        assert_eq!(call().body["status"], "succeeded");
        session.execute("alter system set default_transaction_read_only = on");
        session.execute("select pg_reload_conf()");
        until("writes are refused", || call().status == 503);
        let asked = receiver.requests().len();
        for _ in 0..3 {
            let refused = call();
            assert_eq!((refused.status, &refused.body["code"]), (503, &json!("unavailable")), "{}", refused.text);
            assert!(refused.header("retry-after").is_some());
        }
        server.expect(200, key, ("GET", "/v1/formats/mcp/tools"), None);
        assert_eq!(receiver.requests().len(), asked, "nothing was sent");
        session.execute("alter system reset default_transaction_read_only");
        session.execute("select pg_reload_conf()");
        until("calls are run again", || call().status == 200);
    });
}

#[test]
fn l06_without_a_free_connection_a_request_is_refused_soon() {
    alone(&[("TOOLHOOK_DATABASE_CONNECTIONS", "2")], |server, key, session| {
        server.expect(200, key, ("GET", "/v1/handlers"), None);
        session.execute("begin");
        session.execute("lock table handlers in access exclusive mode");
        std::thread::scope(|scope| {
            let first = [(); 2].map(|()| scope.spawn(|| server.get(key, "/v1/handlers").unwrap()));
            std::thread::sleep(Duration::from_millis(300)); // they have both connections, or wait for them first
            let began = Instant::now();
            let second = server.get(key, "/v1/handlers").unwrap();
            assert_eq!((second.status, &second.body["code"]), (503, &json!("unavailable")), "{}", second.text);
            assert!(second.header("retry-after").is_some());
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            session.execute("rollback");
            for first in first {
                let status = first.join().unwrap().status;
                assert!(matches!(status, 200 | 503), "{status}");
            }
        });
        until("it is served again", || server.get(key, "/v1/handlers").unwrap().status == 200);
    });
}
