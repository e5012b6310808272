//! What every request shares.

use super::problem::Problem;
use crate::domain::{TenantFacts, TenantName};
use crate::egress::Egress;
use crate::execution::{
    Answer, CallLog, CrashPoint, Executed, Executor, Journal, Key, Ledger, Natives, Origin, Render, Request,
};
use crate::registry::Registries;
use crate::store::Store;
use crate::store::keys::StoredKey;
use moka::future::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

/// How long a key is taken without asking the database again: the promise is that a revoked one ends within 5 seconds.
const KEY_LIFETIME: Duration = Duration::from_secs(4);
/// How many keys are remembered.
const MOST_KEYS: u64 = 100_000;

/// What the operator decides about the service.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many tenants' compiled tools are kept in memory.
    pub cached_tenants: u64,
    /// When a call's record has to be in the database.
    pub call_log: CallLog,
    /// How much longer than its calls may take a claimed request belongs to this process.
    pub lease_grace: Duration,
    /// Where to die, for tests.
    pub crash_at: Option<CrashPoint>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cached_tenants: 10_000,
            call_log: CallLog::default(),
            lease_grace: Duration::from_secs(10),
            crash_at: None,
        }
    }
}

/// What every request shares. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    pub(super) store: Store,
    pub(super) egress: Egress,
    pub(super) registries: Registries,
    pub(super) executor: Executor,
    pub(super) journal: Journal,
    pub(super) ledger: Ledger,
    /// What may be the key of a public id.
    pub(super) keys: Cache<String, Arc<Vec<StoredKey>>>,
    /// The tenants that operators act for.
    pub(super) tenants: Cache<TenantName, TenantFacts>,
    running: TaskTracker,
    draining: Arc<AtomicBool>,
}

impl AppState {
    /// Puts the service together.
    pub fn new(store: Store, egress: Egress, natives: Natives, settings: Settings) -> Self {
        Self {
            registries: Registries::new(store.clone(), natives.entries(), settings.cached_tenants),
            executor: Executor::new(egress.clone(), natives),
            journal: Journal::start(store.clone(), settings.call_log),
            ledger: Ledger::start(store.clone(), settings.lease_grace, settings.crash_at),
            keys: Cache::builder().max_capacity(MOST_KEYS).time_to_live(KEY_LIFETIME).build(),
            tenants: Cache::builder().max_capacity(MOST_KEYS).time_to_live(KEY_LIFETIME).build(),
            running: TaskTracker::new(),
            draining: Arc::default(),
            store,
            egress,
        }
    }

    /// Runs calls and logs them, in a task of their own: a caller that hangs up does not cut a call in half.
    pub(super) async fn execute(&self, request: Request, origin: Origin) -> Result<Vec<Executed>, Problem> {
        if request.calls.is_empty() {
            return Ok(Vec::new());
        }
        self.journal.is_open().await?;
        let (executor, journal) = (self.executor.clone(), self.journal.clone());
        let work = async move {
            let (tenant, request_id) = (request.registry.tenant().id, request.request_id.clone());
            let executed = executor.run(request).await;
            journal.record(tenant, &request_id, &origin, &executed).await;
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
        let (executor, ledger) = (self.executor.clone(), self.ledger.clone());
        let work = async move { Box::pin(ledger.run(&executor, request, &origin, key, &*render)).await };
        let task = self.running.spawn(work.instrument(tracing::Span::current()));
        Ok(task.await.map_err(|why| Problem::internal(&why))??)
    }

    /// What this process has claimed, for the work beside the requests.
    pub fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    /// Forgets what is remembered of a tenant that was changed or removed.
    pub(super) async fn forget_tenants(&self, id: Uuid) {
        self.registries.forget(id).await;
        self.tenants.invalidate_all();
        self.keys.invalidate_all();
    }

    /// Takes the service out of rotation: it is not ready any more, and what runs may finish.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.ledger.stop();
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
    }
}
