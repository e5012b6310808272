//! The way of a request's checked calls: they are planned, and each is answered.

use super::awaited::Logged;
use super::callback_url::Callback;
use super::job::{Job, Ran};
use super::limiting::TenantGate;
use super::prepared::{Checked, Prepared, Progress};
use super::turns::Turns;
use super::{Executed, Executor, HandlerResult, plan, result, told, unanswered, webhook};
use crate::domain::handler::HandlerKind;
use crate::domain::json::Object;
use crate::domain::limits::MAX_TIMEOUT_MS;
use crate::domain::{Failure, Outcome, Success, TenantFacts, TenantLimits};
use crate::registry::{Entry, Registry};
use crate::telemetry::traces;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};
use uuid::Uuid;

/// How many calls of one batch are under way at once.
pub(super) const MAX_CONCURRENT: usize = 32;
/// How long a result may wait for being checked, at the end of its call's time.
const SETTLING: Duration = Duration::from_secs(2);

/// What all calls of a request share.
pub(super) struct Shared<'a> {
    executor: &'a Executor,
    pub(super) registry: &'a Registry,
    context: Object,
    pub(super) deadline: Instant,
    pub(super) request_id: String,
    traceparent: Option<String>,
    pub(super) progress: Arc<Progress>,
    gate: Arc<TenantGate>,
    pub(super) respond_async: bool,
    pub(super) logged: Option<Logged>,
}

/// A checked call that may run.
#[derive(Clone, Copy)]
pub(super) struct Due<'a> {
    pub(super) id: Uuid,
    /// Where it stands in its request.
    pub(super) place: usize,
    pub(super) entry: &'a Arc<Entry>,
    pub(super) input: &'a Object,
}

pub(super) async fn run(executor: &Executor, prepared: Prepared) -> Vec<Executed> {
    let plan = plan::batches(prepared.chosen().map(Checked::runs_alone));
    let _announced = prepared.announce();
    let gate = executor.limiter.tenant(prepared.registry.tenant()).await;
    let (checked, admission, registry) = (prepared.checked, prepared.admission, &prepared.registry);
    let shared = Shared {
        executor,
        registry,
        context: prepared.context,
        deadline: prepared.deadline,
        request_id: prepared.request_id,
        traceparent: prepared.traceparent,
        progress: prepared.progress,
        gate,
        respond_async: prepared.respond_async,
        logged: prepared.logged,
    };

    let mut left = plan.last().map_or(0, |batch| batch.end);
    let mut waiting = checked.into_iter().filter(|checked| !checked.left_out);
    let mut executed = Vec::new();
    for batch in plan {
        let batch = waiting.by_ref().take(batch.len()).enumerate();
        let running = batch.map(|(place, checked)| shared.traced(checked).map(move |done| (place, done)));
        let running = stream::iter(running).buffer_unordered(admission.width()).inspect(|_| {
            left -= 1;
            admission.places().keep(left);
        });
        let mut done: Vec<_> = running.collect().await;
        done.sort_unstable_by_key(|(place, _)| *place);
        executed.extend(done.into_iter().map(|(_, done)| done));
    }
    for call in &executed {
        log(registry, &shared.request_id, call);
    }
    executed
}

impl Shared<'_> {
    /// Answers one call, within its own span.
    async fn traced(&self, checked: Checked) -> Executed {
        let span = told::span(checked.id, &checked.call, checked.entry.as_deref(), self.traceparent.as_deref());
        let executed = self.execute(checked).instrument(span.clone()).await;
        told::ended(&span, &executed);
        executed
    }

    /// Runs one call, if it may run, and answers it in any case.
    async fn execute(&self, checked: Checked) -> Executed {
        let Checked { id, place, call, entry, input, mut duration, left_out: _, known } = checked;
        let mut executed = Executed {
            id,
            call,
            tool: entry.as_ref().map(|entry| (entry.tool.name.clone(), entry.version)),
            result_type: entry.as_ref().and_then(|entry| entry.tool.options.result_type),
            input: None,
            outcome: Outcome::Failure(unanswered::not_started()),
            attempts: 0,
            duration_ms: 0,
            repairs: Vec::new(),
            handler: entry.as_ref().map(|entry| entry.handler.kind.as_str()),
            in_log: false,
        };
        if let Some(known) = known {
            executed.repairs = input.map(|input| input.repairs).unwrap_or_default();
            self.answer_known(&mut executed, entry.as_ref(), &known).await;
            return executed;
        }
        executed.duration_ms = millis(duration);
        match (entry, input) {
            (_, Err(refused)) => {
                if refused.code == "rate_limited" {
                    self.executor.metrics.refused(refused.code);
                }
                executed.outcome = Outcome::Failure(refused);
            }
            (Some(entry), Ok(input)) => {
                let began = Instant::now();
                executed.input = Some(entry.tool.input_schema.masked(&input.object));
                executed.repairs = input.repairs;
                if began < self.deadline {
                    self.run_watched(&mut executed, Due { id, place, entry: &entry, input: &input.object }).await;
                } else if self.was_cancelled(id) {
                    executed.outcome = Outcome::Failure(unanswered::cancelled_unsent());
                }
                duration += began.elapsed();
            }
            (None, Ok(_)) => {} // no input is read without a tool
        }
        // What is in the log already is answered as it stands there.
        if !executed.in_log {
            executed.duration_ms = millis(duration);
        }
        executed
    }

    /// Whatever breaks inside one call ends that call alone.
    pub(super) async fn dispatch_guarded(&self, due: Due<'_>, callback: Option<&Callback>) -> (Outcome, u32) {
        let work = AssertUnwindSafe(Box::pin(self.dispatch(due, callback)));
        work.catch_unwind().await.unwrap_or_else(|_| (Outcome::Failure(unanswered::broken(true)), 1))
    }

    /// Sends a call to its handler when its turn has come.
    async fn dispatch(&self, due: Due<'_>, callback: Option<&Callback>) -> (Outcome, u32) {
        let Due { id, place, entry, input } = due;
        let tenant = self.registry.tenant();
        let deadline = self.deadline.min(Instant::now() + allowance(entry, &tenant.limits));
        let (metrics, limiter) = (&self.executor.metrics, &self.executor.limiter);
        let pass = match limiter.gates(tenant.id, &self.gate, entry).await.enter(deadline).await {
            Ok(pass) => pass,
            Err(refused) => return (Outcome::Failure(refused), 0),
        };
        if !self.progress.begin(place) {
            return (Outcome::Failure(unanswered::stopped()), 0);
        }
        let (_in_flight, began) = (metrics.call_in_flight(), Instant::now());
        let own = traces::traceparent(&Span::current());
        let (context, traceparent) = (&self.context, own.as_deref().or(self.traceparent.as_deref()));
        let job = Job { id, entry, tenant, input, context, traceparent, deadline, callback };
        let Ran { result, attempts } = match &entry.handler.kind {
            HandlerKind::Webhook { url, error_body, .. } => {
                webhook::call((&self.executor.egress, limiter), &job, pass, url, *error_body).await
            }
            HandlerKind::Native { function } => {
                let _turn = pass;
                self.executor.natives.call(function, &job).await
            }
        };
        let outcome = match result {
            Ok(given) => settle(&self.executor.turns, entry, tenant, given, deadline).await,
            Err(failure) => Err(failure),
        };
        let outcome = outcome.map_or_else(Outcome::Failure, Outcome::Success);
        metrics.handled(entry.handler.kind.as_str(), outcome.status().as_str(), began.elapsed());
        (outcome, attempts)
    }
}

/// Holds a result against what the tool promised. It is here already, so there is some time for that even at the end of the
/// call's.
pub(super) async fn settle(
    turns: &Turns,
    entry: &Arc<Entry>,
    tenant: &TenantFacts,
    given: HandlerResult,
    deadline: Instant,
) -> Result<Success, Failure> {
    if entry.tool.output_schema.is_none() {
        return result::settle(&entry.tool, &tenant.limits, given);
    }
    let (entry, limits) = (Arc::clone(entry), tenant.limits.clone());
    let deadline = deadline.max(Instant::now() + SETTLING);
    let settled = turns.check(tenant.id, deadline, move || result::settle(&entry.tool, &limits, given.clone()));
    settled.await.unwrap_or_else(|why| Err(result::unsettled(why)))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long one call of a tool may take.
pub(super) fn allowance(entry: &Entry, tenant: &TenantLimits) -> Duration {
    let own = entry.tool.limits.timeout_ms.unwrap_or(entry.handler.timeout_ms);
    Duration::from_millis(own.min(tenant.max_timeout_ms.unwrap_or(MAX_TIMEOUT_MS)).into())
}

/// What operators may see of a call: never its input, its result, or what the handler said.
fn log(registry: &Registry, request_id: &str, call: &Executed) {
    tracing::info!(
        request_id,
        tenant = registry.tenant().name.as_str(),
        call = %call.id,
        tool = call.tool.as_ref().map(|(name, _)| name.as_str()),
        status = call.outcome.status().as_str(),
        code = match &call.outcome {
            Outcome::Failure(failure) => Some(failure.code),
            Outcome::Success(_) | Outcome::Pending(_) => None,
        },
        attempts = call.attempts,
        duration_ms = call.duration_ms,
        "call answered"
    );
}
