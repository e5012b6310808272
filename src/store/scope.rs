//! The doors to the database. Nobody else has the pool: whoever wants a connection says as whom.
//!
//! Every transaction takes one of two roles when it begins, together with the tenant whose rows it is about: `scoped` sees one
//! tenant's rows and `system` serves all tenants, each with the grants that it needs (`migrations/0003_walls.sql`). Both end with
//! the transaction, so nothing is left on the connection for whoever gets it next, be it from our pool or from PgBouncer's.

use super::availability::Availability;
use super::session::{Session, Statements};
use super::{ACQUIRE_TIMEOUT, Connections, Store, StoreError};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgPool};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// After how long a connection that was not used is tried before it is used again.
const TRUSTED: Duration = Duration::from_secs(1);

/// How long a rollback may take before its connection is given up: it may lead to a machine that is gone.
const ENDING: Duration = Duration::from_secs(5);

/// No role but that of the login.
const LOGIN: &str = "begin";
/// The role that serves all tenants.
const SYSTEM: &str = "begin; set local role toolhook_system";
/// Has statements planned for their very values. A plan that is made once for all values reads the log from end to end for some,
/// and one that was made while a table was small does so until somebody has counted it again.
const ANEW: &str = "set local plan_cache_mode = force_custom_plan";

/// The pool, behind its doors.
#[derive(Clone)]
pub(super) struct Doors {
    pool: PgPool,
    statements: Statements,
    availability: Arc<Availability>,
    rollbacks: TaskTracker,
}

impl Doors {
    pub(super) async fn open(
        options: PgConnectOptions,
        connections: u32,
        statements: Statements,
        availability: Arc<Availability>,
    ) -> Result<Self, sqlx::Error> {
        let watched = Arc::clone(&availability);
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .acquire_time_level(log::LevelFilter::Trace)
            .test_before_acquire(false)
            .before_acquire(move |connection, about| {
                let outlived = watched.returned_within(about.age);
                Box::pin(async move {
                    if outlived {
                        return Ok(false);
                    }
                    if about.idle_for > TRUSTED {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_with(options)
            .await?;
        Ok(Self { pool, statements, availability, rollbacks: TaskTracker::new() })
    }

    pub(super) fn connections(&self) -> Connections {
        let (size, idle) = (self.pool.size() as usize, self.pool.num_idle());
        Connections { used: size.saturating_sub(idle), idle, most: self.pool.options().get_max_connections() }
    }

    pub(super) fn keeps_sessions(&self) -> bool {
        self.statements == Statements::Prepared
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    async fn begin(&self, opening: String) -> Result<Scope, StoreError> {
        Scope::begin(self.acquire().await?, self.rollbacks.clone(), opening).await
    }

    /// In a box: it takes more room than all that callers do with the connection.
    async fn acquire(&self) -> Result<Session, StoreError> {
        let moved = self.availability.moved();
        Ok(Session::new(Box::pin(self.pool.acquire()).await?, self.statements, moved))
    }
}

impl Store {
    /// A transaction that sees this tenant's rows and no others.
    pub(super) async fn scoped(&self, tenant: Uuid) -> Result<Scope, StoreError> {
        self.doors.begin(one_tenant(tenant)).await
    }

    /// The same, planned anew.
    pub(super) async fn scoped_anew(&self, tenant: Uuid) -> Result<Scope, StoreError> {
        self.doors.begin(format!("{}; {ANEW}", one_tenant(tenant))).await
    }

    /// A transaction that serves all tenants.
    pub(super) async fn system(&self) -> Result<Scope, StoreError> {
        self.doors.begin(SYSTEM.to_owned()).await
    }

    /// The same, planned anew.
    pub(super) async fn system_anew(&self) -> Result<Scope, StoreError> {
        self.doors.begin(format!("{SYSTEM}; {ANEW}")).await
    }

    /// A transaction as the login, without a role: for what the catalogue says about roles themselves. `tests/architecture.rs` says
    /// who may.
    pub(super) async fn as_login(&self) -> Result<Scope, StoreError> {
        self.doors.begin(LOGIN.to_owned()).await
    }

    /// A connection as the login, without a transaction: for migrations, and for whether anybody answers.
    pub(super) async fn bare(&self) -> Result<Session, StoreError> {
        self.doors.acquire().await
    }
}

/// Begins with role and tenant, in one round trip. An id has only hexadecimal digits and hyphens.
fn one_tenant(tenant: Uuid) -> String {
    format!("begin; set local role toolhook_app; set local toolhook.tenant = '{tenant}'")
}

/// A transaction in a role. It is rolled back unless it is committed.
pub(super) struct Scope {
    /// Ours until the transaction has ended.
    connection: Option<Session>,
    rollbacks: TaskTracker,
}

/// A connection that is kept from one transaction to the next, and between them does nothing.
pub(super) struct Kept(Session, TaskTracker);

impl Kept {
    /// As [`Store::system`] on this connection.
    pub(super) async fn system(self) -> Result<Scope, StoreError> {
        Scope::begin(self.0, self.1, SYSTEM.to_owned()).await
    }

    /// As [`Store::system_anew`] on this connection.
    pub(super) async fn system_anew(self) -> Result<Scope, StoreError> {
        Scope::begin(self.0, self.1, format!("{SYSTEM}; {ANEW}")).await
    }
}

impl Scope {
    async fn begin(connection: Session, rollbacks: TaskTracker, opening: String) -> Result<Self, StoreError> {
        // Whole before the first statement: one that fails half-way, or is given up, leaves a transaction to be ended.
        let mut scope = Self { connection: Some(connection), rollbacks };
        sqlx::raw_sql(AssertSqlSafe(opening)).execute(&mut *scope).await?;
        Ok(scope)
    }

    /// Makes what was done last.
    pub(super) async fn commit(self) -> Result<(), StoreError> {
        self.commit_and_keep().await.map(drop)
    }

    /// The same, and keeps the connection.
    pub(super) async fn commit_and_keep(mut self) -> Result<Kept, StoreError> {
        sqlx::raw_sql("commit").execute(&mut *self).await?;
        let rollbacks = self.rollbacks.clone();
        self.connection.take().map(|connection| Kept(connection, rollbacks)).ok_or_else(StoreError::away)
    }

    /// Closes the connection, whose state nobody knows.
    pub(super) fn discard(mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.close_on_drop();
        }
    }
}

impl Deref for Scope {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.connection.as_ref().unwrap_or_else(|| unreachable!("{ENDED}"))
    }
}

impl DerefMut for Scope {
    fn deref_mut(&mut self) -> &mut Session {
        self.connection.as_mut().unwrap_or_else(|| unreachable!("{ENDED}"))
    }
}

/// Rolls back, and says whether the connection is good for another transaction: one to a standby is not.
async fn end(connection: &mut Session) -> Result<bool, sqlx::Error> {
    sqlx::raw_sql("rollback").execute(&mut *connection).await?;
    Ok(connection.server().await?.takes_writes)
}

const ENDED: &str = "only what consumes a scope takes its connection";

impl Drop for Scope {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        self.rollbacks.spawn(async move {
            if !matches!(timeout(ENDING, end(&mut connection)).await, Ok(Ok(true))) {
                connection.close_on_drop();
            }
        });
    }
}
