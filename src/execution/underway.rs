//! The calls that this process is at work on: who wants one to end, and that it has ended elsewhere.
//!
//! What is in the log already — calls with a key, calls of asynchronous handlers — may be cancelled through, and reported on to, any
//! replica. One question for all of them finds that out, some times a second and only while there are any.

use super::callback_url::CallbackUrls;
use super::notes::Notes;
use crate::store::calls::CallRow;
use crate::store::{Store, StoreError, pending};
use crate::telemetry::Metrics;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// How often the log is asked.
const LOOK: Duration = Duration::from_millis(250);

/// How much longer it is left alone after it did not answer.
const AWAY: Duration = Duration::from_secs(2);

/// What this process is at work on. Cheap to clone.
#[derive(Clone)]
pub struct Underway(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) store: Store,
    pub(super) notes: Notes,
    /// None where nobody said where webhooks reach this service.
    pub(super) urls: Option<CallbackUrls>,
    /// How much longer than it may take a call is believed to run.
    pub(super) grace: Duration,
    pub(super) metrics: Metrics,
    /// Cancelled when nothing is waited for any more.
    pub(super) ending: CancellationToken,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    by_id: HashMap<Uuid, Call>,
    /// Somebody asks the log already.
    looked_after: bool,
}

struct Call {
    tenant: Uuid,
    /// Whether it is in the log.
    logged: bool,
    /// Whether it may have been sent.
    begun: bool,
    cancelled: CancellationToken,
    ended: CancellationToken,
    /// Who wants to see what becomes of it.
    asked: Vec<oneshot::Sender<CallRow>>,
}

impl Call {
    fn new(tenant: Uuid, logged: bool) -> Self {
        let (cancelled, ended) = (CancellationToken::new(), CancellationToken::new());
        Self { tenant, logged, begun: false, cancelled, ended, asked: Vec::new() }
    }
}

/// What became of asking a call of this process to end.
pub(super) enum Stopped {
    /// This process is not at work on it.
    NotHere,
    /// It was not sent and will not be; it is in the log.
    Unsent,
    /// It is in the log, and is to be stopped once that is noted there.
    Noted,
    /// It is not in the log before its end, and is being stopped: this is where its record comes.
    Unlogged(oneshot::Receiver<CallRow>),
}

impl Underway {
    /// At work on nothing. `public_url` is where webhooks reach this service.
    pub fn start(store: Store, public_url: Option<&str>, grace: Duration, metrics: Metrics) -> Self {
        let urls = public_url.map(|base| CallbackUrls::new(store.clone(), base.trim_end_matches('/').to_owned()));
        let (notes, ending, calls) = (Notes::start(&store), CancellationToken::new(), Mutex::default());
        Self(Arc::new(Inner { store, notes, urls, grace, metrics, ending, calls }))
    }

    /// Whether asynchronous handlers can be told where to report.
    pub fn has_public_url(&self) -> bool {
        self.0.urls.is_some()
    }

    /// Lets nobody wait any longer: what is pending is answered as that.
    pub fn stop(&self) {
        self.0.ending.cancel();
    }

    /// Waits until everything is written, and ends the writers.
    pub async fn finish(&self) {
        self.0.notes.finish().await;
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes calls that are in the log and wait for their turn, so that they can be cancelled before it comes.
    pub(super) fn announce(&self, tenant: Uuid, ids: Vec<Uuid>) -> Announced {
        let mut calls = self.calls();
        for id in &ids {
            calls.by_id.insert(*id, Call::new(tenant, true));
        }
        self.look_after(&mut calls);
        Announced { underway: self.clone(), ids }
    }

    /// Notes that a call begins. None if it was cancelled before.
    pub(super) fn begin(&self, tenant: Uuid, id: Uuid, logged: bool) -> Option<Watch> {
        let mut calls = self.calls();
        let call = calls.by_id.entry(id).or_insert_with(|| Call::new(tenant, logged));
        if call.cancelled.is_cancelled() {
            return None;
        }
        call.begun = true;
        let watch = Watch { underway: self.clone(), id, cancelled: call.cancelled.clone(), ended: call.ended.clone() };
        if logged {
            self.look_after(&mut calls);
        }
        Some(watch)
    }

    /// Whether a call that waits for its turn is not to begin.
    pub(super) fn was_cancelled(&self, id: Uuid) -> bool {
        self.calls().by_id.get(&id).is_some_and(|call| call.cancelled.is_cancelled())
    }

    /// Asks a call of this process to end. One that is in the log and may have been sent is not stopped yet: see
    /// [`Underway::stop_one`].
    pub(super) fn ask_to_stop(&self, tenant: Uuid, id: Uuid) -> Stopped {
        let mut calls = self.calls();
        let Some(call) = calls.by_id.get_mut(&id).filter(|call| call.tenant == tenant) else { return Stopped::NotHere };
        if call.logged && call.begun {
            return Stopped::Noted;
        }
        call.cancelled.cancel();
        if call.logged {
            return Stopped::Unsent;
        }
        let (told, hears) = oneshot::channel();
        call.asked.push(told);
        Stopped::Unlogged(hears)
    }

    /// Stops a call of this process.
    pub(super) fn stop_one(&self, id: Uuid) {
        if let Some(call) = self.calls().by_id.get(&id) {
            call.cancelled.cancel();
        }
    }

    /// Wakes who waits for the end of a call.
    pub(super) fn ended(&self, id: Uuid) {
        if let Some(call) = self.calls().by_id.get(&id) {
            call.ended.cancel();
        }
    }

    fn look_after(&self, calls: &mut Calls) {
        if !std::mem::replace(&mut calls.looked_after, true) {
            TaskTracker::new().spawn(self.clone().look());
        }
    }

    /// Asks the log for as long as there is something to ask for.
    async fn look(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let (tenants, ids): (Vec<Uuid>, Vec<Uuid>) = {
                let mut calls = self.calls();
                let logged = calls.by_id.iter().filter(|(_, call)| call.logged).map(|(id, call)| (call.tenant, *id));
                let asked: (Vec<Uuid>, Vec<Uuid>) = logged.unzip();
                if asked.1.is_empty() {
                    calls.looked_after = false;
                    return;
                }
                asked
            };
            if let Err(error) = self.hear(&tenants, &ids).await {
                tracing::warn!(%error, "the log cannot be asked for what became of calls");
                tokio::time::sleep(AWAY).await;
            }
        }
    }

    async fn hear(&self, tenants: &[Uuid], ids: &[Uuid]) -> Result<(), StoreError> {
        let news = pending::news(&self.0.store, tenants, ids).await?;
        let calls = self.calls();
        for news in news {
            let Some(call) = calls.by_id.get(&news.id) else { continue };
            if news.cancel_requested {
                call.cancelled.cancel();
            }
            if news.ended {
                call.ended.cancel();
            }
        }
        drop(calls);
        Ok(())
    }
}

impl std::fmt::Debug for Underway {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Underway")
    }
}

/// Calls that wait for their turn, until this is dropped.
pub(super) struct Announced {
    underway: Underway,
    ids: Vec<Uuid>,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let mut calls = self.underway.calls();
        for id in &self.ids {
            calls.by_id.remove(id);
        }
    }
}

/// A call that this process is at work on, until this is dropped.
pub(super) struct Watch {
    underway: Underway,
    id: Uuid,
    /// Somebody wants it to end.
    pub(super) cancelled: CancellationToken,
    /// Somebody wrote its end into the log.
    pub(super) ended: CancellationToken,
}

impl Watch {
    /// Shows what became of the call to those who asked.
    pub(super) fn tell(self, record: impl FnOnce() -> CallRow) {
        let asked = self.underway.calls().by_id.remove(&self.id).map(|call| call.asked).unwrap_or_default();
        if !asked.is_empty() {
            let record = record();
            for asker in asked {
                let _ = asker.send(record.clone()); // who does not wait any more need not see it
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.underway.calls().by_id.remove(&self.id);
    }
}
