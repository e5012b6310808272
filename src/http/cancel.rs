//! `POST /v1/calls/{id}/cancel`.

use super::AppState;
use super::auth::Agent;
use super::call_log::LoggedCallView;
use super::extract::{NoQuery, PathPart};
use super::problem::{Code, Problem};
use super::respond::tagged;
use crate::execution::Cancelled;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(cancel))
}

/// Asks a call to end, and answers it as it stands then, with `cancel_requested`.
///
/// One that was not sent yet is `rejected`. Of one that was sent nobody waits for the answer any more: its caller is told at once that
/// it is `unknown`, with the code `cancelled`, since it may have run; one that is `pending` stays so, and may still be reported on. Calls
/// without an `Idempotency-Key` whose handler is not asynchronous are in the log only once they have ended: they can be cancelled
/// through the process that runs them, and are not found through another.
#[utoipa::path(post, path = "/v1/calls/{id}/cancel", operation_id = "cancel_call", tag = "calls",
    params(("id" = String, Path, example = "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11")),
    responses((status = 200, body = LoggedCallView)))]
async fn cancel(
    Agent(access): Agent,
    State(state): State<AppState>,
    PathPart(id): PathPart<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let id = Uuid::parse_str(&id).map_err(|_| Problem::not_found("call"))?;
    match state.underway.cancel(access.tenant.id, id).await? {
        Cancelled::Noted(call) => tagged(StatusCode::OK, &LoggedCallView::of(*call, access.role)),
        Cancelled::Ended => {
            Err(Problem::new(Code::CallEnded, "the call has ended already; there is nothing to cancel"))
        }
        Cancelled::Unknown => Err(Problem::not_found("call")),
    }
}
