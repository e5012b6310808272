//! What one handler is asked at one time, whether it is asked at all, and how often it is asked again.

use super::Limiting;
use super::breaker::{Breaker, Passed, Verdict};
use crate::telemetry::{InFlight, Metrics};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::retry::budget::{Budget as _, TpsBudget};

/// How many calls may wait for each that runs.
const WAITING_PER_RUNNING: usize = 4;
/// For how long a request allows for its share of a repeat.
const BUDGET_TIME: Duration = Duration::from_secs(10);
/// Which part of a handler's requests may be repeats.
const BUDGET_SHARE: f32 = 0.2;

/// One handler of one tenant, as it is now: one with another URL is another handler.
pub(super) struct HandlerGate {
    /// Calls that it may run at one time.
    pub(super) running: Arc<Semaphore>,
    /// Calls that may wait for that.
    pub(super) waiting: Semaphore,
    breaker: Mutex<Watched>,
    budget: TpsBudget,
    metrics: Metrics,
}

/// A breaker, counted while it is open.
struct Watched {
    breaker: Breaker,
    open: Option<InFlight>,
}

impl HandlerGate {
    pub(super) fn new(settings: &Limiting, metrics: Metrics) -> Self {
        let running = (settings.handler_concurrency as usize).max(1);
        let breaker = Breaker::new(settings.breaking, Instant::now());
        Self {
            running: Arc::new(Semaphore::new(running)),
            waiting: Semaphore::new(running * WAITING_PER_RUNNING),
            breaker: Mutex::new(Watched { breaker, open: None }),
            budget: TpsBudget::new(BUDGET_TIME, settings.repeats_per_second, BUDGET_SHARE),
            metrics,
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it is left alone for from now on.
    pub(super) fn refuses(&self) -> Option<Duration> {
        self.watched().breaker.refuses(Instant::now())
    }

    /// Lets a request through, or says when to come back.
    pub(super) fn pass(&self) -> Result<Passed, Duration> {
        self.watched().breaker.pass(Instant::now())
    }

    /// Hears how a request ended.
    pub(super) fn ended(&self, passed: Passed, verdict: Verdict) {
        let mut watched = self.watched();
        watched.breaker.ended(passed, verdict, Instant::now());
        if !watched.breaker.is_open() {
            watched.open = None;
        } else if watched.open.is_none() {
            watched.open = Some(self.metrics.breaker_open());
        }
    }

    /// Counts a call, a fifth of which may be asked again.
    pub(super) fn count(&self) {
        self.budget.deposit();
    }

    /// Whether one may be asked again now; that it is, then.
    pub(super) fn may_repeat(&self) -> bool {
        self.budget.withdraw()
    }
}
