//! Keeps snapshots fresh that other replicas' writes made old.
//!
//! Notifications bring a change at once. They may be lost, so the database is asked each second as well; and whenever it could not
//! be asked, or the listening connection was lost, all that is in memory is compared.

use super::Registries;
use crate::store::changes::{self, Listener, Mark};
use crate::store::{Store, StoreError};
use secrecy::SecretString;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

/// How often the database is asked for changes.
const ASKING: Duration = Duration::from_secs(1);
/// How long is waited after the listening connection was lost or could not be made.
const PAUSE: Duration = Duration::from_secs(1);
/// How many tenants are compared in one question.
const COMPARED: usize = 5_000;

/// Watches until it is told to stop. `listen` is the database for the listener; without one, changes are only asked for.
pub async fn run(registries: Registries, store: Store, listen: Option<SecretString>, stop: CancellationToken) {
    let listening = async {
        if let Some(url) = &listen {
            listen_always(&registries, &store, url).await;
        }
    };
    let work = Box::pin(async { tokio::join!(ask_always(&registries, &store), listening) });
    stop.run_until_cancelled(work).await;
}

async fn listen_always(registries: &Registries, store: &Store, url: &SecretString) {
    let mut told = false;
    loop {
        match Listener::connect(store, url).await {
            Ok(mut listener) => {
                told = false;
                // What happened before this connection was there is not heard on it.
                let compared = compare(registries, store).await;
                registries.metrics().listening(true);
                if compared.is_ok() {
                    while let Some(change) = listener.next().await {
                        registries.changed(change.tenant, change.version).await;
                    }
                }
                registries.metrics().listening(false);
                tracing::warn!("the listener's connection was lost; changes are asked for until it is back");
            }
            Err(error) if !told => {
                told = true;
                tracing::warn!(%error, "cannot listen for changes; they are asked for");
            }
            Err(_) => {}
        }
        sleep(PAUSE).await;
    }
}

async fn ask_always(registries: &Registries, store: &Store) {
    let mut mark = None;
    let mut due = interval(ASKING);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        mark = ask(registries, store, mark).await.ok();
    }
}

/// Without a mark nothing is known, and everything in memory is compared.
async fn ask(registries: &Registries, store: &Store, mark: Option<Mark>) -> Result<Mark, StoreError> {
    let Some(mark) = mark else {
        let mark = changes::mark(store).await?;
        compare(registries, store).await?;
        return Ok(mark);
    };
    let (changed, mark) = changes::since(store, mark).await?;
    for change in changed {
        registries.changed(change.tenant, change.version).await;
    }
    Ok(mark)
}

/// Compares everything in memory, and drops what is not as it is in the database: older, newer than a database that lost its last
/// commits, or gone.
async fn compare(registries: &Registries, store: &Store) -> Result<(), StoreError> {
    let known = registries.known();
    for part in known.chunks(COMPARED) {
        let tenants: Vec<_> = part.iter().map(|(tenant, _)| *tenant).collect();
        let now = changes::versions(store, &tenants).await?;
        let now: HashMap<_, _> = now.into_iter().map(|change| (change.tenant, change.version)).collect();
        for (tenant, version) in part {
            if now.get(tenant) != Some(version) {
                registries.forget(*tenant).await;
            }
        }
    }
    Ok(())
}
