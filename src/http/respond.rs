//! Answers: JSON with its tag.

use super::etag;
use super::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// A time as the API writes it.
pub(super) fn rfc3339(time: OffsetDateTime) -> String {
    time.format(&Rfc3339).unwrap_or_default()
}

/// Reads a time in RFC 3339. One that only an offset keeps inside the calendar is none: nothing could hold it in UTC.
pub(super) fn read_time(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()?.checked_to_offset(UtcOffset::UTC)
}

/// The bytes of a representation.
pub(super) fn render(view: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(view).map_err(|why| Problem::internal(&why))
}

/// The tag of a representation.
pub(super) fn tag(view: &impl Serialize) -> Result<String, Problem> {
    Ok(etag::of(&render(view)?))
}

/// An answer of these bytes with this tag.
pub(super) fn json(status: StatusCode, body: impl Into<Body>, tag: Option<&str>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, etag::header_value(tag));
    }
    response
}

/// An answer whose tag is that of its own bytes.
pub(super) fn tagged(status: StatusCode, view: &impl Serialize) -> Result<Response, Problem> {
    let body = render(view)?;
    let tag = etag::of(&body);
    Ok(json(status, body, Some(&tag)))
}

/// 201, with the place of what was made.
pub(super) fn created(place: &str, view: &impl Serialize) -> Result<Response, Problem> {
    let mut response = tagged(StatusCode::CREATED, view)?;
    set_location(&mut response, place);
    Ok(response)
}

/// Says where what was made is to be found.
pub(super) fn set_location(response: &mut Response, place: &str) {
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
}
