//! Asking a call to end.

use super::unanswered;
use super::underway::{Stopped, Underway};
use crate::store::calls::{self, CallRow};
use crate::store::{StoreError, pending};
use std::time::Duration;
use uuid::Uuid;

/// How long the record of a call that is stopped here may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What became of asking a call to end.
#[derive(Debug)]
pub enum Cancelled {
    /// It was noted; this is the call as it stands.
    Noted(Box<CallRow>),
    /// The call had ended before.
    Ended,
    /// There is no such call here.
    Unknown,
}

impl Underway {
    /// Asks a call to end. What is in the log is noted there, for whichever replica runs it; what is not can only be ended by the
    /// process that runs it.
    pub async fn cancel(&self, tenant: Uuid, id: Uuid) -> Result<Cancelled, StoreError> {
        let store = &self.0.store;
        let unsent = unanswered::cancelled_unsent();
        let noted = match self.ask_to_stop(tenant, id) {
            Stopped::Unlogged(record) => {
                return Ok(stopped(tokio::time::timeout(PATIENCE, record).await.ok().and_then(Result::ok)));
            }
            Stopped::Unsent => pending::cancel(store, tenant, id, Some((unsent.code, &unsent.message))).await?,
            Stopped::Noted | Stopped::NotHere => pending::cancel(store, tenant, id, None).await?,
        };
        if noted {
            self.stop_one(id);
        }
        Ok(match calls::get(store, tenant, id).await? {
            None => Cancelled::Unknown,
            Some(call) if noted => Cancelled::Noted(Box::new(call)),
            Some(_) => Cancelled::Ended,
        })
    }
}

/// A call that may have come to its end just when it was asked to.
fn stopped(record: Option<CallRow>) -> Cancelled {
    match record {
        Some(call) if call.cancel_requested => Cancelled::Noted(Box::new(call)),
        _ => Cancelled::Ended,
    }
}
