//! A call's turn: the wait for it, and what is held while it lasts.

use super::breaker::{Passed, Verdict};
use super::handlers::HandlerGate;
use super::refused;
use super::tenants::TenantGate;
use crate::domain::Failure;
use crate::telemetry::{Metrics, Queue};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Which part of its time a call waits for its handler, and for its tenant's other calls, at most. What is left is enough
/// to be worth sending it.
const HANDLER_SHARE: u32 = 2;
const TENANT_SHARE: u32 = 4;

/// What a call has to pass each time that it is sent.
#[derive(Clone)]
pub(in crate::execution) struct Gates {
    tenant: Arc<TenantGate>,
    handler: Option<Arc<HandlerGate>>,
    metrics: Metrics,
}

/// A call's turn. It ends with [`Pass::ended`]; one that is dropped says nothing about the handler.
pub(in crate::execution) struct Pass {
    gates: Gates,
    let_through: Option<LetThrough>,
    _running: [Option<OwnedSemaphorePermit>; 2],
}

/// What a breaker has to hear of.
struct LetThrough {
    handler: Arc<HandlerGate>,
    passed: Passed,
    verdict: Verdict,
}

impl Drop for LetThrough {
    fn drop(&mut self) {
        self.handler.ended(self.passed, self.verdict);
    }
}

impl Gates {
    pub(super) const fn new(tenant: Arc<TenantGate>, handler: Option<Arc<HandlerGate>>, metrics: Metrics) -> Self {
        Self { tenant, handler, metrics }
    }

    /// Waits for the turn of a call that has to be answered by `deadline`.
    pub(in crate::execution) async fn enter(self, deadline: Instant) -> Result<Pass, Failure> {
        let entered = self.wait(deadline).await;
        entered.inspect_err(|refused| self.metrics.refused(refused.code)).map(|(let_through, running)| Pass {
            gates: self,
            let_through,
            _running: running,
        })
    }

    async fn wait(
        &self,
        deadline: Instant,
    ) -> Result<(Option<LetThrough>, [Option<OwnedSemaphorePermit>; 2]), Failure> {
        let began = Instant::now();
        let time = deadline.saturating_duration_since(began);
        let Some(handler) = &self.handler else {
            return Ok((None, [None, Some(self.tenant_turn(began + time / TENANT_SHARE).await?)]));
        };
        // Known to be down: nobody waits for that.
        if let Some(wait) = handler.refuses() {
            return Err(refused::handler_unavailable(wait));
        }
        let own = self.handler_turn(handler, began + time / HANDLER_SHARE).await?;
        let shared = self.tenant_turn(Instant::now() + time / TENANT_SHARE).await?;
        // Asked last: who tries whether it is back is on the way there.
        let passed = handler.pass().map_err(refused::handler_unavailable)?;
        let let_through = LetThrough { handler: Arc::clone(handler), passed, verdict: Verdict::Nothing };
        Ok((Some(let_through), [Some(own), Some(shared)]))
    }

    async fn handler_turn(&self, handler: &HandlerGate, until: Instant) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(permit) = Arc::clone(&handler.running).try_acquire_owned() {
            return Ok(permit);
        }
        let _waiting = handler.waiting.try_acquire().map_err(|_| refused::handler_busy())?;
        let _seen = self.metrics.call_waiting(Queue::HANDLER);
        turn(&handler.running, until).await.ok_or_else(refused::handler_busy)
    }

    async fn tenant_turn(&self, until: Instant) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(permit) = Arc::clone(&self.tenant.running).try_acquire_owned() {
            return Ok(permit);
        }
        let _seen = self.metrics.call_waiting(Queue::TENANT);
        turn(&self.tenant.running, until).await.ok_or_else(refused::too_many_calls)
    }

    /// Counts a call, which allows for a share of a repeat.
    pub(in crate::execution) fn count(&self) {
        if let Some(handler) = &self.handler {
            handler.count();
        }
    }

    /// Whether the handler may be asked once more now.
    pub(in crate::execution) fn may_repeat(&self) -> bool {
        self.handler.as_ref().is_none_or(|handler| handler.may_repeat())
    }
}

/// Those who wait get their turns in the order in which they came.
async fn turn(semaphore: &Arc<Semaphore>, until: Instant) -> Option<OwnedSemaphorePermit> {
    timeout_at(until, Arc::clone(semaphore).acquire_owned()).await.ok()?.ok()
}

impl Pass {
    /// What was passed.
    pub(in crate::execution) const fn gates(&self) -> &Gates {
        &self.gates
    }

    /// Ends the turn, and says what it told about the handler.
    pub(in crate::execution) fn ended(mut self, verdict: Verdict) -> Gates {
        if let Some(let_through) = &mut self.let_through {
            let_through.verdict = verdict;
        }
        self.gates.clone()
    }
}
