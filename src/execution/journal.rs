//! The log: a call is in it before it is answered.

use super::health::Health;
use super::lane::{Lane, Write};
use super::{Executed, record};
use crate::store::calls::Record;
use crate::store::{Store, StoreError, Writer};
use crate::telemetry::Metrics;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long an answer waits for its record while the database is away. The call has run, so its caller is told what came
/// of it even then; the record is kept and written as soon as the database is back.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// When a call's record has to be in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallLog {
    /// Before the call is answered; and no call is sent while the database is away.
    #[default]
    Durable,
    /// Soon after: a process that dies loses the records of its last moments.
    Relaxed,
}

/// Writes the log of calls, those of all requests in flight together. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    store: Store,
    lane: Lane<Append>,
    health: Health,
    mode: CallLog,
}

/// Where calls came from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The public id of the key that they were made with.
    pub key_id: String,
    /// The format that they came in; nothing for a call of one tool.
    pub format: Option<&'static str>,
}

impl Journal {
    /// A log in this database, with its writer.
    pub fn start(store: Store, mode: CallLog, metrics: Metrics) -> Self {
        let health = Health::default();
        let lane = Lane::start(Append { writer: Writer::new(store.clone()), health: health.clone(), metrics });
        Self { store, lane, health, mode }
    }

    /// Whether calls may be sent: one that could not be logged is not run, unless the log is relaxed.
    pub async fn is_open(&self) -> Result<(), StoreError> {
        if self.mode == CallLog::Relaxed {
            return Ok(());
        }
        if self.lane.is_full() {
            return Err(StoreError::away());
        }
        self.health.check(&self.store).await
    }

    /// Logs the answered calls of one request: on return they are committed, if the log is durable.
    pub async fn record(&self, tenant: Uuid, request_id: &str, origin: &Origin, executed: &[Executed]) {
        let record = |call: &Executed| Record { tenant, call: record::answered(call, request_id, origin) };
        let calls: Vec<Record> = executed.iter().filter(|call| !call.in_log).map(record).collect();
        if calls.is_empty() {
            return;
        }
        let bytes = calls.iter().map(|record| record.call.bytes()).sum();
        let told = self.lane.put(calls, bytes);
        let Ok(told) = tokio::time::timeout(PATIENCE, told).await else {
            tracing::error!(request_id, calls = ids(executed), "answered calls are not logged: too many wait already");
            return;
        };
        if self.mode == CallLog::Relaxed {
            return;
        }
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => {
                tracing::error!(%error, request_id, calls = ids(executed), "answered calls could not be logged");
            }
            Ok(Err(_)) => tracing::error!(request_id, calls = ids(executed), "answered calls came after the log's end"),
            Err(_) => {
                tracing::warn!(
                    request_id,
                    calls = ids(executed),
                    "answered calls are not logged yet: the database is away"
                );
            }
        }
    }

    /// Waits until everything is written, and ends the writer.
    pub async fn finish(&self) {
        self.lane.finish().await;
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Journal")
    }
}

/// The calls as an operator can look for them in the service's own log: without input and result.
pub(super) fn ids(executed: &[Executed]) -> String {
    let ids: Vec<String> =
        executed.iter().map(|call| format!("{} {}", call.id, call.outcome.status().as_str())).collect();
    ids.join(", ")
}

/// Writes records.
struct Append {
    writer: Writer,
    health: Health,
    metrics: Metrics,
}

impl Write for Append {
    type Item = Vec<Record>;
    type Done = ();
    const PATIENT: bool = true;

    async fn write(&mut self, items: &[Vec<Record>]) -> Result<Vec<()>, StoreError> {
        let records: Vec<&Record> = items.iter().flatten().collect();
        let began = Instant::now();
        let written = self.writer.append(&records).await;
        self.metrics.log_written(written.is_ok(), records.len(), began.elapsed());
        written.map(|()| vec![(); items.len()])
    }

    fn heard(&self, answered: bool) {
        self.health.heard(answered);
    }

    fn rest(&mut self) {
        self.writer.rest();
    }
}
