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
    /// Whether somebody asked to cancel it.
    pub cancel_requested: bool,
}

impl CallRow {
    /// About how much memory its texts take.
    pub fn bytes(&self) -> usize {
        let document = |value: &Option<Box<RawValue>>| value.as_ref().map_or(0, |value| value.get().len());
        let text = |value: &Option<String>| value.as_ref().map_or(0, String::len);
        let texts = self.tool.len() + text(&self.call_id) + text(&self.error_message) + text(&self.diagnostic);
        std::mem::size_of::<Self>() + texts + document(&self.input) + document(&self.result)
    }
}

/// A call and whose it is.
#[derive(Clone, Debug)]
pub struct Record {
    /// The tenant.
    pub tenant: Uuid,
    /// The call.
    pub call: CallRow,
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
    cancel_requested: bool,
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
            cancel_requested: row.cancel_requested,
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
    /// Those that somebody asked to cancel, or the others.
    pub cancel_requested: Option<bool>,
}

/// The least id of a call that began at this time or later.
pub(super) fn first_id(time: OffsetDateTime) -> Uuid {
    let nanos = time.unix_timestamp_nanos();
    let millis = nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) > 0);
    match u128::try_from(millis) {
        Err(_) => Uuid::nil(),
        Ok(millis) if millis >> 48 > 0 => Uuid::max(),
        Ok(millis) => Uuid::from_u128(millis << 80),
    }
}

/// Finds a call.
pub async fn get(store: &Store, tenant: Uuid, id: Uuid) -> Result<Option<CallRow>, StoreError> {
    let found = sqlx::query_as!(
        Row,
        r#"select id, tool, tool_version, format, call_id, caller, status, input as "input: _", result as "result: _",
             error_code, error_message, diagnostic, repairs as "repairs: _", attempts, duration_ms, request_id, key_id, created_at,
             cancel_requested
           from calls where tenant_id = $1 and id = $2"#,
        tenant,
        id
    );
    let mut reading = store.scoped(tenant).await?;
    let found = found.fetch_optional(&mut *reading).await?;
    reading.commit().await?;
    Ok(found.map(CallRow::from))
}

/// Lists calls, the newest first.
pub async fn list(
    store: &Store,
    tenant: Uuid,
    filter: &Filter,
    page: &PageRequest<Uuid>,
) -> Result<Page<CallRow>, StoreError> {
    // Times are bounds of the id, so that a page is read from an index from where it begins, and days outside are not touched.
    let from = filter.since.map_or(Uuid::nil(), first_id);
    let to = filter.until.map_or(Uuid::max(), first_id).min(page.after.unwrap_or(Uuid::max()));
    let rows = sqlx::query_as!(
        Row,
        r#"select id, tool, tool_version, format, call_id, caller, status, input as "input: _", result as "result: _",
             error_code, error_message, diagnostic, repairs as "repairs: _", attempts, duration_ms, request_id, key_id, created_at,
             cancel_requested
           from calls where tenant_id = $1 and id >= $2 and id < $3
             and ($4::text is null or tool = $4) and ($5::text is null or status = $5)
             and ($7::boolean is null or cancel_requested = $7)
           order by id desc limit $6"#,
        tenant,
        from,
        to,
        filter.tool,
        filter.status,
        page.limit + 1,
        filter.cancel_requested
    );
    let mut reading = store.scoped_anew(tenant).await?;
    let rows = rows.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    Ok(Page::of(rows.into_iter().map(CallRow::from).collect(), page.limit))
}
