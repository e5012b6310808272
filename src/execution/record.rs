//! A call as the log has it.

use super::prepared::Checked;
use super::{Executed, Origin, unanswered};
use crate::domain::{CallStatus, Content, Outcome, Success};
use crate::store::calls::CallRow;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use time::OffsetDateTime;
use uuid::Uuid;

/// A call that was answered.
pub(super) fn answered(call: &Executed, request_id: &str, origin: &Origin) -> CallRow {
    let (result, failure) = match &call.outcome {
        Outcome::Success(success) => (Some(success), None),
        Outcome::Pending(_) => (None, None),
        Outcome::Failure(failure) => (None, Some(failure)),
    };
    CallRow {
        id: call.id,
        tool: call.call.name.clone(),
        tool_version: call.tool.as_ref().map(|(_, version)| *version),
        format: origin.format.map(str::to_owned),
        call_id: call.call.call_id.clone(),
        caller: call.call.caller.as_str().to_owned(),
        status: call.outcome.status().as_str().to_owned(),
        input: call.input.as_ref().and_then(|input| to_raw_value(input).ok()),
        result: result.and_then(document),
        error_code: failure.map(|failure| failure.code.to_owned()),
        error_message: failure.map(|failure| failure.message.clone()),
        diagnostic: failure.and_then(|failure| failure.diagnostic.clone()),
        repairs: call.repairs.clone(),
        attempts: i32::try_from(call.attempts).unwrap_or(i32::MAX),
        duration_ms: i64::try_from(call.duration_ms).unwrap_or(i64::MAX),
        request_id: request_id.to_owned(),
        key_id: origin.key_id.clone(),
        created_at: began(call.id),
        cancel_requested: failure.is_some_and(|failure| failure.code == unanswered::CANCELLED),
    }
}

/// A call of an asynchronous handler that is about to be sent.
pub(super) fn running(call: &Executed, request_id: &str, origin: &Origin) -> CallRow {
    CallRow {
        status: CallStatus::Running.as_str().to_owned(),
        error_code: None,
        error_message: None,
        ..answered(call, request_id, origin)
    }
}

/// The picture that a call gave, which its result in the log has no place for.
pub(super) fn picture(call: &Executed) -> Option<Box<RawValue>> {
    match &call.outcome {
        Outcome::Success(Success { content: Content::Image { media_type, base64 }, .. }) => {
            to_raw_value(&Picture { media_type: media_type.into(), base64: base64.into() }).ok()
        }
        _ => None,
    }
}

/// A picture as it is kept.
#[derive(Serialize, Deserialize)]
pub(super) struct Picture<'a> {
    pub(super) media_type: Cow<'a, str>,
    pub(super) base64: Cow<'a, str>,
}

/// A call before it is sent: running, or refused already.
pub(super) fn claimed(checked: &Checked, request_id: &str, origin: &Origin) -> CallRow {
    let entry = checked.entry.as_ref();
    let input = checked.input.as_ref().ok().zip(entry);
    let masked = input.map(|(input, entry)| entry.tool.input_schema.masked(&input.object));
    let refused = checked.input.as_ref().err();
    CallRow {
        id: checked.id,
        tool: checked.call.name.clone(),
        tool_version: entry.map(|entry| entry.version),
        format: origin.format.map(str::to_owned),
        call_id: checked.call.call_id.clone(),
        caller: checked.call.caller.as_str().to_owned(),
        status: refused.map_or(CallStatus::Running, |refused| refused.status).as_str().to_owned(),
        input: masked.and_then(|input| to_raw_value(&input).ok()),
        result: None,
        error_code: refused.map(|refused| refused.code.to_owned()),
        error_message: refused.map(|refused| refused.message.clone()),
        diagnostic: None,
        repairs: input.map(|(input, _)| input.repairs.clone()).unwrap_or_default(),
        attempts: 0,
        duration_ms: 0,
        request_id: request_id.to_owned(),
        key_id: origin.key_id.clone(),
        created_at: began(checked.id),
        cancel_requested: false,
    }
}

/// When a call began: what its id says, so that a range of time is a range of ids.
pub(super) fn began(id: Uuid) -> OffsetDateTime {
    let (seconds, nanos) = id.get_timestamp().map_or((0, 0), |time| time.to_unix());
    let whole = i64::try_from(seconds).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    whole.unwrap_or(OffsetDateTime::UNIX_EPOCH) + std::time::Duration::from_nanos(nanos.into())
}

fn document(success: &Success) -> Option<Box<RawValue>> {
    let text = success.content.text();
    to_raw_value(&json!({"text": text, "data": success.data, "truncated": success.truncated})).ok()
}
