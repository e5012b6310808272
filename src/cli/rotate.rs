//! `toolhook rotate-master-key`: the third of the four steps to a new master key.

use super::{Failure, answer, database};
use crate::config::settings::Rotate;
use crate::store::{
    Store,
    rotation::{self, KeyUse},
};

/// Seals everything with the current key, and says what each key has sealed then. Fails while another key is still needed.
pub async fn run(settings: Rotate) -> Result<(), Failure> {
    let store = database::connect_with(&settings.database, &settings.master_keys).await?;
    let done = rotate(&store, &settings.master_keys.current.name()).await;
    store.close().await;
    done
}

async fn rotate(store: &Store, current: &str) -> Result<(), Failure> {
    database::require_schema(store).await?;
    let resealed = rotation::reseal(store).await?;
    let uses = rotation::uses(store).await?;
    eprintln!("Sealed {resealed} values with the current master key, {current}.");
    let rows: Vec<[String; 3]> = uses.iter().map(cells).collect();
    answer::print_table(["KEY", "VALUES", "WHICH"], &rows)?;
    let left: i64 = uses.iter().filter(|key| !key.current).map(|key| key.values).sum();
    if left == 0 {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "{left} values are still under another master key. Give every key above that is `unknown` in \
         TOOLHOOK_PREVIOUS_MASTER_KEYS, make sure that every replica seals with {current}, and run this again."
    )))
}

fn cells(key: &KeyUse) -> [String; 3] {
    let which = match (key.current, key.known) {
        (true, _) => "current",
        (false, true) => "previous",
        (false, false) => "unknown",
    };
    [key.key.clone(), key.values.to_string(), which.to_owned()]
}
