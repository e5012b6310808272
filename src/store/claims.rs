//! Requests with an idempotency key: who runs them, and what they were answered.
//!
//! The row of a key is the fence. Whoever claims it or takes it over has a lease of its own, by this database's clock, and what
//! it writes at the end is taken only while the row still names that lease.

use super::call_append::{printable, repairs, text};
use super::calls::CallRow;
use super::{Store, StoreError, Writer};
use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;
use uuid::Uuid;

/// For how many hours a key is kept.
const HOURS: i32 = 24;

/// A key, within its tenant and route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId {
    /// The tenant.
    pub tenant: Uuid,
    /// What was asked for.
    pub route: String,
    /// The key itself.
    pub key: String,
}

/// A request that wants to be the first one with its key.
#[derive(Debug)]
pub struct Claim {
    /// The key.
    pub id: KeyId,
    /// What the request says.
    pub body_hash: [u8; 32],
    /// Whose it becomes.
    pub lease: Uuid,
    /// For how long.
    pub time: Duration,
    /// Its calls by position; nothing where one is left out.
    pub places: Vec<Option<Uuid>>,
    /// The calls as they stand before anything is sent.
    pub calls: Vec<CallRow>,
}

/// What became of a claimed request.
#[derive(Debug)]
pub struct Finish {
    /// The key.
    pub id: KeyId,
    /// Under which lease it was run.
    pub lease: Uuid,
    /// What it is answered.
    pub answer: String,
    /// The calls as they ended.
    pub calls: Vec<CallRow>,
}

/// What is known of a key.
#[derive(Debug)]
pub struct Known {
    /// What the first request said.
    pub body_hash: Vec<u8>,
    /// Its calls by position.
    pub places: Vec<Option<Uuid>>,
    /// What it was answered.
    pub answer: Option<String>,
    /// Whether it is being run.
    pub runs: bool,
}

impl Writer {
    /// Claims keys together with their calls, in one statement; says of each whether it is now the claimer's.
    pub async fn claim(&mut self, claims: &[Claim]) -> Result<Vec<bool>, StoreError> {
        // Sorted, so that two replicas never wait for each other's keys crosswise; once each, since one statement may not
        // touch a row twice.
        let mut first: Vec<&Claim> = claims.iter().collect();
        first.sort_by(|one, other| one.id.cmp(&other.id));
        first.dedup_by(|one, other| one.id == other.id);
        let calls: Vec<(&Claim, &CallRow)> =
            first.iter().flat_map(|claim| claim.calls.iter().map(move |call| (*claim, call))).collect();
        let claimed = sqlx::query_scalar!(
            r#"with claimed as (
                 insert into idempotency_keys as k (tenant_id, route, key, body_hash, calls, lease_owner, lease_until)
                 select tenant_id, route, key, body_hash, string_to_array(calls, ',', '-')::uuid[], lease,
                   clock_timestamp() + time * interval '1 millisecond'
                 from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::uuid[], $7::bigint[])
                   as c (tenant_id, route, key, body_hash, calls, lease, time)
                 on conflict (tenant_id, route, key) do update set body_hash = excluded.body_hash, calls = excluded.calls,
                   lease_owner = excluded.lease_owner, lease_until = excluded.lease_until, answer = null, created_at = now()
                 where k.created_at < now() - $24 * interval '1 hour' and (k.answer is not null or k.lease_until < now())
                 returning lease_owner, lease_until),
               running as (
                 insert into calls (tenant_id, id, tool, tool_version, format, call_id, caller, status, input, error_code,
                   error_message, repairs, attempts, duration_ms, request_id, key_id, created_at, lease_owner, lease_until)
                 select tenant_id, id, tool, tool_version, format, call_id, caller, status, input::json, error_code, error_message,
                   repairs::json, 0, 0, request_id, key_id, created_at, lease, lease_until
                 from unnest($8::uuid[], $9::uuid[], $10::uuid[], $11::text[], $12::integer[], $13::text[], $14::text[], $15::text[],
                   $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::text[], $23::timestamptz[])
                   as c (lease, tenant_id, id, tool, tool_version, format, call_id, caller, status, input, error_code, error_message,
                     repairs, request_id, key_id, created_at)
                 join claimed on claimed.lease_owner = c.lease)
               select lease_owner as "lease_owner!" from claimed"#,
            &column(&first, |claim| claim.id.tenant),
            &column(&first, |claim| claim.id.route.as_str()) as &[&str],
            &column(&first, |claim| claim.id.key.as_str()) as &[&str],
            &column(&first, |claim| claim.body_hash.as_slice()) as &[&[u8]],
            &column(&first, |claim| listed(&claim.places)),
            &column(&first, |claim| claim.lease),
            &column(&first, |claim| millis(claim.time)),
            &column(&calls, |(claim, _)| claim.lease),
            &column(&calls, |(claim, _)| claim.id.tenant),
            &column(&calls, |(_, call)| call.id),
            &column(&calls, |(_, call)| printable(&call.tool)) as &[Cow<'_, str>],
            &column(&calls, |(_, call)| call.tool_version) as &[Option<i32>],
            &column(&calls, |(_, call)| call.format.as_deref()) as &[Option<&str>],
            &column(&calls, |(_, call)| call.call_id.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(&calls, |(_, call)| call.caller.as_str()) as &[&str],
            &column(&calls, |(_, call)| call.status.as_str()) as &[&str],
            &column(&calls, |(_, call)| text(call.input.as_deref())) as &[Option<&str>],
            &column(&calls, |(_, call)| call.error_code.as_deref()) as &[Option<&str>],
            &column(&calls, |(_, call)| call.error_message.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(&calls, |(_, call)| repairs(&call.repairs)) as &[Cow<'_, str>],
            &column(&calls, |(_, call)| printable(&call.request_id)) as &[Cow<'_, str>],
            &column(&calls, |(_, call)| call.key_id.as_str()) as &[&str],
            &column(&calls, |(_, call)| call.created_at),
            f64::from(HOURS)
        );
        let won: HashSet<Uuid> =
            self.with(async |connection| Ok(claimed.fetch_all(connection).await?)).await?.into_iter().collect();
        Ok(claims.iter().map(|claim| won.contains(&claim.lease)).collect())
    }

    /// Ends claimed requests, in one statement; says of each whether its lease still held. Of one whose lease did not,
    /// nothing is written. Repeating it changes nothing.
    pub async fn finish(&mut self, ends: &[Finish]) -> Result<Vec<bool>, StoreError> {
        let ends: Vec<&Finish> = ends.iter().collect();
        let calls: Vec<(&Finish, &CallRow)> =
            ends.iter().flat_map(|end| end.calls.iter().map(move |call| (*end, call))).collect();
        let held = sqlx::query_scalar!(
            r#"with held as (
                 update idempotency_keys k set answer = f.answer
                 from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[]) as f (tenant_id, route, key, lease, answer)
                 where k.tenant_id = f.tenant_id and k.route = f.route and k.key = f.key and k.lease_owner = f.lease
                 returning k.lease_owner),
               ended as (
                 update calls c set status = e.status, tool_version = e.tool_version, input = coalesce(c.input, e.input::json),
                   result = e.result::json, error_code = e.error_code, error_message = e.error_message, diagnostic = e.diagnostic,
                   repairs = e.repairs::json, attempts = e.attempts, duration_ms = e.duration_ms, lease_owner = null, lease_until = null
                 from unnest($6::uuid[], $7::uuid[], $8::uuid[], $9::text[], $10::integer[], $11::text[], $12::text[], $13::text[],
                   $14::text[], $15::text[], $16::text[], $17::integer[], $18::bigint[])
                   as e (lease, tenant_id, id, status, tool_version, input, result, error_code, error_message, diagnostic, repairs,
                     attempts, duration_ms)
                 join held on held.lease_owner = e.lease
                 where c.tenant_id = e.tenant_id and c.id = e.id and c.status = 'running')
               select lease_owner as "lease_owner!" from held"#,
            &column(&ends, |end| end.id.tenant),
            &column(&ends, |end| end.id.route.as_str()) as &[&str],
            &column(&ends, |end| end.id.key.as_str()) as &[&str],
            &column(&ends, |end| end.lease),
            &column(&ends, |end| end.answer.as_str()) as &[&str],
            &column(&calls, |(end, _)| end.lease),
            &column(&calls, |(end, _)| end.id.tenant),
            &column(&calls, |(_, call)| call.id),
            &column(&calls, |(_, call)| call.status.as_str()) as &[&str],
            &column(&calls, |(_, call)| call.tool_version) as &[Option<i32>],
            &column(&calls, |(_, call)| text(call.input.as_deref())) as &[Option<&str>],
            &column(&calls, |(_, call)| text(call.result.as_deref())) as &[Option<&str>],
            &column(&calls, |(_, call)| call.error_code.as_deref()) as &[Option<&str>],
            &column(&calls, |(_, call)| call.error_message.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(&calls, |(_, call)| call.diagnostic.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(&calls, |(_, call)| repairs(&call.repairs)) as &[Cow<'_, str>],
            &column(&calls, |(_, call)| call.attempts),
            &column(&calls, |(_, call)| call.duration_ms)
        );
        let held: HashSet<Uuid> =
            self.with_anew(async |connection| Ok(held.fetch_all(connection).await?)).await?.into_iter().collect();
        Ok(ends.iter().map(|end| held.contains(&end.lease)).collect())
    }
}

/// What is known of a key.
pub async fn find(store: &Store, id: &KeyId) -> Result<Option<Known>, StoreError> {
    let found = sqlx::query!(
        r#"select body_hash, calls as "calls: Vec<Option<Uuid>>", answer,
             (lease_owner is not null and lease_until >= clock_timestamp()) as "runs!"
           from idempotency_keys where tenant_id = $1 and route = $2 and key = $3
             and (created_at >= now() - $4 * interval '1 hour' or (answer is null and lease_until >= now()))"#,
        id.tenant,
        id.route,
        id.key,
        f64::from(HOURS)
    );
    let mut reading = store.scoped(id.tenant).await?;
    let found = found.fetch_optional(&mut *reading).await?;
    reading.commit().await?;
    Ok(found.map(|row| Known { body_hash: row.body_hash, places: row.calls, answer: row.answer, runs: row.runs }))
}

/// Takes over a request that nobody runs any more. `again` are its calls that may run (again); of the others those that were
/// running become unknown. Says whether it is now the taker's.
pub async fn take_over(
    store: &Store,
    id: &KeyId,
    lease: Uuid,
    time: Duration,
    again: &[Uuid],
    lost: (&str, &str),
) -> Result<bool, StoreError> {
    let mut transaction = store.scoped_anew(id.tenant).await?;
    let taken = sqlx::query!(
        r#"update idempotency_keys set lease_owner = $4, lease_until = clock_timestamp() + $5 * interval '1 millisecond'
           where tenant_id = $1 and route = $2 and key = $3 and answer is null
             and (lease_owner is null or lease_until < clock_timestamp())
           returning calls as "calls: Vec<Option<Uuid>>", lease_until"#,
        id.tenant,
        id.route,
        id.key,
        lease,
        time.as_secs_f64() * 1000.0
    );
    let Some(taken) = taken.fetch_optional(&mut *transaction).await? else { return Ok(false) };
    let calls: Vec<Uuid> = taken.calls.into_iter().flatten().collect();
    let (code, message) = lost;
    sqlx::query!(
        "update calls set status = 'unknown', error_code = $4, error_message = $5, attempts = 1, lease_owner = null, lease_until = null
         where tenant_id = $1 and id = any($2) and id <> all($3) and status = 'running'",
        id.tenant,
        &calls,
        again,
        code,
        message
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!(
        "update calls set status = 'running', error_code = null, error_message = null, lease_owner = $4, lease_until = $5
         where tenant_id = $1 and id = any($2) and id = any($3) and status in ('running', 'unknown', 'rejected')",
        id.tenant,
        &calls,
        again,
        lease,
        taken.lease_until
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(true)
}

/// Gives a claim up of which nothing was sent: as if the request had never come.
pub async fn release(store: &Store, id: &KeyId, lease: Uuid) -> Result<(), StoreError> {
    let mut writing = store.scoped(id.tenant).await?;
    sqlx::query!(
        "with gone as (
           delete from idempotency_keys where tenant_id = $1 and route = $2 and key = $3 and lease_owner = $4 and answer is null
           returning calls)
         delete from calls where tenant_id = $1 and id in (select unnest(calls) from gone) and status in ('running', 'rejected')",
        id.tenant,
        id.route,
        id.key,
        lease
    )
    .execute(&mut *writing)
    .await?;
    writing.commit().await
}

/// Gives a claim up of which some calls were sent: those become unknown, the others were never sent.
pub async fn abandon(
    store: &Store,
    id: &KeyId,
    lease: Uuid,
    sent: &[Uuid],
    lost: (&str, &str),
    unsent: (&str, &str),
) -> Result<(), StoreError> {
    let mut writing = store.scoped(id.tenant).await?;
    sqlx::query!(
        "with left_behind as (
           update idempotency_keys set lease_owner = null
           where tenant_id = $1 and route = $2 and key = $3 and lease_owner = $4 and answer is null returning calls)
         update calls set status = case when id = any($5) then 'unknown' else 'rejected' end,
           error_code = case when id = any($5) then $6 else $8 end,
           error_message = case when id = any($5) then $7 else $9 end,
           attempts = case when id = any($5) then 1 else 0 end, lease_owner = null, lease_until = null
         where tenant_id = $1 and id in (select unnest(calls) from left_behind) and status = 'running'",
        id.tenant,
        id.route,
        id.key,
        lease,
        sent,
        lost.0,
        lost.1,
        unsent.0,
        unsent.1
    )
    .execute(&mut *writing)
    .await?;
    writing.commit().await
}

/// Finds requests whose lease ran out, frees them, and turns their running calls into unknown ones; says which. Replicas do
/// not wait for each other. `before_commit` hears how many calls there are.
pub async fn reap(
    store: &Store,
    lost: (&str, &str),
    before_commit: impl FnOnce(usize) + Send,
) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
    let mut transaction = store.system_anew().await?;
    let reaped = sqlx::query!(
        "with expired as (
           select tenant_id, route, key from idempotency_keys
           where answer is null and lease_owner is not null and lease_until < clock_timestamp()
           order by lease_until limit 100 for update skip locked),
         freed as (
           update idempotency_keys k set lease_owner = null from expired e
           where k.tenant_id = e.tenant_id and k.route = e.route and k.key = e.key returning k.tenant_id, k.calls),
         lost as (select tenant_id, unnest(calls) as id from freed)
         update calls c set status = 'unknown', error_code = $1, error_message = $2, attempts = 1, lease_owner = null,
           lease_until = null
         from lost where c.tenant_id = lost.tenant_id and c.id = lost.id and c.status = 'running'
         returning c.tenant_id, c.id",
        lost.0,
        lost.1
    )
    .fetch_all(&mut *transaction)
    .await?;
    before_commit(reaped.len());
    transaction.commit().await?;
    Ok(reaped.into_iter().map(|call| (call.tenant_id, call.id)).collect())
}

/// Removes keys whose time is over, some thousands at once; says how many.
pub async fn prune(store: &Store) -> Result<u64, StoreError> {
    let pruned = sqlx::query!(
        "delete from idempotency_keys where (tenant_id, route, key) in (
           select tenant_id, route, key from idempotency_keys
           where created_at < now() - $1 * interval '1 hour' and (answer is not null or lease_owner is null)
           order by created_at limit 5000)",
        f64::from(HOURS)
    );
    let mut pruning = store.system().await?;
    let pruned = pruned.execute(&mut *pruning).await?.rows_affected();
    pruning.commit().await?;
    Ok(pruned)
}

fn column<'a, I, T>(rows: &'a [I], of: impl Fn(&'a I) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}

/// Ids as one text: an array of arrays would have to be a rectangle.
fn listed(places: &[Option<Uuid>]) -> String {
    let texts: Vec<String> = places.iter().map(|id| id.map_or_else(|| "-".to_owned(), |id| id.to_string())).collect();
    texts.join(",")
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
