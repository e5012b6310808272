//! The connection of somebody who writes all the time.

use super::scope::{Kept, Scope};
use super::session::Session;
use super::{Store, StoreError};

/// Writes groups of rows over one connection, which is kept from one group to the next: taking it from the pool and giving it
/// back would cost as much as a small group.
pub struct Writer {
    store: Store,
    kept: Option<Kept>,
}

impl Writer {
    /// A writer without a connection; the first group takes one.
    pub const fn new(store: Store) -> Self {
        Self { store, kept: None }
    }

    /// Gives the connection back.
    pub fn rest(&mut self) {
        self.kept = None;
    }

    /// Writes rows of many tenants in one transaction. After an error the connection is not used again, since nobody knows its
    /// state.
    pub(super) async fn with<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let scope = match self.kept.take() {
            Some(kept) => kept.system().await?,
            None => self.store.system().await?,
        };
        self.within(scope, work).await
    }

    /// The same, planned anew.
    pub(super) async fn with_anew<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let scope = match self.kept.take() {
            Some(kept) => kept.system_anew().await?,
            None => self.store.system_anew().await?,
        };
        self.within(scope, work).await
    }

    async fn within<T>(
        &mut self,
        mut scope: Scope,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match work(&mut scope).await {
            Ok(done) => {
                self.kept = Some(scope.commit_and_keep().await?);
                Ok(done)
            }
            Err(error) => {
                scope.discard();
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
