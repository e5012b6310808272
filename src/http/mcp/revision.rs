//! Which revision of the protocol a request speaks, and whether its headers say the same as its body.
//!
//! Up to 2025-11-25 a header names the revision that the handshake settled. From 2026-07-28 on each request says it in its
//! `_meta`, and repeats it in headers with its method and its tool's name, so that proxies can route without reading bodies. A
//! header that says something else than the body is refused: two readers would see two requests.

use super::message::Message;
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ErrorData, ProtocolVersion};
use serde_json::Value;

/// The header that names the revision.
const VERSION: &str = "mcp-protocol-version";
/// The header that repeats the method.
const METHOD: &str = "mcp-method";
/// The header that repeats the tool's name.
const NAME: &str = "mcp-name";
/// What is spoken where nothing says it: the first revision that went over this transport, and had no header for it.
const UNSAID: ProtocolVersion = ProtocolVersion::V_2025_03_26;

/// The revision that a message speaks. The error is one of the request, with status 400.
pub(super) fn of(headers: &HeaderMap, message: &Message) -> Result<ProtocolVersion, ErrorData> {
    let named = one(headers, VERSION)?;
    if message.method() == "initialize" {
        return handshake(headers, named, message);
    }
    let meta = message.meta()?;
    let said = meta.protocol_version();
    let version = match (named, said) {
        (None, Some(_)) => return Err(mismatch("MCP-Protocol-Version is required beside _meta's protocolVersion")),
        (Some(named), Some(said)) if said.as_str() != named => {
            return Err(mismatch(format!(
                "MCP-Protocol-Version says {named:?} and _meta's protocolVersion {:?}",
                said.as_str()
            )));
        }
        (_, Some(said)) => known(said.as_str())?,
        (Some(named), None) => known(named)?,
        (None, None) => UNSAID,
    };
    if !version.has_initialize() {
        check_headers(headers, message)?;
    }
    let complete = version.has_initialize() && message.method() != "server/discover";
    if message.id().is_some() && !complete {
        let missing = meta.missing_required_keys(&ProtocolVersion::NO_INITIALIZE);
        if !missing.is_empty() {
            let detail = format!("params._meta: is missing or has malformed: {}", missing.join(", "));
            return Err(ErrorData::invalid_params(detail, None));
        }
    }
    Ok(version)
}

/// A handshake belongs to the older revisions, whatever it asks for.
fn handshake(headers: &HeaderMap, named: Option<&str>, message: &Message) -> Result<ProtocolVersion, ErrorData> {
    let asked = message.param("protocolVersion").and_then(Value::as_str);
    if named.is_some() && named != asked {
        return Err(ErrorData::invalid_request("MCP-Protocol-Version is not params.protocolVersion", None));
    }
    if one(headers, METHOD)?.is_some_and(|method| method != "initialize") {
        return Err(mismatch("Mcp-Method is not the body's method"));
    }
    Ok(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

fn check_headers(headers: &HeaderMap, message: &Message) -> Result<(), ErrorData> {
    match one(headers, METHOD)? {
        None => return Err(mismatch("Mcp-Method is required: the body's method")),
        Some(method) if method != message.method() => {
            return Err(mismatch(format!("Mcp-Method says {method:?} and the body {:?}", message.method())));
        }
        Some(_) => {}
    }
    let Some(name) = message.param("name").and_then(Value::as_str).filter(|_| message.method() == "tools/call") else {
        return Ok(());
    };
    match one(headers, NAME)?.map(decoded) {
        None => Err(mismatch("Mcp-Name is required: the body's params.name")),
        Some(given) if given.as_deref() != Some(name) => Err(mismatch("Mcp-Name is not the body's params.name")),
        Some(_) => Ok(()),
    }
}

/// A name that a header cannot hold comes in base 64, between marks.
fn decoded(header: &str) -> Option<String> {
    match header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(header.to_owned()),
    }
}

fn known(version: &str) -> Result<ProtocolVersion, ErrorData> {
    let all = ProtocolVersion::KNOWN_VERSIONS;
    let found = all.iter().find(|known| known.as_str() == version);
    found.cloned().ok_or_else(|| {
        let data = serde_json::json!({"requested": version, "supported": all});
        ErrorData::new(rmcp::model::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", Some(data))
    })
}

/// A header's only value. One that stands twice is none: readers differ in which they take.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ErrorData> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(axum::http::HeaderValue::to_str).transpose();
    match (first, values.next()) {
        (Ok(first), None) => Ok(first),
        (Ok(_), Some(_)) => Err(mismatch(format!("{name} stands twice"))),
        (Err(_), _) => Err(mismatch(format!("{name} holds characters that no header may"))),
    }
}

fn mismatch(detail: impl Into<std::borrow::Cow<'static, str>>) -> ErrorData {
    ErrorData::header_mismatch(detail, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use serde_json::json;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    fn read(lines: &[(&'static str, &'static str)], method: &str, params: &Value) -> Result<String, i32> {
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let message = Message::read(text.as_bytes()).unwrap();
        of(&headers(lines), &message).map(|version| version.as_str().to_owned()).map_err(|error| error.code.0)
    }

    fn meta(version: &str) -> Value {
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        json!({"_meta": {key("protocolVersion"): version, key("clientCapabilities"): {}}, "name": "a"})
    }

    #[test]
    fn older_revisions_go_by_their_header() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(read(&[(VERSION, version)], "tools/list", &json!({})), Ok(version.to_owned()));
        }
        assert_eq!(read(&[], "ping", &Value::Null), Ok("2025-03-26".to_owned()));
        assert_eq!(read(&[(VERSION, "2099-01-01")], "ping", &Value::Null), Err(-32022));
        assert_eq!(read(&[(VERSION, "2025-06-18"), (VERSION, "2025-11-25")], "ping", &Value::Null), Err(-32020));
    }

    #[test]
    fn newer_ones_say_it_in_the_body_and_repeat_it() {
        let (now, call) = ((VERSION, "2026-07-28"), (METHOD, "tools/call"));
        let told = |lines: &[_]| read(lines, "tools/call", &meta("2026-07-28"));
        assert_eq!(told(&[now, call, (NAME, "a")]), Ok("2026-07-28".to_owned()));
        assert_eq!(told(&[now, call, (NAME, "=?base64?YQ==?=")]), Ok("2026-07-28".to_owned()));
        for wrong in [
            vec![call, (NAME, "a")],
            vec![(VERSION, "2025-11-25"), call, (NAME, "a")],
            vec![now, (NAME, "a")],
            vec![now, (METHOD, "tools/list"), (NAME, "a")],
            vec![now, call],
            vec![now, call, (NAME, "b")],
            vec![now, call, (NAME, "a"), (NAME, "a")],
            vec![now, call, (NAME, "=?base64?*?=")],
        ] {
            assert_eq!(told(&wrong), Err(-32020), "{wrong:?}");
        }
        assert_eq!(read(&[(VERSION, "2027-01-01"), call], "tools/call", &meta("2027-01-01")), Err(-32022));
        let list = [now, (METHOD, "tools/list")];
        for params in [
            json!({}),
            json!({"_meta": 1}),
            json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
        ] {
            assert_eq!(read(&list, "tools/list", &params), Err(-32602), "{params}");
        }
        assert_eq!(read(&[], "server/discover", &json!({})), Err(-32602));
    }

    #[test]
    fn a_handshake_is_of_the_older_ones_whatever_it_asks_for() {
        let asked = json!({"protocolVersion": "2026-07-28"});
        assert_eq!(read(&[], "initialize", &asked), Ok("2025-11-25".to_owned()));
        assert_eq!(read(&[(VERSION, "2025-06-18")], "initialize", &asked), Err(-32600));
        assert_eq!(read(&[(METHOD, "ping")], "initialize", &asked), Err(-32020));
    }
}
