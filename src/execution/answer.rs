//! What a handler's HTTP answer means. Pure: an answer in, a result or a failure out.

use super::decode::{self, Body};
use super::result::HandlerResult;
use crate::domain::Failure;
use crate::domain::handler::ErrorBody;
use crate::egress::Inbound;
use serde_json::Value;

/// How much of an error answer's body is repeated, in characters.
const MAX_SHOWN: usize = 2_000;
/// What to do about a handler that did its work and reported it badly.
const ASK_ITS_AUTHOR: &str = "Its author has to mend that. It may have done its work all the same: \
                              check before calling it again.";

/// Reads an answer. `error_body` is what the handler's author says about the bodies of error answers.
pub(super) fn read(inbound: &Inbound, error_body: Option<ErrorBody>) -> Result<HandlerResult, Failure> {
    let read = match inbound.status {
        200..=299 => success(inbound),
        300..=399 => Err(Failure::failed(
            "redirect_refused",
            format!(
                "The tool's handler answered with a redirect (status {}), which is not followed. \
                 Its author has to give the final URL; calling it again will not help.",
                inbound.status
            ),
        )),
        _ => Err(error(inbound, error_body)),
    };
    read.map_err(|failure| failure.because(diagnostic(inbound)))
}

fn success(inbound: &Inbound) -> Result<HandlerResult, Failure> {
    let bad = |why: &str| {
        Failure::failed("bad_answer", format!("The tool's handler answered, but its answer {why}. {ASK_ITS_AUTHOR}"))
    };
    let body = if inbound.status == 204 {
        Ok(Body::Empty)
    } else {
        decode::read(inbound.content_type.as_deref(), &inbound.body)
    };
    match body.map_err(|why| bad(&why))? {
        Body::Empty => Ok(HandlerResult::text("")),
        Body::Text(text) => Ok(HandlerResult::text(text)),
        Body::Image { media_type } => Ok(HandlerResult::image(media_type, &inbound.body)),
        Body::Json { value, text } => match envelope(&value) {
            None => Ok(HandlerResult::json_as_written(value, text)),
            Some(Envelope::Result(result)) => Ok(result),
            Some(Envelope::Error(reason)) => Err(Failure::failed("handler_error", reason)),
            Some(Envelope::Malformed(why)) => Err(bad(why)),
        },
        Body::Other(kind) => Err(Failure::failed(
            "unsupported_answer",
            format!(
                "The tool's handler answered, but its answer has the type {kind}, which cannot be passed on. {ASK_ITS_AUTHOR}"
            ),
        )),
    }
}

/// An answer that says what it is, instead of being the result itself.
enum Envelope {
    Result(HandlerResult),
    Error(String),
    Malformed(&'static str),
}

/// Reads an object that has only the keys `text`, `data` and `error`, and `text` or `error` among them. An
/// `error` or `data` that is null is one that is not there: many serializers write every field.
fn envelope(value: &Value) -> Option<Envelope> {
    let members = value.as_object()?;
    let member = |name: &str| members.get(name).filter(|value| !value.is_null());
    let error = member("error");
    let is_one = members.keys().all(|key| matches!(key.as_str(), "text" | "data" | "error"));
    if !is_one || !(error.is_some() || members.contains_key("text")) {
        return None;
    }
    Some(match (error, members.get("text"), member("data")) {
        (Some(Value::String(reason)), _, _) if reason.trim().is_empty() => {
            Envelope::Error("The tool's handler reported an error and gave no reason.".to_owned())
        }
        (Some(Value::String(reason)), _, _) => Envelope::Error(reason.clone()),
        (Some(_), _, _) => Envelope::Malformed("has an `error` that is not a string"),
        (None, Some(Value::String(text)), None) => Envelope::Result(HandlerResult::text(text)),
        (None, Some(Value::String(text)), Some(Value::Object(data))) => {
            Envelope::Result(HandlerResult::with_data(text, data.clone()))
        }
        (None, Some(Value::String(_)), Some(_)) => Envelope::Malformed("has `data` that is not an object"),
        (None, _, _) => Envelope::Malformed("has a `text` that is not a string"),
    })
}

fn error(inbound: &Inbound, error_body: Option<ErrorBody>) -> Failure {
    let status = inbound.status;
    let body = decode::read(inbound.content_type.as_deref(), &inbound.body).unwrap_or(Body::Empty);
    if let Body::Json { value, .. } = &body
        && let Some(Envelope::Error(reason)) = envelope(value)
    {
        let reason =
            wait(inbound).map_or_else(|| reason.clone(), |wait| format!("{reason}\n(Status {status}. {wait})"));
        return Failure::failed("handler_error", reason);
    }
    let shown = match error_body {
        Some(ErrorBody::Show) => true,
        Some(ErrorBody::Hide) => false,
        None => status < 500,
    };
    let mut message = match body {
        Body::Json { text, .. } | Body::Text(text) if shown && !text.trim().is_empty() => {
            format!("The tool's handler answered with status {status}: {}\n", start(&text))
        }
        _ => format!("The tool's handler answered with status {status}. "),
    };
    match wait(inbound) {
        Some(wait) => message += &wait,
        None if status >= 500 => message += "It may have done its work all the same; check before calling it again.",
        None => message.truncate(message.trim_end().len()),
    }
    Failure::failed("handler_status", message)
}

/// What a handler that has too much to do asks for.
fn wait(inbound: &Inbound) -> Option<String> {
    let asked = inbound.retry_after.filter(|_| matches!(inbound.status, 429 | 503))?;
    let seconds = asked.as_secs() + u64::from(asked.subsec_nanos() > 0);
    Some(format!("It asks to wait {seconds} seconds before the next call."))
}

fn start(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// The answer for the log, without characters that would not be seen there.
fn diagnostic(inbound: &Inbound) -> String {
    let kind = inbound.content_type.as_deref().unwrap_or("no content type");
    let shown: String = String::from_utf8_lossy(&inbound.body).chars().take(MAX_SHOWN).collect();
    let length = inbound.body.len();
    format!("status {}, {kind}, {length} bytes: {}", inbound.status, shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Content;
    use bytes::Bytes;
    use serde_json::json;
    use std::time::Duration;

    const JSON: &str = "application/json";

    fn inbound(status: u16, kind: &str, body: &str) -> Inbound {
        let content_type = (!kind.is_empty()).then(|| kind.to_owned());
        Inbound { status, content_type, retry_after: None, body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn failure(inbound: &Inbound) -> Failure {
        read(inbound, None).unwrap_err()
    }

    #[test]
    fn success_as_the_contract_lists_it() {
        let text = HandlerResult::text;
        let data = |value: Value| value.as_object().cloned().unwrap();
        let as_is = |body: &str| HandlerResult::json_as_written(serde_json::from_str(body).unwrap(), body.to_owned());
        for (status, kind, body, expected) in [
            (200, JSON, r#"{"text":"22°C"}"#, text("22°C")),
            (
                200,
                JSON,
                r#"{"text":"","data":{"n":1.50}}"#,
                HandlerResult::with_data("", data(json!({"n": serde_json::from_str::<Value>("1.50").unwrap()}))),
            ),
            (200, JSON, r#"{"data":null,"error":null,"text":"a\u0000b"}"#, text("a\0b")),
            (202, JSON, r#"{"text":"x"}"#, text("x")),
            (200, JSON, r#"{"text":"x","more":1}"#, as_is(r#"{"text":"x","more":1}"#)),
            (200, JSON, r#"{"data":{"a":1}}"#, as_is(r#"{"data":{"a":1}}"#)),
            (200, JSON, r#"{"data":{"a":1},"error":null}"#, as_is(r#"{"data":{"a":1},"error":null}"#)),
            (
                200,
                JSON,
                " {\"b\": 1.10, \"a\": 12345678901234567890123}",
                as_is(" {\"b\": 1.10, \"a\": 12345678901234567890123}"),
            ),
            (200, JSON, "{}", as_is("{}")),
            (200, JSON, r#"["Bern","Basel"]"#, as_is(r#"["Bern","Basel"]"#)),
            (200, JSON, "null", as_is("null")),
            (201, "application/vnd.api+json", "\"up\"", as_is("\"up\"")),
            (200, "text/plain", "hi", text("hi")),
            (200, "text/csv; charset=utf-8", "a,b\n", text("a,b\n")),
            (204, "", "", text("")),
            (200, JSON, "", text("")),
            (200, "text/plain", "", text("")),
            (299, "", "plain", text("plain")),
        ] {
            assert_eq!(read(&inbound(status, kind, body), None), Ok(expected), "{status} {kind} {body}");
        }
    }

    #[test]
    fn a_picture() {
        let result = read(&inbound(200, "image/gif", "GIF89a"), None).unwrap();
        assert_eq!(
            result.content,
            Content::Image { media_type: "image/gif".to_owned(), base64: "R0lGODlh".to_owned() }
        );
    }

    #[test]
    fn failures_as_the_contract_lists_them() {
        for (status, kind, body, code, message) in [
            (200, JSON, r#"{"error":"already shipped"}"#, "handler_error", "already shipped"),
            (200, JSON, r#"{"error":"e","text":"t","data":{}}"#, "handler_error", "e"),
            (
                200,
                JSON,
                r#"{"error":" "}"#,
                "handler_error",
                "The tool's handler reported an error and gave no reason.",
            ),
            (422, JSON, r#"{"error":"already shipped"}"#, "handler_error", "already shipped"),
            (500, JSON, r#"{"error":"disk full"}"#, "handler_error", "disk full"),
            (
                404,
                JSON,
                r#"{"detail":"no such order"}"#,
                "handler_status",
                "The tool's handler answered with status 404: {\"detail\":\"no such order\"}",
            ),
            (
                400,
                JSON,
                r#"{"error":{"code":7}}"#,
                "handler_status",
                "The tool's handler answered with status 400: {\"error\":{\"code\":7}}",
            ),
            (
                404,
                "text/plain",
                "no such order",
                "handler_status",
                "The tool's handler answered with status 404: no such order",
            ),
            (404, "", "", "handler_status", "The tool's handler answered with status 404."),
            (404, "application/pdf", "%PDF", "handler_status", "The tool's handler answered with status 404."),
            (404, "application/json", "{broken", "handler_status", "The tool's handler answered with status 404."),
        ] {
            let failure = failure(&inbound(status, kind, body));
            assert_eq!((failure.code, failure.message.as_str()), (code, message), "{status} {kind} {body}");
            assert_eq!(failure.status, crate::domain::CallStatus::Failed);
        }
        for (status, kind, body, code, part) in [
            (302, "text/html", "<a>", "redirect_refused", "302"),
            (304, "", "", "redirect_refused", "304"),
            (200, JSON, r#"{"text":7}"#, "bad_answer", "`text`"),
            (200, JSON, r#"{"text":null}"#, "bad_answer", "`text`"),
            (200, JSON, r#"{"text":"a","data":[]}"#, "bad_answer", "`data`"),
            (200, JSON, r#"{"error":{"message":"m"}}"#, "bad_answer", "`error`"),
            (200, JSON, r#"{"a":1,"a":2}"#, "bad_answer", "twice"),
            (200, JSON, "<html>", "bad_answer", "JSON"),
            (200, "text/plain; charset=made-up-1", "hi", "bad_answer", "charset"),
            (200, "image/png", "<html>", "bad_answer", "image/png"),
            (200, "application/pdf", "%PDF", "unsupported_answer", "application/pdf"),
        ] {
            let failure = failure(&inbound(status, kind, body));
            assert_eq!(failure.code, code, "{body}");
            assert!(failure.message.contains(part), "{}", failure.message);
        }
    }

    #[test]
    fn the_body_of_an_error_is_shown_or_hidden() {
        let page = "<html><body>upstream down</body></html>";
        for (status, error_body, shown) in [
            (400, None, true),
            (400, Some(ErrorBody::Show), true),
            (400, Some(ErrorBody::Hide), false),
            (502, None, false),
            (502, Some(ErrorBody::Show), true),
            (502, Some(ErrorBody::Hide), false),
        ] {
            let failure = read(&inbound(status, "text/html", page), error_body).unwrap_err();
            assert!(failure.message.contains(&format!("status {status}")), "{}", failure.message);
            assert_eq!(failure.message.contains("upstream"), shown, "{status} {error_body:?}");
            assert!(failure.diagnostic.is_some_and(|text| text.contains("upstream down")), "the log has it");
        }
        let long = failure(&inbound(400, "text/plain", &"ü".repeat(2_001)));
        assert_eq!(long.message.matches('ü').count(), MAX_SHOWN);
    }

    #[test]
    fn a_handler_that_asks_to_wait_is_heard() {
        for (status, body, code) in [
            (429, r#"{"error":"slow down"}"#, "handler_error"),
            (429, "", "handler_status"),
            (503, "down", "handler_status"),
        ] {
            let asked = Inbound { retry_after: Some(Duration::from_millis(29_500)), ..inbound(status, JSON, body) };
            let failure = failure(&asked);
            assert_eq!(failure.code, code);
            assert!(
                failure.message.contains(&status.to_string()) && failure.message.contains("30"),
                "{}",
                failure.message
            );
        }
    }

    #[test]
    fn the_log_gets_no_invisible_characters() {
        let diagnostic = failure(&inbound(500, "text/plain", "a\0b\u{202e}")).diagnostic.unwrap();
        assert_eq!(diagnostic, "status 500, text/plain, 6 bytes: a\\0b\\u{202e}");
    }
}
