//! What happens to a model's calls: find → validate → dispatch.
//!
//! [`Executor::run`] answers every call it is given, in the order in which they came, within one deadline. Whatever is
//! wrong with a call, its tool or its handler becomes that call's own result, written for the model; nothing ends the
//! others. The steps, each in a file of its own:
//!
//! 1. `check`: is there such a tool, may it be called, and does the input fit? Nothing is sent before all of it is known.
//!    Checks that take long wait for the tenant's turn (`turns`), the others are made at once.
//!    `repair` reads what is plainly meant and sent in another spelling, and names what it did.
//! 2. `plan`: neighbours that are safe beside each other run together, any other call runs alone.
//! 3. `limiting`: a call waits for its turn at its handler and among its tenant's calls, and a handler that is down is left alone.
//!    `retry` sends again what may be sent again, each time in its turn.
//! 4. `webhook` and [`native`]: one file per kind of handler. **The home of a new kind** is a sibling here and an arm in
//!    `run`'s `dispatch`.
//! 5. `answer` and `unanswered`: what an HTTP answer means, and what its absence means.
//! 6. `result` and `clip`: what the tool promised about its results, and how much of a text reaches the model.
//! 7. [`Journal`]: an answered call is in the log.
//!
//! Calls whose handlers report later go through `awaited`, which notes them before they are sent and waits for `callback`; every call
//! that this process is at work on is in [`Underway`], where `cancel` finds it.
//!
//! A request that comes with a key goes through [`Ledger`]: its calls are claimed in the database before anything is sent,
//! its repeats get its answer, and what a dead replica left behind becomes `unknown` in [`upkeep`].
//!
//! What is absent here: status codes of our own API, and any provider's shapes.

mod answer;
mod awaited;
mod callback;
mod callback_url;
mod cancel;
mod check;
mod clip;
mod decode;
mod dry_run;
mod health;
mod job;
mod journal;
mod keyed;
mod lane;
mod ledger;
mod limiting;
pub mod native;
mod notes;
mod plan;
mod prepared;
mod recall;
mod record;
mod repair;
mod result;
mod retry;
mod run;
mod told;
mod turns;
mod unanswered;
mod underway;
pub mod upkeep;
mod webhook;

pub use callback::{NotTaken, Receipt, Reported};
pub use cancel::Cancelled;
pub use dry_run::{DryRequest, DryRun, EgressVerdict, Misfit, Validation};
pub use journal::{CallLog, Journal, Origin};
pub use keyed::{Answer, Key, Refusal, Render};
pub use ledger::{CrashPoint, Ledger};
pub use limiting::{Admission, Breaking, Limiting, TooMuch};
pub use native::{NativeHandler, Natives};
pub use result::HandlerResult;
pub use turns::{NoResult, Turns};
pub use underway::Underway;

use crate::domain::json::Object;
use crate::domain::options::ResultType;
use crate::domain::{Answered, Outcome, TenantFacts, Tool, ToolCall, ToolName};
use crate::egress::Egress;
use crate::registry::Registry;
use crate::telemetry::Metrics;
use limiting::Limiter;
use std::sync::Arc;
use tokio::time::Instant;
use uuid::Uuid;

/// Runs calls. Cheap to clone; the clones share their connections.
#[derive(Clone)]
pub struct Executor {
    egress: Egress,
    natives: Natives,
    metrics: Metrics,
    turns: Turns,
    limiter: Limiter,
    underway: Option<Underway>,
}

/// A model's calls, and what they run against.
#[derive(Debug)]
pub struct Request {
    /// The tenant's tools, as the model was shown them.
    pub registry: Arc<Registry>,
    /// The calls in the reply's order.
    pub calls: Vec<ToolCall>,
    /// What the agent backend sends along; handlers get it, the model never sees it.
    pub context: Option<Object>,
    /// When every call has to be answered.
    pub deadline: Instant,
    /// The request's id, for the log.
    pub request_id: String,
    /// The trace that the request belongs to, as W3C's `traceparent` header says it; passed on to webhooks.
    pub traceparent: Option<String>,
    /// The way back from what a format declared to what is stored, for calls that came in a format.
    pub restore: Option<Restore>,
    /// What it was admitted to by [`Executor::admit`].
    pub admission: Admission,
    /// Whether the caller does not wait for handlers that report later.
    pub respond_async: bool,
}

/// Maps arguments that a model sent under a format's declaration of a tool to the tool's stored schema.
pub type Restore = fn(&Tool, Object) -> Object;

/// A call that was answered.
#[derive(Clone, Debug)]
pub struct Executed {
    /// Our id of the call, a UUID of version 7. A webhook gets it as `webhook-id` and `idempotency-key`.
    pub id: Uuid,
    /// The call as it was made.
    pub call: ToolCall,
    /// The tool and its version; nothing if there is no such tool.
    pub tool: Option<(ToolName, i32)>,
    /// What kind of result the tool declares.
    pub result_type: Option<ResultType>,
    /// The input that was validated, as the log may have it: write-only values are masked. Nothing if it was refused before or by
    /// validation.
    pub input: Option<Object>,
    /// What became of it.
    pub outcome: Outcome,
    /// How often the handler was tried.
    pub attempts: u32,
    /// How long it took from the moment when its turn came, in milliseconds.
    pub duration_ms: u64,
    /// What was put right in its arguments.
    pub repairs: Vec<String>,
    /// What kind of handler ran it; nothing if none did.
    pub handler: Option<&'static str>,
    /// Whether the log has its end already, or that it is pending.
    pub in_log: bool,
}

impl Executed {
    /// The part of it that a format renders.
    pub const fn answered(&self) -> Answered<'_> {
        Answered { call: &self.call, outcome: &self.outcome, result_type: self.result_type }
    }
}

impl Executor {
    /// Sends through `egress`, and knows these native handlers.
    pub fn new(egress: Egress, natives: Natives) -> Self {
        let (metrics, limiter) = (Metrics::default(), Limiter::new(Limiting::default(), Metrics::default()));
        Self { egress, natives, metrics, turns: Turns::default(), limiter, underway: None }
    }

    /// The same, counted in these metrics.
    #[must_use]
    pub fn measured_by(self, metrics: Metrics) -> Self {
        let limiter = Limiter::new(*self.limiter.settings(), metrics.clone());
        Self { metrics, limiter, ..self }
    }

    /// The same under these limits.
    #[must_use]
    pub fn limited_by(self, limiting: Limiting) -> Self {
        Self { limiter: Limiter::new(limiting, self.metrics.clone()), ..self }
    }

    /// Admits a request of so many calls of a tenant, or as many of them as there is room for. To be asked before anything is done
    /// for the request.
    pub async fn admit(&self, tenant: &TenantFacts, calls: usize) -> Result<Admission, TooMuch> {
        self.limiter.admit(tenant, calls).await
    }

    /// The same with a log, which calls of asynchronous handlers need, and by which calls can be cancelled.
    #[must_use]
    pub fn noting_in(self, underway: Underway) -> Self {
        Self { underway: Some(underway), ..self }
    }

    /// The native handlers, whose [`Natives::entries`] belong into every registry.
    pub const fn natives(&self) -> &Natives {
        &self.natives
    }

    /// Runs the calls and answers each one, in their order, at the latest at the request's deadline. Does not fail and
    /// does not panic. Dropping it cuts calls off half-way, so it belongs into a task of its own.
    pub async fn run(&self, request: Request) -> Vec<Executed> {
        let prepared = prepared::Prepared::of(&self.turns, request).await;
        Box::pin(run::run(self, prepared)).await
    }

    /// The same for calls that were made through the service: they can be cancelled, and their handlers may report later.
    pub async fn run_noted(&self, request: Request, origin: &Origin) -> Vec<Executed> {
        let mut prepared = prepared::Prepared::of(&self.turns, request).await;
        let noted =
            |underway: &Underway| awaited::Logged { underway: underway.clone(), origin: origin.clone(), lease: None };
        prepared.logged = self.underway.as_ref().map(noted);
        Box::pin(run::run(self, prepared)).await
    }

    /// Says what running this call would send, without sending it. An unknown tool is the one error.
    pub async fn dry_run(
        &self,
        registry: &Registry,
        call: &ToolCall,
        context: Option<&Object>,
        traceparent: Option<&str>,
    ) -> Result<DryRun, crate::domain::Failure> {
        dry_run::dry_run(self, registry, call, context, traceparent).await
    }
}
