//! Calls from a model's reply to their answers, with real webhooks on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy's leave for tests does not reach their helper functions"
)]

mod batches;
mod deadlines;
mod dry_run;
mod natives;
mod receiver;
mod setup;
mod webhooks;
