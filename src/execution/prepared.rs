//! Calls that were looked at and not yet run: what a request that comes with a key claims before anything is sent.

use super::awaited::Logged;
use super::check::{self, Input, Unfit};
use super::limiting::Admission;
use super::run::allowance;
use super::turns::{NoResult, Turns};
use super::underway::Announced;
use super::{Request, Restore, plan, unanswered};
use crate::domain::json::Object;
use crate::domain::{Failure, ToolCall};
use crate::registry::{Entry, Registry};
use crate::store::pending::Recalled;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// A request's calls with what is known before they run.
pub(super) struct Prepared {
    pub(super) registry: Arc<Registry>,
    pub(super) checked: Vec<Checked>,
    pub(super) context: Object,
    pub(super) deadline: Instant,
    pub(super) request_id: String,
    pub(super) traceparent: Option<String>,
    pub(super) progress: Arc<Progress>,
    pub(super) admission: Admission,
    /// Whether pending calls are answered as that instead of being waited for.
    pub(super) respond_async: bool,
    /// None where there is no log.
    pub(super) logged: Option<Logged>,
}

/// A call that was looked at.
pub(super) struct Checked {
    pub(super) id: Uuid,
    /// Where it stands in its request.
    pub(super) place: usize,
    pub(super) call: ToolCall,
    pub(super) entry: Option<Arc<Entry>>,
    pub(super) input: Result<Input, Failure>,
    pub(super) duration: Duration,
    /// It is neither run nor answered.
    pub(super) left_out: bool,
    /// What the log says of it: then it is not run, but answered so.
    pub(super) known: Option<Recalled>,
}

/// Which calls were begun, and whether more may be.
pub(super) struct Progress {
    begun: Vec<AtomicBool>,
    stopped: AtomicBool,
}

impl Progress {
    /// Notes that a call begins; false if none may begin any more. Between this and [`Progress::stop`] nothing falls through:
    /// each notes its own side before it looks at the other's.
    pub(super) fn begin(&self, place: usize) -> bool {
        if let Some(begun) = self.begun.get(place) {
            begun.store(true, Ordering::SeqCst);
        }
        !self.stopped.load(Ordering::SeqCst)
    }

    /// Whether a call may have begun.
    pub(super) fn has_begun(&self, place: usize) -> bool {
        self.begun.get(place).is_some_and(|begun| begun.load(Ordering::SeqCst))
    }

    /// Lets no more calls begin, and says of each whether it may have begun.
    pub(super) fn stop(&self) -> Vec<bool> {
        self.stopped.store(true, Ordering::SeqCst);
        self.begun.iter().map(|begun| begun.load(Ordering::SeqCst)).collect()
    }
}

impl Prepared {
    /// Looks at every call of a request.
    pub(super) async fn of(turns: &Turns, request: Request) -> Self {
        let Request {
            registry,
            calls,
            context,
            deadline,
            request_id,
            traceparent,
            restore,
            mut admission,
            respond_async,
        } = request;
        let mut checked = Vec::with_capacity(calls.len());
        for (place, call) in calls.into_iter().enumerate() {
            let look = Look { turns, registry: &registry, deadline, restore };
            checked.push(look.at(place, call, &mut admission).await);
            // Checking takes no time that counts for one call; for hundreds the others on this thread want their turn.
            tokio::task::yield_now().await;
        }
        let begun = checked.iter().map(|_| AtomicBool::new(false)).collect();
        let progress = Arc::new(Progress { begun, stopped: AtomicBool::new(false) });
        let (context, logged) = (context.unwrap_or_default(), None);
        Self {
            registry,
            checked,
            context,
            deadline,
            request_id,
            traceparent,
            progress,
            admission,
            respond_async,
            logged,
        }
    }

    /// Notes the calls that are in the log before they are sent, so that they can be cancelled before that.
    pub(super) fn announce(&self) -> Option<Announced> {
        let logged = self.logged.as_ref().filter(|logged| logged.lease.is_some())?;
        let to_run = self.chosen().filter(|checked| checked.input.is_ok() && checked.known.is_none());
        Some(logged.underway.announce(self.registry.tenant().id, to_run.map(|checked| checked.id).collect()))
    }

    /// Leaves calls of unknown tools to the caller.
    pub(super) fn leave_unknown_out(&mut self) {
        for checked in &mut self.checked {
            checked.left_out = checked.entry.is_none();
        }
    }

    /// The calls that are answered.
    pub(super) fn chosen(&self) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(|checked| !checked.left_out)
    }

    /// The ids of the calls by position; nothing where one is left out.
    pub(super) fn places(&self) -> Vec<Option<Uuid>> {
        self.checked.iter().map(|checked| (!checked.left_out).then_some(checked.id)).collect()
    }

    /// The longest that running all of it may take from now on.
    pub(super) fn longest(&self) -> Duration {
        let limits = &self.registry.tenant().limits;
        let chosen: Vec<&Checked> = self.chosen().collect();
        let batch = |range: std::ops::Range<usize>| {
            let rounds = u32::try_from(range.len().div_ceil(self.admission.width())).unwrap_or(u32::MAX);
            let may_run = chosen[range].iter().filter(|checked| checked.input.is_ok());
            let longest = may_run.filter_map(|checked| Some(allowance(checked.entry.as_ref()?, limits))).max();
            longest.unwrap_or_default().saturating_mul(rounds)
        };
        let all = plan::batches(chosen.iter().map(|checked| checked.runs_alone())).into_iter().map(batch);
        let all = all.fold(Duration::ZERO, Duration::saturating_add);
        all.min(self.deadline.saturating_duration_since(Instant::now()))
    }
}

impl Checked {
    /// A call that is refused already disturbs nobody.
    pub(super) fn runs_alone(&self) -> bool {
        self.input.is_ok() && self.entry.as_ref().is_some_and(|entry| !entry.tool.limits.concurrent)
    }

    /// Whether it may run although an earlier run of it may have had its effect.
    pub(super) fn may_repeat(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.tool.options.annotations.may_repeat())
    }
}

/// What looking at each call of a request needs.
struct Look<'a> {
    turns: &'a Turns,
    registry: &'a Registry,
    deadline: Instant,
    restore: Option<Restore>,
}

impl Look<'_> {
    async fn at(&self, place: usize, call: ToolCall, admission: &mut Admission) -> Checked {
        let (began, call) = (Instant::now(), Arc::new(call));
        let entry = check::find(self.registry, &call).cloned();
        let input = match &entry {
            Ok(entry) => self.input(entry, &call, admission).await,
            Err(unknown) => Err(unknown.clone()),
        };
        let (id, call, entry, duration) = (Uuid::now_v7(), Arc::unwrap_or_clone(call), entry.ok(), began.elapsed());
        Checked { id, place, call, entry, input, duration, left_out: false, known: None }
    }

    async fn input(
        &self,
        entry: &Arc<Entry>,
        call: &Arc<ToolCall>,
        admission: &mut Admission,
    ) -> Result<Input, Failure> {
        check::admit(entry, call)?;
        // Before the schema, so that nobody's calls are checked faster than they may be made.
        admission.start()?;
        let tenant = self.registry.tenant().id;
        match check::read_in(self.turns, tenant, self.deadline, entry, call, self.restore).await {
            Ok(read) => read.map_err(|unfit| unfit.failure(entry)),
            Err(NoResult::Waiting) => Err(unanswered::not_started()),
            Err(NoResult::TooMuch) => Err(Unfit::TooMuch.failure(entry)),
            // A validator that breaks on one value is that call's misfortune alone.
            Err(NoResult::Broken) => Err(unanswered::broken(false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Caller, TenantLimits, TenantName};
    use crate::execution::limiting::Limiter;
    use crate::execution::{Limiting, Natives};
    use crate::registry::TenantFacts;
    use crate::telemetry::Metrics;

    #[tokio::test]
    async fn what_may_run_less_widely_may_take_longer() {
        let limits = TenantLimits { max_timeout_ms: Some(1_000), ..TenantLimits::default() };
        let tenant = TenantFacts { id: Uuid::now_v7(), name: TenantName::parse("acme").unwrap(), limits };
        let natives = Natives::built_in().unwrap();
        let registry = Arc::new(Registry::build(tenant.clone(), 1, natives.entries(), Vec::new()));
        let call = ToolCall {
            call_id: None,
            name: "calculate".to_owned(),
            arguments: serde_json::json!({"expression": "1"}),
            caller: Caller::Human,
            echo: Object::new(),
            cut_off: false,
        };
        for (in_flight_calls, seconds) in [(100, 1), (2, 3), (1, 5)] {
            let limiter = Limiter::new(Limiting { in_flight_calls, ..Limiting::default() }, Metrics::default());
            let request = Request {
                registry: Arc::clone(&registry),
                calls: vec![call.clone(); 5],
                context: None,
                deadline: Instant::now() + Duration::from_mins(5),
                request_id: String::new(),
                traceparent: None,
                restore: None,
                admission: limiter.admit(&tenant, 5).await.unwrap(),
                respond_async: false,
            };
            let prepared = Prepared::of(&Turns::default(), request).await;
            assert_eq!(prepared.longest(), Duration::from_secs(seconds), "{in_flight_calls} at a time");
        }
    }
}
