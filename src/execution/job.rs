//! One checked call on its way to its handler.

use super::callback_url::Callback;
use super::result::HandlerResult;
use crate::domain::Failure;
use crate::domain::json::Object;
use crate::registry::{Entry, TenantFacts};
use tokio::time::Instant;
use uuid::Uuid;

/// What every kind of handler gets to know.
pub(super) struct Job<'a> {
    pub(super) id: Uuid,
    pub(super) entry: &'a Entry,
    pub(super) tenant: &'a TenantFacts,
    pub(super) input: &'a Object,
    pub(super) context: &'a Object,
    pub(super) traceparent: Option<&'a str>,
    pub(super) deadline: Instant,
    /// Where an asynchronous handler may report.
    pub(super) callback: Option<&'a Callback>,
}

/// What a handler made of it.
pub(super) struct Ran {
    pub(super) result: Result<HandlerResult, Failure>,
    /// How often the handler was tried.
    pub(super) attempts: u32,
}
