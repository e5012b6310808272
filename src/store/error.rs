//! What can go wrong between us and Postgres.

/// A fault of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A rule of the data refused the write.
    #[error("conflict: {0:?}")]
    Conflict(Conflict),
    /// Postgres is away, too busy, or refused the statement.
    #[error("the database refused or did not answer: {0}")]
    Database(#[source] sqlx::Error),
    /// Postgres was away when it was last asked, and was not asked again.
    #[error("the database is away")]
    Away,
    /// The database has not reached the version that was asked for.
    #[error("the database has not reached this version")]
    Behind,
    /// A migration failed.
    #[error("the schema could not be brought up to date: {0}")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// A stored row does not say what such a row must say.
    #[error("the row {row} of {table} is inconsistent: {reason}")]
    Inconsistent {
        /// The table.
        table: &'static str,
        /// Which row.
        row: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Why a write was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The name is taken.
    NameTaken,
    /// The name differs from this one by its letters' case alone.
    NameTooLike(String),
    /// The row is not as the writer last saw it.
    Changed,
    /// Tools still use the handler.
    HandlerInUse,
    /// No handler has this name.
    NoSuchHandler(String),
    /// The tenant has as many tools as it may have.
    ToolLimit(u32),
    /// The tenant is not there (any more).
    NoSuchTenant,
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let constraint = error.as_database_error().and_then(|refusal| refusal.constraint()).map(str::to_owned);
        match constraint.as_deref() {
            Some("tools_pkey" | "handlers_name_key" | "tenants_name_key") => Self::Conflict(Conflict::NameTaken),
            Some("tools_handler_fkey") => Self::Conflict(Conflict::HandlerInUse),
            Some("keys_tenant_id_fkey" | "handlers_tenant_id_fkey" | "tools_tenant_id_fkey") => {
                Self::Conflict(Conflict::NoSuchTenant)
            }
            _ => Self::Database(error),
        }
    }
}

impl StoreError {
    /// Whether the database is away or too busy, so that the same request may succeed later.
    pub fn is_unavailable(&self) -> bool {
        if matches!(self, Self::Away) {
            return true;
        }
        let Self::Database(error) = self else { return false };
        match error {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => true,
            // 08: connection exceptions; 53: insufficient resources; 57P: shutdown; 25006: a primary that became a standby.
            sqlx::Error::Database(refusal) => refusal
                .code()
                .is_some_and(|code| ["08", "53", "57P", "25006"].iter().any(|class| code.starts_with(class))),
            _ => false,
        }
    }

    /// Whether Postgres did not let us take a role: it is not there, or not ours to take.
    pub(super) fn is_refused_role(&self) -> bool {
        let Self::Database(sqlx::Error::Database(refusal)) = self else { return false };
        refusal.code().is_some_and(|code| ["42501", "22023"].contains(&&*code))
    }

    /// Whether this is what a pooler says, or has Postgres say, that keeps no connection longer than a transaction.
    pub fn is_from_pooler(&self) -> bool {
        let Self::Database(sqlx::Error::Database(refusal)) = self else { return false };
        match refusal.code().as_deref() {
            // A prepared statement that is not there, or that is there already.
            Some("26000" | "42P05") => true,
            Some("08P01") => refusal.message().contains("startup parameter"),
            _ => false,
        }
    }

    /// The database is known to be away, and was not asked again.
    pub const fn away() -> Self {
        Self::Database(sqlx::Error::PoolTimedOut)
    }

    /// A row that cannot be read.
    #[expect(clippy::needless_pass_by_value, reason = "callers hand over errors that they have no more use for")]
    pub(super) fn inconsistent(table: &'static str, row: impl ToString, reason: impl ToString) -> Self {
        Self::Inconsistent { table, row: row.to_string(), reason: reason.to_string() }
    }
}
