//! Where an asynchronous handler reports to.

use super::record;
use crate::domain::handler::MASK;
use crate::store::{CallbackToken, Store};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// For how long after a call began its handler may report.
pub(super) const LIFETIME: Duration = Duration::from_hours(24);

/// What the handler of one call is given.
#[derive(Clone)]
pub(super) struct Callback {
    /// Whoever has it may report, once.
    pub(super) url: String,
    pub(super) expires_at: OffsetDateTime,
}

/// Makes URLs of callbacks.
pub(super) struct CallbackUrls {
    store: Store,
    /// Where webhooks reach this service, without a slash at the end.
    base: String,
}

impl CallbackUrls {
    pub(super) const fn new(store: Store, base: String) -> Self {
        Self { store, base }
    }

    /// The one for a call.
    pub(super) fn of(&self, tenant: Uuid, call: Uuid) -> Callback {
        let expires_at = record::began(call) + LIFETIME;
        // To the second, which is what a token says.
        let expires_at = expires_at.replace_nanosecond(0).unwrap_or(expires_at);
        let token = self.store.sign_callback(&CallbackToken { tenant, call, expires_at });
        Callback { url: self.url(&token), expires_at }
    }

    /// One that shows what it looks like, and lets nobody report.
    pub(super) fn sample(&self) -> Callback {
        Callback { url: self.url(MASK), expires_at: OffsetDateTime::now_utc() + LIFETIME }
    }

    fn url(&self, token: &str) -> String {
        format!("{}/v1/callbacks/{token}", self.base)
    }
}
