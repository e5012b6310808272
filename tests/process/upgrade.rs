//! While replicas are replaced, those of the release before work on a schema that is newer than they are: those that were
//! running when it changed, and those that start again after it.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::doctor::execute;
use crate::http::{send_text, send_with};
use crate::process::{Scratch, Server, finish, tool, toolhook};
use crate::webhook::Webhook;

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// What a later release may do to the schema: it adds.
const LATER: &str = "
    alter table tenants add column region text, add column weight integer not null default 7;
    alter table keys add column last_used_at timestamptz;
    alter table handlers add column pool text not null default 'shared';
    alter table tools add column rank numeric, add column hidden boolean not null default false;
    alter table tool_versions add column rank numeric, add column hidden boolean not null default false;
    alter table calls add column cost json, add column tries integer not null default 0;
    alter table idempotency_keys add column scope text;
    alter table audit add column reason text;
    create index calls_cost on calls (tenant_id, id) where cost is not null;
    create table budgets (tenant_id uuid not null references tenants (id) on delete cascade, name text not null,
        primary key (tenant_id, name));
    select toolhook_wall('budgets');
    grant select, insert on budgets to toolhook_app;
    insert into _sqlx_migrations (version, description, success, checksum, execution_time)
    values (20990101000000, 'later', true, '\\x00', 1)";

fn with_settings(arguments: &[&str], url: &str) -> Command {
    let mut command = toolhook(arguments);
    command.env("DATABASE_URL", url).env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
    command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PORTS", "any");
    command.env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true").env("TOOLHOOK_PUBLIC_URL", "https://tools.example.com");
    command
}

fn serve(scratch: &Scratch, url: &str, more: &[&str]) -> Server {
    Server::start(scratch, with_settings(&["serve", "--listen", "127.0.0.1:0"], url).args(more))
}

fn run(arguments: &[&str], url: &str) -> String {
    let ended = finish(&mut with_settings(arguments, url));
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    ended.out.trim().to_owned()
}

/// Those who ask, and the webhooks that answer them.
struct Stage {
    operator: String,
    admin: String,
    ready: Webhook,
    later: Webhook,
}

/// Everything that the tables are written and read for, once, through one replica.
fn whole_round(server: &Server, stage: &Stage, name: &str) {
    let tenant = format!("/v1/tenants/{name}");
    server.expect(201, &stage.operator, ("PUT", &tenant), Some(&json!({})));
    server.expect(200, &stage.operator, ("PUT", &tenant), Some(&json!({"display_name": "renamed"})));
    server.expect(204, &stage.operator, ("DELETE", &tenant), None);
    let made = server.expect(201, &stage.admin, ("POST", "/v1/keys"), Some(&json!({"role": "editor", "name": name})));
    let key = made["key"].as_str().unwrap();

    let handler = json!({"kind": "webhook", "url": stage.later.url, "async": true});
    server.expect(201, key, ("PUT", &format!("/v1/handlers/{name}")), Some(&handler));
    server.expect(201, key, ("POST", "/v1/tools"), Some(&tool(name, &stage.ready.url)));
    let mut later = tool(&format!("{name}_later"), "");
    later["handler"] = json!(name);
    server.expect(201, key, ("POST", "/v1/tools"), Some(&later));
    let path = format!("/v1/tools/{name}");
    assert_eq!(server.expect(200, key, ("PATCH", &path), Some(&json!({"description": "Changed"})))["version"], 2);
    let versions = server.expect(200, key, ("GET", &format!("{path}/versions")), None);
    assert_eq!(versions["data"].as_array().unwrap().len(), 2);
    let list = server.expect(200, key, ("GET", &format!("/v1/formats/anthropic/tools?name={name}")), None);
    assert_eq!(list["tools"][0]["description"], "Changed");

    let call = server.expect(200, key, ("POST", &format!("{path}/calls")), Some(&json!({"input": {}})));
    assert_eq!(call["status"], "succeeded", "{call}");
    let id = call["id"].as_str().unwrap();
    assert_eq!(server.expect(200, key, ("GET", &format!("/v1/calls/{id}")), None)["result"]["text"], "done");
    let keyed = || {
        let (authorization, once) = (format!("Bearer {key}"), format!("once-{name}"));
        let headers = [("authorization", authorization.as_str()), ("idempotency-key", &once)];
        let answer =
            send_text(&server.base_url, &headers, "POST", &format!("{path}/calls"), r#"{"input":{}}"#).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.body
    };
    let (first, repeat) = (keyed(), keyed());
    assert_eq!((&first["replayed"], &repeat["replayed"]), (&json!(false), &json!(true)));
    assert_eq!(first["id"], repeat["id"]);

    reported(server, stage, name, key);
    let changes = server.expect(200, &stage.admin, ("GET", &format!("/v1/audit?kind=tool&name={name}")), None);
    assert_eq!(changes["data"].as_array().unwrap().len(), 2, "{changes}");
    server.expect(204, key, ("DELETE", &path), None);
}

/// A call whose result comes later.
fn reported(server: &Server, stage: &Stage, name: &str, key: &str) {
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", authorization.as_str()), ("prefer", "respond-async")];
    let path = format!("/v1/tools/{name}_later/calls");
    let pending = send_with(&server.base_url, &headers, "POST", &path, Some(&json!({"input": {}}))).unwrap();
    assert_eq!(pending.status, 202, "{}", pending.text);
    let sent: Value = stage.later.posted(|posted| serde_json::from_slice(&posted.last().unwrap().body).unwrap());
    let callback = sent["data"]["callback_url"].as_str().unwrap();
    let callback = callback.strip_prefix("https://tools.example.com").unwrap();
    let report = send_with(&server.base_url, &[], "POST", callback, Some(&json!({"text": "at last"}))).unwrap();
    assert_eq!(report.status / 100, 2, "{}", report.text);
    let id = pending.body["id"].as_str().unwrap();
    let ended = server.expect(200, key, ("GET", &format!("/v1/calls/{id}?wait_ms=5000")), None);
    assert_eq!(ended["result"]["text"], "at last", "{ended}");
}

#[test]
fn l08_the_release_before_works_on_the_schema_of_the_next() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    run(&["migrate"], &url);
    run(&["tenants", "create", "acme"], &url);
    let stage = Stage {
        operator: run(&["keys", "create", "--role", "operator"], &url),
        admin: run(&["keys", "create", "--role", "admin", "--tenant", "acme"], &url),
        ready: Webhook::start("done"),
        later: Webhook::that_takes(),
    };
    // One that was there before: its connections know their statements from then.
    let before = serve(&scratch, &url, &[]);
    whole_round(&before, &stage, "before");
    execute(&url, LATER);
    whole_round(&before, &stage, "meanwhile");
    // Those that start after it, whether they are to migrate or not.
    let (migrating, plain) = (serve(&scratch, &url, &[]), serve(&scratch, &url, &["--no-migrate"]));
    whole_round(&migrating, &stage, "after");
    whole_round(&plain, &stage, "after_too");
    run(&["migrate"], &url);
    run(&["audit", "verify"], &url);
    let looked = run(&["doctor", "--listen", "127.0.0.1:0"], &url);
    assert!(looked.contains("newer"), "{looked}");
    for server in [before, migrating, plain] {
        server.stop(Signal::SIGTERM);
    }
    postgres.stop();
}
