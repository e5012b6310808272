//! Long computations: off the threads that serve requests, one at a time per tenant and a few at once. So a
//! tenant whose schemas or values take long waits for itself, and the others do not wait for it.

use crate::domain::schema::meter::{Budget, Exhausted, within};
use moka::future::Cache;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// How many computations are under way at once, over all tenants.
const MAX_AT_ONCE: usize = 4;
/// How long one check may take, however the machine is loaded; its steps are counted besides.
const MAX_CHECK: Duration = Duration::from_secs(2);
/// How many tenants' turns are remembered, and how long after the last one.
const MOST_TENANTS: u64 = 100_000;
const IDLE: Duration = Duration::from_mins(10);

/// The turns of all tenants. Cheap to clone; the clones share them.
#[derive(Clone)]
pub struct Turns {
    all: Arc<Semaphore>,
    tenants: Cache<Uuid, Arc<Semaphore>>,
}

/// Why a computation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoResult {
    /// Its turn did not come in time.
    Waiting,
    /// It took too long, or too many steps.
    TooMuch,
    /// It broke.
    Broken,
}

impl Default for Turns {
    fn default() -> Self {
        let tenants = Cache::builder().max_capacity(MOST_TENANTS).time_to_idle(IDLE).build();
        Self { all: Arc::new(Semaphore::new(MAX_AT_ONCE)), tenants }
    }
}

/// Ends a computation whose result nobody waits for any more.
struct StopWithMe(Arc<AtomicBool>);

impl Drop for StopWithMe {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Turns {
    /// Does work that holds values against schemas: here and now if little is enough, else when it is the tenant's turn. It is
    /// answered by `deadline` in any case. The work may be begun twice.
    pub async fn check<T: Send + 'static>(
        &self,
        tenant: Uuid,
        deadline: Instant,
        work: impl Fn() -> T + Send + 'static,
    ) -> Result<T, NoResult> {
        match catch_unwind(AssertUnwindSafe(|| within(Budget::small(), &work))) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(Exhausted)) => {}
            Err(_) => return Err(NoResult::Broken),
        }
        let at_length = move |stop| within(Budget::full().until(stop), work);
        self.run(tenant, deadline, MAX_CHECK, at_length).await?.map_err(|Exhausted| NoResult::TooMuch)
    }

    /// Does work once it is the tenant's turn, for at most so long. Work that does not look at its `stop` goes on after that,
    /// and the turn with it.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: Uuid,
        deadline: Instant,
        longest: Duration,
        work: impl FnOnce(Arc<AtomicBool>) -> T + Send + 'static,
    ) -> Result<T, NoResult> {
        let turn = async {
            let own = self.tenants.get_with(tenant, async { Arc::new(Semaphore::new(1)) }).await;
            Ok::<_, tokio::sync::AcquireError>((
                own.acquire_owned().await?,
                Arc::clone(&self.all).acquire_owned().await?,
            ))
        };
        let Ok(turn) = timeout_at(deadline, turn).await else { return Err(NoResult::Waiting) };
        let turn = turn.map_err(|_| NoResult::Broken)?;
        let stop = StopWithMe(Arc::default());
        let seen = Arc::clone(&stop.0);
        let working = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(seen)
        });
        match timeout_at(deadline.min(Instant::now() + longest), working).await {
            Ok(done) => done.map_err(|_| NoResult::Broken),
            Err(_) => Err(NoResult::TooMuch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[tokio::test]
    async fn a_tenant_computes_one_thing_at_a_time_and_others_are_not_held_up() {
        let (turns, busy) = (Turns::default(), Arc::new(AtomicUsize::new(0)));
        let tenant = Uuid::now_v7();
        let work = |busy: Arc<AtomicUsize>| {
            move |_| {
                let before = busy.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                busy.fetch_sub(1, Ordering::SeqCst);
                before
            }
        };
        let all = (0..10).map(|_| turns.run(tenant, soon(), MAX_CHECK, work(Arc::clone(&busy))));
        let before = futures_util::future::join_all(all).await;
        assert_eq!(before, vec![Ok(0); 10]);

        let held =
            turns.run(tenant, soon(), Duration::from_secs(20), |_| std::thread::sleep(Duration::from_millis(500)));
        let (waiting, other) = tokio::join!(
            async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                turns.run(tenant, Instant::now() + Duration::from_millis(50), MAX_CHECK, |_| ()).await
            },
            turns.run(Uuid::now_v7(), soon(), MAX_CHECK, |_| ()),
        );
        assert_eq!((waiting, other), (Ok(()), Ok(())), "nothing was held yet");
        let (held, waiting) = tokio::join!(held, async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            turns.run(tenant, Instant::now() + Duration::from_millis(50), MAX_CHECK, |_| ()).await
        });
        assert_eq!((held, waiting), (Ok(()), Err(NoResult::Waiting)));
    }

    #[tokio::test]
    async fn what_breaks_or_takes_too_long_is_told() {
        let turns = Turns::default();
        let broken = turns.check(Uuid::nil(), soon(), || assert_eq!(1, 2)).await;
        assert_eq!(broken, Err(NoResult::Broken));
        let late = turns.run(Uuid::nil(), soon(), Duration::from_millis(50), |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(late.await, Err(NoResult::TooMuch));
        assert_eq!(turns.run(Uuid::nil(), soon(), MAX_CHECK, |_| 7).await, Ok(7));
    }
}
