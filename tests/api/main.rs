//! The HTTP contract, over TCP: the production router on a real Postgres, webhooks on loopback, nothing mocked.
//!
//! Every answer that any test here gets is held to the service's own reference (`support::contract`): its status and code are
//! documented, its body fits the documented schema, and an error is a problem.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy's leave for tests does not reach their helper functions"
)]

mod async_handlers;
mod audit;
mod call_log;
mod call_log_outage;
mod callbacks;
mod calls;
mod cancel;
mod compatibility;
mod crowd;
mod distribution;
mod handlers;
mod hostile;
mod idempotency;
mod keys;
mod limits;
mod listener;
mod lists;
mod mcp;
mod metrics;
mod problems;
mod providers;
mod reference;
mod repairs;
mod replicas;
mod retention;
mod schemas;
mod secrets;
mod shared_schemas;
mod support;
mod tenancy;
mod tenants;
mod tools;
mod versions;
mod walls;
mod warm;
