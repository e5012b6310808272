//! The words that a metric may be labelled with. Each is fixed in the program, but for a route's template.

use prometheus_client::encoding::EncodeLabelSet;
use std::sync::Arc;

/// A method, as a label: one of the usual ones or `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method(&'static str);

impl Method {
    /// The label of a method's name. A client may invent methods; those are all the same here.
    pub fn named(name: &str) -> Self {
        const USUAL: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
        Self(USUAL.into_iter().find(|usual| *usual == name).unwrap_or("other"))
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.0)
    }
}

/// How a request ended: the class of its status, or `gone` where the client did not wait for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusClass(&'static str);

impl StatusClass {
    /// The client went away before there was an answer.
    pub const GONE: Self = Self("gone");

    /// The class of a status code.
    pub const fn of(status: u16) -> Self {
        Self(match status {
            100..=199 => "1xx",
            200..=299 => "2xx",
            300..=399 => "3xx",
            400..=499 => "4xx",
            _ => "5xx",
        })
    }
}

/// The format that a call came in; none for a call of one tool.
pub type Format = Option<&'static str>;

/// The kind of a handler; none where no handler was reached.
pub type HandlerKind = Option<&'static str>;

/// What became of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd {
    /// The format that it came in.
    pub format: Format,
    /// What was to run it.
    pub handler: HandlerKind,
    /// Where it stands.
    pub status: &'static str,
    /// The stable code of its failure.
    pub code: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Request {
    route: Arc<str>,
    method: &'static str,
    status: &'static str,
}

impl Request {
    pub(super) const fn new(route: Arc<str>, method: Method, status: StatusClass) -> Self {
        Self { route, method: method.0, status: status.0 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Call {
    format: &'static str,
    handler: &'static str,
    status: &'static str,
    code: &'static str,
}

impl From<CallEnd> for Call {
    fn from(end: CallEnd) -> Self {
        let CallEnd { format, handler, status, code } = end;
        Self {
            format: format.unwrap_or("none"),
            handler: handler.unwrap_or("none"),
            status,
            code: code.unwrap_or("none"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Handler {
    pub(super) handler: &'static str,
    pub(super) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    pub(super) outcome: &'static str,
}

impl Outcome {
    pub(super) const fn of(ok: bool) -> Self {
        Self { outcome: if ok { "ok" } else { "error" } }
    }
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Queue {
    queue: &'static str,
}

impl Queue {
    /// Its handler's other calls.
    pub const HANDLER: Self = Self { queue: "handler" };
    /// Its tenant's other calls.
    pub const TENANT: Self = Self { queue: "tenant" };
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Refusal {
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct State {
    pub(super) state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Build {
    pub(super) version: &'static str,
}
