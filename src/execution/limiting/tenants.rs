//! What one tenant may use: a rate of calls, running calls, and places of calls that run or wait.

use governor::clock::{Clock as _, MonotonicClock};
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How many calls may wait for each that runs, and how many at least.
const WAITING_PER_RUNNING: usize = 4;
const LEAST_WAITING: usize = 16;

/// One tenant's limits at work.
pub(in crate::execution) struct TenantGate {
    rate: RateLimiter<NotKeyed, InMemoryState, MonotonicClock>,
    /// Calls that may run at one time.
    pub(super) running: Arc<Semaphore>,
    /// Calls that may run or wait.
    pub(super) places: Arc<Semaphore>,
}

impl TenantGate {
    pub(super) fn new(calls_per_second: u32, concurrent_calls: u32) -> Self {
        let quota = Quota::per_second(NonZeroU32::new(calls_per_second).unwrap_or(NonZeroU32::MIN));
        let running = (concurrent_calls as usize).max(1);
        let waiting = (running * WAITING_PER_RUNNING).max(LEAST_WAITING);
        Self {
            rate: RateLimiter::direct_with_clock(quota, MonotonicClock),
            running: Arc::new(Semaphore::new(running)),
            places: Arc::new(Semaphore::new(running + waiting)),
        }
    }

    /// Starts as many of these calls as the rate allows now; and says, if that is not all of them, when it allows one more.
    pub(super) fn start(&self, calls: usize) -> (usize, Duration) {
        for started in 0..calls {
            if let Err(later) = self.rate.check() {
                return (started, later.wait_time_from(MonotonicClock.now()));
            }
        }
        (calls, Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_worth_of_calls_may_come_at_once() {
        let gate = TenantGate::new(2, 1);
        let (started, wait) = gate.start(5);
        assert_eq!(started, 2);
        assert!(wait > Duration::ZERO && wait <= Duration::from_millis(500), "{wait:?}");
        assert_eq!((gate.running.available_permits(), gate.places.available_permits()), (1, 17));
    }
}
