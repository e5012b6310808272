//! What both servers do once the database is there: serve, until a signal says to finish.

use std::{io::ErrorKind, net::SocketAddr, time::Duration};

use secrecy::SecretString;
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Failure, descriptors, pulse, shutdown::Signals};
use crate::config::settings::Serving;
use crate::egress::{Egress, Policy, Roots, Surroundings};
use crate::execution::{Natives, upkeep};
use crate::http::{self, AppState, Settings};
use crate::registry::watch;
use crate::store::Store;
use crate::telemetry::Metrics;

/// How long closing the connections to the database may take.
const CLOSING: Duration = Duration::from_secs(2);

/// What a server serves.
pub(super) struct Service {
    /// The database.
    pub(super) store: Store,
    /// The database's URL for the listener that hears of changes on other replicas; none if nobody listens.
    pub(super) listen: Option<SecretString>,
    /// Where webhooks may be.
    pub(super) egress: Policy,
    /// Whom to trust about webhooks' servers, beside the system's authorities.
    pub(super) roots: Roots,
    /// The tools that every tenant has.
    pub(super) natives: Natives,
    /// Where it counts.
    pub(super) metrics: Metrics,
    /// Where webhooks reach it, if the settings do not say.
    pub(super) own_url: Option<String>,
}

/// The ports that a server has taken.
pub(super) struct Ports {
    main: TcpListener,
    metrics: Option<TcpListener>,
}

impl Ports {
    /// The address of the main one.
    pub(super) fn address(&self) -> Result<SocketAddr, Failure> {
        self.main.local_addr().map_err(Failure::because("cannot tell the port"))
    }

    /// The addresses of all of them.
    fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let metrics = self.metrics.as_ref().map(TcpListener::local_addr).transpose();
        let metrics = metrics.map_err(Failure::because("cannot tell the port"))?;
        Ok(std::iter::once(self.address()?).chain(metrics).collect())
    }
}

/// Serves until a signal. Then goes on for the delay, without being ready; takes no new connections; and lets what runs finish
/// within the grace time.
pub(super) async fn run(
    ports: Ports,
    service: Service,
    serving: &Serving,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let surroundings = Surroundings { listening: ports.addresses()?, roots: service.roots };
    let egress = Egress::within(service.egress, surroundings)
        .map_err(Failure::because("cannot make the client for webhooks"))?;
    let settings = Settings {
        cached_tenants: serving.cached_tenants,
        stale_lists: serving.stale_lists,
        serves_metrics: ports.metrics.is_none(),
        metrics: service.metrics,
        call_log: serving.call_log,
        lease_grace: serving.lease_grace,
        limiting: serving.limiting,
        body_timeout: serving.listener.body_timeout,
        bad_keys_per_minute: serving.listener.bad_keys_per_minute,
        crash_at: serving.crash_at,
        public_url: serving.public_url.as_ref().map(ToString::to_string).or(service.own_url),
    };
    let state = AppState::new(service.store.clone(), egress, service.natives, settings);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let bounds = descriptors::fit(serving.listener.bounds);
    tasks.spawn(upkeep::run(state.ledger(), state.metrics(), stop.clone()));
    tasks.spawn(watch::run(state.registries(), service.store.clone(), service.listen, stop.clone()));
    // Deadlines hold while the last calls finish too, so it goes on until the runtime ends.
    tasks.spawn(pulse::run());
    if let Some(listener) = ports.metrics {
        tracing::info!(address = ?listener.local_addr().ok(), "metrics are served");
        // Until the very end, so that the end can be seen.
        tasks.spawn(http::serve(listener, http::metrics_router(state.clone()), bounds, CancellationToken::new()));
    }
    let mut server = tasks.spawn(http::serve(ports.main, http::router(state.clone()), bounds, stop.clone()));

    let signal = tokio::select! {
        ended = &mut server => return Err(Failure::Failed(format!("the server ended by itself: {ended:?}"))),
        signal = signals.next() => signal,
    };
    state.start_draining();
    if !serving.delay.is_zero() {
        tracing::info!(signal, delay_ms = serving.delay.as_millis(), "not ready any more; still serving");
        signals.unless_again(sleep(serving.delay)).await?;
    }
    tracing::info!(signal, grace_ms = serving.grace.as_millis(), "stopping; running calls may finish");
    stop.cancel();
    let deadline = Instant::now() + serving.grace;
    let finished = signals.unless_again(finish(&mut server, &state, deadline)).await?;
    // Not awaited for long: what is still running holds connections, and has had its time.
    let _ = timeout(CLOSING, service.store.close()).await;
    if finished {
        tracing::info!("stopped");
        return Ok(());
    }
    Err(Failure::Failed(format!("calls that ran longer than {} ms were cut off", serving.grace.as_millis())))
}

/// Waits for the answers that are on their way, then for calls whose client has gone. Says whether every call finished: a
/// connection that merely stays open is no reason to complain.
async fn finish<T>(server: &mut JoinHandle<T>, state: &AppState, deadline: Instant) -> bool {
    if timeout_at(deadline, server).await.is_err() {
        tracing::warn!("some connections are still open");
    }
    if timeout_at(deadline, state.drain()).await.is_ok() {
        return true;
    }
    // What was claimed and not sent can be made again elsewhere at once; what was sent is known to be unknown.
    let _ = timeout(CLOSING, state.ledger().give_up()).await;
    false
}

/// Takes the ports.
pub(super) async fn bind(serving: &Serving) -> Result<Ports, Failure> {
    let main = bind_one(&serving.listen, "--listen").await?;
    let metrics = match &serving.telemetry.metrics_listen {
        Some(listen) => Some(bind_one(listen, "--metrics-listen").await?),
        None => None,
    };
    Ok(Ports { main, metrics })
}

async fn bind_one(listen: &str, flag: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|error| {
        let help = match error.kind() {
            ErrorKind::AddrInUse => format!(
                "another process has the port, perhaps another toolhook. Stop that, or choose another with {flag} (port 0 \
                 takes a free one)"
            ),
            ErrorKind::PermissionDenied => format!("ports below 1024 need a privilege; choose another with {flag}"),
            ErrorKind::AddrNotAvailable => format!("this machine has no such address; choose another with {flag}"),
            _ => error.to_string(),
        };
        Failure::Failed(format!("cannot listen on {listen}: {help}"))
    })
}
