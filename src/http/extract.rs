//! What a request brings, with every rejection in the form of a [`Problem`].

use super::problem::{Code, Problem};
use crate::domain::Fields;
use axum::body::BodyDataStream;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The largest body of a route that manages things, in bytes: two schemas, examples and provider options fit.
pub(super) const MAX_BODY: usize = 1024 * 1024;
/// The largest body of a route that runs calls, in bytes: a model's whole reply, with several calls of a mebibyte.
pub(super) const MAX_REPLY: usize = 8 * 1024 * 1024;

/// How long a body may take to arrive, beside each request.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyTimeout(pub(super) Duration);

/// A JSON body's text, of at most `MAX` bytes.
pub(super) struct JsonText<const MAX: usize = MAX_BODY>(pub Bytes);

impl<S: Send + Sync, const MAX: usize> FromRequest<S> for JsonText<MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "send the body as application/json (a PATCH also as application/merge-patch+json)";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        read_whole(request, MAX).await.map(Self)
    }
}

/// A body of any type, of at most `MAX` bytes.
pub(super) struct AnyBody<const MAX: usize> {
    /// Its declared type.
    pub content_type: Option<String>,
    /// Its bytes.
    pub body: Bytes,
}

impl<S: Send + Sync, const MAX: usize> FromRequest<S> for AnyBody<MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let declared = request.headers().get(header::CONTENT_TYPE);
        let content_type = declared.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        Ok(Self { content_type, body: read_whole(request, MAX).await? })
    }
}

/// Reads a body of at most `max` bytes, as it is.
async fn read_whole(request: Request, max: usize) -> Result<Bytes, Problem> {
    if request.headers().get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        let detail = "send the body as it is: no content encoding is taken";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    let too_large = || Problem::new(Code::BodyTooLarge, format!("at most {max} bytes are taken here"));
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: usize| length > max) {
        return Err(too_large());
    }
    let timeout = request.extensions().get().map_or(Duration::MAX, |BodyTimeout(timeout)| *timeout);
    let reading = read_capped(request.into_body().into_data_stream(), max);
    match tokio::time::timeout(timeout, reading).await {
        Err(_) => {
            let detail = format!("the body took longer than {} ms", timeout.as_millis());
            Err(Problem::new(Code::RequestTimeout, detail))
        }
        Ok(Ok(Some(text))) => Ok(text),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(Code::MalformedBody, "the body was cut off")),
    }
}

/// Reads a body of at most `max` bytes; `None` if it is longer.
async fn read_capped(mut body: BodyDataStream, max: usize) -> Result<Option<Bytes>, axum::Error> {
    let mut text = BytesMut::new();
    while let Some(part) = body.try_next().await? {
        if text.len() + part.len() > max {
            return Ok(None);
        }
        text.extend_from_slice(&part);
    }
    Ok(Some(text.freeze()))
}

/// A JSON body that is an object; its members keep their text.
pub(super) struct JsonObject<const MAX: usize = MAX_BODY>(pub Fields);

impl<S: Send + Sync, const MAX: usize> FromRequest<S> for JsonObject<MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let JsonText(text) = JsonText::<MAX>::from_request(request, state).await?;
        Fields::parse(&text).map(Self).map_err(|detail| Problem::new(Code::MalformedBody, detail))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(declared) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let Ok(mime) = declared.parse::<mime::Mime>() else { return false };
    let charset_fits = mime.get_param(mime::CHARSET).is_none_or(|charset| charset == "utf-8");
    let json = mime.subtype() == mime::JSON || mime.suffix() == Some(mime::JSON);
    mime.type_() == mime::APPLICATION && json && charset_fits
}

/// The parts of the path that the route leaves open.
pub(super) struct PathPart<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathPart<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read: Result<Path<T>, PathRejection> = Path::from_request_parts(parts, state).await;
        read.map(|Path(part)| Self(part))
            .map_err(|_| Problem::new(Code::NotFound, "the path names nothing that can be here"))
    }
}

/// The query, taken parameter by parameter. What nobody takes is a fault.
pub(super) struct Query {
    pairs: Vec<(String, String)>,
    faults: Vec<(String, String)>,
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let text = parts.uri.query().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        Ok(Self { pairs, faults: Vec::new() })
    }
}

impl Query {
    /// Takes every value of a parameter that may be repeated.
    pub(super) fn all(&mut self, name: &str) -> Vec<String> {
        let (taken, left) = std::mem::take(&mut self.pairs).into_iter().partition(|(key, _)| key == name);
        self.pairs = left;
        Vec::into_iter(taken).map(|(_, value)| value).collect()
    }

    /// Takes a parameter that stands once.
    pub(super) fn one(&mut self, name: &str) -> Option<String> {
        let mut values = self.all(name);
        if values.len() > 1 {
            self.fault(name, "stands twice");
        }
        values.pop()
    }

    /// Takes a parameter and reads it; `expected` is what a value looks like.
    pub(super) fn read<T>(&mut self, name: &str, expected: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.one(name)?;
        let value = read(&text);
        if value.is_none() {
            self.fault(name, format!("expected {expected}"));
        }
        value
    }

    /// Takes a parameter that is `true` or `false`.
    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        self.read(name, "true or false", |text| text.parse().ok())
    }

    /// Notes a fault of a parameter.
    pub(super) fn fault(&mut self, name: &str, detail: impl Into<String>) {
        self.faults.push((name.to_owned(), detail.into()));
    }

    /// Ends the reading: everything wrong is told at once.
    pub(super) fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.pairs) {
            self.fault(&name, "unknown parameter");
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::invalid_query(self.faults)) }
    }
}

/// A query that has nothing in it: of a route that takes no parameters.
pub(super) struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Query::from_request_parts(parts, state).await?.finish().map(|()| Self)
    }
}
