//! The request id, and the line that a request leaves in the log.

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;
use std::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

const HEADER: &str = "x-request-id";
/// The longest id that is taken over from a request.
const MAX_CHARS: usize = 128;

/// A request's id: the one that it brought, or a new one.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub String);

/// Takes or makes the id, echoes it, and logs the request once, at its end.
pub(super) async fn identify(mut request: Request, next: Next) -> Response {
    let brought = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
    let visible = |id: &&str| !id.is_empty() && id.len() <= MAX_CHARS && id.bytes().all(|byte| byte.is_ascii_graphic());
    let id = brought.filter(visible).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = route.unwrap_or_else(|| "unknown".to_owned()); // an arbitrary path is no label
    let span = tracing::info_span!("request", request.id = id, http.method = %request.method(), http.route = route, tenant.name = tracing::field::Empty);
    request.extensions_mut().insert(RequestId(id.clone()));
    let began = Instant::now();
    async move {
        let mut response = next.run(request).await;
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(HEADER, value);
        }
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(http.status = response.status().as_u16(), duration_ms, "answered");
        response
    }
    .instrument(span)
    .await
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for RequestId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self(Uuid::now_v7().to_string())))
    }
}
