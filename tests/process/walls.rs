//! The walls between tenants as a deployment meets them: a start that is refused while one of them is down, and a service whose
//! login owns nothing.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use crate::doctor::execute;
use crate::http::send_with;
use crate::process::{Scratch, Server, finish, tool, toolhook};
use crate::webhook::Webhook;

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn with_settings(arguments: &[&str], url: &str) -> Command {
    let mut command = toolhook(arguments);
    command.env("DATABASE_URL", url).env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
    command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PORTS", "any");
    command.env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true");
    command
}

fn serve(url: &str) -> Command {
    with_settings(&["serve", "--listen", "127.0.0.1:0"], url)
}

fn run(arguments: &[&str], url: &str) -> String {
    let ended = finish(toolhook(arguments).env("DATABASE_URL", url));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended.out.trim().to_owned()
}

/// What a query answers, as text.
fn ask(url: &str, query: &'static str) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let rows = sqlx::query_scalar(query).fetch_all(&mut connection).await.map_err(|error| error.to_string());
        connection.close().await.unwrap();
        rows
    })
}

/// Starts a server that has to end by itself, and say why.
fn refused(scratch: &Scratch, command: &mut Command, words: &[&str]) {
    let mut server = Server::spawn(scratch, command);
    assert_eq!(server.ended().code(), Some(1), "{}", server.logged());
    for word in words {
        assert!(server.logged().contains(word), "{word} is missing from:\n{}", server.logged());
    }
}

/// What takes a wall down, what puts it up again, and what is said of it.
const BREACHES: &[(&str, &str, &str)] = &[
    ("alter role toolhook_app superuser", "alter role toolhook_app nosuperuser", "toolhook_app is a superuser"),
    (
        "alter role toolhook_system bypassrls",
        "alter role toolhook_system nobypassrls",
        "toolhook_system is a superuser",
    ),
    (
        "alter table tools owner to toolhook_app",
        "alter table tools owner to postgres; grant select, insert, update, delete on tools to toolhook_app",
        "toolhook_app owns tools",
    ),
    (
        "grant pg_read_all_data to toolhook_app",
        "revoke pg_read_all_data from toolhook_app",
        "`revoke pg_read_all_data from toolhook_app`",
    ),
    (
        "grant toolhook_system to toolhook_app",
        "revoke toolhook_system from toolhook_app",
        "toolhook_app is a member of toolhook_system",
    ),
    (
        "alter table calls no force row level security",
        "alter table calls force row level security",
        "not forced on calls",
    ),
    ("alter table keys disable row level security", "alter table keys enable row level security", "on keys"),
    (
        "alter table calls_default disable row level security",
        "alter table calls_default enable row level security",
        "on calls_default",
    ),
    (
        "create policy wide on tools to toolhook_app using (true)",
        "drop policy wide on tools",
        "the policy wide on tools",
    ),
    (
        "create policy wide on tools using (tenant_id is not null)",
        "drop policy wide on tools",
        "the policy wide on tools",
    ),
    ("create table more (tenant_id uuid)", "drop table more", "on more"),
    (
        "create table loose (x int); grant select (x) on loose to toolhook_app",
        "drop table loose",
        "not forced on loose",
    ),
    ("grant truncate on calls to toolhook_app", "revoke truncate on calls from toolhook_app", "truncate calls"),
    (
        "create view seen as select name from tools; grant select on seen to toolhook_app",
        "drop view seen",
        "may use seen",
    ),
    (
        "create function peek() returns bigint security definer language sql as 'select count(*) from tools'",
        "drop function peek()",
        "`revoke all on function peek() from toolhook_app, public`",
    ),
];

#[test]
fn d07_it_refuses_to_start_where_a_wall_is_down() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    run(&["migrate"], &url);
    for (breach, mend, words) in BREACHES {
        execute(&url, breach);
        refused(&scratch, &mut serve(&url), &["does not keep tenants apart", words]);
        execute(&url, mend);
    }
    Server::start(&scratch, &mut serve(&url)).stop(Signal::SIGTERM);
    execute(&url, "create role stranger login");
    let stranger = url.replace("postgres@", "stranger@");
    refused(&scratch, &mut serve(&stranger), &["may not take the role toolhook_app", "toolhook_system"]);
    execute(&url, "drop owned by toolhook_app; drop role toolhook_app");
    refused(&scratch, &mut serve(&url), &["there is no role toolhook_app"]);
    let mut dev = with_settings(&["dev", "--listen", "127.0.0.1:0"], &url);
    refused(&scratch, dev.env("TOOLHOOK_DATA_DIR", scratch.data_dir()), &["there is no role toolhook_app"]);
    postgres.stop();
}

/// A day's work of an editor, once.
fn work(server: &Server, key: &str, webhook: &Webhook) {
    server.expect(201, key, ("POST", "/v1/tools"), Some(&tool("t", &webhook.url)));
    let headers = [("authorization", &*format!("Bearer {key}")), ("idempotency-key", "one")];
    for replayed in [false, true] {
        let call = json!({"input": {}});
        let answer = send_with(&server.base_url, &headers, "POST", "/v1/tools/t/calls", Some(&call)).unwrap();
        assert_eq!((answer.status, &answer.body["replayed"]), (200, &json!(replayed)), "{}", answer.text);
    }
    server.expect(200, key, ("POST", "/v1/tools/t/calls"), Some(&json!({"input": {}})));
    let page = server.expect(200, key, ("GET", "/v1/calls"), None);
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    server.expect(200, key, ("PATCH", "/v1/tools/t"), Some(&json!({"description": "Says more"})));
}

/// The set-up that is recommended: one login owns the tables and migrates, another owns nothing and serves. Neither is a superuser.
#[test]
fn d07_a_login_that_owns_nothing_serves() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    execute(
        &postgres.url("postgres"),
        "create role owner login noinherit createrole; create role service login noinherit",
    );
    execute(&postgres.url("postgres"), "create database app owner owner");
    let superuser = postgres.url("app");
    // Before version 15 the owner of a database does not own its schema.
    execute(&superuser, "alter schema public owner to owner");
    let (owner, service) = (superuser.replace("postgres@", "owner@"), superuser.replace("postgres@", "service@"));
    execute(&superuser, "revoke create on schema public from public");
    finish(&mut serve(&service)).complains(1, &["service may not change it", "toolhook migrate"]);
    finish(serve(&service).env("TOOLHOOK_MIGRATE", "false")).complains(1, &["older", "toolhook migrate"]);
    run(&["migrate"], &owner);
    finish(&mut serve(&service)).complains(1, &["may not take the role"]);
    execute(&owner, "grant toolhook_app, toolhook_system to service");
    // A day without a partition, and a record of it that has to move there.
    execute(
        &superuser,
        "do $$ begin execute 'drop table calls_' || to_char((now() at time zone 'UTC')::date + 3, 'YYYYMMDD'); end $$;
         insert into calls (tenant_id, id, tool, caller, status, repairs, attempts, duration_ms, request_id, key_id, created_at)
         values (gen_random_uuid(), id_at(now() + interval '3 days'), 't', 'c', 'succeeded', '[]', 1, 1, 'r', 'k', now())",
    );
    assert_eq!(ask(&superuser, "select tool from calls_default").unwrap(), ["t"]);

    let server = Server::start(&scratch, &mut serve(&service));
    run(&["tenants", "create", "acme"], &service);
    run(&["tenants", "create", "gone"], &service);
    let key = |role, tenant| run(&["keys", "create", "--role", role, "--tenant", tenant], &service);
    let (editor, other, operator) =
        (key("editor", "acme"), key("editor", "gone"), run(&["keys", "create", "--role", "operator"], &service));
    let webhook = Webhook::start("done");
    for key in [&editor, &other] {
        work(&server, key, &webhook);
    }
    let again = server.expect(200, &editor, ("GET", "/v1/tools/t/versions"), None);
    assert_eq!(again["data"].as_array().unwrap().len(), 2);
    // What goes with a tenant goes, though its tables' owner is held by their policies too.
    server.expect(204, &operator, ("DELETE", "/v1/tenants/gone"), None);
    assert_eq!(ask(&superuser, "select name from tools").unwrap(), ["t"]);
    server.expect(204, &editor, ("DELETE", "/v1/tools/t"), None);
    let began = Instant::now();
    while !ask(&superuser, "select tool from calls_default").unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "the record is never moved:\n{}", server.logged());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!server.logged().contains("permission denied"), "{}", server.logged());

    for closed in ["select name from tools", "select name from tenants", "select tool from calls_default"] {
        assert!(ask(&service, closed).unwrap_err().contains("permission denied"), "{closed}");
    }
    assert_eq!(ask(&owner, "select name from tenants").unwrap(), Vec::<String>::new(), "the owner is held too");
    let doctor = finish(&mut with_settings(&["doctor", "--listen", "127.0.0.1:0"], &service));
    assert_eq!(doctor.code, Some(0), "{}{}", doctor.out, doctor.err);
    assert!(doctor.out.contains("service sees nothing by itself"), "{}", doctor.out);
    server.stop(Signal::SIGTERM);
    postgres.stop();
}
