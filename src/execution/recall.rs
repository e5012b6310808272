//! What the log says of a call, as its answer.

use super::record::Picture;
use super::{Executed, unanswered};
use crate::domain::json::Object;
use crate::domain::{CallStatus, Content, Failure, Outcome, Success};
use crate::store::pending::Recalled;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// Answers a call as the log has it. What still runs, though not by us, is out of our sight.
pub(super) fn answer(executed: &mut Executed, known: &Recalled) {
    executed.in_log = true;
    executed.attempts = u32::try_from(known.attempts).unwrap_or_default();
    executed.duration_ms = u64::try_from(known.duration_ms).unwrap_or_default();
    executed.outcome = outcome(executed.id, known);
}

fn outcome(id: Uuid, known: &Recalled) -> Outcome {
    match CallStatus::parse(&known.status) {
        Some(CallStatus::Succeeded) => match success(known) {
            Some(success) => Outcome::Success(success),
            None => Outcome::Failure(unanswered::lost_sight()),
        },
        Some(CallStatus::Pending) => Outcome::Pending(unanswered::pending(id)),
        Some(CallStatus::Running) | None => Outcome::Failure(unanswered::lost_sight()),
        Some(status) => Outcome::Failure(Failure {
            status,
            code: code(known.error_code.as_deref().unwrap_or("outcome_unknown")),
            message: known.error_message.clone().unwrap_or_default(),
            diagnostic: None,
        }),
    }
}

/// A result as the log has it.
#[derive(Deserialize)]
struct Logged<'a> {
    text: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    truncated: bool,
}

fn success(known: &Recalled) -> Option<Success> {
    let logged: Logged<'_> = serde_json::from_str(known.result.as_ref()?.get()).ok()?;
    let data: Option<Object> = logged.data.and_then(|data| serde_json::from_str(data.get()).ok());
    let picture: Option<Picture<'_>> = known.picture.as_ref().and_then(|kept| serde_json::from_str(kept.get()).ok());
    let content = match picture {
        Some(Picture { media_type, base64 }) => {
            Content::Image { media_type: media_type.into_owned(), base64: base64.into_owned() }
        }
        None => content(logged.text, data.as_ref()),
    };
    Some(Success { content, data, truncated: logged.truncated })
}

/// A text that is the data's own is JSON, which goes on as an object where the provider has a place for one.
fn content(text: String, data: Option<&Object>) -> Content {
    let value = data.and_then(|data| {
        let value: Value = serde_json::from_str(&text).ok()?;
        (value.as_object() == Some(data)).then_some(value)
    });
    match value {
        Some(value) => Content::Json { value, text },
        None => Content::Text(text),
    }
}

/// A code as this program has its own. There are as many as the program, or a later version of it, has; each is kept once.
fn code(text: &str) -> &'static str {
    static CODES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(code) = codes.get(text) {
        return code;
    }
    let code: &'static str = Box::leak(text.to_owned().into_boxed_str());
    codes.insert(code);
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::HandlerResult;
    use serde_json::json;

    fn known(result: &Value) -> Recalled {
        Recalled {
            status: "succeeded".to_owned(),
            result: serde_json::value::to_raw_value(result).ok(),
            picture: None,
            error_code: None,
            error_message: None,
            attempts: 1,
            duration_ms: 5,
            cancel_requested: false,
            callback_hash: None,
            tool: "t".to_owned(),
        }
    }

    #[test]
    fn a_result_comes_back_as_what_it_was() {
        let object: Value = serde_json::from_str(r#"{"b": 1.10, "a": [12345678901234567890123]}"#).unwrap();
        let text = r#" {"b": 1.10, "a": [12345678901234567890123]}"#;
        let of = |value: Value| success(&known(&value)).unwrap();
        let json = of(json!({"text": text, "data": object, "truncated": false}));
        assert_eq!(json.content, Content::Json { value: object.clone(), text: text.to_owned() });
        assert_eq!(json.data.map(Value::Object), Some(object.clone()));
        let beside = of(json!({"text": "two rows", "data": object, "truncated": true}));
        assert_eq!((beside.content, beside.truncated), (Content::Text("two rows".to_owned()), true));
        assert_eq!(of(json!({"text": "{}", "data": null, "truncated": false})).content, Content::Text("{}".to_owned()));
        let given = HandlerResult::image("image/png", b"\x89PNG\r\n\x1a\n1234");
        let Content::Image { media_type, base64 } = &given.content else { panic!("no picture") };
        let mut kept = known(&json!({"text": given.content.text(), "data": null, "truncated": false}));
        kept.picture = serde_json::value::to_raw_value(&json!({"media_type": media_type, "base64": base64})).ok();
        assert_eq!(success(&kept).unwrap().content, given.content);
    }

    #[test]
    fn a_code_is_kept_once() {
        assert!(std::ptr::eq(code("handler_error"), code(String::from("handler_error").as_str())));
    }
}
