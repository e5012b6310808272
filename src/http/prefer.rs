//! `Prefer: respond-async` (RFC 7240): whether a caller waits for handlers that report later.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;

const HEADER: &str = "prefer";
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const RESPOND_ASYNC: &str = "respond-async";

/// The header, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "read by hand; documented here")]
pub(super) struct PreferHeader {
    /// `respond-async`: answer as soon as the handlers have, with 202 if the result of a call comes later, instead of waiting for it
    /// until the deadline. `Preference-Applied` says that it was heeded. Preferences that are not known are ignored.
    #[param(rename = "Prefer", example = "respond-async")]
    prefer: Option<String>,
}

/// Whether the caller prefers not to wait.
pub(super) fn responds_async(headers: &HeaderMap) -> bool {
    let values = headers.get_all(HEADER).iter().filter_map(|value| value.to_str().ok());
    let named = |one: &str| one.split([';', '=']).next().unwrap_or_default().trim().eq_ignore_ascii_case(RESPOND_ASYNC);
    values.flat_map(|value| value.split(',')).any(named)
}

/// Says of an answer whether results are still to come, if the caller asked for that.
pub(super) fn applied(mut response: Response, asked: bool, pending: bool) -> Response {
    if asked {
        response.headers_mut().insert(APPLIED, HeaderValue::from_static(RESPOND_ASYNC));
        if pending {
            *response.status_mut() = StatusCode::ACCEPTED;
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preference_is_found_among_others() {
        let asked = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, HeaderValue::from_str(value).unwrap());
            }
            responds_async(&headers)
        };
        for yes in [
            &["respond-async"][..],
            &["Respond-Async; x=1"],
            &["wait=10, respond-async"],
            &["return=minimal", "a,respond-async"],
        ] {
            assert!(asked(yes), "{yes:?}");
        }
        for no in [&[][..], &["respond-asynchronously"], &["wait=10"], &["return=respond-async"], &[""]] {
            assert!(!asked(no), "{no:?}");
        }
    }
}
