//! Requests with an idempotency key: the first one runs, its repeats get its answer.

use super::awaited::Logged;
use super::journal::PATIENCE;
use super::ledger::{CrashPoint, Ledger};
use super::prepared::{Checked, Prepared};
use super::{Executed, Executor, Origin, Request, record, run, unanswered};
use crate::domain::{CallStatus, Outcome};
use crate::store::StoreError;
use crate::store::claims::{self, Claim, Finish, KeyId, Known};
use crate::store::pending::{self, Recalled};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// How long a repeat waits before it looks again, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_millis(250);

/// A request's key, and what else tells whether another request is its repeat.
#[derive(Clone, Debug)]
pub struct Key {
    /// What is asked for: keys of one route mean nothing on another.
    pub route: String,
    /// The key as it was sent.
    pub key: String,
    /// What the request says.
    pub body_hash: [u8; 32],
    /// Whether calls of unknown tools are left to the caller.
    pub skip_unknown: bool,
}

/// Writes what a request is answered.
pub type Render = dyn Fn(&[Executed]) -> String + Send + Sync;

/// What a request with a key is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// By its own calls.
    First(String),
    /// As the first request was.
    Replayed(String),
}

/// Why a request with a key is not answered.
#[derive(Debug)]
pub enum Refusal {
    /// The store failed.
    Store(StoreError),
    /// The key was used for a request that says something else.
    OtherBody,
    /// The first request still runs, and the time of this one is over.
    StillRuns,
    /// The service is shutting down; nothing was sent.
    Stopping,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What all steps of one request share.
struct Work<'a> {
    ledger: &'a Ledger,
    executor: &'a Executor,
    origin: &'a Origin,
    id: KeyId,
    body_hash: [u8; 32],
    render: &'a Render,
}

impl Ledger {
    /// Answers a request: runs its calls if it is the first one with its key, or if those that ran them are gone and the calls
    /// may run again. Has to run in a task of its own, like [`Executor::run`].
    pub async fn run(
        &self,
        executor: &Executor,
        request: Request,
        origin: &Origin,
        key: Key,
        render: &Render,
    ) -> Result<Answer, Refusal> {
        let tenant = request.registry.tenant().id;
        let id = KeyId { tenant, route: key.route, key: key.key };
        let mut prepared = Prepared::of(&executor.turns, request).await;
        if key.skip_unknown {
            prepared.leave_unknown_out();
        }
        self.crash(CrashPoint::BeforeClaim);
        Box::pin(Work { ledger: self, executor, origin, id, body_hash: key.body_hash, render }.answer(prepared)).await
    }
}

impl Work<'_> {
    async fn answer(self, mut prepared: Prepared) -> Result<Answer, Refusal> {
        let mut pause = FIRST_LOOK;
        let mut known = None;
        loop {
            if self.ledger.is_stopping() {
                return Err(Refusal::Stopping);
            }
            // A key that this process works on is not free.
            if known.is_none()
                && self.ledger.held(&self.id).is_none()
                && let Some(lease) = self.claim(&prepared).await?
            {
                return self.carry_out(prepared, lease).await;
            }
            known = claims::find(&self.ledger.0.store, &self.id).await?;
            match &mut known {
                None if self.ledger.held(&self.id).is_none() => {} // it has just become free
                Some(known) if known.body_hash != self.body_hash => return Err(Refusal::OtherBody),
                Some(Known { answer: Some(answer), .. }) => return Ok(Answer::Replayed(std::mem::take(answer))),
                Some(Known { runs: false, places, .. }) => {
                    if let Some(lease) = self.take_over(&mut prepared, places).await? {
                        return self.carry_out(prepared, lease).await;
                    }
                }
                Some(_) | None => {
                    if Instant::now() >= prepared.deadline {
                        return Err(Refusal::StillRuns);
                    }
                    // Whoever waits for another's answer takes no place from calls that run.
                    prepared.admission.places().keep(0);
                    self.wait(pause, prepared.deadline).await;
                    pause = (pause * 3 / 2).min(LAST_LOOK);
                }
            }
        }
    }

    /// Waits for the end of a run in this process, and otherwise for some time.
    async fn wait(&self, pause: Duration, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.ledger.held(&self.id) {
            Some(held) => drop(tokio::time::timeout(LAST_LOOK.min(left), held.ended.cancelled()).await),
            None => tokio::time::sleep(pause.min(left)).await,
        }
    }

    async fn claim(&self, prepared: &Prepared) -> Result<Option<Uuid>, Refusal> {
        let lease = Uuid::now_v7();
        let calls = prepared.chosen().map(|checked| record::claimed(checked, &prepared.request_id, self.origin));
        let claim = Claim {
            id: self.id.clone(),
            body_hash: self.body_hash,
            lease,
            time: prepared.longest() + self.ledger.grace(),
            places: prepared.places(),
            calls: calls.collect(),
        };
        Ok(self.ledger.claim(claim).await?.then_some(lease))
    }

    /// Takes over what nobody runs any more. Calls that were never sent run now, and so do those that may have run if their tool says
    /// that they may again. All others are answered as the log has them: as unknown, as pending, or as their handler reported.
    async fn take_over(&self, prepared: &mut Prepared, places: &[Option<Uuid>]) -> Result<Option<Uuid>, Refusal> {
        if places.len() != prepared.checked.len() {
            return Err(Refusal::OtherBody); // the same text, read by a newer version of the service
        }
        let (lease, store) = (Uuid::now_v7(), &self.ledger.0.store);
        let ids: Vec<Uuid> = places.iter().copied().flatten().collect();
        let stand = pending::recall(store, self.id.tenant, &ids).await?;
        let calls = prepared.checked.iter().zip(places);
        let again = calls.filter_map(|(checked, id)| id.filter(|id| runs_again(checked, stand.get(id))));
        let again: Vec<Uuid> = again.collect();
        let told = unanswered::lost_sight();
        // What runs again may take as long as all of it.
        let time = prepared.longest() + self.ledger.grace();
        if !claims::take_over(store, &self.id, lease, time, &again, (told.code, &told.message)).await? {
            return Ok(None);
        }
        // Asked once more, for a report may have come meanwhile: what has ended is not run again.
        let stand: HashMap<Uuid, Recalled> = pending::recall(store, self.id.tenant, &ids).await?;
        for (checked, id) in prepared.checked.iter_mut().zip(places) {
            checked.left_out = id.is_none();
            checked.id = id.unwrap_or(checked.id);
            let runs = |known: &&Recalled| known.status == CallStatus::Running.as_str();
            match id.and_then(|id| stand.get(&id)) {
                Some(known) if !runs(&known) => {
                    checked.known = Some(known.clone());
                    prepared.progress.begin(checked.place); // whoever gives up finds that it is not as if it had never come
                }
                None if id.is_some_and(|id| !again.contains(&id)) => checked.input = Err(unanswered::lost_sight()),
                _ => {}
            }
        }
        Ok(Some(lease))
    }

    /// Runs what is claimed, and writes its end before it is answered.
    async fn carry_out(self, mut prepared: Prepared, lease: Uuid) -> Result<Answer, Refusal> {
        let ledger = self.ledger;
        let underway = self.executor.underway.clone();
        prepared.logged = underway.map(|underway| Logged { underway, origin: self.origin.clone(), lease: Some(lease) });
        let holding = ledger.hold(self.id.clone(), lease, &prepared);
        ledger.crash(CrashPoint::AfterClaim);
        if ledger.is_stopping() {
            if prepared.chosen().all(|checked| checked.known.is_none()) {
                claims::release(&ledger.0.store, &self.id, lease).await?;
            } // else the lease runs out, and what is known stays so
            return Err(Refusal::Stopping);
        }
        let request_id = prepared.request_id.clone();
        let mut executed = Box::pin(run::run(self.executor, prepared)).await;
        ledger.crash(CrashPoint::BeforeFinish);
        let answer = (self.render)(&executed);
        let calls = executed.iter().filter(|call| !call.in_log);
        let calls = calls.map(|call| record::answered(call, &request_id, self.origin)).collect();
        let end = Finish { id: self.id.clone(), lease, answer: answer.clone(), calls };
        let held = ledger.end(end, &executed, PATIENCE).await;
        ledger.crash(CrashPoint::AfterFinish);
        drop(holding);
        if held != Some(false) {
            return Ok(Answer::First(answer));
        }
        // We were taken for dead. What came of it is evidence for an operator; the log has said already that it is unknown.
        tracing::warn!(
            request_id,
            calls = super::journal::ids(&executed),
            "calls ended after their lease had been lost"
        );
        let now = claims::find(&ledger.0.store, &self.id).await?;
        if let Some(answer) = now.and_then(|known| known.answer) {
            return Ok(Answer::Replayed(answer));
        }
        let ended_by_us = |call: &&mut Executed| !call.in_log && call.outcome.status() != CallStatus::Rejected;
        for call in executed.iter_mut().filter(ended_by_us) {
            call.outcome = Outcome::Failure(unanswered::lost_sight());
        }
        Ok(Answer::First((self.render)(&executed)))
    }
}

/// Whether a call of a request that is taken over runs now. What was cancelled does not.
fn runs_again(checked: &Checked, known: Option<&Recalled>) -> bool {
    let status = known.and_then(|known| CallStatus::parse(&known.status));
    let wanted = checked.input.is_ok() && known.is_none_or(|known| !known.cancel_requested);
    wanted
        && match status {
            Some(CallStatus::Rejected) => true, // it was never sent
            Some(CallStatus::Running | CallStatus::Unknown) | None => checked.may_repeat(),
            Some(_) => false,
        }
}
