//! `Idempotency-Key`: one request, however often it is sent.

use super::prefer;
use super::problem::{Code, Problem};
use super::respond::json;
use crate::domain::{CallStatus, canonical_hash};
use crate::execution::{Answer, Key};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::Value;

const HEADER: &str = "idempotency-key";
/// The longest key, in characters.
const MAX_CHARS: usize = 255;

/// The header, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "read by hand; documented here")]
pub(super) struct KeyHeader {
    /// Makes the request one that runs once, however often it is sent: 1 to 255 visible ASCII characters of the caller's choice, kept
    /// for 24 hours, within the tenant and this path. A repeat gets the first one's answer, with `replayed` in every call, and
    /// waits for it if it still runs. Bodies that differ only in the order of keys, white space or the spelling of numbers are
    /// the same; any other body is refused.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 255, pattern = "^[!-~]+$")]
    key: Option<String>,
}

/// Reads the header.
pub(super) fn read(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let visible = (1..=MAX_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !visible || values.next().is_some() {
        let expected = format!("Idempotency-Key: expected 1 to {MAX_CHARS} visible ASCII characters, once");
        return Err(Problem::new(Code::InvalidHeader, expected));
    }
    Ok(Some(text.to_owned()))
}

/// Refuses the header on a route that does not know it: nobody is to believe it in force.
pub(super) fn refuse(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(HEADER) {
        return Err(Problem::new(Code::InvalidHeader, "Idempotency-Key is not taken here; nothing was run"));
    }
    Ok(())
}

/// A key with what it is held against. `beside` is what the query says that changes the answer.
pub(super) fn key(key: String, route: String, body: &Value, beside: &str) -> Key {
    Key { route, key, body_hash: canonical_hash(body, beside), skip_unknown: beside == "skip" }
}

/// The answer, marked as what it is.
pub(super) fn respond(answer: Answer, respond_async: bool) -> Result<Response, Problem> {
    let text = match answer {
        Answer::First(text) => text,
        Answer::Replayed(text) => {
            let mut body: Value = serde_json::from_str(&text).map_err(|why| Problem::internal(&why))?;
            match body.get_mut("calls").and_then(Value::as_array_mut) {
                Some(calls) => calls.iter_mut().for_each(|call| call["replayed"] = true.into()),
                None => body["replayed"] = true.into(),
            }
            body.to_string()
        }
    };
    let pending = respond_async && is_pending(&text);
    Ok(prefer::applied(json(StatusCode::OK, text, None), respond_async, pending))
}

/// Whether the result of a call in an answer is still to come.
fn is_pending(answer: &str) -> bool {
    let pending = |call: &Value| call["status"] == CallStatus::Pending.as_str();
    let Ok(body) = serde_json::from_str::<Value>(answer) else { return false };
    match body.get("calls").and_then(Value::as_array) {
        Some(calls) => calls.iter().any(pending),
        None => pending(&body),
    }
}
