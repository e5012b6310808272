//! `toolhook migrate`.

use super::{Failure, answer, database};
use crate::config::settings::Database;

/// Brings the schema up to date and says what it did.
pub async fn run(settings: Database) -> Result<(), Failure> {
    let store = database::open(&settings).await?;
    let changed = database::migrate(&store).await;
    store.close().await;
    answer::print(if changed? { "The schema is up to date now." } else { "The schema was up to date already." })
}
