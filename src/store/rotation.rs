//! Changing the master key while the service runs: how many values each key has sealed, and sealing them with the current one.

use super::seal::{KEY_ID_BYTES, Place, name};
use super::{Store, StoreError};
use uuid::Uuid;

/// How many rows are looked for at once.
const BATCH: i64 = 200;
/// How often what was written meanwhile with an older key is gone after.
const ROUNDS: usize = 5;
const TABLE: &str = "handlers";
const COLUMNS: [&str; 3] = ["headers", "signing_secret", "previous_signing_secret"];

/// What a master key has sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// The key's name ([`MasterKey::name`](super::MasterKey::name)).
    pub key: String,
    /// How many values.
    pub values: i64,
    /// Whether it is the one that seals now.
    pub current: bool,
    /// Whether we have it.
    pub known: bool,
}

/// Counts the values by the key that they are sealed with.
pub async fn uses(store: &Store) -> Result<Vec<KeyUse>, StoreError> {
    let length = i32::try_from(KEY_ID_BYTES).unwrap_or_default();
    let rows = sqlx::query!(
        r#"select substring(sealed from 2 for $1) as "key!", count(*) as "values!"
           from handlers, unnest(array[headers, signing_secret, previous_signing_secret]) sealed
           where sealed is not null group by 1 order by 1"#,
        length
    );
    let mut reading = store.system().await?;
    let rows = rows.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    let of = |key: Vec<u8>, values| KeyUse {
        key: name(&key),
        values,
        current: key == store.vault.current(),
        known: store.vault.knows(&key),
    };
    Ok(rows.into_iter().map(|row| of(row.key, row.values)).collect())
}

/// Seals with the current key what another known one has sealed, and says how many values. What a writer replaces meanwhile is
/// the writer's; versions and times stay, since what the values say does.
pub async fn reseal(store: &Store) -> Result<u64, StoreError> {
    let mut resealed = 0;
    for _ in 0..ROUNDS {
        let (done, missed) = round(store).await?;
        resealed += done;
        if missed == 0 {
            break;
        }
    }
    Ok(resealed)
}

/// Goes through all rows once: how many values were sealed, and how many rows somebody else was changing.
async fn round(store: &Store) -> Result<(u64, u64), StoreError> {
    let (mut done, mut missed) = (0, 0);
    let mut after = (Uuid::nil(), Uuid::nil());
    loop {
        let rows = sqlx::query!(
            r#"select tenant_id, id from handlers
               where (tenant_id, id) > ($1, $2) and (substring(headers from 2 for $4) <> $3
                 or substring(signing_secret from 2 for $4) <> $3 or substring(previous_signing_secret from 2 for $4) <> $3)
               order by tenant_id, id limit $5"#,
            after.0,
            after.1,
            store.vault.current().as_slice(),
            i32::try_from(KEY_ID_BYTES).unwrap_or_default(),
            BATCH
        );
        let mut reading = store.system().await?;
        let rows = rows.fetch_all(&mut *reading).await?;
        reading.commit().await?;
        let Some(last) = rows.last() else { return Ok((done, missed)) };
        after = (last.tenant_id, last.id);
        for row in rows {
            match row_again(store, row.tenant_id, row.id).await? {
                Some(values) => done += values,
                None => missed += 1,
            }
        }
    }
}

/// Seals a row's values again: how many, or nothing if somebody changed the row meanwhile.
async fn row_again(store: &Store, tenant: Uuid, id: Uuid) -> Result<Option<u64>, StoreError> {
    let mut tx = store.scoped(tenant).await?;
    let found = sqlx::query!(
        "select headers, signing_secret, previous_signing_secret from handlers where tenant_id = $1 and id = $2",
        tenant,
        id
    );
    let Some(row) = found.fetch_optional(&mut *tx).await? else { return Ok(Some(0)) };
    let was = [row.headers, row.signing_secret, row.previous_signing_secret];
    let mut now = was.clone();
    let mut values = 0;
    for (column, sealed) in COLUMNS.into_iter().zip(&mut now) {
        let Some(value) = sealed else { continue };
        let place = Place { table: TABLE, column, tenant, row: id };
        let key = value.get(1..=KEY_ID_BYTES).unwrap_or_default();
        if key == store.vault.current() || !store.vault.knows(key) {
            continue; // what no key opens is counted afterwards
        }
        match store.vault.open(place, value) {
            Ok(open) => *value = store.vault.seal(place, &open)?,
            Err(error) => {
                tracing::warn!(%error, "a stored value stays under its key");
                continue;
            }
        }
        values += 1;
    }
    if values == 0 {
        return Ok(Some(0));
    }
    let changed = sqlx::query!(
        "update handlers set headers = $3, signing_secret = $4, previous_signing_secret = $5
         where tenant_id = $1 and id = $2 and headers is not distinct from $6 and signing_secret is not distinct from $7
           and previous_signing_secret is not distinct from $8",
        tenant,
        id,
        now[0],
        now[1],
        now[2],
        was[0],
        was[1],
        was[2]
    );
    let changed = changed.execute(&mut *tx).await?.rows_affected();
    tx.commit().await?;
    Ok((changed > 0).then_some(values))
}
