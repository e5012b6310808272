//! Where records go: the log to standard error, so that standard output holds nothing but answers; the servers' spans to a
//! collector, if there is one.

use std::io::{self, IsTerminal};

use tokio::task::spawn_blocking;
use tracing::Metadata;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt;

use super::{Failure, collector::Courier};
use crate::config::settings::{Logging, Telemetry};
use crate::store;
use crate::telemetry::{Metrics, PoolWaits, traces::Exporter};

/// Starts logging. To be called once, before anything logs.
pub fn start(settings: Logging) {
    Registry::default().with(log(settings)).init();
}

/// What a server's operator sees besides the log.
#[derive(Debug)]
pub struct Watched {
    /// Where the server counts.
    pub metrics: Metrics,
    exporter: Option<Exporter>,
}

/// Starts logging, metrics and traces of a server. To be called once, before anything logs.
pub fn start_server(settings: Logging, telemetry: &Telemetry) -> Result<Watched, Failure> {
    let metrics = Metrics::default();
    let exporter = telemetry.traces.clone().map(exporter).transpose()?;
    let spans = exporter.as_ref().map(|exporter| exporter.layer().with_filter(filter_fn(is_ours)));
    let (target, seconds) = store::WAITS;
    let waits = PoolWaits::new(metrics.clone(), seconds).with_filter(filter_fn(move |about| about.target() == target));
    Registry::default().with(spans).with(waits).with(log(settings)).init();
    if let Some(url) = &telemetry.traces {
        tracing::info!(collector = url.host_str(), "traces are sent");
    }
    Ok(Watched { metrics, exporter })
}

impl Watched {
    /// Sends the traces that are left.
    pub async fn finish(self) {
        let Some(exporter) = self.exporter else { return };
        match spawn_blocking(|| exporter.finish()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last traces were not sent"),
            Err(error) => tracing::warn!(%error, "the last traces were not sent"),
        }
    }
}

fn exporter(url: url::Url) -> Result<Exporter, Failure> {
    let text = url.to_string();
    let courier = Courier::new(url).map_err(Failure::because("cannot make the client for traces"))?;
    Exporter::new(&text, courier).map_err(Failure::because("cannot send traces"))
}

/// The records and spans that become traces: this program's, and of those no more than the log has at its usual level.
fn is_ours(about: &Metadata<'_>) -> bool {
    about.target().starts_with("toolhook") && *about.level() <= tracing::Level::INFO
}

fn log<S>(settings: Logging) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    if settings.json {
        layer.json().flatten_event(true).with_filter(settings.filter).boxed()
    } else {
        layer.with_ansi(io::stderr().is_terminal()).with_filter(settings.filter).boxed()
    }
}
