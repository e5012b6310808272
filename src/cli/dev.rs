//! `toolhook dev`: everything that the service needs, on this machine, kept in one folder.

use std::{net::SocketAddr, time::Instant};

use secrecy::SecretString;

use super::{
    Failure, answer,
    credentials::{self, Credentials},
    database, demo,
    embedded::{self, Keeper},
    postgres::{EmbeddedPostgres, Options, Search, default_data_dir, make_data_dir},
    server::{self, Service},
    shutdown::Signals,
    welcome,
};
use crate::config::settings::{Database, Dev};
use crate::egress::{Policy, Roots};
use crate::execution::Natives;
use crate::store::{Statements, Store, Vault};
use crate::telemetry::Metrics;

/// Runs until a signal, and stops what it started.
pub async fn run(settings: Dev, metrics: Metrics, signals: &mut Signals) -> Result<(), Failure> {
    let began = Instant::now();
    // Before anything else is touched: if the port is taken, most likely a first process is still running.
    let ports = server::bind(&settings.serving).await?;
    let postgres = postgres(&settings);
    let own_url = Some(welcome::base_url(ports.address()?));
    let Ready { store, url, server, welcome } =
        signals.stopping(prepare(&settings, &postgres, ports.address()?)).await?;
    let keeper = server.map(|server| Keeper::new(server, postgres, store.clone()));

    let natives = Natives::built_in().map_err(|faults| Failure::Failed(faults.summary()))?;
    let (egress, roots) = (Policy::development(), Roots::default());
    let listen = store.keeps_sessions().then_some(url);
    let service = Service { store, listen, egress, roots, natives, metrics, own_url };
    if let Err(failure) = answer::print(&welcome) {
        tracing::warn!(%failure, "nobody reads the welcome"); // the credentials are in the file as well
    }
    tracing::info!(ms = began.elapsed().as_millis(), "ready");
    let served = server::run(ports, service, &settings.serving, signals).await;

    if let Some(keeper) = keeper {
        signals.unless_again(keeper.stop()).await??;
    }
    served
}

/// What has to be there before the first request.
struct Ready {
    store: Store,
    url: SecretString,
    server: Option<EmbeddedPostgres>,
    welcome: String,
}

async fn prepare(settings: &Dev, postgres: &Options, address: SocketAddr) -> Result<Ready, Failure> {
    let data_dir = &postgres.data_dir;
    let (server, url) = if let Some(url) = &settings.database_url {
        make_data_dir(data_dir).map_err(|error| Failure::Failed(error.to_string()))?;
        (None, url.clone())
    } else {
        let server = embedded::start(postgres.clone()).await?;
        let url = SecretString::from(server.url("postgres"));
        (Some(server), url)
    };
    let master_key = credentials::master_key(data_dir)?;
    let statements = if server.is_some() { Statements::Prepared } else { settings.statements };
    let database = Database { url: url.clone(), connections: settings.connections, statements };
    let store = database::connect(&database, Vault::new(&master_key)).await?;
    database::migrate(&store).await?;
    database::require_walls(&store).await?;
    database::require_master_key(&store).await?;
    let credentials = demo::prepare(&store, Credentials::read(data_dir), welcome::base_url(address)).await?;
    credentials.write(data_dir)?;
    let database = match &server {
        None => "the one in DATABASE_URL".to_owned(),
        Some(server) if server.adopted() => {
            format!("embedded Postgres in {}, run by another process, taken over when that ends", data_dir.display())
        }
        Some(_) => format!("embedded Postgres in {}, stopped with this process", data_dir.display()),
    };
    let welcome = welcome::text(&credentials, &database, data_dir);
    Ok(Ready { store, url, server, welcome })
}

fn postgres(settings: &Dev) -> Options {
    let places = &settings.places;
    let usual = || default_data_dir(places.data_home.as_deref(), places.home.as_deref());
    Options {
        search: Search { bindir: places.postgres.clone(), path: places.path.clone() },
        data_dir: settings.data_dir.clone().unwrap_or_else(usual),
        durable: true, // what somebody tries out may become what they keep
        template: None,
        log_statements: false,
    }
}
