//! The service as an operator runs it, with tenants that have what is measured.

use std::process::Command;

use serde_json::{Value, json};
use toolhook::cli::postgres::EmbeddedPostgres;

use crate::http::send;
use crate::process::{Scratch, Server, finish, toolhook};

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Postgres with the schema.
pub(crate) struct Database {
    pub(crate) url: String,
    postgres: EmbeddedPostgres,
}

impl Database {
    /// Starts one that keeps what it has committed.
    pub(crate) fn start(scratch: &Scratch) -> Self {
        let postgres = scratch.postgres_that(true);
        let database = Self { url: postgres.url("postgres"), postgres };
        database.run(&["migrate"]);
        database
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.postgres.pid()
    }

    /// Runs a command of the service; says what it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let ended = finish(toolhook(arguments).env("DATABASE_URL", &self.url));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        ended.out.trim().to_owned()
    }

    /// `serve` on it, which may send to loopback.
    pub(crate) fn serve(&self) -> Command {
        let mut command = toolhook(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("DATABASE_URL", &self.url).env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
        command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true");
        command.env("TOOLHOOK_EGRESS_PORTS", "any").env("TOOLHOOK_LOG", "warn,toolhook::cli=info");
        command
    }
}

/// A tenant, and an editor's key of it.
pub(crate) struct Tenant<'a> {
    pub(crate) key: String,
    server: &'a Server,
}

impl<'a> Tenant<'a> {
    pub(crate) fn make(database: &Database, server: &'a Server, name: &str, limits: &Value) -> Self {
        let operator = database.run(&["keys", "create", "--role", "operator"]);
        let made =
            send(&server.base_url, &operator, "PUT", &format!("/v1/tenants/{name}"), Some(&json!({"limits": limits})));
        assert_eq!(made.unwrap().status, 201);
        let key = database.run(&["keys", "create", "--role", "editor", "--tenant", name]);
        Self { key, server }
    }

    /// Makes a handler that several tools share.
    pub(crate) fn handler(&self, name: &str, url: &str) {
        let handler = json!({"name": name, "kind": "webhook", "url": url});
        let made = send(&self.server.base_url, &self.key, "POST", "/v1/handlers", Some(&handler)).unwrap();
        assert_eq!(made.status, 201, "{}", made.text);
    }

    /// Makes a tool that has a webhook of its own.
    pub(crate) fn tool(&self, name: &str, url: &str) {
        self.make_tool(name, &json!({"kind": "webhook", "url": url}));
    }

    /// Makes a tool of a handler.
    pub(crate) fn tool_of(&self, name: &str, handler: &str) {
        self.make_tool(name, &json!(handler));
    }

    fn make_tool(&self, name: &str, handler: &Value) {
        let tool = json!({
            "name": name, "description": "Weather for a city",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
            "handler": handler
        });
        let made = send(&self.server.base_url, &self.key, "POST", "/v1/tools", Some(&tool)).unwrap();
        assert_eq!(made.status, 201, "{}", made.text);
    }
}

/// The address of a server.
pub(crate) fn address(server: &Server) -> String {
    server.base_url.trim_start_matches("http://").to_owned()
}
