//! `/v1/calls`: the log of calls.

use super::AppState;
use super::auth::Viewer;
use super::extract::{PathPart, Query};
use super::page::{ListView, PageParameters, page_request};
use super::problem::Problem;
use super::respond::{read_time, rfc3339, tagged};
use crate::domain::{CallStatus, Role};
use crate::store::calls::{self, CallRow, Filter};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

/// The longest wait for a call's end, in milliseconds.
const MAX_WAIT_MS: u32 = 60_000;
/// How long is waited before a running call is looked at again, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_millis(250);

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get))
}

/// A call as it is logged.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"id": "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11", "tool": "get_weather", "tool_version": 3,
    "format": "anthropic", "call_id": "toolu_1", "caller": "human", "status": "succeeded", "input": {"city": "Sydney"},
    "result": {"text": "22°C and clear in Sydney", "data": null, "truncated": false}, "error": null, "repairs": [], "attempts": 1,
    "duration_ms": 41, "request_id": "req_1", "key_id": "q7Qw0zXk1aBc", "created_at": "2026-11-30T09:00:00Z",
    "cancel_requested": false}))]
pub(super) struct LoggedCallView {
    /// Our id of the call.
    #[schema(pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    pub id: String,
    /// The tool, as it was called.
    pub tool: String,
    /// Which of its versions ran; null if there is no such tool.
    #[schema(required)]
    pub tool_version: Option<i32>,
    /// The format that it came in; null for a call of one tool.
    #[schema(required)]
    pub format: Option<String>,
    /// The provider's id.
    #[schema(required)]
    pub call_id: Option<String>,
    /// Who called: `human` or `code_execution`.
    pub caller: String,
    /// Where it stands.
    #[schema(value_type = CallStatus)]
    pub status: String,
    /// The input as it was validated; null if it was refused before or by that.
    #[schema(value_type = Option<Object>, required)]
    pub input: Option<Box<RawValue>>,
    /// `text`, `data` and `truncated` of a call that succeeded.
    #[schema(value_type = Option<Object>, required)]
    pub result: Option<Box<RawValue>>,
    /// `code` and `message` of a call that did not.
    #[schema(required)]
    pub error: Option<super::call_view::ErrorView>,
    /// For operators: addresses and causes that nobody else is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub diagnostic: Option<String>,
    /// What was put right in its arguments.
    pub repairs: Vec<String>,
    /// How often the handler was tried.
    pub attempts: i32,
    /// From start to end, in milliseconds.
    pub duration_ms: i64,
    /// The request that brought it.
    pub request_id: String,
    /// The key that it was made with.
    pub key_id: String,
    /// When it began: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Whether somebody asked to cancel it.
    pub cancel_requested: bool,
}

impl LoggedCallView {
    /// A logged call, for somebody with this role.
    pub(super) fn of(row: CallRow, reader: Role) -> Self {
        let error = row
            .error_code
            .map(|code| super::call_view::ErrorView { code, message: row.error_message.unwrap_or_default() });
        Self {
            id: row.id.to_string(),
            tool: row.tool,
            tool_version: row.tool_version,
            format: row.format,
            call_id: row.call_id,
            caller: row.caller,
            status: row.status,
            input: row.input,
            result: row.result,
            error,
            diagnostic: row.diagnostic.filter(|_| reader == Role::Operator),
            repairs: row.repairs,
            attempts: row.attempts,
            duration_ms: row.duration_ms,
            request_id: row.request_id,
            key_id: row.key_id,
            created_at: rfc3339(row.created_at),
            cancel_requested: row.cancel_requested,
        }
    }
}

/// The filters of the log, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by hand, so that every fault is told; documented here")]
struct Filters {
    /// Only calls of this tool.
    tool: Option<String>,
    /// Only calls that stand here.
    status: Option<CallStatus>,
    /// Only calls that began at this time or later: RFC 3339.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only calls that began before this time: RFC 3339.
    #[param(format = DateTime)]
    until: Option<String>,
    /// Only calls that somebody asked to cancel, or only the others.
    cancel_requested: Option<bool>,
}

/// Lists calls, the newest first.
#[utoipa::path(get, path = "/v1/calls", operation_id = "list_calls", tag = "calls", params(PageParameters, Filters),
    responses((status = 200, body = ListView<LoggedCallView>)))]
async fn list(Viewer(access): Viewer, State(state): State<AppState>, mut query: Query) -> Result<Response, Problem> {
    let page = page_request(&mut query, |key| Uuid::parse_str(key).ok());
    let filter = Filter {
        tool: query.read("tool", "a text without NUL", |text| (!text.contains('\0')).then(|| text.to_owned())),
        status: query
            .read("status", "a call's status", |text| CallStatus::parse(text).map(|known| known.as_str().to_owned())),
        since: query.read("since", "a time in RFC 3339", read_time),
        until: query.read("until", "a time in RFC 3339", read_time),
        cancel_requested: query.flag("cancel_requested"),
    };
    query.finish()?;
    let rows = calls::list(&state.store, access.tenant.id, &filter, &page).await?;
    let view = |row| LoggedCallView::of(row, access.role);
    tagged(StatusCode::OK, &ListView::of(rows, |row| row.id.to_string(), view))
}

/// Answers a call.
#[utoipa::path(get, path = "/v1/calls/{id}", operation_id = "get_call", tag = "calls",
    params(("id" = String, Path, example = "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11"), ("wait_ms" = Option<u32>, Query, minimum = 0, maximum = 60_000, description = "How long to wait for the end of a call that is `running` or `pending`; if it does not come in time, the call is answered as it stands")),
    responses((status = 200, body = LoggedCallView)))]
async fn get(
    Viewer(access): Viewer,
    State(state): State<AppState>,
    PathPart(id): PathPart<String>,
    mut query: Query,
) -> Result<Response, Problem> {
    let expected = format!("an integer from 0 to {MAX_WAIT_MS}");
    let wait = query.read("wait_ms", &expected, |text| text.parse().ok().filter(|ms: &u32| *ms <= MAX_WAIT_MS));
    query.finish()?;
    let id = Uuid::parse_str(&id).map_err(|_| Problem::not_found("call"))?;
    let until = Instant::now() + Duration::from_millis(wait.unwrap_or_default().into());
    let mut pause = FIRST_LOOK;
    let row = loop {
        let row = calls::get(&state.store, access.tenant.id, id).await?.ok_or_else(|| Problem::not_found("call"))?;
        // Who waits is answered as it stands when the service shuts down.
        let ends = CallStatus::parse(&row.status).is_none_or(|status| !status.is_open());
        if ends || Instant::now() >= until || state.is_draining() {
            break row;
        }
        tokio::time::sleep_until(until.min(Instant::now() + pause)).await;
        pause = (pause * 3 / 2).min(LAST_LOOK);
    };
    tagged(StatusCode::OK, &LoggedCallView::of(row, access.role))
}
