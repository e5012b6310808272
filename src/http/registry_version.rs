//! `Toolhook-Registry-Version`: whoever has seen a version of a tenant's tools sees nothing older, on whichever replica.

use super::AppState;
use super::problem::{Code, Problem};
use crate::store::changes;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use uuid::Uuid;

const HEADER: HeaderName = HeaderName::from_static("toolhook-registry-version");

/// The version that the asker has seen; 0 if it does not say.
pub(super) fn seen(headers: &HeaderMap) -> Result<i64, Problem> {
    let Some(value) = headers.get(HEADER) else { return Ok(0) };
    let version = value.to_str().ok().and_then(|text| text.parse().ok()).filter(|version| *version >= 0);
    let expected = "Toolhook-Registry-Version: expected the version in an answer's header or in a list";
    version.ok_or_else(|| Problem::new(Code::InvalidHeader, expected))
}

/// Says which version an answer is of.
pub(super) fn mark(response: &mut Response, version: i64) {
    response.headers_mut().insert(HEADER, HeaderValue::from(version));
}

/// The answer to a write to a tenant's tools or handlers: what this process had in memory is forgotten, and the answer says the version
/// that the write made, or a later one.
pub(super) async fn written(state: &AppState, tenant: Uuid, answer: impl IntoResponse) -> Response {
    state.registries.forget(tenant).await;
    let mut response = answer.into_response();
    // The write is done; that its version cannot be told is no reason to say otherwise.
    if let Ok(versions) = changes::versions(&state.store, &[tenant]).await
        && let [change] = versions.as_slice()
    {
        mark(&mut response, change.version);
    }
    response
}
