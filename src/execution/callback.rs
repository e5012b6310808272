//! What a webhook reports of a call that it had taken.

use super::journal::PATIENCE;
use super::run::settle;
use super::underway::Underway;
use super::{Executed, Executor, Origin, answer, record, result};
use crate::domain::{CallStatus, Caller, Failure, Outcome, Success, ToolCall};
use crate::egress::Inbound;
use crate::registry::Registry;
use crate::store::pending::{self, Recalled, Report, Reporter};
use crate::store::{CallbackToken, StoreError};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use tokio::time::Instant;

/// The status that a report is read as having.
const OK: u16 = 200;

/// What a webhook reports, as it came.
#[derive(Debug)]
pub struct Reported {
    /// The declared content type.
    pub content_type: Option<String>,
    /// The bytes.
    pub body: Bytes,
}

/// That a report was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Where the call stands now.
    pub status: CallStatus,
    /// Whether somebody had asked to cancel the call.
    pub cancel_requested: bool,
    /// The same report was taken before.
    pub repeated: bool,
}

/// Why a report is not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// Nothing of ours is meant: a token that we did not sign, or a call that is not there any more.
    Unknown,
    /// The time for reporting is over.
    Expired,
    /// The call has ended otherwise.
    Ended,
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for NotTaken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl NotTaken {
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Expired => "expired",
            Self::Ended => "call_ended",
            Self::Store(_) => "error",
        }
    }
}

impl Reported {
    fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.content_type.as_deref().unwrap_or_default());
        hash.update([0]);
        hash.update(&self.body);
        hash.finalize().into()
    }
}

impl Underway {
    /// Says which call a token is about. Asks nobody.
    pub fn read_token(&self, text: &str) -> Result<CallbackToken, NotTaken> {
        let token = self.0.store.verify_callback(text).map_err(|_| NotTaken::Unknown);
        let token = token.and_then(|token| {
            if token.expires_at > OffsetDateTime::now_utc() { Ok(token) } else { Err(NotTaken::Expired) }
        });
        token.inspect_err(|why| self.0.metrics.callback(why.as_str()))
    }
}

impl Executor {
    /// Takes a report on a call: reads it as the answer of a webhook is read, holds it against what the tool promises now, and ends
    /// the call with it, if nothing did before.
    pub async fn take_report(
        &self,
        underway: &Underway,
        registry: &Registry,
        token: CallbackToken,
        reported: Reported,
    ) -> Result<Receipt, NotTaken> {
        let receipt = Box::pin(self.take(underway, registry, token, reported)).await;
        underway.0.metrics.callback(match &receipt {
            Ok(Receipt { repeated: false, .. }) => "taken",
            Ok(Receipt { repeated: true, .. }) => "repeated",
            Err(why) => why.as_str(),
        });
        receipt
    }

    async fn take(
        &self,
        underway: &Underway,
        registry: &Registry,
        token: CallbackToken,
        reported: Reported,
    ) -> Result<Receipt, NotTaken> {
        let (hash, known) = (reported.hash(), find(underway, token).await?);
        if !is_open(&known) {
            return again(&known, &hash);
        }
        let given = answer::read(
            &Inbound { status: OK, content_type: reported.content_type, retry_after: None, body: reported.body },
            None,
        );
        let settled = match given {
            Ok(given) => self.settle_report(registry, &known.tool, given).await,
            Err(failure) => Err(failure),
        };
        let outcome = settled.map_or_else(Outcome::Failure, Outcome::Success);
        let status = outcome.status();
        let report = report(token, outcome, &known, hash);
        match underway.0.notes.report(report).await {
            Some(true) => {
                underway.ended(token.call);
                tracing::info!(call = %token.call, status = status.as_str(), "call reported");
                Ok(Receipt { status, cancel_requested: known.cancel_requested, repeated: false })
            }
            Some(false) => again(&find(underway, token).await?, &hash),
            None => Err(StoreError::away().into()),
        }
    }

    async fn settle_report(
        &self,
        registry: &Registry,
        tool: &str,
        given: super::HandlerResult,
    ) -> Result<Success, Failure> {
        match registry.get(tool) {
            Some(entry) => settle(&self.turns, entry, registry.tenant(), given, Instant::now() + PATIENCE).await,
            // It was removed meanwhile, and what it promised with it.
            None => Ok(result::bounded(&registry.tenant().limits, given)),
        }
    }
}

async fn find(underway: &Underway, token: CallbackToken) -> Result<Recalled, NotTaken> {
    let known = pending::recall(&underway.0.store, token.tenant, &[token.call]).await?;
    known.into_values().next().ok_or(NotTaken::Unknown)
}

/// Whether a report can still end the call.
fn is_open(known: &Recalled) -> bool {
    let status = CallStatus::parse(&known.status);
    matches!(status, Some(CallStatus::Running | CallStatus::Pending | CallStatus::Unknown))
}

/// The receipt for a report that was there before; any other one comes too late.
fn again(known: &Recalled, hash: &[u8; 32]) -> Result<Receipt, NotTaken> {
    let status = CallStatus::parse(&known.status).filter(|_| known.callback_hash.as_deref() == Some(hash.as_slice()));
    let status = status.ok_or(NotTaken::Ended)?;
    Ok(Receipt { status, cancel_requested: known.cancel_requested, repeated: true })
}

fn report(token: CallbackToken, outcome: Outcome, known: &Recalled, hash: [u8; 32]) -> Report {
    let took = OffsetDateTime::now_utc() - record::began(token.call);
    let call = ToolCall {
        call_id: None,
        name: known.tool.clone(),
        arguments: serde_json::Value::Null,
        caller: Caller::default(),
        echo: serde_json::Map::new(),
        cut_off: false,
    };
    let executed = Executed {
        id: token.call,
        call,
        tool: None,
        result_type: None,
        input: None,
        outcome,
        attempts: 1,
        duration_ms: u64::try_from(took.whole_milliseconds()).unwrap_or_default(),
        repairs: Vec::new(),
        handler: None,
        in_log: true,
    };
    // Of the record only what a report says is written.
    let nobody = Origin { key_id: String::new(), format: None };
    let call = record::answered(&executed, "", &nobody);
    Report { tenant: token.tenant, call, picture: record::picture(&executed), by: Reporter::Callback(hash), due: None }
}
