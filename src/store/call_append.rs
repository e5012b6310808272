//! Writing the log of calls: many tenants' records in one statement.

use super::calls::Record;
use super::{StoreError, Writer};
use serde_json::value::RawValue;
use std::borrow::Cow;

impl Writer {
    /// Logs calls, in one statement. One that is in the log already stays as it is: when a connection is lost nobody knows
    /// whether the statement was committed, so it is repeated.
    pub async fn append(&mut self, calls: &[&Record]) -> Result<(), StoreError> {
        if calls.is_empty() {
            return Ok(());
        }
        // One array a column. Documents go as text, since Postgres takes any text as json that JSON takes.
        let logged = sqlx::query!(
            r#"insert into calls (tenant_id, id, tool, tool_version, format, call_id, caller, status, input, result,
                 error_code, error_message, diagnostic, repairs, attempts, duration_ms, request_id, key_id, created_at, cancel_requested)
               select tenant_id, id, tool, tool_version, format, call_id, caller, status, input::json, result::json, error_code,
                 error_message, diagnostic, repairs::json, attempts, duration_ms, request_id, key_id, created_at, cancel_requested
               from unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[],
                 $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::integer[],
                 $16::bigint[], $17::text[], $18::text[], $19::timestamptz[], $20::boolean[])
                 as c (tenant_id, id, tool, tool_version, format, call_id, caller, status, input, result, error_code, error_message,
                   diagnostic, repairs, attempts, duration_ms, request_id, key_id, created_at, cancel_requested)
               on conflict do nothing"#,
            &column(calls, |record| record.tenant),
            &column(calls, |record| record.call.id),
            &column(calls, |record| printable(&record.call.tool)) as &[Cow<'_, str>],
            &column(calls, |record| record.call.tool_version) as &[Option<i32>],
            &column(calls, |record| record.call.format.as_deref()) as &[Option<&str>],
            &column(calls, |record| record.call.call_id.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(calls, |record| record.call.caller.as_str()) as &[&str],
            &column(calls, |record| record.call.status.as_str()) as &[&str],
            &column(calls, |record| text(record.call.input.as_deref())) as &[Option<&str>],
            &column(calls, |record| text(record.call.result.as_deref())) as &[Option<&str>],
            &column(calls, |record| record.call.error_code.as_deref()) as &[Option<&str>],
            &column(calls, |record| record.call.error_message.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(calls, |record| record.call.diagnostic.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(calls, |record| repairs(&record.call.repairs)) as &[Cow<'_, str>],
            &column(calls, |record| record.call.attempts),
            &column(calls, |record| record.call.duration_ms),
            &column(calls, |record| printable(&record.call.request_id)) as &[Cow<'_, str>],
            &column(calls, |record| record.call.key_id.as_str()) as &[&str],
            &column(calls, |record| record.call.created_at),
            &column(calls, |record| record.call.cancel_requested)
        );
        self.with(async |connection| {
            logged.execute(connection).await?;
            Ok(())
        })
        .await
    }
}

fn column<'a, T>(calls: &'a [&Record], of: impl Fn(&'a Record) -> T) -> Vec<T> {
    calls.iter().map(|record| of(record)).collect()
}

pub(super) fn text(document: Option<&RawValue>) -> Option<&str> {
    document.map(RawValue::get)
}

/// A text without NUL, the one character that a text column does not take.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// A list as JSON; most are empty.
pub(super) fn repairs(list: &[String]) -> Cow<'static, str> {
    if list.is_empty() { "[]".into() } else { serde_json::json!(list).to_string().into() }
}
