//! What operators see of the service: metrics, and traces.
//!
//! This room knows no tenant, no tool and no request. Others tell it what happened, in words that are fixed when the
//! service is built; so nothing that a tenant writes becomes a label, and nobody's input can get into either.
//!
//! - [`Metrics`]: counted where things happen, read at `/metrics` in Prometheus's text format. A value, not a global:
//!   whoever makes a service makes its metrics.
//! - [`traces`]: spans by OTLP, if a collector is named. Spans are `tracing`'s own; this adds where they come from (the
//!   caller's `traceparent`), what they are called, and where they are sent.
//! - [`PoolWaits`]: hears how long requests waited for a connection, which the pool only says in its records.
//!
//! Logs are `tracing`'s records; where they go is a matter of the commands.

mod labels;
mod metrics;
mod pool_waits;
pub mod traces;

pub use labels::{CallEnd, Format, HandlerKind, Method, Queue, StatusClass};
pub use metrics::{InFlight, Levels, Metrics};
pub use pool_waits::PoolWaits;
