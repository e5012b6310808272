//! The log's days: partitions made ahead, and what is older than a tenant keeps removed.

use super::calls::first_id;
use super::{Store, StoreError};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// For how many days the log is kept where a tenant's limits do not say.
pub const DEFAULT_DAYS: i32 = 30;
/// For how many days ahead there are partitions.
const AHEAD: i32 = 3;
/// Replicas take turns at this: any number that nothing else in this database uses.
const TURN: i64 = 0x746f_6f6c_686f_6f6b;
/// How many records are removed in one statement.
const BATCH: i64 = 5_000;

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Partitions that were made.
    pub made: u64,
    /// Partitions that were dropped.
    pub dropped: u64,
    /// Records that were removed one by one.
    pub removed: u64,
}

/// Makes the partitions of the next days, drops those that no tenant keeps any more, and removes what single tenants do not
/// keep. If another replica is at it, nothing is done.
pub async fn keep(store: &Store) -> Result<Kept, StoreError> {
    let mut turn = store.system().await?;
    let ours = sqlx::query_scalar!("select pg_try_advisory_xact_lock($1)", TURN).fetch_one(&mut *turn).await?;
    if ours != Some(true) {
        return Ok(Kept::default());
    }
    let made = make(store).await?;
    let dropped = drop_days(store).await?;
    let removed = trim(store).await? + forget_departed(store).await?;
    turn.commit().await?;
    Ok(Kept { made, dropped, removed })
}

async fn make(store: &Store) -> Result<u64, StoreError> {
    let mut made = 0;
    for ahead in 0..=AHEAD {
        let day = sqlx::query_scalar!("select calls_add_day((now() at time zone 'UTC')::date + $1::integer)", ahead);
        let mut making = store.system().await?;
        made += u64::from(day.fetch_one(&mut *making).await? == Some(true));
        making.commit().await?;
    }
    Ok(made)
}

async fn drop_days(store: &Store) -> Result<u64, StoreError> {
    let dropped = sqlx::query_scalar!(
        "select calls_drop_before((now() at time zone 'UTC')::date
           - coalesce((select max(coalesce((limits ->> 'log_days')::integer, $1)) from tenants), $1))",
        DEFAULT_DAYS
    );
    let mut dropping = store.system().await?;
    let dropped = dropped.fetch_one(&mut *dropping).await?;
    dropping.commit().await?;
    Ok(dropped.and_then(|dropped| u64::try_from(dropped).ok()).unwrap_or_default())
}

/// Whole days, so that nothing is removed row by row that is dropped with its partition.
async fn trim(store: &Store) -> Result<u64, StoreError> {
    let tenants = sqlx::query!(
        r#"with kept as (select id, coalesce((limits ->> 'log_days')::integer, $1) as days from tenants)
           select id, days as "days!" from kept where days < (select max(days) from kept)"#,
        DEFAULT_DAYS
    );
    let mut reading = store.system().await?;
    let tenants = tenants.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    let mut removed = 0;
    for tenant in tenants {
        let today = OffsetDateTime::now_utc().replace_time(time::Time::MIDNIGHT);
        let Some(oldest) = today.checked_sub(Duration::days(tenant.days.into())) else { continue };
        removed += remove(store, tenant.id, first_id(oldest), false).await?;
    }
    Ok(removed)
}

async fn forget_departed(store: &Store) -> Result<u64, StoreError> {
    let departed = sqlx::query_scalar!("select tenant_id from departed_tenants");
    let mut reading = store.system().await?;
    let departed = departed.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    let mut removed = 0;
    for tenant in departed {
        removed += remove(store, tenant, Uuid::max(), true).await?;
        let mut forgetting = store.system().await?;
        sqlx::query!("delete from idempotency_keys where tenant_id = $1", tenant).execute(&mut *forgetting).await?;
        // What ran when the tenant went is logged after that, so the note is kept for a day.
        sqlx::query!(
            "delete from departed_tenants where tenant_id = $1 and departed_at < now() - interval '1 day'",
            tenant
        )
        .execute(&mut *forgetting)
        .await?;
        forgetting.commit().await?;
    }
    Ok(removed)
}

/// Removes a tenant's records before an id, the oldest first. Those that are pending end by themselves within a day, so they
/// stay until then, unless nobody can ask for them any more.
async fn remove(store: &Store, tenant: Uuid, before: Uuid, pending_too: bool) -> Result<u64, StoreError> {
    let mut removed = 0;
    loop {
        let last = sqlx::query_scalar!(
            "select id from calls where tenant_id = $1 and id < $2 order by id offset $3 limit 1",
            tenant,
            before,
            BATCH
        );
        let mut removing = store.scoped(tenant).await?;
        let last = last.fetch_optional(&mut *removing).await?;
        let gone = sqlx::query!(
            "delete from calls where tenant_id = $1 and id < $2 and status <> 'running' and ($3 or status <> 'pending')",
            tenant,
            last.unwrap_or(before),
            pending_too
        );
        removed += gone.execute(&mut *removing).await?.rows_affected();
        removing.commit().await?;
        if last.is_none() {
            return Ok(removed);
        }
    }
}
