//! Calls that are under way: what the log says of them to those who wait, and to those who give up.

pub use super::pending_notes::{Opening, Report, Reporter};

use super::json::Json;
use super::{Store, StoreError};
use serde_json::value::RawValue;
use std::collections::HashMap;
use uuid::Uuid;

/// How many calls are given up in one statement.
const BATCH: i64 = 500;

/// What the log says of a call to somebody who has to answer it.
#[derive(Clone, Debug)]
pub struct Recalled {
    /// Where it stands.
    pub status: String,
    /// `{"text", "data", "truncated"}` of a call that succeeded.
    pub result: Option<Box<RawValue>>,
    /// The picture that its result is.
    pub picture: Option<Box<RawValue>>,
    /// The stable code of a call that did not succeed.
    pub error_code: Option<String>,
    /// What the model is told.
    pub error_message: Option<String>,
    /// How often it was sent.
    pub attempts: i32,
    /// From start to end, in milliseconds.
    pub duration_ms: i64,
    /// Whether somebody asked to cancel it.
    pub cancel_requested: bool,
    /// What its webhook reported, as a hash.
    pub callback_hash: Option<Vec<u8>>,
    /// The tool, as it was called.
    pub tool: String,
}

/// What the log says of some of a tenant's calls.
pub async fn recall(store: &Store, tenant: Uuid, calls: &[Uuid]) -> Result<HashMap<Uuid, Recalled>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, status, result as "result: Json<Box<RawValue>>", picture as "picture: Json<Box<RawValue>>", error_code,
             error_message, attempts, duration_ms, cancel_requested, callback_hash, tool
           from calls where tenant_id = $1 and id = any($2)"#,
        tenant,
        calls
    );
    let mut reading = store.scoped_anew(tenant).await?;
    let rows = rows.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    let recalled = rows.into_iter().map(|row| {
        let recalled = Recalled {
            status: row.status,
            result: row.result.map(|result| result.0),
            picture: row.picture.map(|picture| picture.0),
            error_code: row.error_code,
            error_message: row.error_message,
            attempts: row.attempts,
            duration_ms: row.duration_ms,
            cancel_requested: row.cancel_requested,
            callback_hash: row.callback_hash,
            tool: row.tool,
        };
        (row.id, recalled)
    });
    Ok(recalled.collect())
}

/// Something that a waiting process may not know yet.
#[derive(Clone, Copy, Debug)]
pub struct News {
    /// The call.
    pub id: Uuid,
    /// Somebody asked to cancel it.
    pub cancel_requested: bool,
    /// It has ended.
    pub ended: bool,
}

/// Which of these calls, each with its tenant, have ended or are to be cancelled: one question for all that a process waits for.
pub async fn news(store: &Store, tenants: &[Uuid], calls: &[Uuid]) -> Result<Vec<News>, StoreError> {
    let news = sqlx::query_as!(
        News,
        r#"select c.id, c.cancel_requested, (c.status not in ('running', 'pending')) as "ended!"
           from unnest($1::uuid[], $2::uuid[]) as w (tenant_id, id) join calls c on c.tenant_id = w.tenant_id and c.id = w.id
           where c.cancel_requested or c.status not in ('running', 'pending')"#,
        tenants,
        calls
    );
    let mut reading = store.system_anew().await?;
    let news = news.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    Ok(news)
}

/// Notes that somebody asks to cancel a call that is under way; says whether it is. `unsent`, a code and a message, ends it: its
/// process knows that it was not sent and will not be.
pub async fn cancel(store: &Store, tenant: Uuid, id: Uuid, unsent: Option<(&str, &str)>) -> Result<bool, StoreError> {
    let (code, message) = unsent.unzip();
    let noted = sqlx::query!(
        "update calls set cancel_requested = true,
           status = case when $3::text is null or status <> 'running' then status else 'rejected' end,
           error_code = case when $3::text is null or status <> 'running' then error_code else $3 end,
           error_message = case when $3::text is null or status <> 'running' then error_message else $4 end
         where tenant_id = $1 and id = $2 and status in ('running', 'pending')",
        tenant,
        id,
        code,
        message
    );
    let mut noting = store.scoped_anew(tenant).await?;
    let noted = noted.execute(&mut *noting).await?.rows_affected() > 0;
    noting.commit().await?;
    Ok(noted)
}

/// Ends the calls of asynchronous handlers whose time is up: one that still runs has been lost sight of, one that is pending was not
/// reported on. Each way has its code and message. Replicas do not wait for each other.
pub async fn give_up(
    store: &Store,
    lost: (&str, &str),
    unreported: (&str, &str),
) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
    let ended = sqlx::query!(
        "with due as (
           select tenant_id, id from calls where due_at < now() order by due_at limit $5 for update skip locked)
         update calls c set due_at = null,
           status = case when c.status = 'pending' then 'timed_out' else 'unknown' end,
           error_code = case when c.status = 'pending' then $3 else $1 end,
           error_message = case when c.status = 'pending' then $4 else $2 end,
           attempts = greatest(c.attempts, 1)
         from due where c.tenant_id = due.tenant_id and c.id = due.id and c.status in ('pending', 'running')
         returning c.tenant_id, c.id",
        lost.0,
        lost.1,
        unreported.0,
        unreported.1,
        BATCH
    );
    let mut transaction = store.system_anew().await?;
    let ended = ended.fetch_all(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(ended.into_iter().map(|call| (call.tenant_id, call.id)).collect())
}
