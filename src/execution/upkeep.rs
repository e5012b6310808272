//! What every replica does beside its requests: ends what dead replicas left behind, and keeps the log's days.

use super::ledger::Ledger;
use super::unanswered;
use crate::store::{StoreError, claims, pending, retention};
use crate::telemetry::Metrics;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often calls are looked for whose lease ran out.
const REAP: Duration = Duration::from_secs(3);
/// How often partitions are made and dropped, and old keys removed.
const TIDY: Duration = Duration::from_mins(10);

/// Works until it is told to stop. What fails is tried again the next time.
pub async fn run(ledger: Ledger, metrics: Metrics, stop: CancellationToken) {
    let work = Box::pin(async { tokio::join!(reap_always(&ledger, &metrics), tidy_always(&ledger)) });
    stop.run_until_cancelled(work).await;
}

async fn reap_always(ledger: &Ledger, metrics: &Metrics) {
    loop {
        match ledger.reap().await {
            Ok(calls) => metrics.given_up(calls),
            Err(error) => tracing::warn!(%error, "calls that were left behind could not be looked for"),
        }
        match give_up(ledger).await {
            Ok(calls) => metrics.given_up(calls),
            Err(error) => tracing::warn!(%error, "calls whose time is up could not be looked for"),
        }
        tokio::time::sleep(REAP).await;
    }
}

/// Ends the calls of asynchronous handlers whose time is up.
async fn give_up(ledger: &Ledger) -> Result<usize, StoreError> {
    let (lost, unreported) = (unanswered::lost_sight(), unanswered::callback_expired());
    let texts = ((lost.code, lost.message.as_str()), (unreported.code, unreported.message.as_str()));
    let given_up = pending::give_up(&ledger.0.store, texts.0, texts.1).await?;
    for (tenant, call) in &given_up {
        tracing::warn!(%tenant, %call, "a call's time ran out before anybody reported on it");
    }
    Ok(given_up.len())
}

async fn tidy_always(ledger: &Ledger) {
    loop {
        if let Err(error) = tidy(ledger).await {
            tracing::warn!(%error, "the log could not be tidied");
        }
        tokio::time::sleep(TIDY).await;
    }
}

async fn tidy(ledger: &Ledger) -> Result<(), StoreError> {
    let kept = retention::keep(&ledger.0.store).await?;
    let mut keys = 0;
    loop {
        let pruned = claims::prune(&ledger.0.store).await?;
        keys += pruned;
        if pruned == 0 {
            break;
        }
    }
    if kept != retention::Kept::default() || keys > 0 {
        let retention::Kept { made, dropped, removed } = kept;
        tracing::info!(made, dropped, removed, keys, "tidied the log");
    }
    Ok(())
}
