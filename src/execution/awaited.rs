//! Calls that can be stopped, and calls whose handlers report later.
//!
//! A call of an asynchronous handler is in the log before it is sent, since its report may come before the handler's answer is read,
//! and to another replica. Whatever ends it is written there at once, by whoever comes first; what the caller is told is what stands
//! there.

use super::callback_url::Callback;
use super::run::{Due, Shared, allowance};
use super::underway::{Underway, Watch};
use super::{Executed, Origin, recall, record, unanswered, webhook};
use crate::domain::{CallStatus, Outcome};
use crate::registry::Entry;
use crate::store::calls::Record;
use crate::store::pending::{self, Opening, Recalled, Report, Reporter};
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

/// What the log has to know of a request's calls.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) underway: Underway,
    pub(super) origin: Origin,
    /// Under which lease they run; none if they came without a key, and are not in the log before their end.
    pub(super) lease: Option<Uuid>,
}

/// A call of an asynchronous handler on its way.
struct Way<'a> {
    logged: &'a Logged,
    watch: &'a Watch,
    callback: Callback,
    deadline: Instant,
    began: Instant,
    /// What it took before it began, in milliseconds.
    before: u64,
}

impl Shared<'_> {
    /// Runs a call until it ends or somebody stops it.
    pub(super) async fn run_watched(&self, executed: &mut Executed, due: Due<'_>) {
        let asynchronous = due.entry.handler.kind.is_asynchronous();
        let Some(logged) = &self.logged else {
            if asynchronous {
                executed.outcome = Outcome::Failure(webhook::unwritable(&"there is no log that a report could go to"));
                return;
            }
            (executed.outcome, executed.attempts) = self.dispatch_guarded(due, None).await;
            return;
        };
        let in_log = asynchronous || logged.lease.is_some();
        let Some(watch) = logged.underway.begin(self.tenant(), executed.id, in_log) else {
            executed.outcome = Outcome::Failure(unanswered::cancelled_unsent());
            return;
        };
        if asynchronous {
            Box::pin(self.run_asynchronous(executed, due, logged, &watch)).await;
        } else {
            let run = self.dispatch_guarded(due, None);
            let ran = watch.cancelled.run_until_cancelled(run).await;
            (executed.outcome, executed.attempts) = ran.unwrap_or_else(|| self.stopped(due));
        }
        watch.tell(|| record::answered(executed, &self.request_id, &logged.origin));
    }

    /// Whether somebody cancelled a call that did not begin: the log says so already.
    pub(super) fn was_cancelled(&self, id: Uuid) -> bool {
        self.logged.as_ref().is_some_and(|logged| logged.underway.was_cancelled(id))
    }

    /// Answers a call as the log had it when its request was taken over; one that is pending is waited for.
    pub(super) async fn answer_known(&self, executed: &mut Executed, entry: Option<&Arc<Entry>>, known: &Recalled) {
        recall::answer(executed, known);
        if let (Some(logged), Some(entry), Outcome::Pending(_)) = (&self.logged, entry, &executed.outcome)
            && let Some(watch) = logged.underway.begin(self.tenant(), executed.id, true)
        {
            self.wait(executed, logged, &watch, self.deadline_of(entry)).await;
        }
    }

    async fn run_asynchronous(&self, executed: &mut Executed, due: Due<'_>, logged: &Logged, watch: &Watch) {
        let Some(callback) = logged.underway.callback(self.tenant(), executed.id) else {
            let why = "TOOLHOOK_PUBLIC_URL is not set, so the handler cannot be told where to report";
            executed.outcome = Outcome::Failure(webhook::unwritable(&why));
            return;
        };
        let (deadline, began, before) = (self.deadline_of(due.entry), Instant::now(), executed.duration_ms);
        let way = Way { logged, watch, callback, deadline, began, before };
        if logged.lease.is_none() && !self.open(executed, &way).await {
            executed.outcome = Outcome::Failure(unanswered::not_noted());
            // It may have been written all the same: then it is not left as running.
            logged.underway.0.notes.report(self.report(executed, &way)).await;
            return;
        }
        let run = self.dispatch_guarded(due, Some(&way.callback));
        let ran = watch.cancelled.run_until_cancelled(run).await;
        (executed.outcome, executed.attempts) = ran.unwrap_or_else(|| self.stopped(due));
        if executed.outcome.status() == CallStatus::Pending {
            executed.outcome = Outcome::Pending(unanswered::pending(executed.id));
        }
        executed.duration_ms = way.duration_ms();
        self.settle_in_log(executed, &way).await;
    }

    /// Writes the call as running.
    async fn open(&self, executed: &Executed, way: &Way<'_>) -> bool {
        let call = record::running(executed, &self.request_id, &way.logged.origin);
        let left = way.deadline.saturating_duration_since(Instant::now());
        let record = Record { tenant: self.tenant(), call };
        let underway = &way.logged.underway.0;
        underway.notes.open(Opening { record, time: left + underway.grace }).await
    }

    fn report(&self, executed: &Executed, way: &Way<'_>) -> Report {
        let pending = matches!(executed.outcome, Outcome::Pending(_));
        let left = (way.callback.expires_at - OffsetDateTime::now_utc()).try_into().unwrap_or(Duration::ZERO);
        Report {
            tenant: self.tenant(),
            call: record::answered(executed, &self.request_id, &way.logged.origin),
            picture: None, // whoever waits for this answer has it
            by: Reporter::Request(way.logged.lease),
            due: pending.then_some(left),
        }
    }

    /// Writes what the handler answered, unless a report was there before, and waits for the report of one that has taken the call.
    async fn settle_in_log(&self, executed: &mut Executed, way: &Way<'_>) {
        let pending = matches!(executed.outcome, Outcome::Pending(_));
        match way.logged.underway.0.notes.report(self.report(executed, way)).await {
            Some(true) => executed.in_log = true,
            Some(false) => self.look_up(executed, way.logged).await,
            // It is written once the database is back, by the same hands; with a key, its end is written beside the answer as well.
            None => executed.in_log = pending || way.logged.lease.is_none(),
        }
        if matches!(executed.outcome, Outcome::Pending(_)) {
            self.wait(executed, way.logged, way.watch, way.deadline).await;
            if matches!(executed.outcome, Outcome::Pending(_)) {
                executed.duration_ms = way.duration_ms();
            }
        }
    }

    /// Waits for the report on a pending call, unless the caller does not want to.
    async fn wait(&self, executed: &mut Executed, logged: &Logged, watch: &Watch, deadline: Instant) {
        if self.respond_async {
            return;
        }
        tokio::select! {
            () = watch.ended.cancelled() => {}
            () = watch.cancelled.cancelled() => {}
            () = logged.underway.0.ending.cancelled() => {}
            () = tokio::time::sleep_until(deadline) => {}
        }
        // Also at the end of the time: the report may have come to another replica just before.
        self.look_up(executed, logged).await;
    }

    /// Answers the call as the log has it now.
    async fn look_up(&self, executed: &mut Executed, logged: &Logged) {
        match pending::recall(&logged.underway.0.store, self.tenant(), &[executed.id]).await {
            Ok(mut known) => {
                if let Some(known) = known.remove(&executed.id) {
                    recall::answer(executed, &known);
                }
            }
            Err(error) => tracing::warn!(%error, call = %executed.id, "the log cannot be asked for a call's end"),
        }
    }

    /// A call that was stopped: while its handler was at work, or while it waited for its turn.
    fn stopped(&self, due: Due<'_>) -> (Outcome, u32) {
        if self.progress.has_begun(due.place) {
            return (Outcome::Failure(unanswered::cancelled()), 1);
        }
        (Outcome::Failure(unanswered::cancelled_unsent()), 0)
    }

    fn tenant(&self) -> Uuid {
        self.registry.tenant().id
    }

    fn deadline_of(&self, entry: &Entry) -> Instant {
        self.deadline.min(Instant::now() + allowance(entry, &self.registry.tenant().limits))
    }
}

impl Way<'_> {
    fn duration_ms(&self) -> u64 {
        self.before + u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Underway {
    /// Where the handler of a call may report; none where nobody said how webhooks reach this service.
    fn callback(&self, tenant: Uuid, call: Uuid) -> Option<Callback> {
        self.0.urls.as_ref().map(|urls| urls.of(tenant, call))
    }
}
