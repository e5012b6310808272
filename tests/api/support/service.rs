//! The production router on a port of its own, and tenants with a key for every role.

use super::client::Client;
use super::line::Line;
use super::logs;
use super::postgres::Database;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhook::egress::{Egress, Policy};
use toolhook::execution::{Limiting, Natives};
use toolhook::http::{self, AppState, Bounds, Settings, router};
use toolhook::store::{self, MasterKey, Store, Vault};

const MASTER_KEY: [u8; 32] = [42; 32];

/// A running service.
pub(crate) struct TestService {
    pub(crate) address: SocketAddr,
    pub(crate) state: AppState,
    pub(crate) database: Arc<Database>,
    operator_key: String,
    policy: Policy,
    natives: Natives,
}

/// A tenant, and a client for each role.
pub(crate) struct Tenant {
    pub(crate) admin: Client,
    pub(crate) editor: Client,
    pub(crate) agent: Client,
    pub(crate) viewer: Client,
    pub(crate) operator: Client,
}

impl TestService {
    /// As `toolhook dev` runs it: loopback webhooks are allowed.
    pub(crate) async fn start() -> Self {
        Self::with(Policy::development(), Natives::built_in().unwrap()).await
    }

    pub(crate) async fn with(policy: Policy, natives: Natives) -> Self {
        logs::keep();
        let database = Arc::new(Database::create().await);
        let store = connect(&database.url()).await;
        let key = store::keys::generate().unwrap();
        let by = store::Change::by_command();
        store::keys::insert_operator(&store, &key, Some("the test's"), None, &by).await.unwrap();
        Self::serve(store, database, key.reveal(), policy, natives).await
    }

    /// Another process on the same database, with empty caches.
    pub(crate) async fn restart(&self) -> Self {
        self.restart_with(self.policy.clone()).await
    }

    pub(crate) async fn restart_with(&self, policy: Policy) -> Self {
        let (database, store) = (Arc::clone(&self.database), connect(&self.database.url()).await);
        Self::serve(store, database, self.operator_key.clone(), policy, self.natives.clone()).await
    }

    /// Another process on the same database, under other limits.
    pub(crate) async fn restart_under(&self, limiting: Limiting) -> Self {
        let (database, store) = (Arc::clone(&self.database), connect(&self.database.url()).await);
        let (policy, natives) = (self.policy.clone(), self.natives.clone());
        let settings = Settings { limiting, ..Settings::default() };
        Self::serve_as(Some(settings), store, database, self.operator_key.clone(), policy, natives).await
    }

    /// Another process on the same database, over a line that can be cut.
    pub(crate) async fn restart_over(&self, line: &Line) -> Self {
        let (database, store) = (Arc::clone(&self.database), connect(line.url()).await);
        Self::serve(store, database, self.operator_key.clone(), self.policy.clone(), self.natives.clone()).await
    }

    /// The same with settings of its own.
    pub(crate) async fn restart_as(&self, line: &Line, settings: Settings) -> Self {
        let (database, store) = (Arc::clone(&self.database), connect(line.url()).await);
        let (policy, natives) = (self.policy.clone(), self.natives.clone());
        Self::serve_as(Some(settings), store, database, self.operator_key.clone(), policy, natives).await
    }

    /// Another process on the same database, which holds its peers to this.
    pub(crate) async fn restart_within(&self, bounds: Bounds, settings: Settings) -> Self {
        let (database, store) = (Arc::clone(&self.database), connect(&self.database.url()).await);
        let rest = (self.operator_key.clone(), self.policy.clone(), self.natives.clone());
        Self::serve_within(bounds, Some(settings), store, database, rest).await
    }

    async fn serve(
        store: Store,
        database: Arc<Database>,
        operator_key: String,
        policy: Policy,
        natives: Natives,
    ) -> Self {
        Self::serve_as(None, store, database, operator_key, policy, natives).await
    }

    /// Without settings of the test's own, webhooks reach the service at its address.
    async fn serve_as(
        settings: Option<Settings>,
        store: Store,
        database: Arc<Database>,
        operator_key: String,
        policy: Policy,
        natives: Natives,
    ) -> Self {
        Self::serve_within(Bounds::default(), settings, store, database, (operator_key, policy, natives)).await
    }

    async fn serve_within(
        bounds: Bounds,
        settings: Option<Settings>,
        store: Store,
        database: Arc<Database>,
        (operator_key, policy, natives): (String, Policy, Natives),
    ) -> Self {
        let egress = Egress::new(policy.clone()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let usual = || Settings { public_url: Some(format!("http://{address}")), ..Settings::default() };
        let state = AppState::new(store, egress, natives.clone(), settings.unwrap_or_else(usual));
        let app = router(state.clone());
        TaskTracker::new().spawn(http::serve(listener, app, bounds, CancellationToken::new()));
        Self { address, state, database, operator_key, policy, natives }
    }

    /// The database as the service itself reaches it, with its key.
    pub(crate) async fn store(&self) -> Store {
        connect(&self.database.url()).await
    }

    /// Somebody without a key.
    pub(crate) fn anonymous(&self) -> Client {
        Client::new(self.address)
    }

    pub(crate) fn operator(&self) -> Client {
        self.anonymous().key(&self.operator_key)
    }

    /// A new tenant with keys.
    pub(crate) async fn tenant(&self, name: &str) -> Tenant {
        self.operator().put(&format!("/v1/tenants/{name}"), &json!({})).await.with(201);
        self.keys(name).await
    }

    /// New keys for a tenant.
    pub(crate) async fn keys(&self, name: &str) -> Tenant {
        let operator = self.operator().with("toolhook-tenant", name);
        let key = async |role: &str| {
            let made = operator.post("/v1/keys", &json!({"role": role})).await.with(201);
            self.anonymous().key(made["key"].as_str().unwrap())
        };
        Tenant {
            admin: key("admin").await,
            editor: key("editor").await,
            agent: key("agent").await,
            viewer: key("viewer").await,
            operator: operator.clone(),
        }
    }
}

impl Tenant {
    /// The same tenant's clients for another process.
    pub(crate) fn at(&self, service: &TestService) -> Self {
        let moved = |client: &Client| Client { address: service.address, ..client.clone() };
        Self {
            admin: moved(&self.admin),
            editor: moved(&self.editor),
            agent: moved(&self.agent),
            viewer: moved(&self.viewer),
            operator: moved(&self.operator),
        }
    }
}

async fn connect(url: &str) -> Store {
    connect_with(url, 10).await
}

/// A store of its own, with the service's master key and so many connections.
pub(crate) async fn connect_with(url: &str, connections: u32) -> Store {
    Store::connect(url, connections, Vault::new(&MasterKey::from_random(MASTER_KEY))).await.unwrap()
}

/// Asks until the answer is there, for what happens in the background.
pub(crate) async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..100 {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it did not come about within 5 seconds");
}
