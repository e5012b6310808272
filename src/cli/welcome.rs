//! What `toolhook dev` says when it is ready.

use std::path::Path;

use super::{credentials::Credentials, demo};

/// The whole text. Its three commands work as they stand, again and again, in any shell.
pub(super) fn text(credentials: &Credentials, database: &str, data_dir: &Path) -> String {
    let Credentials { base_url, operator_key, demo_key } = credentials;
    let file = Credentials::path(data_dir);
    format!(
        r"
Toolhook {version}, for development, at {base_url} (the reference: {base_url}/docs)

  database      {database}
  webhooks      may be on this machine: loopback addresses and plain http are allowed here (never by `toolhook serve`)
  operator key  {operator_key}
  {tenant} key      {demo_key} (an editor of the tenant {tenant})
  both keys     {file}

List the tenant's tools for a provider's request:

  curl -sS {base_url}/v1/formats/anthropic/tools -H 'authorization: Bearer {demo_key}'

Run the tool calls of a model's reply:

  curl -sS {base_url}/v1/formats/anthropic/calls -H 'authorization: Bearer {demo_key}' -H 'content-type: application/json' -d '{reply}'

Make a tool that a webhook of yours runs (signed POSTs to port 9000 here):

  curl -sS -X PUT {base_url}/v1/tools/get_weather -H 'authorization: Bearer {demo_key}' -H 'content-type: application/json' -d '{tool}'
",
        version = env!("CARGO_PKG_VERSION"),
        tenant = demo::TENANT,
        file = file.display(),
        reply = REPLY,
        tool = TOOL,
    )
}

const REPLY: &str = r#"{"reply": {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "calculate", "input": {"expression": "1299.90 * 3"}}]}}"#;
const TOOL: &str = r#"{"name": "get_weather", "description": "Current weather for a city", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}, "handler": {"kind": "webhook", "url": "http://127.0.0.1:9000/weather"}}"#;

/// The service's URL as clients on this machine reach it: a listener on every interface is reached by loopback.
pub(super) fn base_url(address: std::net::SocketAddr) -> String {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_one_that_a_client_can_use() {
        for (listening, url) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("0.0.0.0:81", "http://127.0.0.1:81"),
            ("[::]:81", "http://[::1]:81"),
        ] {
            assert_eq!(base_url(listening.parse().unwrap()), url);
        }
    }

    #[test]
    fn the_bodies_survive_a_shell() {
        for body in [REPLY, TOOL] {
            assert!(!body.contains('\''));
            assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
        }
    }
}
