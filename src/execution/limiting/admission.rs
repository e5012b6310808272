//! Whether a request is looked at, before anything is done for it.

use super::refused::{self, SOON, seconds};
use super::{Limiter, jitter};
use crate::domain::{Failure, TenantFacts};
use crate::execution::run::MAX_CONCURRENT;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Why none of a request's calls is run, and after how many seconds it may be sent again. Nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// The tenant makes calls faster than it may.
    Rate(u64),
    /// As many of the tenant's calls run and wait as may.
    Calls(u64),
    /// As many calls of all tenants run and wait as this process takes.
    Service(u64),
}

/// What a request may use.
#[derive(Debug)]
pub struct Admission {
    /// How many of its calls may be started.
    calls: usize,
    /// When the tenant may start another one.
    wait: Duration,
    /// How many of them may be under way at once.
    width: usize,
    places: Places,
}

impl Admission {
    /// One without bounds but that of how many calls are under way at once: for who runs calls without asking first.
    pub const fn unasked() -> Self {
        Self { calls: usize::MAX, wait: Duration::ZERO, width: MAX_CONCURRENT, places: Places::none() }
    }

    pub(in crate::execution) const fn width(&self) -> usize {
        self.width
    }

    /// Starts one call.
    pub(in crate::execution) fn start(&mut self) -> Result<(), Failure> {
        self.calls = self.calls.checked_sub(1).ok_or_else(|| refused::rate_limited(self.wait))?;
        Ok(())
    }

    /// What its calls hold while they run and wait.
    pub(in crate::execution) const fn places(&self) -> &Places {
        &self.places
    }
}

/// Places among the calls that run and wait: the process's and the tenant's.
#[derive(Debug)]
pub(in crate::execution) struct Places(Mutex<Vec<OwnedSemaphorePermit>>);

impl Places {
    const fn none() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Keeps no more than are needed for so many calls.
    pub(in crate::execution) fn keep(&self, calls: usize) {
        for permit in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            drop(permit.split(permit.num_permits().saturating_sub(calls)));
        }
    }
}

impl Limiter {
    /// Admits a request of so many calls, or as many of them as there is room for; cheapest checks first.
    pub(in crate::execution) async fn admit(&self, tenant: &TenantFacts, calls: usize) -> Result<Admission, TooMuch> {
        let gate = self.tenant(tenant).await;
        let admitted = (|| {
            let (started, wait) = gate.start(calls);
            if started == 0 {
                return Err(("rate_limited", TooMuch::Rate(later(wait))));
            }
            let asked = started.min(MAX_CONCURRENT);
            let full = ("overloaded", TooMuch::Service(later(SOON)));
            let in_flight = some_of(&self.in_flight, asked).ok_or(full)?;
            let full = ("too_many_calls", TooMuch::Calls(later(SOON)));
            let place = some_of(&gate.places, in_flight.num_permits()).ok_or(full)?;
            let width = place.num_permits();
            let places = Places(Mutex::new(vec![in_flight, place]));
            places.keep(width);
            Ok(Admission { calls: started, wait, width, places })
        })();
        admitted.map_err(|(reason, why)| {
            self.metrics.refused(reason);
            why
        })
    }
}

fn later(wait: Duration) -> u64 {
    seconds(wait + jitter(Duration::from_secs(1)))
}

/// As many permits as there are, at most so many, at least one.
fn some_of(semaphore: &Arc<Semaphore>, most: usize) -> Option<OwnedSemaphorePermit> {
    loop {
        let free = semaphore.available_permits().min(most);
        if free == 0 {
            return None;
        }
        // Somebody else may have been faster; then there are fewer.
        let many = u32::try_from(free).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(semaphore).try_acquire_many_owned(many) {
            return Some(permit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{TenantLimits, TenantName};
    use crate::execution::Limiting;
    use crate::telemetry::Metrics;
    use uuid::Uuid;

    fn tenant(calls_per_second: u32, concurrent_calls: u32) -> TenantFacts {
        let (calls_per_second, concurrent_calls) = (Some(calls_per_second), Some(concurrent_calls));
        let limits = TenantLimits { calls_per_second, concurrent_calls, ..TenantLimits::default() };
        TenantFacts { id: Uuid::now_v7(), name: TenantName::parse("acme").unwrap(), limits }
    }

    #[tokio::test]
    async fn a_request_gets_what_is_left_and_gives_back_what_it_needs_no_more() {
        let limiter = Limiter::new(Limiting { in_flight_calls: 20, ..Limiting::default() }, Metrics::default());
        let (acme, other) = (tenant(1_000, 1), tenant(1_000, 1));
        let first = limiter.admit(&acme, 12).await.unwrap();
        assert_eq!((first.calls, first.width), (12, 12));
        let second = limiter.admit(&acme, 12).await.unwrap();
        assert_eq!((second.calls, second.width), (12, 5), "17 places in all");
        assert_eq!(limiter.in_flight.available_permits(), 3);
        assert!(matches!(limiter.admit(&acme, 1).await, Err(TooMuch::Calls(1..=3))));
        let third = limiter.admit(&other, 8).await.unwrap();
        assert_eq!(third.width, 3, "20 in all");
        assert!(matches!(limiter.admit(&other, 1).await, Err(TooMuch::Service(1..=3))));
        first.places().keep(2);
        assert_eq!(limiter.admit(&acme, 100).await.unwrap().width, 10);
        drop((first, second, third));
        assert_eq!(limiter.in_flight.available_permits(), 20);
    }

    #[tokio::test]
    async fn the_rate_is_the_tenant_s_and_its_present_one() {
        let limiter = Limiter::new(Limiting::default(), Metrics::default());
        let mut acme = tenant(2, 10);
        let mut first = limiter.admit(&acme, 3).await.unwrap();
        assert_eq!((first.start(), first.start()), (Ok(()), Ok(())));
        assert_eq!(first.start().unwrap_err().code, "rate_limited");
        assert!(matches!(limiter.admit(&acme, 1).await, Err(TooMuch::Rate(1..=2))));
        assert!(limiter.admit(&tenant(2, 10), 1).await.is_ok(), "another tenant");
        acme.limits.calls_per_second = Some(50);
        assert_eq!(limiter.admit(&acme, 3).await.unwrap().calls, 3);
    }
}
