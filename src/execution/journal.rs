//! The log: a call is in it before it is answered.

use super::Executed;
use crate::domain::{Outcome, Success};
use crate::store::calls::{self, CallRow};
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often a record is tried while the database is away, and how long is waited between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Writes the log of calls. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Journal {
    store: Store,
    metrics: Metrics,
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
    /// A log in this database.
    pub fn new(store: Store) -> Self {
        Self { store, metrics: Metrics::default() }
    }

    /// The same, counted in these metrics.
    #[must_use]
    pub fn measured_by(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// Whether the log can be written now. Asked before anything is sent: a call that could not be logged is not run.
    pub async fn is_open(&self) -> Result<(), StoreError> {
        self.store.ping().await
    }

    /// Logs answered calls, in one commit. The calls have run, so a database that went away meanwhile is waited for, for
    /// about a second; a record that cannot be kept even then goes to the service's own log, without input and result.
    pub async fn record(&self, tenant: Uuid, request_id: &str, origin: &Origin, executed: &[Executed]) {
        let rows: Vec<CallRow> = executed.iter().map(|call| row(call, request_id, origin)).collect();
        for attempt in 1..=TRIES {
            let began = Instant::now();
            let written = calls::append(&self.store, tenant, &rows).await;
            self.metrics.log_written(written.is_ok(), rows.len(), began.elapsed());
            match written {
                Ok(()) => return,
                Err(error) if error.is_unavailable() && attempt < TRIES => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    let ids: Vec<String> = rows.iter().map(|call| format!("{} {}", call.id, call.status)).collect();
                    tracing::error!(%error, request_id, calls = ids.join(", "), "answered calls could not be logged");
                    return;
                }
            }
        }
    }
}

fn row(call: &Executed, request_id: &str, origin: &Origin) -> CallRow {
    let (result, failure) = match &call.outcome {
        Outcome::Success(success) => (Some(success), None),
        Outcome::Failure(failure) => (None, Some(failure)),
    };
    CallRow {
        id: call.id,
        tool: call.call.name.clone(),
        tool_version: call.tool.as_ref().map(|(_, version)| *version),
        format: origin.format.map(str::to_owned),
        call_id: call.call.call_id.clone(),
        caller: call.call.caller.as_str().to_owned(),
        status: call.outcome.status().as_str().to_owned(),
        input: call.input.as_ref().and_then(|input| to_raw_value(input).ok()),
        result: result.and_then(document),
        error_code: failure.map(|failure| failure.code.to_owned()),
        error_message: failure.map(|failure| failure.message.clone()),
        diagnostic: failure.and_then(|failure| failure.diagnostic.clone()),
        repairs: call.repairs.clone(),
        attempts: i32::try_from(call.attempts).unwrap_or(i32::MAX),
        duration_ms: i64::try_from(call.duration_ms).unwrap_or(i64::MAX),
        request_id: request_id.to_owned(),
        key_id: origin.key_id.clone(),
        created_at: call.started_at,
    }
}

fn document(success: &Success) -> Option<Box<RawValue>> {
    let text = success.content.text();
    to_raw_value(&json!({"text": text, "data": success.data, "truncated": success.truncated})).ok()
}
