//! A connection from the pool, and how statements are sent over it.
//!
//! sqlx prepares a statement by a name once for each connection, and runs it by that name later. A pooler that gives a transaction
//! whichever server connection is free breaks that: the name was given on another. Without a name a statement lives from one
//! message to the next, and within a transaction both go to the same server.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, PgConnection, Postgres, SqlStr};
use std::fmt;

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statements {
    /// Prepared once for each connection.
    #[default]
    Prepared,
    /// Anew each time and without a name, for a pooler that keeps no connection longer than a transaction.
    Unnamed,
}

impl Statements {
    /// What a connection has to ask for in the beginning. Such poolers refuse settings of a session that they do not follow;
    /// this one is about floats in text, which we never read.
    pub(super) fn over(self, options: PgConnectOptions) -> PgConnectOptions {
        match self {
            Self::Prepared => options,
            Self::Unnamed => options.statement_cache_capacity(0).extra_float_digits(None),
        }
    }
}

/// A connection from the pool. Outside a transaction it is good for one statement without arguments at a time.
pub(super) struct Session {
    connection: PoolConnection<Postgres>,
    statements: Statements,
}

impl Session {
    pub(super) const fn new(connection: PoolConnection<Postgres>, statements: Statements) -> Self {
        Self { connection, statements }
    }

    /// Closes it once it is no longer used.
    pub(super) fn close_on_drop(&mut self) {
        self.connection.close_on_drop();
    }

    /// The bare connection, for whoever needs the session itself.
    pub(super) fn bare(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Whether it leads to a server that takes writes; see [`takes_writes`].
    pub(super) async fn takes_writes(&mut self) -> Result<bool, Error> {
        takes_writes(&mut self.connection).await
    }
}

/// Whether a server takes writes, which a standby does not: nothing works that needs one. Outside a transaction.
pub(super) async fn takes_writes(connection: &mut PgConnection) -> Result<bool, Error> {
    use sqlx::Row as _;
    let row = sqlx::raw_sql("show transaction_read_only").fetch_one(connection).await?;
    Ok(row.try_get::<String, _>(0)? == "off")
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Session")
    }
}

/// A query, sent as the session sends its statements.
struct Sent<Q> {
    query: Q,
    statements: Statements,
}

impl<'q, Q: Execute<'q, Postgres>> Execute<'q, Postgres> for Sent<Q> {
    fn sql(self) -> SqlStr {
        self.query.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.query.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.query.take_arguments()
    }

    fn persistent(&self) -> bool {
        self.statements == Statements::Prepared && self.query.persistent()
    }
}

impl<'c> Executor<'c> for &'c mut Session {
    type Database = Postgres;

    fn fetch_many<'e, 'q, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
        'q: 'e,
    {
        self.connection.fetch_many(Sent { query, statements: self.statements })
    }

    fn fetch_optional<'e, 'q, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
        'q: 'e,
    {
        self.connection.fetch_optional(Sent { query, statements: self.statements })
    }

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        self.connection.prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        self.connection.describe(sql)
    }
}
