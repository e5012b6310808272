//! The snapshots of the tenants that are being served: bounded in number, made once however many wait.

use super::handler_key::HandlerKey;
use super::snapshot::{Broken, Entry, Registry};
use crate::store::{self, Store, StoreError};
use crate::telemetry::Metrics;
use moka::future::Cache;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long snapshots are served from memory while Postgres is away, unless told otherwise.
const STALE_FOR: Duration = Duration::from_mins(15);

/// The cache of snapshots. Cheap to clone; the clones share it.
#[derive(Clone)]
pub struct Registries {
    store: Store,
    /// The tools that are registered in code, which every tenant has beside its own.
    native: Arc<Vec<Arc<Entry>>>,
    snapshots: Cache<Uuid, Loaded>,
    /// Goes up with each drop of a tenant's snapshot.
    drops: Cache<Uuid, u64>,
    stale_for: Duration,
    metrics: Metrics,
}

/// A snapshot, and how many drops there had been when its load began: a load that began before a write must not pass
/// for one that began after it, however late it ends.
#[derive(Clone)]
struct Loaded {
    registry: Arc<Registry>,
    drops: Option<u64>,
}

impl Registries {
    /// A cache of at most `most` tenants.
    pub fn new(store: Store, native: Vec<Arc<Entry>>, most: u64) -> Self {
        let snapshots = Cache::builder().max_capacity(most).build();
        let drops = Cache::builder().max_capacity(most.saturating_mul(4)).build();
        let (stale_for, metrics) = (STALE_FOR, Metrics::default());
        Self { store, native: Arc::new(native), snapshots, drops, stale_for, metrics }
    }

    /// The same, counted in these metrics.
    #[must_use]
    pub fn measured_by(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// The same, which serves snapshots for this long while Postgres is away.
    #[must_use]
    pub fn stale_for(self, stale_for: Duration) -> Self {
        Self { stale_for, ..self }
    }

    /// How many tenants' tools are in memory.
    pub fn count(&self) -> u64 {
        self.snapshots.entry_count()
    }

    /// The tenant's tools as they are now; `None` if there is no such tenant. While Postgres is away, as they were when it
    /// last answered, unless that is too long ago.
    pub async fn get(&self, tenant: Uuid) -> Result<Option<Arc<Registry>>, Arc<StoreError>> {
        if self.store.away_for().is_some_and(|silence| silence > self.stale_for) {
            return Err(Arc::new(StoreError::Away));
        }
        loop {
            let drops = self.drops.get(&tenant).await;
            let found = match self.snapshots.get(&tenant).await {
                Some(found) => {
                    self.metrics.snapshot_hit();
                    found
                }
                None => match self.snapshots.try_get_with(tenant, self.load(tenant)).await {
                    Ok(loaded) => loaded,
                    Err(why) => return why.as_ref().as_ref().map_or(Ok(None), |why| Err(Arc::clone(why))),
                },
            };
            if found.drops == drops {
                return Ok(Some(found.registry));
            }
            self.snapshots.invalidate(&tenant).await;
        }
    }

    /// Forgets the tenant's snapshot. To be called after a write to its tools, handlers or limits was committed and
    /// before it is answered: whoever asks after the answer gets what was written.
    pub async fn forget(&self, tenant: Uuid) {
        let drops = self.drops.get(&tenant).await.unwrap_or_default();
        self.drops.insert(tenant, drops + 1).await;
        self.snapshots.invalidate(&tenant).await;
    }

    /// The tools that are registered in code.
    pub fn native(&self) -> &[Arc<Entry>] {
        &self.native
    }

    /// Loads a snapshot. The error is `None` where there is no such tenant.
    async fn load(&self, tenant: Uuid) -> Result<Loaded, Option<Arc<StoreError>>> {
        let (drops, began) = (self.drops.get(&tenant).await, Instant::now());
        let loaded = store::registry::load(&self.store, tenant).await;
        self.metrics.snapshot_loaded(loaded.is_ok(), began.elapsed());
        let loaded = loaded.map_err(|why| Some(Arc::new(why)))?.ok_or(None)?;
        let mut entries = self.native.as_ref().clone();
        let mut broken = Vec::new();
        for tool in loaded.tools {
            match tool {
                Ok(tool) => entries.push(Arc::new(Entry {
                    tool: tool.tool,
                    version: tool.version,
                    handler_key: HandlerKey::of(tool.handler_id, &tool.handler),
                    handler: Arc::new(tool.handler),
                })),
                Err(row) => {
                    tracing::error!(tenant.name = %loaded.tenant.name, tool.name = row.name, error = %row.error, "a stored tool was set aside");
                    broken.push(Broken { name: row.name, reason: row.error.to_string() });
                }
            }
        }
        let registry = Arc::new(Registry::build(loaded.tenant, loaded.version, entries, broken));
        Ok(Loaded { registry, drops })
    }
}
