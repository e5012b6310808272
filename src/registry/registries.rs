//! The snapshots of the tenants that are being served: bounded in number, made once however many wait.

use super::handler_key::HandlerKey;
use super::snapshot::{Broken, Entry, Registry};
use crate::domain::Handler;
use crate::store::{self, Store, StoreError};
use crate::telemetry::Metrics;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long snapshots are served from memory while Postgres is away, unless told otherwise.
const STALE_FOR: Duration = Duration::from_mins(15);

/// How often a snapshot is loaded for one request, while writes come in between.
const LOADS: usize = 8;

/// The cache of snapshots. Cheap to clone; the clones share it.
#[derive(Clone)]
pub struct Registries {
    store: Store,
    /// The tools that are registered in code, which every tenant has beside its own.
    native: Arc<Vec<Arc<Entry>>>,
    snapshots: Cache<Uuid, Loaded>,
    /// Goes up with each drop of a tenant's snapshot.
    drops: Cache<Uuid, u64>,
    /// The versions that tenants are known to have by now, where other replicas changed them.
    floors: Cache<Uuid, i64>,
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

impl Loaded {
    fn is_good(&self, drops: Option<u64>, floor: i64) -> bool {
        self.drops == drops && self.registry.version() >= floor
    }
}

/// Notes about more tenants than there are snapshots. The newest are always kept: they are what loads under way are held against.
fn newest_of<V: Clone + Send + Sync + 'static>(most: u64) -> Cache<Uuid, V> {
    Cache::builder().max_capacity(most.saturating_mul(4)).eviction_policy(EvictionPolicy::lru()).build()
}

impl Registries {
    /// A cache of at most `most` tenants.
    pub fn new(store: Store, native: Vec<Arc<Entry>>, most: u64) -> Self {
        let snapshots = Cache::builder().max_capacity(most).build();
        let (drops, floors) = (newest_of(most), newest_of(most));
        let (stale_for, metrics) = (STALE_FOR, Metrics::default());
        Self { store, native: Arc::new(native), snapshots, drops, floors, stale_for, metrics }
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
        self.get_at_least(tenant, 0).await
    }

    /// The same, but never older than a version that the asker has seen already, on whichever replica.
    pub async fn get_at_least(&self, tenant: Uuid, seen: i64) -> Result<Option<Arc<Registry>>, Arc<StoreError>> {
        if self.store.away_for().is_some_and(|silence| silence > self.stale_for) {
            return Err(Arc::new(StoreError::Away));
        }
        let mut old: Option<Loaded> = None;
        for _ in 0..LOADS {
            let drops = self.drops.get(&tenant).await;
            let floor = self.floors.get(&tenant).await.unwrap_or_default().max(seen);
            let found = match self.snapshots.get(&tenant).await {
                Some(found) => {
                    self.metrics.snapshot_hit();
                    found
                }
                None => match self.snapshots.try_get_with(tenant, Box::pin(self.load(tenant))).await {
                    Ok(loaded) => loaded,
                    Err(why) => match (why.as_ref(), old) {
                        (None, _) => return Ok(None),
                        // It went away when it was needed: what was known before is served, as to everybody else.
                        (Some(why), Some(old)) if why.is_unavailable() && old.is_good(drops, seen) => {
                            self.snapshots.insert(tenant, old.clone()).await;
                            return Ok(Some(old.registry));
                        }
                        (Some(why), _) => return Err(Arc::clone(why)),
                    },
                },
            };
            if found.is_good(drops, floor) {
                return Ok(Some(found.registry));
            }
            if self.store.away_for().is_some() && found.is_good(drops, seen) {
                return Ok(Some(found.registry));
            }
            self.snapshots.invalidate(&tenant).await;
            old = Some(found);
        }
        // The database itself is behind what was heard: it lost its last commits, or nobody ever saw that version.
        self.floors.invalidate(&tenant).await;
        match old {
            Some(old) if old.registry.version() >= seen => Ok(Some(old.registry)),
            _ => Err(Arc::new(StoreError::Behind)),
        }
    }

    /// Notes a version that the tenant has by now: an older snapshot is not served any more, and a load of one that is under way
    /// does not pass for it.
    pub async fn changed(&self, tenant: Uuid, version: i64) {
        let known = self.floors.get(&tenant).await.unwrap_or_default();
        self.floors.insert(tenant, known.max(version)).await;
    }

    /// The tenants in memory, and the version of each.
    pub(super) fn known(&self) -> Vec<(Uuid, i64)> {
        self.snapshots.iter().map(|(tenant, loaded)| (*tenant, loaded.registry.version())).collect()
    }

    pub(super) const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Forgets the tenant's snapshot. To be called after a write to its tools, handlers or limits was committed and
    /// before it is answered: whoever asks after the answer gets what was written.
    pub async fn forget(&self, tenant: Uuid) {
        let drops = self.drops.get(&tenant).await.unwrap_or_default();
        self.drops.insert(tenant, drops + 1).await;
        let Some(old) = self.snapshots.remove(&tenant).await else { return };
        // The next snapshot has most of its tools again.
        old.registry.entries().for_each(|entry| self.store.schemas().keep(&entry.tool));
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
        let mut handlers: HashMap<Uuid, (HandlerKey, Arc<Handler>)> = HashMap::new();
        for tool in loaded.tools {
            match tool {
                Ok(tool) => {
                    let of = |handler| (HandlerKey::of(tool.handler_id, &handler), Arc::new(handler));
                    let (handler_key, handler) = handlers.entry(tool.handler_id).or_insert_with(|| of(tool.handler));
                    let (handler_key, handler) = (*handler_key, Arc::clone(handler));
                    entries.push(Arc::new(Entry { tool: tool.tool, version: tool.version, handler_key, handler }));
                }
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
