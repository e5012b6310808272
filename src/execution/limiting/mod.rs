//! How much may be under way, of whom, and whether a handler is to be called at all. Everything here is this process's
//! own, in memory, and bounded: what has not been used for a while is forgotten.
//!
//! A request is admitted once, before anything is done for it ([`Executor::admit`](super::Executor::admit)): its tenant's rate,
//! the process's cap, and a place among the tenant's calls. Each of its calls then waits for its turn: at its handler first,
//! then at its tenant's running calls. In this order a call that waits for a slow handler takes nothing from the tenant's
//! other handlers, and what it does hold while it waits for the tenant is its own handler's.

mod admission;
mod breaker;
mod handlers;
mod refused;
mod tenants;
mod turn;

pub use admission::{Admission, TooMuch};
pub use breaker::Breaking;
pub(super) use breaker::Verdict;
pub(super) use tenants::TenantGate;
pub(super) use turn::{Gates, Pass};

use crate::domain::TenantFacts;
use crate::domain::handler::HandlerKind;
use crate::registry::{Entry, HandlerKey};
use crate::telemetry::Metrics;
use handlers::HandlerGate;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// How many tenants and handlers are remembered, and for how long after their last call: longer than a call may take, and
/// than a handler may be left alone.
const MOST: u64 = 100_000;
const IDLE: Duration = Duration::from_mins(15);

/// What the operator lets calls take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limiting {
    /// Calls that a tenant may start in a second, where its own limits say nothing; as many at once.
    pub calls_per_second: u32,
    /// Calls that a tenant may have running at one time, where its own limits say nothing.
    pub concurrent_calls: u32,
    /// Calls that all tenants together may have in this process, running and waiting.
    pub in_flight_calls: u32,
    /// Calls that a handler may be running at one time.
    pub handler_concurrency: u32,
    /// When a handler is left alone.
    pub breaking: Breaking,
    /// Repeats that a handler may get in a second whatever came before, beside a fifth of its recent requests.
    pub repeats_per_second: u32,
    /// The longest wait before the first repeat of a request; it doubles with each.
    pub first_backoff: Duration,
}

impl Default for Limiting {
    fn default() -> Self {
        Self {
            calls_per_second: 10_000,
            concurrent_calls: 64,
            in_flight_calls: 4_096,
            handler_concurrency: 16,
            breaking: Breaking::default(),
            repeats_per_second: 1,
            first_backoff: Duration::from_millis(250),
        }
    }
}

/// The limits at work. Cheap to clone; the clones share them.
#[derive(Clone)]
pub(super) struct Limiter {
    settings: Arc<Limiting>,
    metrics: Metrics,
    in_flight: Arc<Semaphore>,
    /// By tenant and limits: who is given others starts anew, and who sees the old ones for a moment longer renews nothing.
    tenants: Cache<(Uuid, u32, u32), Arc<TenantGate>>,
    handlers: Cache<(Uuid, HandlerKey), Arc<HandlerGate>>,
}

impl Limiter {
    pub(super) fn new(settings: Limiting, metrics: Metrics) -> Self {
        let in_flight = Arc::new(Semaphore::new(settings.in_flight_calls as usize));
        Self { settings: Arc::new(settings), metrics, in_flight, tenants: remembered(), handlers: remembered() }
    }

    pub(super) fn settings(&self) -> &Limiting {
        &self.settings
    }

    pub(super) const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What a tenant may use now.
    pub(super) async fn tenant(&self, tenant: &TenantFacts) -> Arc<TenantGate> {
        let rate = tenant.limits.calls_per_second.unwrap_or(self.settings.calls_per_second);
        let running = tenant.limits.concurrent_calls.unwrap_or(self.settings.concurrent_calls);
        let key = (tenant.id, rate, running);
        self.tenants.get_with(key, async { Arc::new(TenantGate::new(rate, running)) }).await
    }

    /// What a call of this tool has to pass. Handlers that are Rust code are ours, and need no protection.
    pub(super) async fn gates(&self, tenant: Uuid, gate: &Arc<TenantGate>, entry: &Entry) -> Gates {
        let handler = match entry.handler.kind {
            HandlerKind::Native { .. } => None,
            HandlerKind::Webhook { .. } => {
                let made = async { Arc::new(HandlerGate::new(&self.settings, self.metrics.clone())) };
                Some(self.handlers.get_with((tenant, entry.handler_key), made).await)
            }
        };
        Gates::new(Arc::clone(gate), handler, self.metrics.clone())
    }
}

/// A memory that keeps what was used last: a newcomer is never the one to be forgotten.
fn remembered<K, V>() -> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    Cache::builder().max_capacity(MOST).time_to_idle(IDLE).eviction_policy(EvictionPolicy::lru()).build()
}

/// A time between nothing and `most`, at random: those who were refused together do not come back together.
pub(super) fn jitter(most: Duration) -> Duration {
    let part = getrandom::u32().unwrap_or(u32::MAX / 2);
    most.mul_f64(f64::from(part) / f64::from(u32::MAX))
}
