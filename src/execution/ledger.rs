//! Who runs a request that came with a key, and what this process holds of that.

use super::Executed;
use super::journal::ids;
use super::lane::{Lane, Write};
use super::prepared::{Prepared, Progress};
use super::unanswered;
use crate::store::claims::{self, Claim, Finish, KeyId};
use crate::store::{Store, StoreError, Writer};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// How often a claim is given back while the database is away, and how long is waited between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// A place to die at, for tests of what is left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The request was read.
    BeforeClaim,
    /// Its calls are claimed, nothing is sent.
    AfterClaim,
    /// The answers were read.
    BeforeFinish,
    /// Its end is committed, nothing is answered.
    AfterFinish,
    /// Left-over calls were found, and what becomes of them is not committed.
    Reaping,
}

impl CrashPoint {
    /// Every point.
    pub const ALL: [Self; 5] =
        [Self::BeforeClaim, Self::AfterClaim, Self::BeforeFinish, Self::AfterFinish, Self::Reaping];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeClaim => "before_claim",
            Self::AfterClaim => "after_claim",
            Self::BeforeFinish => "before_finish",
            Self::AfterFinish => "after_finish",
            Self::Reaping => "reaping",
        }
    }
}

/// The claims of this process. Cheap to clone.
#[derive(Clone)]
pub struct Ledger(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) store: Store,
    claims: Lane<Claims>,
    ends: Lane<Ends>,
    held: Mutex<HashMap<KeyId, Arc<Held>>>,
    stopping: AtomicBool,
    grace: Duration,
    crash_at: Option<CrashPoint>,
}

/// A claim that this process works on.
pub(super) struct Held {
    lease: Uuid,
    places: Vec<Option<Uuid>>,
    progress: Arc<Progress>,
    /// Cancelled when it is held no more.
    pub(super) ended: CancellationToken,
}

impl Ledger {
    /// A ledger in this database. A lease lasts for as long as the calls may take, and `grace` longer.
    pub fn start(store: Store, grace: Duration, crash_at: Option<CrashPoint>) -> Self {
        let (claims, ends) =
            (Lane::start(Claims(Writer::new(store.clone()))), Lane::start(Ends(Writer::new(store.clone()))));
        let (held, stopping) = (Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Inner { store, claims, ends, held, stopping, grace, crash_at }))
    }

    /// Dies here if that was asked for.
    pub(super) fn crash(&self, point: CrashPoint) {
        if cfg!(debug_assertions) && self.0.crash_at == Some(point) {
            tracing::error!(point = point.as_str(), "crashing, as TOOLHOOK_CRASH_AT asks for");
            std::process::abort();
        }
    }

    pub(super) fn grace(&self) -> Duration {
        self.0.grace
    }

    /// Takes nothing new from here on, and lets repeats wait no longer.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::SeqCst)
    }

    fn all_held(&self) -> std::sync::MutexGuard<'_, HashMap<KeyId, Arc<Held>>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The claim of a key, if this process works on it.
    pub(super) fn held(&self, id: &KeyId) -> Option<Arc<Held>> {
        self.all_held().get(id).cloned()
    }

    /// Notes that this process works on a claim, until the answer is dropped.
    pub(super) fn hold(&self, id: KeyId, lease: Uuid, prepared: &Prepared) -> Holding {
        let held = Held {
            lease,
            places: prepared.places(),
            progress: Arc::clone(&prepared.progress),
            ended: CancellationToken::new(),
        };
        self.all_held().insert(id.clone(), Arc::new(held));
        Holding { ledger: self.clone(), id, lease }
    }

    /// Claims a key; says whether it is ours. Where it cannot be known, the claim is given back as soon as that is possible.
    pub(super) async fn claim(&self, claim: Claim) -> Result<bool, StoreError> {
        let (id, lease) = (claim.id.clone(), claim.lease);
        let bytes = claim.calls.iter().map(crate::store::calls::CallRow::bytes).sum();
        match self.0.claims.put(claim, bytes).await.await {
            Ok(Ok(ours)) => Ok(ours),
            Ok(Err(error)) => {
                let (store, ledger) = (self.0.store.clone(), self.clone());
                TaskTracker::new().spawn(async move {
                    for _ in 0..TRIES {
                        match claims::release(&store, &id, lease).await {
                            Err(error) if error.is_unavailable() && !ledger.is_stopping() => {
                                tokio::time::sleep(PAUSE).await;
                            }
                            _ => return,
                        }
                    }
                });
                tracing::warn!(%error, "a key could not be claimed");
                Err(if error.is_unavailable() {
                    StoreError::away()
                } else {
                    Arc::into_inner(error).unwrap_or_else(StoreError::away)
                })
            }
            Err(_) => Err(StoreError::away()),
        }
    }

    /// Writes a request's end; says whether our lease still held. Nothing if that is not known yet: then it is written when the
    /// database is back, unless the lease is lost by then.
    pub(super) async fn end(&self, end: Finish, executed: &[Executed], patience: Duration) -> Option<bool> {
        let bytes = end.answer.len() + end.calls.iter().map(crate::store::calls::CallRow::bytes).sum::<usize>();
        let told = async { self.0.ends.put(end, bytes).await.await };
        match tokio::time::timeout(patience, told).await {
            Ok(Ok(Ok(held))) => Some(held),
            Ok(Ok(Err(error))) => {
                tracing::error!(%error, calls = ids(executed), "the end of calls could not be written");
                None
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(calls = ids(executed), "the end of calls is not written yet");
                None
            }
        }
    }

    /// Gives up what this process still holds: calls that were not begun never will be, and can be made again at once; those
    /// that were are unknown.
    pub async fn give_up(&self) {
        self.stop();
        let held: Vec<(KeyId, Arc<Held>)> = self.all_held().drain().collect();
        for (id, held) in held {
            let begun = held.progress.stop();
            let sent: Vec<Uuid> =
                held.places.iter().zip(begun).filter(|(_, begun)| *begun).filter_map(|(id, _)| *id).collect();
            let given_up = if sent.is_empty() {
                claims::release(&self.0.store, &id, held.lease).await
            } else {
                let (lost, unsent) = (unanswered::lost_sight(), unanswered::stopped());
                let texts = ((lost.code, lost.message.as_str()), (unsent.code, unsent.message.as_str()));
                claims::abandon(&self.0.store, &id, held.lease, &sent, texts.0, texts.1).await
            };
            if let Err(error) = given_up {
                tracing::warn!(%error, "a claim could not be given up; it ends with its lease");
            }
        }
    }

    /// Waits until every end is written, and ends the writers.
    pub async fn finish(&self) {
        self.0.claims.finish().await;
        self.0.ends.finish().await;
    }

    /// Turns calls whose lease ran out into unknown ones; says how many.
    pub(super) async fn reap(&self) -> Result<usize, StoreError> {
        let lost = unanswered::lost_sight();
        let crash = |found: usize| {
            if found > 0 {
                self.crash(CrashPoint::Reaping);
            }
        };
        let reaped = claims::reap(&self.0.store, (lost.code, &lost.message), crash).await?;
        for (tenant, call) in &reaped {
            tracing::warn!(%tenant, %call, "a call's lease ran out; it is unknown");
        }
        Ok(reaped.len())
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Ledger")
    }
}

/// This process works on a claim for as long as this is there.
pub(super) struct Holding {
    ledger: Ledger,
    id: KeyId,
    lease: Uuid,
}

impl Drop for Holding {
    fn drop(&mut self) {
        let mut all = self.ledger.all_held();
        if all.get(&self.id).is_some_and(|held| held.lease == self.lease)
            && let Some(held) = all.remove(&self.id)
        {
            held.ended.cancel();
        }
    }
}

struct Claims(Writer);

impl Write for Claims {
    type Item = Claim;
    type Done = bool;
    const PATIENT: bool = false;

    async fn write(&mut self, items: &[Claim]) -> Result<Vec<bool>, StoreError> {
        self.0.claim(items).await
    }

    fn heard(&self, _: bool) {}

    fn rest(&mut self) {
        self.0.rest();
    }
}

struct Ends(Writer);

impl Write for Ends {
    type Item = Finish;
    type Done = bool;
    const PATIENT: bool = true;

    async fn write(&mut self, items: &[Finish]) -> Result<Vec<bool>, StoreError> {
        self.0.finish(items).await
    }

    fn heard(&self, _: bool) {}

    fn rest(&mut self) {
        self.0.rest();
    }
}
