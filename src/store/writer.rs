//! The connection of somebody who writes all the time.

use super::{Store, StoreError};
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};

/// Writes groups of rows over one connection, which is kept from one group to the next: taking it from the pool and giving it
/// back would cost as much as a small group.
pub struct Writer {
    store: Store,
    connection: Option<PoolConnection<Postgres>>,
}

impl Writer {
    /// A writer without a connection; the first group takes one.
    pub const fn new(store: Store) -> Self {
        Self { store, connection: None }
    }

    /// Gives the connection back.
    pub fn rest(&mut self) {
        self.connection = None;
    }

    /// Does something on the connection. After an error the connection is not used again, since nobody knows its state.
    pub(super) async fn with<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.store.pool.acquire().await?,
        };
        match work(&mut connection).await {
            Ok(done) => {
                self.connection = Some(connection);
                Ok(done)
            }
            Err(error) => {
                connection.close_on_drop();
                Err(error)
            }
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Writer")
    }
}
