//! `POST /v1/callbacks/{token}`: an asynchronous handler reports the result of a call. The token is the authority: no key is asked for.

use super::AppState;
use super::extract::{AnyBody, NoQuery, PathPart};
use super::problem::{Code, Problem};
use super::respond::{json, render};
use crate::domain::CallStatus;
use crate::execution::{NotTaken, Reported};
use crate::store::CallbackToken;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The largest report: as much as a webhook may answer.
const MAX_REPORT: usize = 1024 * 1024;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(report))
}

/// That a report was taken.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"accepted": true, "status": "succeeded", "cancel_requested": false}))]
pub(super) struct ReceiptView {
    /// Always true.
    pub accepted: bool,
    /// What became of the call: `failed` also where the result does not keep what its tool promises.
    pub status: CallStatus,
    /// Whether somebody had asked to cancel the call.
    pub cancel_requested: bool,
}

/// The call that a token of ours names. Another token is refused before the body is read and before anybody is asked.
struct Token(CallbackToken);

impl FromRequestParts<AppState> for Token {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let PathPart(text) = PathPart::<String>::from_request_parts(parts, state).await?;
        Ok(Self(state.underway.read_token(&text)?))
    }
}

impl From<NotTaken> for Problem {
    fn from(why: NotTaken) -> Self {
        match why {
            NotTaken::Unknown => Self::not_found("callback"),
            NotTaken::Expired => Self::new(Code::CallbackExpired, "the time for reporting on this call is over"),
            NotTaken::Ended => Self::new(Code::CallEnded, "the call has ended already; this report changes nothing"),
            NotTaken::Store(error) => error.into(),
        }
    }
}

/// Reports the result of a call that a webhook answered with 202.
///
/// The body is read as a webhook's 2xx answer is: an object of `text`, `data` and `error`, any other JSON, `text/*`, a picture, or
/// nothing. The first report counts; the same one again is answered in the same way, and any other one is refused.
#[utoipa::path(post, path = "/v1/callbacks/{token}", operation_id = "report_result", tag = "calls", security(()),
    params(("token" = String, Path, description = "From the `callback_url` that the webhook got", example = "AZMvPnsafFWKNg8OWx2cEQ")),
    request_body(description = "The result, as a webhook answers it", content((serde_json::Value = "application/json"), (String = "text/plain"))),
    responses((status = 200, body = ReceiptView)))]
async fn report(
    Token(token): Token,
    State(state): State<AppState>,
    _: NoQuery,
    AnyBody { content_type, body }: AnyBody<MAX_REPORT>,
) -> Result<Response, Problem> {
    let registry = state.registries.get(token.tenant).await?.ok_or_else(|| Problem::not_found("callback"))?;
    let receipt = state.take_report(registry, token, Reported { content_type, body }).await?;
    let view = ReceiptView { accepted: true, status: receipt.status, cancel_requested: receipt.cancel_requested };
    Ok(json(StatusCode::OK, render(&view)?, None))
}
