//! The edge: routes, status codes, keys, JSON. One file per resource: what a request looks like, its handler, its docs.
//!
//! A handler extracts, asks the rooms below, and renders; what it refuses is a [`problem::Problem`] from one catalogue. What is absent
//! here: SQL, provider shapes, and any decision about how a call runs.

mod audit;
mod auth;
mod bad_keys;
mod call_log;
mod call_view;
mod callbacks;
mod calls;
mod cancel;
mod coding;
mod compatibility;
mod etag;
mod extract;
mod formats;
mod handler_view;
mod handlers;
mod health;
mod idempotency;
mod keys;
mod listener;
mod mcp;
mod metrics;
mod page;
mod patience;
mod prefer;
mod problem;
mod reference;
mod registry_version;
mod remembered;
mod request_id;
mod respond;
mod state;
mod tenants;
mod tool_versions;
mod tool_view;
mod tools;

pub use auth::Access;
pub use listener::{Bounds, serve};
pub use problem::{Code, Problem};
pub use reference::document;
pub use state::{AppState, Settings, Shared};

use axum::extract::Request;
use axum::middleware;
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

/// The whole service as a router.
pub fn router(state: AppState) -> Router {
    let routes = if state.serves_metrics { routes().merge(metrics::routes()) } else { routes() };
    complete(routes.split_for_parts().0.merge(reference::viewer()), state)
}

/// `/metrics` on a port of its own, with the probes: they are answered there also when the other port has all the connections
/// that it may have.
pub fn metrics_router(state: AppState) -> Router {
    complete(metrics::routes().merge(health::routes()).split_for_parts().0, state)
}

/// Adds what stands around every handler.
fn complete(routes: Router<AppState>, state: AppState) -> Router {
    routes
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed)
        // Inside the request id, so that the log can tell which request it was.
        .layer(CatchPanicLayer::custom(|_| {
            let why = std::io::Error::other("a handler panicked");
            axum::response::IntoResponse::into_response(Problem::internal(&why))
        }))
        .layer(Extension(extract::BodyTimeout(state.body_timeout)))
        .layer(middleware::from_fn_with_state(state.metrics.clone(), request_id::identify))
        .with_state(state)
}

/// Every route, with its entry in the reference.
fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(tenants::routes())
        .merge(keys::routes())
        .merge(audit::routes())
        .merge(handlers::routes())
        .merge(tools::routes())
        .merge(tool_versions::routes())
        .merge(compatibility::routes())
        .merge(formats::routes())
        .merge(calls::routes())
        .merge(call_log::routes())
        .merge(cancel::routes())
        .merge(callbacks::routes())
        .merge(mcp::routes())
        .merge(reference::routes())
        .merge(health::routes())
}

async fn unknown_route(request: Request) -> Problem {
    Problem::new(
        Code::UnknownRoute,
        format!("there is no route {}; GET /v1/openapi.json lists them", request.uri().path()),
    )
}

async fn method_not_allowed(request: Request) -> Problem {
    Problem::new(Code::MethodNotAllowed, format!("this route does not take {}", request.method()))
}
