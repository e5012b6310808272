//! The log of calls.

use super::json::Json;
use super::{Page, PageRequest, Store, StoreError};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use uuid::Uuid;

/// One call as it is logged.
#[derive(Clone, Debug)]
pub struct CallRow {
    /// Its id; version 7, so that ids are in order of time.
    pub id: Uuid,
    /// The tool, as it was called.
    pub tool: String,
    /// Which of the tool's versions ran.
    pub tool_version: Option<i32>,
    /// The format that the call came in.
    pub format: Option<String>,
    /// The provider's id.
    pub call_id: Option<String>,
    /// Who called.
    pub caller: String,
    /// Where it stands.
    pub status: String,
    /// The input, as it was validated.
    pub input: Option<Box<RawValue>>,
    /// `{"text", "data", "truncated"}` of a call that succeeded.
    pub result: Option<Box<RawValue>>,
    /// The stable code of a call that did not.
    pub error_code: Option<String>,
    /// What the model was told.
    pub error_message: Option<String>,
    /// What only the log knows.
    pub diagnostic: Option<String>,
    /// What was repaired in the arguments.
    pub repairs: Vec<String>,
    /// How often the request was sent.
    pub attempts: i32,
    /// From start to end, in milliseconds.
    pub duration_ms: i64,
    /// The request that brought it.
    pub request_id: String,
    /// The key that it was made with.
    pub key_id: String,
    /// When it began.
    pub created_at: OffsetDateTime,
}

/// The columns of a logged call.
struct Row {
    id: Uuid,
    tool: String,
    tool_version: Option<i32>,
    format: Option<String>,
    call_id: Option<String>,
    caller: String,
    status: String,
    input: Option<Json<Box<RawValue>>>,
    result: Option<Json<Box<RawValue>>>,
    error_code: Option<String>,
    error_message: Option<String>,
    diagnostic: Option<String>,
    repairs: Json<Vec<String>>,
    attempts: i32,
    duration_ms: i64,
    request_id: String,
    key_id: String,
    created_at: OffsetDateTime,
}

impl From<Row> for CallRow {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            tool: row.tool,
            tool_version: row.tool_version,
            format: row.format,
            call_id: row.call_id,
            caller: row.caller,
            status: row.status,
            input: row.input.map(|input| input.0),
            result: row.result.map(|result| result.0),
            error_code: row.error_code,
            error_message: row.error_message,
            diagnostic: row.diagnostic,
            repairs: row.repairs.0,
            attempts: row.attempts,
            duration_ms: row.duration_ms,
            request_id: row.request_id,
            key_id: row.key_id,
            created_at: row.created_at,
        }
    }
}

/// Which calls are listed.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Those of this tool.
    pub tool: Option<String>,
    /// Those that stand here.
    pub status: Option<String>,
    /// Those that began at this time or later.
    pub since: Option<OffsetDateTime>,
    /// Those that began before this time.
    pub until: Option<OffsetDateTime>,
}

/// Logs the calls of one request, in one statement.
pub async fn append(store: &Store, tenant: Uuid, calls: &[CallRow]) -> Result<(), StoreError> {
    if calls.is_empty() {
        return Ok(());
    }
    let text = |value: &Option<Box<RawValue>>| value.as_ref().map(|value| value.get().to_owned());
    // One array a column. Documents go as text, since Postgres takes any text as json that JSON takes.
    let logged = sqlx::query!(
        r#"insert into calls (tenant_id, id, tool, tool_version, format, call_id, caller, status, input, result,
             error_code, error_message, diagnostic, repairs, attempts, duration_ms, request_id, key_id, created_at)
           select $1, id, tool, tool_version, format, call_id, caller, status, input::json, result::json, error_code,
             error_message, diagnostic, repairs::json, attempts, duration_ms, request_id, key_id, created_at
           from unnest($2::uuid[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[],
             $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::integer[],
             $16::bigint[], $17::text[], $18::text[], $19::timestamptz[])
             as c (id, tool, tool_version, format, call_id, caller, status, input, result, error_code, error_message,
               diagnostic, repairs, attempts, duration_ms, request_id, key_id, created_at)"#,
        tenant,
        &column(calls, |call| call.id),
        &column(calls, |call| printable(&call.tool)),
        &column(calls, |call| call.tool_version) as &[Option<i32>],
        &column(calls, |call| call.format.clone()) as &[Option<String>],
        &column(calls, |call| call.call_id.as_deref().map(printable)) as &[Option<String>],
        &column(calls, |call| call.caller.clone()),
        &column(calls, |call| call.status.clone()),
        &column(calls, |call| text(&call.input)) as &[Option<String>],
        &column(calls, |call| text(&call.result)) as &[Option<String>],
        &column(calls, |call| call.error_code.clone()) as &[Option<String>],
        &column(calls, |call| call.error_message.as_deref().map(printable)) as &[Option<String>],
        &column(calls, |call| call.diagnostic.as_deref().map(printable)) as &[Option<String>],
        &column(calls, |call| serde_json::json!(call.repairs).to_string()),
        &column(calls, |call| call.attempts),
        &column(calls, |call| call.duration_ms),
        &column(calls, |call| printable(&call.request_id)),
        &column(calls, |call| call.key_id.clone()),
        &column(calls, |call| call.created_at)
    );
    logged.execute(&store.pool).await?;
    Ok(())
}

fn column<T>(calls: &[CallRow], of: impl Fn(&CallRow) -> T) -> Vec<T> {
    calls.iter().map(of).collect()
}

/// A text without NUL, the one character that a text column does not take.
fn printable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Finds a call.
pub async fn get(store: &Store, tenant: Uuid, id: Uuid) -> Result<Option<CallRow>, StoreError> {
    let found = sqlx::query_as!(
        Row,
        r#"select id, tool, tool_version, format, call_id, caller, status, input as "input: _", result as "result: _",
             error_code, error_message, diagnostic, repairs as "repairs: _", attempts, duration_ms, request_id, key_id, created_at
           from calls where tenant_id = $1 and id = $2"#,
        tenant,
        id
    );
    Ok(found.fetch_optional(&store.pool).await?.map(CallRow::from))
}

/// Lists calls, the newest first.
pub async fn list(
    store: &Store,
    tenant: Uuid,
    filter: &Filter,
    page: &PageRequest<Uuid>,
) -> Result<Page<CallRow>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select id, tool, tool_version, format, call_id, caller, status, input as "input: _", result as "result: _",
             error_code, error_message, diagnostic, repairs as "repairs: _", attempts, duration_ms, request_id, key_id, created_at
           from calls where tenant_id = $1 and ($2::uuid is null or id < $2)
             and ($4::text is null or tool = $4) and ($5::text is null or status = $5)
             and ($6::timestamptz is null or created_at >= $6) and ($7::timestamptz is null or created_at < $7)
           order by id desc limit $3"#,
        tenant,
        page.after,
        page.limit + 1,
        filter.tool,
        filter.status,
        filter.since,
        filter.until
    );
    let rows = rows.fetch_all(&store.pool).await?;
    Ok(Page::of(rows.into_iter().map(CallRow::from).collect(), page.limit))
}
