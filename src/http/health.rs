//! `/livez` and `/readyz`: probes.

use super::AppState;
use super::problem::{Code, Problem};
use super::respond::json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready))
}

/// A probe's answer.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[schema(example = json!({"status": "ok"}))]
pub(super) struct HealthView {
    /// `ok`.
    pub status: &'static str,
}

const OK: &str = r#"{"status":"ok"}"#;

/// Says that the process answers. It asks nothing of the database, whose outage is no reason to restart the process.
#[utoipa::path(get, path = "/livez", operation_id = "get_livez", tag = "health", security(()), responses((status = 200, body = HealthView)))]
async fn live() -> Response {
    json(StatusCode::OK, OK, None)
}

/// Says whether requests should be sent here: the database answers, and the process is not shutting down.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readyz", tag = "health", security(()), responses((status = 200, body = HealthView)))]
async fn ready(State(state): State<AppState>) -> Result<Response, Problem> {
    if state.is_draining() {
        return Err(Problem::new(Code::Unavailable, "the service is shutting down"));
    }
    state.store.ping().await?;
    Ok(json(StatusCode::OK, OK, None))
}
