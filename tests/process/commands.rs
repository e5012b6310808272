//! The operator's commands.

use nix::sys::signal::Signal;

use crate::process::{Ended, Scratch, Server, finish, toolhook};

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[test]
fn an_operator_makes_a_tenant_and_its_keys() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let url = postgres.url("postgres");
    let run = |line: &str| -> Ended {
        let words: Vec<&str> = line.split(' ').collect();
        finish(toolhook(&words).env("DATABASE_URL", &url))
    };
    run("tenants list").complains(1, &["toolhook migrate"]);
    assert_eq!(run("migrate").code, Some(0));

    let made = run("tenants create acme --display-name Acme");
    assert!(made.out.contains("acme"), "{}{}", made.out, made.err);
    run("tenants create acme").complains(1, &["a tenant acme already"]);
    run("tenants create Acme").complains(2, &["lower-case"]);
    let list = run("tenants list").out;
    assert!(list.lines().nth(1).is_some_and(|row| row.starts_with("acme") && row.contains("Acme")), "{list}");

    run("keys create --role editor").complains(2, &["--tenant"]);
    run("keys create --role operator --tenant acme").complains(2, &["--tenant"]);
    run("keys create --role king --tenant acme").complains(2, &["operator"]);
    run("keys create --role editor --tenant nobody").complains(1, &["no tenant nobody"]);
    let editor = run("keys create --role editor --tenant acme --name ci --expires-in-days 7");
    let operator = run("keys create --role operator --name root");
    for key in [&editor, &operator] {
        let lines: Vec<&str> = key.out.lines().collect();
        assert!(lines.len() == 1 && lines[0].starts_with("thk_"), "{}{}", key.out, key.err);
        assert!(!key.err.contains(lines[0]), "it is nowhere but on standard output");
    }
    let (editor, operator) = (editor.out.trim(), operator.out.trim());
    let listed = run("keys list --tenant acme").out;
    assert!(listed.contains("editor") && listed.contains("ci") && !listed.contains(editor), "{listed}");
    assert!(run("keys list").out.contains("root"));

    let mut serve = toolhook(&["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::start(&scratch, serve.env("DATABASE_URL", &url).env("TOOLHOOK_MASTER_KEY", MASTER_KEY));
    server.expect(200, editor, ("GET", "/v1/tools"), None);
    server.expect(200, operator, ("GET", "/v1/tenants/acme"), None);
    server.stop(Signal::SIGTERM);

    let id = |key: &str| key.split('_').nth(1).unwrap().to_owned();
    run(&format!("keys revoke {}", id(editor))).complains(1, &["no key"]);
    assert_eq!(run(&format!("keys revoke {} --tenant acme", id(editor))).code, Some(0));
    assert_eq!(run(&format!("keys revoke {}", id(operator))).code, Some(0));
    assert_eq!(run("keys list").out.lines().count(), 1, "the head alone");

    run("tenants delete acme").complains(2, &["--yes"]);
    assert_eq!(run("tenants delete acme --yes").code, Some(0));
    run("tenants delete acme --yes").complains(1, &["no tenant acme"]);
}
