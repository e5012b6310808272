//! How long requests wait for a connection to the database: the pool says it in a record each time, and nowhere else.

use super::Metrics;
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// A layer that turns the pool's records into a metric.
#[derive(Clone, Debug)]
pub struct PoolWaits {
    metrics: Metrics,
    field: &'static str,
}

impl PoolWaits {
    /// Counts in these metrics what the records have in this field. To be put on a subscriber with a filter for those records, so
    /// that nobody else has to see them.
    pub const fn new(metrics: Metrics, field: &'static str) -> Self {
        Self { metrics, field }
    }
}

impl<S: Subscriber> Layer<S> for PoolWaits {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut Waited(self));
    }
}

struct Waited<'a>(&'a PoolWaits);

impl Visit for Waited<'_> {
    fn record_f64(&mut self, field: &Field, seconds: f64) {
        if field.name() == self.0.field {
            self.0.metrics.waited_for_connection(seconds);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
