//! What every request shares.

use super::problem::Problem;
use crate::domain::{TenantFacts, TenantName};
use crate::egress::Egress;
use crate::execution::{Executed, Executor, Journal, Lanes, Natives, Origin, Request};
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
}

impl Default for Settings {
    fn default() -> Self {
        Self { cached_tenants: 10_000 }
    }
}

/// What every request shares. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    pub(super) store: Store,
    pub(super) egress: Egress,
    pub(super) registries: Registries,
    pub(super) executor: Executor,
    /// Where schemas are compiled.
    pub(super) compiling: Lanes,
    pub(super) journal: Journal,
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
            compiling: Lanes::default(),
            journal: Journal::new(store.clone()),
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

    /// Forgets what is remembered of a tenant that was changed or removed.
    pub(super) async fn forget_tenants(&self, id: Uuid) {
        self.registries.forget(id).await;
        self.tenants.invalidate_all();
        self.keys.invalidate_all();
    }

    /// Takes the service out of rotation: it is not ready any more, and what runs may finish.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Waits until every running call was answered and logged.
    pub async fn drain(&self) {
        self.start_draining();
        self.running.close();
        self.running.wait().await;
    }
}
