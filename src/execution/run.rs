//! The way of a reply's calls: each is checked, all are planned, and each is answered.

use super::check::{self, Input, Unfit};
use super::job::{Job, Ran};
use super::lanes::NoResult;
use super::{Executed, Executor, HandlerResult, Request, Restore, plan, result, unanswered, webhook};
use crate::domain::handler::HandlerKind;
use crate::domain::json::Object;
use crate::domain::limits::MAX_TIMEOUT_MS;
use crate::domain::{Failure, Outcome, Success, TenantLimits, ToolCall};
use crate::registry::{Entry, Registry};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

/// How many calls of one batch are under way at once.
const MAX_CONCURRENT: usize = 32;

/// How long a result may wait for being checked, at the end of its call's time.
const SETTLING: Duration = Duration::from_secs(2);

/// A call that was looked at and not yet run.
struct Checked {
    id: Uuid,
    call: ToolCall,
    entry: Option<Arc<Entry>>,
    input: Result<Input, Failure>,
    started_at: OffsetDateTime,
    duration: Duration,
}

/// What all calls of a request share.
struct Shared<'a> {
    executor: &'a Executor,
    registry: &'a Registry,
    context: Object,
    deadline: Instant,
    traceparent: Option<String>,
    restore: Option<Restore>,
}

pub(super) async fn run(executor: &Executor, request: Request) -> Vec<Executed> {
    let Request { registry, calls, context, deadline, request_id, traceparent, restore } = request;
    let context = context.unwrap_or_default();
    let shared = Shared { executor, registry: &registry, context, deadline, traceparent, restore };

    let mut checked = Vec::with_capacity(calls.len());
    for call in calls {
        checked.push(shared.check(call).await);
        // Checking takes no time that counts for one call; for hundreds the others on this thread want their turn.
        tokio::task::yield_now().await;
    }
    let plan = plan::batches(checked.iter().map(Checked::runs_alone));
    let mut waiting = checked.into_iter();
    let mut executed = Vec::with_capacity(waiting.len());
    for batch in plan {
        let batch = waiting.by_ref().take(batch.len()).enumerate();
        let running = batch.map(|(place, checked)| shared.execute(checked).map(move |done| (place, done)));
        let mut done: Vec<_> = stream::iter(running).buffer_unordered(MAX_CONCURRENT).collect().await;
        done.sort_unstable_by_key(|(place, _)| *place);
        executed.extend(done.into_iter().map(|(_, done)| done));
    }
    for call in &executed {
        log(&registry, &request_id, call);
    }
    executed
}

impl Checked {
    /// A call that is refused already disturbs nobody.
    fn runs_alone(&self) -> bool {
        self.input.is_ok() && self.entry.as_ref().is_some_and(|entry| !entry.tool.limits.concurrent)
    }
}

impl Shared<'_> {
    async fn check(&self, call: ToolCall) -> Checked {
        let (started_at, began) = (OffsetDateTime::now_utc(), Instant::now());
        let call = Arc::new(call);
        let entry = check::find(self.registry, &call).cloned();
        let input = match &entry {
            Ok(entry) => self.input(entry, &call).await,
            Err(unknown) => Err(unknown.clone()),
        };
        let call = Arc::unwrap_or_clone(call);
        Checked { id: Uuid::now_v7(), call, entry: entry.ok(), input, started_at, duration: began.elapsed() }
    }

    async fn input(&self, entry: &Arc<Entry>, call: &Arc<ToolCall>) -> Result<Input, Failure> {
        check::admit(entry, call)?;
        let lanes = &self.executor.lanes;
        match check::read_in(lanes, self.registry.tenant().id, self.deadline, entry, call, self.restore).await {
            Ok(read) => read.map_err(|unfit| unfit.failure(entry)),
            Err(NoResult::Waiting) => Err(unanswered::not_started()),
            Err(NoResult::TooMuch) => Err(Unfit::TooMuch.failure(entry)),
            // A validator that breaks on one value is that call's misfortune alone.
            Err(NoResult::Broken) => Err(unanswered::broken(false)),
        }
    }

    /// Runs one call, if it may run, and answers it in any case.
    async fn execute(&self, checked: Checked) -> Executed {
        let Checked { id, call, entry, input, mut started_at, mut duration } = checked;
        let mut executed = Executed {
            id,
            call,
            tool: entry.as_ref().map(|entry| (entry.tool.name.clone(), entry.version)),
            result_type: entry.as_ref().and_then(|entry| entry.tool.options.result_type),
            input: None,
            outcome: Outcome::Failure(unanswered::not_started()),
            attempts: 0,
            started_at,
            duration_ms: 0,
            repairs: Vec::new(),
        };
        match (entry, input) {
            (_, Err(refused)) => executed.outcome = Outcome::Failure(refused),
            (Some(entry), Ok(input)) => {
                started_at = OffsetDateTime::now_utc();
                let began = Instant::now();
                if began < self.deadline {
                    (executed.outcome, executed.attempts) = self.dispatch_guarded(id, &entry, &input.object).await;
                }
                duration += began.elapsed();
                (executed.input, executed.repairs) = (Some(input.object), input.repairs);
            }
            (None, Ok(_)) => {} // no input is read without a tool
        }
        executed.started_at = started_at;
        executed.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        executed
    }

    /// Whatever breaks inside one call ends that call alone.
    async fn dispatch_guarded(&self, id: Uuid, entry: &Arc<Entry>, input: &Object) -> (Outcome, u32) {
        let work = AssertUnwindSafe(Box::pin(self.dispatch(id, entry, input)));
        work.catch_unwind().await.unwrap_or_else(|_| (Outcome::Failure(unanswered::broken(true)), 1))
    }

    async fn dispatch(&self, id: Uuid, entry: &Arc<Entry>, input: &Object) -> (Outcome, u32) {
        let tenant = self.registry.tenant();
        let deadline = self.deadline.min(Instant::now() + allowance(entry, &tenant.limits));
        let (context, traceparent) = (&self.context, self.traceparent.as_deref());
        let job = Job { id, entry, tenant, input, context, traceparent, deadline };
        let Ran { result, attempts } = match &entry.handler.kind {
            HandlerKind::Webhook { url, error_body } => {
                webhook::call(&self.executor.egress, &job, url, *error_body).await
            }
            HandlerKind::Native { function } => self.executor.natives.call(function, &job).await,
        };
        let outcome = match result {
            Ok(given) => self.settle(entry, given, deadline).await,
            Err(failure) => Err(failure),
        };
        (outcome.map_or_else(Outcome::Failure, Outcome::Success), attempts)
    }
}

impl Shared<'_> {
    /// Holds a result against what the tool promised. It is here already, so there is some time for that even at the end
    /// of the call's.
    async fn settle(&self, entry: &Arc<Entry>, given: HandlerResult, deadline: Instant) -> Result<Success, Failure> {
        let (entry, tenant) = (Arc::clone(entry), self.registry.tenant());
        if entry.tool.output_schema.is_none() {
            return result::settle(&entry.tool, &tenant.limits, given);
        }
        let limits = tenant.limits.clone();
        let deadline = deadline.max(Instant::now() + SETTLING);
        let settled =
            self.executor.lanes.check(tenant.id, deadline, move || result::settle(&entry.tool, &limits, given.clone()));
        settled.await.unwrap_or_else(|why| Err(result::unsettled(why)))
    }
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
            Outcome::Success(_) => None,
        },
        attempts = call.attempts,
        duration_ms = call.duration_ms,
        "call answered"
    );
}
