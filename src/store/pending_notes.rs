//! Writing down calls of asynchronous handlers: before they are sent, and what is reported of them. Many in one statement.

use super::call_append::{printable, repairs, text};
use super::calls::{CallRow, Record};
use super::{StoreError, Writer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;
use uuid::Uuid;

/// A call that is about to be sent.
#[derive(Debug)]
pub struct Opening {
    /// The call as it runs.
    pub record: Record,
    /// For how long it may be believed to.
    pub time: Duration,
}

/// What is reported of a call.
#[derive(Debug)]
pub struct Report {
    /// Whose call it is.
    pub tenant: Uuid,
    /// Where the call stands by this report: its status, its result, its failure, its attempts and its time.
    pub call: CallRow,
    /// A picture, as JSON.
    pub picture: Option<Box<RawValue>>,
    /// Who reports.
    pub by: Reporter,
    /// After how long the call is given up, if the report leaves it pending.
    pub due: Option<Duration>,
}

/// Who reports.
#[derive(Clone, Copy, Debug)]
pub enum Reporter {
    /// The request that sent it, under its key's lease if it came with a key.
    Request(Option<Uuid>),
    /// The webhook: what it said, as a hash.
    Callback([u8; 32]),
}

impl Writer {
    /// Writes calls as running, in one statement.
    pub async fn open(&mut self, openings: &[Opening]) -> Result<(), StoreError> {
        let calls: Vec<&Record> = openings.iter().map(|opening| &opening.record).collect();
        let opened = sqlx::query!(
            r#"insert into calls (tenant_id, id, tool, tool_version, format, call_id, caller, status, input, repairs, attempts,
                 duration_ms, request_id, key_id, created_at, due_at)
               select tenant_id, id, tool, tool_version, format, call_id, caller, 'running', input::json, repairs::json, 0, 0,
                 request_id, key_id, created_at, clock_timestamp() + time * interval '1 millisecond'
               from unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[],
                 $9::text[], $10::text[], $11::text[], $12::timestamptz[], $13::bigint[])
                 as c (tenant_id, id, tool, tool_version, format, call_id, caller, input, repairs, request_id, key_id, created_at, time)
               on conflict do nothing"#,
            &column(&calls, |record| record.tenant),
            &column(&calls, |record| record.call.id),
            &column(&calls, |record| printable(&record.call.tool)) as &[Cow<'_, str>],
            &column(&calls, |record| record.call.tool_version) as &[Option<i32>],
            &column(&calls, |record| record.call.format.as_deref()) as &[Option<&str>],
            &column(&calls, |record| record.call.call_id.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(&calls, |record| record.call.caller.as_str()) as &[&str],
            &column(&calls, |record| text(record.call.input.as_deref())) as &[Option<&str>],
            &column(&calls, |record| repairs(&record.call.repairs)) as &[Cow<'_, str>],
            &column(&calls, |record| printable(&record.call.request_id)) as &[Cow<'_, str>],
            &column(&calls, |record| record.call.key_id.as_str()) as &[&str],
            &column(&calls, |record| record.call.created_at),
            &column(openings, |opening| millis(opening.time))
        );
        self.with(async |connection| {
            opened.execute(connection).await?;
            Ok(())
        })
        .await
    }

    /// Writes what is reported, in one statement; says of each report whether it counts. The first one that ends a call does. A
    /// request's counts while the call runs as that request began it, or is unknown and nobody has its lease; a callback's also while
    /// it is pending.
    pub async fn report(&mut self, reports: &[Report]) -> Result<Vec<bool>, StoreError> {
        let reports_by_place: Vec<(i32, &Report)> = (0..).zip(reports).collect();
        let all = reports_by_place.as_slice();
        let counted = sqlx::query_scalar!(
            r#"update calls c set status = r.status, result = r.result::json, picture = r.picture::json, error_code = r.error_code,
                 error_message = r.error_message, diagnostic = r.diagnostic, attempts = greatest(c.attempts, r.attempts),
                 duration_ms = r.duration_ms, callback_hash = r.hash, lease_owner = null, lease_until = null,
                 due_at = clock_timestamp() + r.due * interval '1 millisecond'
               from unnest($1::integer[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::text[], $7::text[], $8::text[],
                   $9::text[], $10::text[], $11::text[], $12::integer[], $13::bigint[], $14::bigint[])
                 as r (place, tenant_id, id, lease, hash, status, result, picture, error_code, error_message, diagnostic, attempts,
                   duration_ms, due)
               where c.tenant_id = r.tenant_id and c.id = r.id and case
                 when r.hash is not null then c.status in ('running', 'pending', 'unknown')
                 when c.status = 'running' then c.lease_owner is not distinct from r.lease
                 else c.status = 'unknown' and r.lease is null end
               returning r.place as "place!""#,
            &column(all, |(place, _)| *place),
            &column(all, |(_, report)| report.tenant),
            &column(all, |(_, report)| report.call.id),
            &column(all, |(_, report)| report.by.lease()) as &[Option<Uuid>],
            &column(all, |(_, report)| report.by.hash()) as &[Option<&[u8]>],
            &column(all, |(_, report)| report.call.status.as_str()) as &[&str],
            &column(all, |(_, report)| text(report.call.result.as_deref())) as &[Option<&str>],
            &column(all, |(_, report)| text(report.picture.as_deref())) as &[Option<&str>],
            &column(all, |(_, report)| report.call.error_code.as_deref()) as &[Option<&str>],
            &column(all, |(_, report)| report.call.error_message.as_deref().map(printable))
                as &[Option<Cow<'_, str>>],
            &column(all, |(_, report)| report.call.diagnostic.as_deref().map(printable)) as &[Option<Cow<'_, str>>],
            &column(all, |(_, report)| report.call.attempts),
            &column(all, |(_, report)| report.call.duration_ms),
            &column(all, |(_, report)| report.due.map(millis)) as &[Option<i64>]
        );
        let counted = self.with_anew(async |connection| Ok(counted.fetch_all(connection).await?));
        let counted: HashSet<i32> = counted.await?.into_iter().collect();
        Ok(reports_by_place.iter().map(|(place, _)| counted.contains(place)).collect())
    }
}

impl Reporter {
    const fn lease(&self) -> Option<Uuid> {
        match self {
            Self::Request(lease) => *lease,
            Self::Callback(_) => None,
        }
    }

    fn hash(&self) -> Option<&[u8]> {
        match self {
            Self::Request(_) => None,
            Self::Callback(hash) => Some(hash),
        }
    }
}

fn column<'a, I, T>(rows: &'a [I], of: impl Fn(&'a I) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
