//! `/metrics`: what Prometheus reads.

use super::AppState;
use crate::telemetry::Metrics;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Answers the metrics in Prometheus's text format. On a port of its own, and not here, if the operator chose one.
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", tag = "health", security(()),
    responses((status = 200, description = "Text format 0.0.4", body = String, content_type = "text/plain; version=0.0.4; charset=utf-8")))]
async fn metrics(State(state): State<AppState>) -> Response {
    ([(header::CONTENT_TYPE, Metrics::CONTENT_TYPE)], state.exposition()).into_response()
}
