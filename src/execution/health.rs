//! Whether the database answers, as far as one can know without asking each time.

use crate::store::{Store, StoreError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// For how long an answer stands for the next one. Shorter than a database needs to stop, longer than a busy log's commits
/// are apart: who calls in a crowd asks nothing, who calls alone asks once.
const FRESH: Duration = Duration::from_millis(50);
/// For how long a failure stands: callers are refused at once instead of waiting in line for the same time-out.
const STALE: Duration = Duration::from_millis(250);

/// What was last heard of the database. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Health(Arc<State>);

#[derive(Debug, Default)]
struct State {
    heard: Mutex<Option<(Instant, bool)>>,
    /// One asks, the others wait for its answer.
    asking: tokio::sync::Mutex<()>,
}

impl Health {
    /// Notes whether the database answered.
    pub(super) fn heard(&self, answered: bool) {
        *self.0.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), answered));
    }

    fn known(&self) -> Option<Result<(), StoreError>> {
        let (at, answered) = (*self.0.heard.lock().unwrap_or_else(PoisonError::into_inner))?;
        match (answered, at.elapsed()) {
            (true, age) if age < FRESH => Some(Ok(())),
            (false, age) if age < STALE => Some(Err(StoreError::away())),
            _ => None,
        }
    }

    /// Says whether the database answers, and asks it if nothing was heard lately.
    pub(super) async fn check(&self, store: &Store) -> Result<(), StoreError> {
        if let Some(known) = self.known() {
            return known;
        }
        let _turn = self.0.asking.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        let answer = store.ping().await;
        self.heard(answer.is_ok());
        answer
    }
}
