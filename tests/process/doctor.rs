//! `toolhook doctor`: what it says of deployments that are well, and of those that are not.

use std::net::TcpListener;
use std::process::Command;

use nix::sys::signal::Signal;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::process::{Ended, Scratch, Server, finish, tool, toolhook};

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "//////////////////////////////////////////8=";

fn doctor(url: &str, master_key: &str) -> Command {
    with_settings(&["doctor", "--listen", "127.0.0.1:0"], url, master_key)
}

fn with_settings(arguments: &[&str], url: &str, master_key: &str) -> Command {
    let mut command = toolhook(arguments);
    command.env("DATABASE_URL", url).env("TOOLHOOK_MASTER_KEY", master_key);
    command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PORTS", "any");
    command
}

/// The line about one thing, which has to be of this level.
#[track_caller]
fn line<'a>(ended: &'a Ended, level: &str, about: &str) -> &'a str {
    let start = format!("{level:<4}  {about} ");
    let line = ended.out.lines().find(|line| line.starts_with(&start));
    assert!(line.is_some(), "no `{start}` in:\n{}{}", ended.out, ended.err);
    line.unwrap()
}

fn run(arguments: &[&str], url: &str) -> String {
    let ended = finish(toolhook(arguments).env("DATABASE_URL", url));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended.out.trim().to_owned()
}

#[test]
fn a_deployment_is_looked_at_from_its_first_day() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let empty = finish(&mut doctor(&url, MASTER_KEY));
    assert_eq!(empty.code, Some(0), "{}{}", empty.out, empty.err);
    assert!(line(&empty, "warn", "schema").contains("migrations are to be made"));
    assert!(line(&empty, "ok", "database").contains("Postgres"));
    let strict = finish(doctor(&url, MASTER_KEY).env("TOOLHOOK_MIGRATE", "false"));
    strict.complains(1, &["1 check failed"]);
    assert!(line(&strict, "FAIL", "schema").contains("migrations"));
    assert!(strict.out.contains("-> run `toolhook migrate`"));

    run(&["migrate"], &url);
    let new = finish(&mut doctor(&url, MASTER_KEY));
    assert_eq!(new.code, Some(0), "{}{}", new.out, new.err);
    line(&new, "ok", "schema");
    line(&new, "ok", "clocks");
    line(&new, "ok", "port");
    line(&new, "warn", "role"); // the embedded server's only login is a superuser
    line(&new, "ok", "tenants");
    assert!(line(&new, "ok", "master key").contains("nothing is sealed"));
    assert!(line(&new, "warn", "keys").contains("no operator"));
    assert!(line(&new, "ok", "egress").contains("https on any port, at public addresses, and 127.0.0.0/8"));

    let server = Server::start(
        &scratch,
        with_settings(&["serve", "--listen", "127.0.0.1:0"], &url, MASTER_KEY)
            .env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true"),
    );
    run(&["tenants", "create", "acme"], &url);
    let editor = run(&["keys", "create", "--role", "editor", "--tenant", "acme"], &url);
    for (name, webhook) in [("here", "http://127.0.0.1:9/x"), ("gone", "https://toolhook.invalid/x")] {
        server.expect(201, &editor, ("POST", "/v1/tools"), Some(&tool(name, webhook)));
    }
    run(&["keys", "create", "--role", "operator"], &url);
    run(&["keys", "create", "--role", "agent", "--tenant", "acme", "--expires-in-days", "3"], &url);
    let mut running =
        with_settings(&["doctor", "--listen", server.base_url.strip_prefix("http://").unwrap()], &url, MASTER_KEY);
    let running = finish(running.env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true"));
    assert_eq!(running.code, Some(0), "{}{}", running.out, running.err);
    assert!(line(&running, "ok", "port").contains("a toolhook answers"));
    assert!(line(&running, "ok", "master key").contains("2 of 2"));
    assert!(line(&running, "warn", "keys").contains("of acme at 2"));
    assert!(line(&running, "warn", "egress").contains("http and https"));
    assert!(line(&running, "warn", "webhook names").contains("1 of 2 hosts"), "{}", running.out);
    assert!(running.out.contains("toolhook.invalid"));
    server.stop(Signal::SIGTERM);
    let wrong = finish(doctor(&url, OTHER_KEY).env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true"));
    wrong.complains(1, &["1 check failed"]);
    assert!(line(&wrong, "FAIL", "master key").contains("does not open 2 of 2"));
    postgres.stop();
}

#[test]
fn what_is_broken_is_said_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = doctor(&format!("postgres://ada:hunter2@{closed}/toolhook"), MASTER_KEY);
    command.env("TOOLHOOK_METRICS_LISTEN", &address).env("TOOLHOOK_EGRESS_ALLOW", "169.254.0.0/16");
    command.env("TOOLHOOK_OTLP_ENDPOINT", format!("http://{closed}"));
    let ended = finish(&mut command);
    ended.complains(1, &["3 checks failed"]);
    assert!(line(&ended, "FAIL", "database").contains("refused"));
    assert!(line(&ended, "FAIL", "metrics port").contains("another program"));
    assert!(line(&ended, "FAIL", "egress").contains("credentials"));
    line(&ended, "warn", "traces");
    assert!(!ended.out.contains("hunter2"));
    assert_eq!(ended.out.matches("-> ").count(), 4, "{}", ended.out);
    finish(&mut toolhook(&["doctor"])).complains(2, &["DATABASE_URL", "TOOLHOOK_MASTER_KEY"]);
}

/// A login that owns nothing, and takes the two roles.
#[test]
fn a_login_is_held_to_what_the_service_needs() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let sql = |statements| execute(&url, statements);
    sql("create role app login noinherit");
    let as_app = url.replace("postgres@", "app@");
    assert_ne!(as_app, url);
    sql("revoke create on schema public from public"); // as it is from version 15 on
    let migrates = finish(&mut doctor(&as_app, MASTER_KEY));
    migrates.complains(1, &["1 check failed"]);
    assert!(line(&migrates, "FAIL", "role").contains("may not make tables"));
    run(&["migrate"], &url);
    let stranger = finish(&mut doctor(&as_app, MASTER_KEY));
    stranger.complains(1, &["2 checks failed"]);
    assert!(line(&stranger, "FAIL", "tenants").contains("may not take the role toolhook_app"), "{}", stranger.out);
    sql(
        "grant toolhook_app, toolhook_system to app; grant select on tools to app; alter table keys no force row level security",
    );
    let wide = finish(&mut doctor(&as_app, MASTER_KEY));
    wide.complains(1, &["1 check failed"]);
    assert!(line(&wide, "warn", "role").contains("app may read tools"), "{}", wide.out);
    assert!(line(&wide, "FAIL", "tenants").contains("keys"), "{}", wide.out);
    sql("revoke select on tools from app; alter table keys force row level security");
    let right = finish(&mut doctor(&as_app, MASTER_KEY));
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    assert!(line(&right, "ok", "role").contains("sees nothing by itself"));
    line(&right, "ok", "tenants");
    postgres.stop();
}

/// Runs statements as the owner.
pub(crate) fn execute(url: &str, statements: &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        connection.execute(sqlx::raw_sql(statements)).await.unwrap();
        connection.close().await.unwrap();
    });
}
