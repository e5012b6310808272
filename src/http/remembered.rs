//! What was asked of the database not long ago, and is needed by every request: keys, and the tenants of operators.

use crate::store::{Store, StoreError};
use moka::future::Cache;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer is taken without asking again: the promise is that a revoked key ends within 5 seconds.
const FRESH_FOR: Duration = Duration::from_secs(4);
/// How long it is taken while Postgres is away. A key that is revoked elsewhere just before lives that long.
const KNOWN_FOR: Duration = Duration::from_mins(10);
/// How many answers are kept.
const MOST: u64 = 100_000;

/// Answers of the database by what was asked for. Cheap to clone; the clones share them.
#[derive(Clone)]
pub(super) struct Remembered<K, V> {
    store: Store,
    fresh: Cache<K, V>,
    known: Cache<K, V>,
}

impl<K, V> Remembered<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn new(store: Store) -> Self {
        let kept = |time| Cache::builder().max_capacity(MOST).time_to_live(time).build();
        Self { store, fresh: kept(FRESH_FOR), known: kept(KNOWN_FOR) }
    }

    /// The answer, from memory or by `ask`; `None` if there is none. One question is asked once however many wait for it.
    pub(super) async fn get(
        &self,
        key: &K,
        ask: impl Future<Output = Result<Option<V>, StoreError>>,
    ) -> Result<Option<V>, Arc<StoreError>> {
        let load = async {
            let answer = self.store.noticing(ask).await.map_err(|why| Some(Arc::new(why)))?;
            let answer = answer.ok_or(None)?;
            self.known.insert(key.clone(), answer.clone()).await;
            Ok(answer)
        };
        let why: Arc<Option<Arc<StoreError>>> = match self.fresh.try_get_with(key.clone(), Box::pin(load)).await {
            Ok(answer) => return Ok(Some(answer)),
            Err(why) => why,
        };
        let Some(why) = Arc::unwrap_or_clone(why) else {
            self.known.invalidate(key).await;
            return Ok(None);
        };
        let known = if why.is_unavailable() { self.known.get(key).await } else { None };
        known.map(Some).ok_or(why)
    }

    /// The answer that there was not long ago, without asking.
    pub(super) async fn recall(&self, key: &K) -> Option<V> {
        self.known.get(key).await
    }

    /// Forgets one answer.
    pub(super) async fn forget(&self, key: &K) {
        self.fresh.invalidate(key).await;
        self.known.invalidate(key).await;
    }

    /// Forgets all of them.
    pub(super) fn forget_all(&self) {
        self.fresh.invalidate_all();
        self.known.invalidate_all();
    }
}
