//! The request id, and the line that a request leaves in the log.

use crate::telemetry::{Method, Metrics, StatusClass, traces};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use std::time::Instant;
use tracing::{Instrument, Span};
use uuid::Uuid;

const HEADER: &str = "x-request-id";
/// The longest id that is taken over from a request.
const MAX_CHARS: usize = 128;

/// A request's id: the one that it brought, or a new one.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub String);

/// Takes or makes the id, echoes it, and leaves the request in the log, the metrics and the trace once, at its end.
pub(super) async fn identify(State(metrics): State<Metrics>, mut request: Request, next: Next) -> Response {
    let brought = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
    let visible = |id: &&str| !id.is_empty() && id.len() <= MAX_CHARS && id.bytes().all(|byte| byte.is_ascii_graphic());
    let id = brought.filter(visible).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
    let route = request.extensions().get::<MatchedPath>();
    let route: Arc<str> = route.map_or("unknown", MatchedPath::as_str).into(); // an arbitrary path is no label
    let span = span(&request, &id, &route);
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut end = End {
        metrics: &metrics,
        route,
        method: Method::named(request.method().as_str()),
        status: StatusClass::GONE,
        began: Instant::now(),
    };
    let _in_flight = metrics.request_in_flight();
    async move {
        let mut response = next.run(request).await;
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(HEADER, value);
        }
        let status = response.status();
        end.answered(status);
        traces::note(&Span::current(), "http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            traces::failed(&Span::current(), status.canonical_reason().unwrap_or("5xx"));
        }
        let duration_ms = u64::try_from(end.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(http.status = status.as_u16(), duration_ms, "answered");
        response
    }
    .instrument(span)
    .await
}

/// A request's span, in the caller's trace if it names one.
fn span(request: &Request, id: &str, route: &str) -> Span {
    let method = request.method();
    let span = tracing::info_span!(
        "request",
        request.id = id,
        http.method = %method,
        http.route = route,
        tenant.name = tracing::field::Empty,
        otel.name = tracing::field::Empty,
        otel.kind = tracing::field::Empty,
    );
    let traceparent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    traces::follow(&span, traceparent);
    traces::serves(&span, || format!("{} {route}", Method::named(method.as_str())));
    span
}

/// Counts a request when it is over, also if its client went away before.
struct End<'a> {
    metrics: &'a Metrics,
    route: Arc<str>,
    method: Method,
    status: StatusClass,
    began: Instant,
}

impl End<'_> {
    fn answered(&mut self, status: StatusCode) {
        self.status = StatusClass::of(status.as_u16());
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.metrics.answered(Arc::clone(&self.route), self.method, self.status, self.began.elapsed());
    }
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for RequestId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self(Uuid::now_v7().to_string())))
    }
}
