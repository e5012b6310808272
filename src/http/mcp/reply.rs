//! Answers in JSON-RPC.

use crate::http::problem::Problem;
use crate::http::respond::{json, render};
use axum::http::StatusCode;
use axum::response::Response;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A message that is refused before anything is done for it.
#[derive(Debug)]
pub(super) struct Refusal {
    id: Option<Value>,
    error: ErrorData,
}

/// Why a request has no result.
pub(super) enum Fault {
    /// It is the request's, and is said in JSON-RPC.
    Request(ErrorData),
    /// It is the service's, and is said as everywhere else.
    Service(Problem),
}

impl From<ErrorData> for Fault {
    fn from(error: ErrorData) -> Self {
        Self::Request(error)
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self::Service(problem)
    }
}

impl Refusal {
    /// Refuses the message that has this id, as far as it could be read.
    pub(super) fn of(id: Option<Value>, error: ErrorData) -> Box<Self> {
        Box::new(Self { id, error })
    }

    /// The refusal with its status.
    pub(super) fn response(self) -> Result<Response, Problem> {
        errored(StatusCode::BAD_REQUEST, self.id, self.error)
    }
}

#[cfg(test)]
impl Refusal {
    pub(super) const fn id(&self) -> Option<&Value> {
        self.id.as_ref()
    }

    pub(super) const fn code(&self) -> i32 {
        self.error.code.0
    }
}

#[derive(Serialize)]
struct Answer {
    jsonrpc: &'static str,
    // Left out where the message's own could not be read: the protocol's types know no null here.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorData>,
}

/// Answers a request. An error in what it asks for is part of the conversation and comes with 200; a method that is not there is
/// told by the status too, as the newer revisions want it.
pub(super) fn answer(
    id: Value,
    revision: &ProtocolVersion,
    outcome: Result<Box<RawValue>, Fault>,
) -> Result<Response, Problem> {
    match outcome {
        Ok(result) => {
            let answer = Answer { jsonrpc: "2.0", id: Some(id), result: Some(result), error: None };
            Ok(json(StatusCode::OK, render(&answer)?, None))
        }
        Err(Fault::Service(problem)) => Err(problem),
        Err(Fault::Request(error)) => {
            let absent = error.code == ErrorCode::METHOD_NOT_FOUND && !revision.has_initialize();
            errored(if absent { StatusCode::NOT_FOUND } else { StatusCode::OK }, Some(id), error)
        }
    }
}

/// Says that a notification was taken.
pub(super) fn taken() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn errored(status: StatusCode, id: Option<Value>, error: ErrorData) -> Result<Response, Problem> {
    let answer = Answer { jsonrpc: "2.0", id, result: None, error: Some(error) };
    Ok(json(status, render(&answer)?, None))
}

/// An answer, for the reference.
#[derive(utoipa::ToSchema)]
#[schema(example = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "22°C and clear in Sydney"}]}}))]
#[expect(dead_code, reason = "the reference's words for an answer that is written by hand")]
pub(super) struct McpAnswer {
    /// The version of JSON-RPC.
    jsonrpc: String,
    /// The request's id.
    #[schema(value_type = super::message::McpId)]
    id: Value,
    /// What was asked for.
    #[schema(value_type = Object, required = false, nullable = false)]
    result: Option<Value>,
    /// Why it cannot be had.
    #[schema(required = false, nullable = false)]
    error: Option<McpError>,
}

/// A refusal, for the reference.
#[derive(utoipa::ToSchema)]
#[schema(example = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32020, "message": "Mcp-Name is not the body's params.name"}}))]
#[expect(dead_code, reason = "the reference's words for an answer that is written by hand")]
pub(super) struct McpRefusal {
    /// The version of JSON-RPC.
    jsonrpc: String,
    /// The message's id, where it could be read.
    #[schema(value_type = super::message::McpId, required = false, nullable = false)]
    id: Option<Value>,
    /// Why the message is refused.
    error: McpError,
}

/// An error, for the reference.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "the reference's words for an answer that is written by hand")]
pub(super) struct McpError {
    /// Stable, for programs: JSON-RPC's, or the protocol's own.
    code: i32,
    /// What is wrong.
    message: String,
    /// More about it, for programs.
    #[schema(value_type = Object, required = false, nullable = false)]
    data: Option<Value>,
}
