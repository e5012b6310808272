//! A connection from the pool, and how statements are sent over it.
//!
//! sqlx prepares a statement by a name once for each connection, and runs it by that name later. A pooler that gives a transaction
//! whichever server connection is free breaks that: the name was given on another. Without a name a statement lives from one
//! message to the next, and within a transaction both go to the same server.

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, PgConnection, Postgres, Row as _, SqlStr};
use std::fmt;
use tokio_util::sync::CancellationToken;

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

/// A connection from the pool. Outside a transaction it is good for one statement without arguments at a time. It fails once the
/// address of the database leads to another server: the one that it leads to may be gone without a word, and would be waited for
/// as long as the system's patience lasts.
pub(super) struct Session {
    connection: PoolConnection<Postgres>,
    statements: Statements,
    /// Cancelled when the address leads to another server.
    moved: CancellationToken,
}

impl Session {
    pub(super) const fn new(
        connection: PoolConnection<Postgres>,
        statements: Statements,
        moved: CancellationToken,
    ) -> Self {
        Self { connection, statements, moved }
    }

    /// Closes it once it is no longer used.
    pub(super) fn close_on_drop(&mut self) {
        self.connection.close_on_drop();
    }

    /// The bare connection, for whoever needs the session itself.
    pub(super) fn bare(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Which server it leads to.
    pub(super) async fn server(&mut self) -> Result<Server, Error> {
        Server::of(self).await
    }
}

/// A server, as it says itself.
pub(super) struct Server {
    /// When it started, which no two servers do at the same microsecond.
    pub(super) started: String,
    /// Whether it takes writes, which a standby does not.
    pub(super) takes_writes: bool,
}

impl Server {
    /// Asks it, outside a transaction.
    pub(super) async fn of(executor: impl Executor<'_, Database = Postgres>) -> Result<Self, Error> {
        let question =
            "select extract(epoch from pg_postmaster_start_time())::text, current_setting('transaction_read_only')";
        let row = sqlx::raw_sql(question).fetch_one(executor).await?;
        Ok(Self { started: row.try_get(0)?, takes_writes: row.try_get::<String, _>(1)? == "off" })
    }
}

fn moved_away() -> Error {
    std::io::Error::new(std::io::ErrorKind::ConnectionAborted, "the database's address leads to another server").into()
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
        let Session { connection, statements, moved } = self;
        let rows = connection.fetch_many(Sent { query, statements: *statements }).map(Some);
        let rows = rows.chain(stream::once(ready(None)));
        let moved = stream::once(moved.cancelled()).map(|()| Some(Err(moved_away())));
        stream::select(rows, moved).take_while(|row| ready(row.is_some())).filter_map(ready).boxed()
    }

    fn fetch_optional<'e, 'q, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
        'q: 'e,
    {
        let Session { connection, statements, moved } = self;
        let row = connection.fetch_optional(Sent { query, statements: *statements });
        Box::pin(async { moved.run_until_cancelled(row).await.unwrap_or_else(|| Err(moved_away())) })
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
