//! `toolhook serve`: it refuses to start in words that say what to do.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::process::{Credentials, Scratch, Server, finish, tool, toolhook};

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[test]
fn everything_that_is_missing_or_wrong_is_told_at_once() {
    finish(&mut toolhook(&["serve"])).complains(2, &["2 settings", "DATABASE_URL", "TOOLHOOK_MASTER_KEY", "32"]);
    let mut wrong = toolhook(&["serve", "--listen", "8080"]);
    wrong
        .env("DATABASE_URL", "mysql://root:hunter2@db/x")
        .env("TOOLHOOK_MASTER_KEY", "hunter2hunter2==")
        .env("TOOLHOOK_EGRESS_ALLOW", "10.0.0.0/8,10.0.0.0/33")
        .env("TOOLHOOK_EGRESS_CA_FILE", "/etc/passwd")
        .env("TOOLHOOK_DATABASE_CONNECTIONS", "many")
        .env("TOOLHOOK_SHUTDOWN_GRACE_MS", "-1")
        .env("TOOLHOOK_CALL_LOG", "sometimes")
        .env("TOOLHOOK_PUBLIC_URL", "tools.example.com")
        .env("TOOLHOOK_LOG_FORMAT", "xml");
    finish(&mut wrong).complains(
        2,
        &[
            "DATABASE_URL",
            "TOOLHOOK_MASTER_KEY",
            "10.0.0.0/33",
            "no certificate in it",
            "CONNECTIONS",
            "GRACE_MS",
            "LISTEN",
            "LOG_FORMAT",
            "TOOLHOOK_PUBLIC_URL",
            "durable or relaxed",
        ],
    );
    let mut short = toolhook(&["serve"]);
    short.env("DATABASE_URL", "postgres://u@db/x").env("TOOLHOOK_MASTER_KEY", "AAAA");
    finish(&mut short).complains(2, &["3 bytes instead of 32"]);
    finish(&mut toolhook(&["serve", "--nonsense"])).complains(2, &["--nonsense"]);
}

#[test]
fn help_names_every_setting() {
    let help = finish(&mut toolhook(&["serve", "--help"]));
    assert_eq!(help.code, Some(0));
    for name in ["DATABASE_URL", "DATABASE_URL_FILE", "TOOLHOOK_MASTER_KEY", "TOOLHOOK_MASTER_KEY_FILE"]
        .into_iter()
        .chain(["TOOLHOOK_LISTEN", "TOOLHOOK_EGRESS_ALLOW", "TOOLHOOK_DATABASE_CONNECTIONS", "TOOLHOOK_CACHED_TENANTS"])
        .chain(["TOOLHOOK_LOG", "TOOLHOOK_LOG_FORMAT", "TOOLHOOK_MIGRATE", "TOOLHOOK_SHUTDOWN_GRACE_MS"])
        .chain([
            "TOOLHOOK_CALL_LOG",
            "TOOLHOOK_SHUTDOWN_DELAY_MS",
            "TOOLHOOK_STALE_LISTS_MS",
            "TOOLHOOK_EGRESS_CA_FILE",
            "TOOLHOOK_METRICS_LISTEN",
            "TOOLHOOK_OTLP_ENDPOINT",
            "TOOLHOOK_PREVIOUS_MASTER_KEYS",
            "TOOLHOOK_PREVIOUS_MASTER_KEYS_FILE",
            "TOOLHOOK_PUBLIC_URL",
        ])
        .chain(["TOOLHOOK_CONNECTIONS", "TOOLHOOK_HEADER_TIMEOUT_MS", "TOOLHOOK_BODY_TIMEOUT_MS"])
        .chain(["TOOLHOOK_IDLE_TIMEOUT_MS", "TOOLHOOK_WRITE_TIMEOUT_MS", "TOOLHOOK_BAD_KEYS_PER_MINUTE"])
        .chain(["--no-migrate", "127.0.0.1:8080", "milliseconds"])
    {
        assert!(help.out.contains(name), "{name} is missing from:\n{}", help.out);
    }
}

#[test]
fn a_database_that_does_not_answer_is_told_without_its_password() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut serve = toolhook(&["serve", "--listen", "127.0.0.1:0"]);
    serve
        .env("DATABASE_URL", format!("postgres://ada:hunter2@{closed}/toolhook"))
        .env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
    finish(&mut serve).complains(1, &["ada@", "refused", "Check that"]);
}

#[test]
fn it_serves_a_schema_that_is_new_enough() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let (url, key) = (scratch.path().join("url"), scratch.path().join("key"));
    fs::write(&url, format!("{}\n", postgres.url("postgres"))).unwrap();
    fs::write(&key, MASTER_KEY).unwrap();
    let serve = |more: &[&str]| {
        let mut command = toolhook(&[&["serve"], more].concat());
        command.env("DATABASE_URL_FILE", &url).env("TOOLHOOK_MASTER_KEY_FILE", &key).env("DATABASE_URL", "");
        command
    };
    finish(&mut serve(&["--listen", "127.0.0.1:0", "--no-migrate"])).complains(1, &["older", "toolhook migrate"]);

    let mut migrate = toolhook(&["migrate"]);
    migrate.env("DATABASE_URL_FILE", &url);
    assert!(finish(&mut migrate).out.contains("now"));
    assert!(finish(&mut migrate).out.contains("already"));

    let mut command = serve(&["--listen", "127.0.0.1:0", "--no-migrate"]);
    let server = Server::start(&scratch, &mut command);
    let address = server.base_url.strip_prefix("http://").unwrap().to_owned();
    finish(&mut serve(&["--listen", &address])).complains(1, &[&address, "another process has the port"]);
    server.expect(401, "thk_invented", ("GET", "/v1/tools"), None);
    server.stop(Signal::SIGTERM);

    let server = Server::start(&scratch, serve(&["--listen", "127.0.0.1:0"]).env("TOOLHOOK_MIGRATE", "false"));
    postgres.stop();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.get("", "/livez").unwrap().status, 200, "alive without a database");
    assert_eq!(server.get("", "/readyz").unwrap().status, 503, "and not ready");
    server.stop(Signal::SIGTERM);
}

#[test]
fn another_master_key_is_refused_before_anything_is_served() {
    let scratch = Scratch::new();
    let server = Server::dev(&scratch);
    let keys = Credentials::read(&scratch.data_dir());
    server.expect(201, &keys.demo_key, ("POST", "/v1/tools"), Some(&tool("sealed", "http://127.0.0.1:9/")));
    server.stop(Signal::SIGTERM);
    fs::write(scratch.data_dir().join("master_key"), MASTER_KEY).unwrap();
    let mut again = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
    again.arg("--data-dir").arg(scratch.data_dir());
    finish(&mut again).complains(1, &["not the master key", "TOOLHOOK_MASTER_KEY"]);
}
