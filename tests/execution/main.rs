//! Calls from a model's reply to their answers, with real webhooks on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy's leave for tests does not reach their helper functions"
)]

mod batches;
mod breakers;
mod deadlines;
mod dry_run;
mod limits;
mod natives;
mod receiver;
mod retries;
mod setup;
mod webhooks;
