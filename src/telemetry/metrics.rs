//! Everything that is counted. A new metric is a line of the catalogue, and a function that says what happened.

use super::labels::{Build, Call, CallEnd, Handler, Method, Outcome, Queue, Refusal, Request, State, StatusClass};
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Seconds: from an answer out of memory to the longest call.
const REQUEST_SECONDS: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0];
/// Seconds: what the database and the compiler of schemas take.
const WORK_SECONDS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];
/// How many calls one write of the log holds.
const BATCH_SIZES: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

type Timed<L> = Family<L, Histogram, fn() -> Histogram>;

/// The service's metrics. Cheap to clone; the clones count together.
#[derive(Clone, Default)]
pub struct Metrics(Arc<All>);

macro_rules! catalogue {
    ($($field:ident: $kind:ty = $make:expr, $name:literal, $help:literal;)+) => {
        struct All {
            registry: Registry,
            $($field: $kind,)+
        }

        impl Default for All {
            fn default() -> Self {
                let mut registry = Registry::with_prefix("toolhook");
                $(
                    let $field: $kind = $make;
                    registry.register($name, $help, $field.clone());
                )+
                registry.register("build", "The program that this is", Info::new(Build { version: env!("CARGO_PKG_VERSION") }));
                Self { registry, $($field,)+ }
            }
        }
    };
}

catalogue! {
    requests: Timed<Request> = timed(), "http_request_duration_seconds", "Requests, from head to answer; the count is the rate";
    requests_in_flight: Gauge = Gauge::default(), "http_requests_in_flight", "Requests that are being answered";
    calls: Family<Call, Counter> = Family::default(), "calls", "Answered calls, by what became of them";
    calls_in_flight: Gauge = Gauge::default(), "calls_in_flight", "Calls that are with their handlers";
    callbacks: Family<Outcome, Counter> = Family::default(), "callbacks", "Reports of asynchronous handlers, by what became of them";
    handlers: Timed<Handler> = timed(), "handler_duration_seconds", "What handlers took, all attempts of a call together";
    waiting: Family<Queue, Gauge> = Family::default(), "calls_waiting", "Calls that wait for their turn, at their handler or among their tenant's calls";
    refusals: Family<Refusal, Counter> = Family::default(), "limit_refusals", "Requests and calls that were refused because of a limit or an open breaker";
    repeats: Counter = Counter::default(), "handler_retries", "Requests to handlers that were sent again";
    breakers_open: Gauge = Gauge::default(), "handler_breakers_open", "Handlers that are left alone because they failed";
    snapshot_hits: Counter = Counter::default(), "registry_hits", "Requests that found their tenant's tools in memory";
    snapshot_loads: Family<Outcome, Counter> = Family::default(), "registry_loads", "Times that a tenant's tools were loaded";
    snapshot_load: Histogram = work(), "registry_load_duration_seconds", "What loading a tenant's tools took";
    snapshots: Gauge = Gauge::default(), "registry_snapshots", "Tenants whose tools are in memory";
    schemas: Gauge = Gauge::default(), "schemas", "Compiled schemas in memory; tools whose schemas are the same text share one";
    schemas_compiled: Counter = Counter::default(), "schemas_compiled", "Schemas of stored tools that were compiled as they were read";
    listening: Gauge = Gauge::default(), "registry_listening", "Whether changes on other replicas are heard at once: 1 or 0, when they are asked for each second";
    reaped: Counter = Counter::default(), "calls_given_up", "Calls that were left behind: their lease or their time for a report ran out";
    stale_lists: Counter = Counter::default(), "stale_lists", "Lists that were served while the database was away";
    log_writes: Family<Outcome, Counter> = Family::default(), "log_writes", "Attempts to write answered calls to the log";
    log_write: Histogram = work(), "log_write_duration_seconds", "What writing to the log took";
    log_batch: Histogram = Histogram::new(BATCH_SIZES), "log_write_calls", "Calls that one write to the log held";
    connections: Family<State, Gauge> = Family::default(), "database_connections", "Connections to the database";
    connections_most: Gauge = Gauge::default(), "database_connections_limit", "The most connections to the database";
    connection_wait: Histogram = work(), "database_connection_wait_seconds", "What getting a connection to the database took";
    database_up: Gauge = Gauge::default(), "database_up", "Whether the database answered when it was last asked: 1 or 0";
}

/// What is asked for when somebody looks, since nobody tells of its changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Levels {
    /// Connections to the database that are at work.
    pub connections_used: usize,
    /// Connections that wait for work.
    pub connections_idle: usize,
    /// The most that there may be.
    pub connections_most: u32,
    /// Tenants whose tools are in memory.
    pub snapshots: u64,
    /// Compiled schemas in memory.
    pub schemas: usize,
    /// How many were compiled so far as tools were read.
    pub schemas_compiled: u64,
    /// Whether the database answered when it was last asked.
    pub database_up: bool,
}

/// Something that is under way until this is dropped.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl InFlight {
    fn one(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

fn timed<L: Clone + std::hash::Hash + Eq>() -> Timed<L> {
    Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS))
}

fn work() -> Histogram {
    Histogram::new(WORK_SECONDS)
}

impl Metrics {
    /// A request was answered. `route` is the template that it matched, never its path.
    pub fn answered(&self, route: Arc<str>, method: Method, status: StatusClass, took: Duration) {
        self.0.requests.get_or_create(&Request::new(route, method, status)).observe(took.as_secs_f64());
    }

    /// A request is being answered.
    #[must_use]
    pub fn request_in_flight(&self) -> InFlight {
        InFlight::one(&self.0.requests_in_flight)
    }

    /// A call was answered.
    pub fn call_ended(&self, end: CallEnd) {
        self.0.calls.get_or_create(&Call::from(end)).inc();
    }

    /// An asynchronous handler reported; the outcome is one of the program's own words.
    pub fn callback(&self, outcome: &'static str) {
        self.0.callbacks.get_or_create(&Outcome { outcome }).inc();
    }

    /// A call is with its handler.
    #[must_use]
    pub fn call_in_flight(&self) -> InFlight {
        InFlight::one(&self.0.calls_in_flight)
    }

    /// A call waits for its turn.
    #[must_use]
    pub fn call_waiting(&self, queue: Queue) -> InFlight {
        InFlight::one(&self.0.waiting.get_or_create(&queue))
    }

    /// A request or a call was refused because of a limit; `reason` is its stable code.
    pub fn refused(&self, reason: &'static str) {
        self.0.refusals.get_or_create(&Refusal { reason }).inc();
    }

    /// A request to a handler is sent again.
    pub fn repeated(&self) {
        self.0.repeats.inc();
    }

    /// A handler is left alone.
    #[must_use]
    pub fn breaker_open(&self) -> InFlight {
        InFlight::one(&self.0.breakers_open)
    }

    /// A handler of this kind was done with a call.
    pub fn handled(&self, handler: &'static str, status: &'static str, took: Duration) {
        self.0.handlers.get_or_create(&Handler { handler, status }).observe(took.as_secs_f64());
    }

    /// A tenant's tools were in memory.
    pub fn snapshot_hit(&self) {
        self.0.snapshot_hits.inc();
    }

    /// A tenant's tools were loaded, or could not be.
    pub fn snapshot_loaded(&self, ok: bool, took: Duration) {
        self.0.snapshot_loads.get_or_create(&Outcome::of(ok)).inc();
        self.0.snapshot_load.observe(took.as_secs_f64());
    }

    /// Changes on other replicas are heard of at once, or only by asking.
    pub fn listening(&self, heard: bool) {
        self.0.listening.set(heard.into());
    }

    /// Calls were ended that nobody works on any more.
    pub fn given_up(&self, calls: usize) {
        self.0.reaped.inc_by(calls as u64);
    }

    /// The log was written, or could not be.
    pub fn log_written(&self, ok: bool, calls: usize, took: Duration) {
        self.0.log_writes.get_or_create(&Outcome::of(ok)).inc();
        self.0.log_write.observe(took.as_secs_f64());
        self.0.log_batch.observe(f64::from(u32::try_from(calls).unwrap_or(u32::MAX)));
    }

    /// Somebody waited this long for a connection to the database.
    pub fn waited_for_connection(&self, seconds: f64) {
        self.0.connection_wait.observe(seconds);
    }

    /// A list was served from memory while the database was away.
    pub fn stale_list(&self) {
        self.0.stale_lists.inc();
    }

    /// All of it, with these levels, as Prometheus's text format 0.0.4 has it.
    pub fn exposition(&self, levels: Levels) -> String {
        let all = &self.0;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        all.connections.get_or_create(&State { state: "used" }).set(number(levels.connections_used));
        all.connections.get_or_create(&State { state: "idle" }).set(number(levels.connections_idle));
        all.connections_most.set(levels.connections_most.into());
        all.snapshots.set(i64::try_from(levels.snapshots).unwrap_or(i64::MAX));
        all.schemas.set(number(levels.schemas));
        all.schemas_compiled.inner().store(levels.schemas_compiled, Ordering::Relaxed);
        all.database_up.set(levels.database_up.into());
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = prometheus_text::encode(&mut text, &all.registry);
        text
    }

    /// The content type of [`Metrics::exposition`].
    pub const CONTENT_TYPE: &'static str = prometheus_text::CONTENT_TYPE;
}

impl fmt::Debug for Metrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Metrics")
    }
}
