//! The embedded Postgres while `toolhook dev` runs: looked after, taken over when its owner ends, and stopped.

use std::time::Duration;

use tokio::{task::JoinHandle, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Failure,
    postgres::{EmbeddedPostgres, Options, StartError},
};
use crate::store::Store;

const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Starts or adopts the server of a data folder. If this is dropped half-way, the server is stopped as soon as it runs.
pub(super) async fn start(options: Options) -> Result<EmbeddedPostgres, Failure> {
    start_blocking(options).await?.map_err(|error| Failure::Failed(error.to_string()))
}

async fn start_blocking(options: Options) -> Result<Result<EmbeddedPostgres, StartError>, Failure> {
    tokio::task::spawn_blocking(move || EmbeddedPostgres::start(&options))
        .await
        .map_err(Failure::because("starting Postgres broke down"))
}

/// Looks after a server until it is stopped.
#[derive(Debug)]
pub(super) struct Keeper {
    stop: CancellationToken,
    watch: JoinHandle<EmbeddedPostgres>,
}

impl Keeper {
    /// Takes charge of a server that `store` is connected to.
    pub(super) fn new(server: EmbeddedPostgres, options: Options, store: Store) -> Self {
        let stop = CancellationToken::new();
        let watch = TaskTracker::new().spawn(watch(server, options, store, stop.clone()));
        Self { stop, watch }
    }

    /// Stops the server if it is ours, and waits until it has ended.
    pub(super) async fn stop(self) -> Result<(), Failure> {
        let broke_down = || Failure::because("stopping Postgres broke down");
        self.stop.cancel();
        let server = self.watch.await.map_err(broke_down())?;
        tokio::task::spawn_blocking(move || server.stop()).await.map_err(broke_down())
    }
}

/// A server that is away (its owner ended, or somebody killed it) is started again, at the same address: the connections find
/// it without being told. As long as another process owns it, starting means adopting, so trying costs nothing.
async fn watch(
    mut server: EmbeddedPostgres,
    options: Options,
    store: Store,
    stop: CancellationToken,
) -> EmbeddedPostgres {
    loop {
        tokio::select! {
            () = stop.cancelled() => return server,
            () = sleep(WATCH_INTERVAL) => {}
        }
        if store.ping().await.is_ok() {
            continue;
        }
        let data_dir = options.data_dir.display();
        if server.adopted() {
            tracing::warn!(%data_dir, "the Postgres of the other process is away; taking it over");
        } else {
            tracing::warn!(%data_dir, log = %server.log_file().display(), "Postgres is away; starting it again");
        }
        let next = tokio::select! {
            () = stop.cancelled() => return server,
            next = start_blocking(options.clone()) => next,
        };
        match next {
            Ok(Ok(next)) if next.pid() == server.pid() => tracing::info!(pid = next.pid(), "Postgres answers again"),
            Ok(Ok(next)) => {
                tracing::info!(pid = next.pid(), ours = !next.adopted(), "Postgres runs again");
                server = next;
            }
            Ok(Err(error)) => tracing::error!(%error, "Postgres did not start again"),
            Err(error) => tracing::error!(%error, "Postgres did not start again"),
        }
    }
}
