//! Errors as `application/problem+json` (RFC 9457), from one catalogue.

use crate::domain::Faults;
use crate::domain::fault::Fault;
use crate::execution::{Refusal, TooMuch};
use crate::store::{Conflict, StoreError};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;

macro_rules! catalogue {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $status:ident, $title:literal;)+) => {
        /// Every error that the service answers with. The code is stable; the title and the detail are for people.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// The whole catalogue.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The status that it comes with.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)+ }
            }

            /// What it is, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// When it is answered.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

catalogue! {
    /// The body is not JSON, is not an object, or holds a key twice.
    MalformedBody = "malformed_body", BAD_REQUEST, "The body cannot be read";
    /// A query parameter is unknown or has a value that it cannot have.
    InvalidQuery = "invalid_query", BAD_REQUEST, "The query is not valid";
    /// A key stands in the query, where proxies and browsers log it: it goes into the header `Authorization`. Revoke the key.
    KeyInQuery = "key_in_query", BAD_REQUEST, "A key does not belong into the query";
    /// A header has a value that it cannot have.
    InvalidHeader = "invalid_header", BAD_REQUEST, "A header is not valid";
    /// An operator's key is used for something of a tenant's without saying which in `Toolhook-Tenant`.
    TenantRequired = "tenant_required", BAD_REQUEST, "The tenant is not named";
    /// There is no key, or it is not valid (any more).
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "A valid API key is required";
    /// The key is valid, but its role does not allow this.
    Forbidden = "forbidden", FORBIDDEN, "The key's role does not allow this";
    /// A page of another site sent the request: its `Origin` is not this service's host.
    ForeignOrigin = "foreign_origin", FORBIDDEN, "The request comes from another site's page";
    /// There is no such thing, or it is another tenant's.
    NotFound = "not_found", NOT_FOUND, "Not found";
    /// No route has this path.
    UnknownRoute = "unknown_route", NOT_FOUND, "No such route";
    /// The route does not take this method; `Allow` names those that it takes.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The route does not take this method";
    /// The answer would be JSON, which `Accept` leaves out.
    NotAcceptable = "not_acceptable", NOT_ACCEPTABLE, "No form of the answer is acceptable";
    /// The body did not arrive in time.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The body did not arrive in time";
    /// Another thing has this name.
    NameTaken = "name_taken", CONFLICT, "The name is taken";
    /// The handler is of a kind that signs nothing.
    NotSigned = "not_signed", CONFLICT, "This handler signs nothing";
    /// The version names a handler that is not there any more.
    HandlerGone = "handler_gone", CONFLICT, "The version's handler is gone";
    /// Tools use this handler.
    HandlerInUse = "handler_in_use", CONFLICT, "Tools use this handler";
    /// The tenant has as many tools as it may have.
    ToolLimit = "tool_limit", CONFLICT, "The tenant has as many tools as it may have";
    /// It is stored in a form that this version cannot read. It is left out of lists and cannot be called; a DELETE removes it.
    Unreadable = "unreadable", CONFLICT, "What is stored cannot be read";
    /// Somebody else changed it at the same time; read it again and repeat the change.
    Changed = "changed", CONFLICT, "It was changed at the same time";
    /// The `Idempotency-Key` was used for a request with another body; nothing was run.
    KeyReused = "idempotency_key_reused", CONFLICT, "The key was used for another request";
    /// The first request with this `Idempotency-Key` still runs; repeat it later to get its answer.
    InProgress = "request_in_progress", CONFLICT, "The first request with this key still runs";
    /// The call has ended already: it cannot be cancelled any more, and another result cannot be reported.
    CallEnded = "call_ended", CONFLICT, "The call has ended";
    /// The time in which a webhook may report on the call is over.
    CallbackExpired = "callback_expired", GONE, "The callback has expired";
    /// `If-Match` names another state than the present one.
    PreconditionFailed = "precondition_failed", PRECONDITION_FAILED, "It is not as If-Match says";
    /// `Toolhook-Registry-Version` names a version that the tenant's tools have not reached.
    VersionAhead = "version_ahead", PRECONDITION_FAILED, "The tools have not reached this version";
    /// The body is larger than this route takes.
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// The body's content type is not JSON, or it has a content encoding.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body is not of a type that is taken";
    /// The body can be read but is not valid; `errors` says where and why.
    InvalidBody = "invalid_body", UNPROCESSABLE_ENTITY, "The body is not valid";
    /// The `reply` is none of the shapes in which the format's provider makes calls.
    InvalidReply = "invalid_reply", UNPROCESSABLE_ENTITY, "The reply cannot be read";
    /// The tool can be read, but its schemas or examples take too long to check.
    SchemaTooExpensive = "schema_too_expensive", UNPROCESSABLE_ENTITY, "The tool takes too long to check";
    /// Other changes of the same tenant are being checked; nothing was done. `Retry-After` says when to try again.
    Busy = "busy", TOO_MANY_REQUESTS, "Other changes of this tenant are under way";
    /// The tenant makes calls faster than it may; nothing was done. `Retry-After` says when to try again.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Calls are made too fast";
    /// As many of the tenant's calls run and wait as may; nothing was done. `Retry-After` says when to try again.
    TooManyCalls = "too_many_calls", TOO_MANY_REQUESTS, "Too many calls are running";
    /// The service has as many calls as it takes; nothing was done. `Retry-After` says when to try again.
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "The service has too much to do";
    /// Too many bad keys came from the request's address; keys that have worked not long ago still do. `Retry-After` says when to
    /// try again.
    BadKeys = "too_many_bad_keys", TOO_MANY_REQUESTS, "Too many bad keys";
    /// A fault of the service. The request id finds it in the log.
    Internal = "internal", INTERNAL_SERVER_ERROR, "The service failed";
    /// The database is away; nothing was done. `Retry-After` says when to try again.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "The service is not available at the moment";
}

impl Code {
    /// Whether it comes with `Retry-After`.
    pub const fn says_when(self) -> bool {
        matches!(self.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    }
}

/// One error, ready to be answered.
#[derive(Debug)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<Place>,
    /// In seconds.
    retry_after: u64,
}

/// One thing that is wrong with a request.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub(super) enum Place {
    /// In the body.
    Body(Fault),
    /// In the query.
    Query {
        /// The parameter's name.
        parameter: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// An error as it is answered.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"type": "urn:toolhook:problem:invalid_body", "title": "The body is not valid", "status": 422,
    "detail": "/name: is required: a string", "code": "invalid_body", "errors": [{"pointer": "/name", "detail": "is required: a string"}]}))]
pub(super) struct ProblemView {
    /// `urn:toolhook:problem:` and the code.
    pub r#type: String,
    /// What it is, in a few words.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request.
    pub detail: String,
    /// Stable, for programs.
    pub code: &'static str,
    /// Everything that is wrong with the body (`pointer`: a JSON Pointer into it) or the query (`parameter`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Place>,
}

/// Seconds until a request may be repeated, where nothing is known that says it better.
const RETRY_AFTER: u64 = 1;
/// Seconds until an address that sent too many bad keys has surely begun anew.
const RETRY_KEYS_AFTER: u64 = 60;

impl Problem {
    /// An error with its detail.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let retry_after = if code == Code::BadKeys { RETRY_KEYS_AFTER } else { RETRY_AFTER };
        Self { code, detail: detail.into(), errors: Vec::new(), retry_after }
    }

    /// There is no such thing; `what` is its kind.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no such {what}"))
    }

    /// A body that can be read but is not valid.
    pub fn invalid(faults: Faults) -> Self {
        let detail = faults.summary();
        Self { errors: faults.into_iter().map(Place::Body).collect(), ..Self::new(Code::InvalidBody, detail) }
    }

    /// Query parameters that are not valid: each with what is wrong.
    pub fn invalid_query(faults: Vec<(String, String)>) -> Self {
        let detail = faults.iter().map(|(name, detail)| format!("{name}: {detail}")).collect::<Vec<_>>().join("; ");
        let errors = faults.into_iter().map(|(parameter, detail)| Place::Query { parameter, detail }).collect();
        Self { errors, ..Self::new(Code::InvalidQuery, detail) }
    }

    /// A reply that cannot be read; the place is in `reply`.
    pub fn invalid_reply(fault: crate::format::ReplyFault) -> Self {
        let pointer = crate::domain::Pointer::root().key("reply").join(fault.pointer.as_str());
        let errors = vec![Place::Body(Fault { pointer, detail: fault.detail.clone() })];
        Self { errors, ..Self::new(Code::InvalidReply, fault.detail) }
    }

    /// The same, with what else is wrong with the body.
    #[must_use]
    pub fn and(mut self, faults: Faults) -> Self {
        self.detail = format!("{}; {}", faults.summary(), self.detail);
        self.errors.splice(0..0, faults.into_iter().map(Place::Body));
        self
    }

    /// A fault of ours; what it is goes to the log.
    pub fn internal(why: &dyn std::error::Error) -> Self {
        tracing::error!(error = %why, "the service failed");
        Self::new(Code::Internal, "the request could not be carried out; the request id finds the reason in the log")
    }

    /// Its code.
    pub const fn code(&self) -> Code {
        self.code
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => error.into(),
            Refusal::OtherBody => Self::new(
                Code::KeyReused,
                "a request with this Idempotency-Key said something else; nothing was run. Take a new key for a new request",
            ),
            Refusal::StillRuns => Self::new(
                Code::InProgress,
                "the first request with this Idempotency-Key still runs; repeat the request later to get its answer",
            ),
            Refusal::Stopping => Self::new(Code::Unavailable, "the service is shutting down; repeat the request"),
        }
    }
}

impl From<TooMuch> for Problem {
    fn from(why: TooMuch) -> Self {
        let (code, what, retry_after) = match why {
            TooMuch::Rate(wait) => (Code::RateLimited, "this tenant makes calls faster than it may", wait),
            TooMuch::Calls(wait) => {
                (Code::TooManyCalls, "this tenant has as many calls under way as it may have", wait)
            }
            TooMuch::Service(wait) => (Code::Overloaded, "the service has as many calls under way as it takes", wait),
        };
        let detail = format!("{what}; nothing was done. Try again in {retry_after} s");
        Self { retry_after, ..Self::new(code, detail) }
    }
}

impl From<Faults> for Problem {
    fn from(faults: Faults) -> Self {
        Self::invalid(faults)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<Arc<StoreError>> for Problem {
    fn from(error: Arc<StoreError>) -> Self {
        Self::from(error.as_ref())
    }
}

impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Conflict(conflict) => Self::from(conflict),
            _ if error.is_unavailable() => {
                tracing::warn!(error = %error, "the database is not available");
                Self::new(Code::Unavailable, "the database is not available; nothing was done")
            }
            StoreError::Behind => Self::new(
                Code::VersionAhead,
                "the tenant's tools have not reached the version in Toolhook-Registry-Version",
            ),
            StoreError::Inconsistent { table: "tools" | "tool_versions", reason, .. } => {
                tracing::error!(error = %error, "a stored row cannot be read");
                let detail = "it is stored in a form that cannot be read; delete it and make it again";
                Self::new(Code::Unreadable, format!("{detail} ({reason})"))
            }
            StoreError::Inconsistent { table: "handlers", .. } => {
                tracing::error!(error = %error, "a stored row cannot be read");
                Self::new(Code::Unreadable, "it is stored in a form that cannot be read; delete it and make it again")
            }
            _ => Self::internal(error),
        }
    }
}

impl From<&Conflict> for Problem {
    fn from(conflict: &Conflict) -> Self {
        match conflict {
            Conflict::NameTaken => Self::new(Code::NameTaken, "the name is taken; PUT replaces what has it"),
            Conflict::NameTooLike(other) => Self::new(
                Code::NameTaken,
                format!("the tool {other} has this name in other letters; models mix such names up, so take another"),
            ),
            Conflict::Changed => {
                Self::new(Code::Changed, "it was changed at the same time; read it again and repeat the change")
            }
            Conflict::HandlerInUse => {
                Self::new(Code::HandlerInUse, "tools use this handler; give them another or delete them first")
            }
            Conflict::NoSuchHandler(name) => Self::invalid(Faults::one(
                crate::domain::Pointer::root().key("handler"),
                format!("there is no handler named {name:?}"),
            )),
            Conflict::ToolLimit(most) => {
                Self::new(Code::ToolLimit, format!("this tenant may have {most} tools, and has them"))
            }
            Conflict::NoSuchTenant => Self::not_found("tenant"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let view = ProblemView {
            r#type: format!("urn:toolhook:problem:{}", self.code.as_str()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: self.detail,
            code: self.code.as_str(),
            errors: self.errors,
        };
        let mut response = Response::new(Body::from(serde_json::to_vec(&view).unwrap_or_default()));
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.code {
            Code::Unauthenticated => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toolhook\""));
            }
            _ if self.code.says_when() => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after));
            }
            _ => {}
        }
        response
    }
}
