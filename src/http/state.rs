//! What every request shares.

use super::bad_keys::BadKeys;
use super::problem::Problem;
use super::remembered::Remembered;
use crate::domain::{Outcome, TenantFacts, TenantName};
use crate::egress::Egress;
use crate::execution::{
    Answer, CallLog, CrashPoint, Executed, Executor, Journal, Key, Ledger, Limiting, Natives, NotTaken, Origin,
    Receipt, Render, Reported, Request, Turns, Underway,
};
use crate::registry::{Registries, Registry};
use crate::store::keys::StoredKey;
use crate::store::{CallbackToken, Store};
use crate::telemetry::{CallEnd, Levels, Metrics};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

/// What the operator decides about the service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many tenants' compiled tools are kept in memory.
    pub cached_tenants: u64,
    /// How long lists are served from memory while Postgres is away.
    pub stale_lists: Duration,
    /// Whether `/metrics` is one of this service's routes, and not served elsewhere.
    pub serves_metrics: bool,
    /// Where things are counted.
    pub metrics: Metrics,
    /// When a call's record has to be in the database.
    pub call_log: CallLog,
    /// How much longer than its calls may take a claimed request belongs to this process.
    pub lease_grace: Duration,
    /// What calls may take.
    pub limiting: Limiting,
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
    /// How many bad keys an address may send in a minute; 0 for any number.
    pub bad_keys_per_minute: u32,
    /// Where to die, for tests.
    pub crash_at: Option<CrashPoint>,
    /// Where webhooks reach this service, which asynchronous handlers need.
    pub public_url: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cached_tenants: 10_000,
            stale_lists: Duration::from_mins(15),
            serves_metrics: true,
            metrics: Metrics::default(),
            call_log: CallLog::default(),
            lease_grace: Duration::from_secs(10),
            limiting: Limiting::default(),
            body_timeout: Duration::from_secs(30),
            bad_keys_per_minute: 300,
            crash_at: None,
            public_url: None,
        }
    }
}

/// What every request shares. As cheap to clone as one reference: every layer and every handler takes one for each request.
#[derive(Clone)]
pub struct AppState(Arc<Shared>);

impl Deref for AppState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// The parts of the service.
pub struct Shared {
    pub(super) store: Store,
    pub(super) egress: Egress,
    pub(super) registries: Registries,
    pub(super) executor: Executor,
    /// Where schemas are compiled.
    pub(super) compiling: Turns,
    pub(super) journal: Journal,
    pub(super) ledger: Ledger,
    pub(super) underway: Underway,
    /// What may be the key of a public id.
    pub(super) keys: Remembered<String, Arc<Vec<StoredKey>>>,
    /// The tenants that operators act for.
    pub(super) tenants: Remembered<TenantName, Arc<TenantFacts>>,
    pub(super) bad_keys: BadKeys,
    pub(super) body_timeout: Duration,
    pub(super) metrics: Metrics,
    pub(super) serves_metrics: bool,
    running: TaskTracker,
    draining: AtomicBool,
}

impl AppState {
    /// Puts the service together.
    pub fn new(store: Store, egress: Egress, natives: Natives, settings: Settings) -> Self {
        let Settings {
            cached_tenants,
            stale_lists,
            serves_metrics,
            metrics,
            call_log,
            lease_grace,
            limiting,
            crash_at,
            public_url,
            ..
        } = settings;
        let underway = Underway::start(store.clone(), public_url.as_deref(), lease_grace, metrics.clone());
        let registries = Registries::new(store.clone(), natives.entries(), cached_tenants).stale_for(stale_lists);
        Self(Arc::new(Shared {
            registries: registries.measured_by(metrics.clone()),
            executor: Executor::new(egress.clone(), natives)
                .measured_by(metrics.clone())
                .limited_by(limiting)
                .noting_in(underway.clone()),
            underway,
            compiling: Turns::default(),
            journal: Journal::start(store.clone(), call_log, metrics.clone()),
            ledger: Ledger::start(store.clone(), lease_grace, crash_at),
            keys: Remembered::new(store.clone()),
            tenants: Remembered::new(store.clone()),
            bad_keys: BadKeys::new(settings.bad_keys_per_minute),
            body_timeout: settings.body_timeout,
            metrics,
            serves_metrics,
            running: TaskTracker::new(),
            draining: AtomicBool::default(),
            store,
            egress,
        }))
    }

    /// Runs calls and logs them, in a task of their own: a caller that hangs up does not cut a call in half.
    pub(super) async fn execute(&self, request: Request, origin: Origin) -> Result<Vec<Executed>, Problem> {
        if request.calls.is_empty() {
            return Ok(Vec::new());
        }
        self.journal.is_open().await?;
        let state = self.clone();
        let work = async move {
            let (tenant, request_id) = (request.registry.tenant().id, request.request_id.clone());
            let executed = state.executor.run_noted(request, &origin).await;
            count(&state.metrics, &origin, &executed);
            state.journal.record(tenant, &request_id, &origin, &executed).await;
            executed
        };
        let task = self.running.spawn(work.instrument(tracing::Span::current()));
        task.await.map_err(|why| Problem::internal(&why))
    }

    /// Answers a request that came with a key, in a task of its own: a caller that hangs up changes nothing.
    pub(super) async fn execute_once(
        &self,
        request: Request,
        origin: Origin,
        key: Key,
        render: Box<Render>,
    ) -> Result<Answer, Problem> {
        let state = self.clone();
        let work = async move { Box::pin(state.ledger.run(&state.executor, request, &origin, key, &*render)).await };
        let task = self.running.spawn(work.instrument(tracing::Span::current()));
        Ok(task.await.map_err(|why| Problem::internal(&why))??)
    }

    /// Takes what an asynchronous handler reports, in a task of its own: a webhook that hangs up does not cut it in half.
    pub(super) async fn take_report(
        &self,
        registry: Arc<Registry>,
        token: CallbackToken,
        reported: Reported,
    ) -> Result<Receipt, Problem> {
        let state = self.clone();
        let work = async move { state.executor.take_report(&state.underway, &registry, token, reported).await };
        let task = self.running.spawn(work.instrument(tracing::Span::current()));
        let receipt: Result<Receipt, NotTaken> = task.await.map_err(|why| Problem::internal(&why))?;
        Ok(receipt?)
    }

    /// Where things are counted.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// The tools in memory, for whoever keeps them fresh.
    pub fn registries(&self) -> Registries {
        self.registries.clone()
    }

    /// What this process has claimed, for the work beside the requests.
    pub fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    /// Forgets what is remembered of a tenant that was changed or removed.
    pub(super) async fn forget_tenants(&self, id: Uuid) {
        self.registries.forget(id).await;
        self.tenants.forget_all();
        self.keys.forget_all();
    }

    /// The metrics as they are read at `/metrics`.
    pub fn exposition(&self) -> String {
        let connections = self.store.connections();
        self.metrics.exposition(Levels {
            connections_used: connections.used,
            connections_idle: connections.idle,
            connections_most: connections.most,
            snapshots: self.registries.count(),
            schemas: self.store.schemas().count(),
            schemas_compiled: self.store.schemas().compiled(),
            database_up: self.store.away_for().is_none(),
        })
    }

    /// Takes the service out of rotation: it is not ready any more, and what runs may finish.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.ledger.stop();
        self.underway.stop();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Waits until every running call was answered and logged.
    pub async fn drain(&self) {
        self.start_draining();
        self.running.close();
        self.running.wait().await;
        self.journal.finish().await;
        self.ledger.finish().await;
        self.underway.finish().await;
    }
}

fn count(metrics: &Metrics, origin: &Origin, executed: &[Executed]) {
    for call in executed {
        let status = call.outcome.status().as_str();
        let code = match &call.outcome {
            Outcome::Success(_) | Outcome::Pending(_) => None,
            Outcome::Failure(failure) => Some(failure.code),
        };
        metrics.call_ended(CallEnd { format: origin.format, handler: call.handler, status, code });
    }
}
