//! Traces by OTLP, from the caller's `traceparent` to the webhook's.
//!
//! The functions here do nothing while no collector is named: then no span has a trace, and the caller's `traceparent` is passed
//! on as it came.

use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{Status, TraceContextExt, TracerProvider as _};
use opentelemetry::{Context, Value};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use opentelemetry_sdk::{Resource, error::OTelSdkError};
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::registry::LookupSpan;

pub use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// The header that carries a trace.
const TRACEPARENT: &str = "traceparent";
/// The longest text of a caller's that becomes an attribute, in bytes.
const MAX_ATTRIBUTE: usize = 256;

/// Whether there is a collector. One for the process, as the spans are. A span cannot be asked: that starts it, and from then on its
/// name stands.
static ON: AtomicBool = AtomicBool::new(false);

fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Sends spans to a collector, in batches, from a thread of its own.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// To the collector at this URL, whose path is the one for traces (`…/v1/traces`).
    ///
    /// The SDK's own variables hold: `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`,
    /// `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`.
    pub fn new(url: &str, client: impl HttpClient + 'static) -> Result<Self, opentelemetry_otlp::ExporterBuildError> {
        let exporter = SpanExporter::builder().with_http().with_http_client(client).with_endpoint(url).build()?;
        let named = Resource::builder().build();
        let unnamed = named
            .iter()
            .any(|(key, value)| key.as_str() == "service.name" && value.as_str().starts_with("unknown_service"));
        let resource = Resource::builder();
        let resource = if unnamed { resource.with_service_name("toolhook") } else { resource };
        ON.store(true, Ordering::Relaxed);
        let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = resource.with_attribute(version).build();
        Ok(Self(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
    }

    /// The layer that makes spans of `tracing`'s. To be put on a subscriber with a filter for this crate's own spans.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> OpenTelemetryLayer<S, Tracer> {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("toolhook"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
    }

    /// Sends what is left. Blocks for as long as the collector takes, at most some seconds.
    pub fn finish(self) -> Result<(), OTelSdkError> {
        self.0.shutdown()
    }
}

/// One header.
struct Header<'a>(&'a str);

impl Extractor for Header<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == TRACEPARENT).then_some(self.0)
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT]
    }
}

#[derive(Default)]
struct Written(Option<String>);

impl Injector for Written {
    fn set(&mut self, key: &str, value: String) {
        if key == TRACEPARENT {
            self.0 = Some(value);
        }
    }
}

/// Puts a span that has just been made into the caller's trace, if there is one.
pub fn follow(span: &Span, traceparent: Option<&str>) {
    let Some(traceparent) = traceparent else { return };
    let caller = TraceContextPropagator::new().extract_with_context(&Context::new(), &Header(traceparent));
    if caller.span().span_context().is_valid() {
        // Fails where nothing is traced.
        let _ = span.set_parent(caller);
    }
}

/// The same for a span within another, which stays there if that is in the caller's trace already.
pub fn follow_from(within: &Span, span: &Span, given: Option<&str>) {
    let trace = |text: &str| text.split('-').nth(1).map(str::to_owned);
    if is_on() && given.and_then(trace) != traceparent(within).as_deref().and_then(trace) {
        follow(span, given);
    }
}

/// What a request that is sent from within this span says of the trace; nothing while nothing is traced.
pub fn traceparent(span: &Span) -> Option<String> {
    let mut written = Written::default();
    TraceContextPropagator::new().inject_context(&span.context(), &mut written);
    written.0
}

/// Calls a span by a name that is only known when it is made. The span has the empty field `otel.name` for it.
pub fn name(span: &Span, name: impl FnOnce() -> String) {
    if is_on() {
        span.record("otel.name", name());
    }
}

/// The same for a span that serves a request.
pub fn serves(span: &Span, name: impl FnOnce() -> String) {
    if is_on() {
        span.record("otel.name", name()).record("otel.kind", "server");
    }
}

/// Says something of a span in the trace alone, not in the log.
pub fn note(span: &Span, key: &'static str, value: impl Into<Value>) {
    span.set_attribute(key, value);
}

/// Says a text of a caller's, which may be of any length.
pub fn note_text(span: &Span, key: &'static str, text: &str) {
    if is_on() {
        span.set_attribute(key, text[..text.floor_char_boundary(MAX_ATTRIBUTE)].to_owned());
    }
}

/// Says that what a span stands for failed, with the stable code of the failure.
pub fn failed(span: &Span, code: &'static str) {
    span.set_attribute("error.type", code);
    span.set_status(Status::error(code));
}
