//! How long requests wait for a connection to the database: the pool says it in a record each time, and nowhere else.

use super::Metrics;
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Where the pool writes these records.
const TARGET: &str = "sqlx::pool::acquire";
/// The field that has the time.
const FIELD: &str = "acquired_after_secs";

/// A layer that turns the pool's records into a metric.
#[derive(Clone, Debug)]
pub struct PoolWaits(Metrics);

impl PoolWaits {
    /// Counts in these metrics.
    pub const fn new(metrics: Metrics) -> Self {
        Self(metrics)
    }

    /// Whether a record is one of those. To be used as the layer's filter, so that nobody else has to see them.
    pub fn concerns(about: &Metadata<'_>) -> bool {
        about.target() == TARGET
    }
}

impl<S: Subscriber> Layer<S> for PoolWaits {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut Waited(&self.0));
    }
}

struct Waited<'a>(&'a Metrics);

impl Visit for Waited<'_> {
    fn record_f64(&mut self, field: &Field, seconds: f64) {
        if field.name() == FIELD {
            self.0.waited_for_connection(seconds);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
