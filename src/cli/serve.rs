//! `toolhook serve`: the production form. It starts nothing but itself and keeps nothing on disk.

use std::time::Instant;

use super::{
    Failure, database,
    server::{self, Service},
    shutdown::Signals,
};
use crate::config::settings::Serve;
use crate::execution::Natives;
use crate::store::Store;
use crate::telemetry::Metrics;

/// Runs until a signal.
pub async fn run(settings: Serve, metrics: Metrics, signals: &mut Signals) -> Result<(), Failure> {
    let began = Instant::now();
    let ports = server::bind(&settings.serving).await?;
    let store = signals.stopping(prepare(&settings)).await?;
    // A pooler that keeps no session tells nobody of changes.
    let own = store.keeps_sessions().then_some(settings.database.url);
    let listen = settings.listen_url.or(own);
    let (egress, roots, natives) = (settings.egress, settings.egress_roots, Natives::default());
    let service = Service { store, listen, egress, roots, natives, metrics, own_url: None };
    let address = ports.address()?;
    tracing::info!(%address, ms = began.elapsed().as_millis(), version = env!("CARGO_PKG_VERSION"), "ready");
    server::run(ports, service, &settings.serving, signals).await
}

async fn prepare(settings: &Serve) -> Result<Store, Failure> {
    let store = database::connect_with(&settings.database, &settings.master_keys).await?;
    if settings.migrate {
        if database::migrate(&store).await? {
            tracing::info!("brought the schema up to date");
        }
    } else {
        database::require_schema(&store).await?;
    }
    database::require_walls(&store).await?;
    database::require_master_key(&store).await?;
    Ok(store)
}
