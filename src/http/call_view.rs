//! Calls as they are asked for and as they are answered.

use crate::domain::{CallStatus, Caller, Outcome};
use crate::execution::Executed;
use serde::Serialize;
use serde_json::Value;

/// One call of one tool.
#[derive(Debug, utoipa::ToSchema)]
#[schema(example = json!({"input": {"city": "Sydney"}, "context": {"user_id": "u_1"}}))]
#[expect(dead_code, reason = "the reference's words for a body that is read field by field")]
pub(super) struct CallBody {
    /// The input: an object, or its JSON text; absent, null and blank are `{}`.
    #[schema(value_type = Value, required = false)]
    pub input: Option<Value>,
    /// Handed to the handler; the model never sees it.
    #[schema(value_type = Object, nullable, required = false)]
    pub context: Option<Value>,
    /// Who calls.
    #[schema(nullable, default = "human")]
    pub caller: Option<Caller>,
}

/// A model's reply.
#[derive(Debug, utoipa::ToSchema)]
#[schema(example = json!({"reply": {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather",
    "input": {"city": "Sydney"}}]}, "context": {"user_id": "u_1"}}))]
#[expect(dead_code, reason = "the reference's words for a body that is read field by field")]
pub(super) struct ReplyBody {
    /// What the provider's API returned, as it came: the whole response, its assistant message, its list of content blocks or
    /// tool calls, or one of them.
    pub reply: Value,
    /// Handed to the handlers; the model never sees it.
    #[schema(value_type = Object, nullable, required = false)]
    pub context: Option<Value>,
}

/// What to append to the conversation, and what became of the calls.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"append": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
    "content": "22°C and clear in Sydney"}]}],
    "calls": [{"call_id": "toolu_1", "id": "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11", "tool": "get_weather", "tool_version": 3,
    "status": "succeeded", "result": {"text": "22°C and clear in Sydney", "data": null, "truncated": false}, "error": null,
    "repairs": [], "attempts": 1, "duration_ms": 41, "replayed": false}]}))]
pub(super) struct BatchView {
    /// Messages, input items or contents in the provider's shape: one result for every call, in the reply's order.
    #[schema(value_type = Vec<Object>)]
    pub append: Vec<Value>,
    /// The calls in the reply's order.
    pub calls: Vec<BatchCallView>,
}

/// A call of a reply.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct BatchCallView {
    /// The provider's id.
    #[schema(required)]
    pub call_id: Option<String>,
    /// What became of it.
    #[serde(flatten)]
    pub call: CallView,
}

/// A call.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"id": "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11", "tool": "get_weather", "tool_version": 3,
    "status": "succeeded", "result": {"text": "22°C and clear in Sydney", "data": null, "truncated": false}, "error": null,
    "repairs": [], "attempts": 1, "duration_ms": 41, "replayed": false}))]
pub(super) struct CallView {
    /// Our id of the call; the webhook got it as `webhook-id`.
    #[schema(pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    pub id: String,
    /// The tool, as it was called.
    pub tool: String,
    /// Which of its versions ran; null if there is no such tool.
    #[schema(required)]
    pub tool_version: Option<i32>,
    /// Where it stands.
    pub status: CallStatus,
    /// Of a call that succeeded; null also while it is `pending`.
    #[schema(required)]
    pub result: Option<ResultView>,
    /// Of a call that did not; null also while it is `pending`.
    #[schema(required)]
    pub error: Option<ErrorView>,
    /// What was put right in its arguments.
    pub repairs: Vec<String>,
    /// How often the handler was tried.
    pub attempts: u32,
    /// From start to end, in milliseconds.
    pub duration_ms: u64,
    /// Whether this answer is an earlier one's, repeated.
    pub replayed: bool,
}

/// What a tool gave.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ResultView {
    /// For the model.
    pub text: String,
    /// For the program.
    #[schema(value_type = Object, nullable, required)]
    pub data: Option<Value>,
    /// Whether the text was cut to the tool's cap.
    pub truncated: bool,
}

/// Why a call did not succeed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ErrorView {
    /// A stable code.
    pub code: String,
    /// For the model: what is wrong and what to do about it.
    pub message: String,
}

impl CallView {
    /// An answered call.
    pub(super) fn of(call: &Executed) -> Self {
        let (result, error) = match &call.outcome {
            Outcome::Success(success) => {
                let data = success.data.clone().map(Value::Object);
                (Some(ResultView { text: success.content.text(), data, truncated: success.truncated }), None)
            }
            Outcome::Pending(_) => (None, None),
            Outcome::Failure(failure) => {
                (None, Some(ErrorView { code: failure.code.to_owned(), message: failure.message.clone() }))
            }
        };
        Self {
            id: call.id.to_string(),
            tool: call.call.name.clone(),
            tool_version: call.tool.as_ref().map(|(_, version)| *version),
            status: call.outcome.status(),
            result,
            error,
            repairs: call.repairs.clone(),
            attempts: call.attempts,
            duration_ms: call.duration_ms,
            replayed: false,
        }
    }
}

impl BatchCallView {
    /// An answered call of a reply.
    pub(super) fn of(call: &Executed) -> Self {
        Self { call_id: call.call.call_id.clone(), call: CallView::of(call) }
    }
}
