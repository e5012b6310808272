//! What time it is, which no model knows.

use super::{HandlerResult, NativeHandler};
use crate::domain::json::Object;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// The native handler of the tool `current_time`.
#[derive(Clone, Copy, Debug)]
pub struct CurrentTime;

pub(super) fn definition() -> Value {
    json!({
        "name": "current_time",
        "description": "The current date, time and weekday, in UTC or at a fixed offset from it. Call this whenever an answer depends \
            on today's date or the time now.",
        "input_schema": {
            "type": "object",
            "properties": {
                "utc_offset": {
                    "type": "string",
                    "description": "The offset from UTC, such as \"+10:00\" or \"-03:30\". Leave it out for UTC.",
                    "pattern": "^[+-](0[0-9]|1[0-8]):[0-5][0-9]$"
                }
            },
            "additionalProperties": false
        },
        "annotations": {"title": "Current time", "read_only": true, "open_world": false},
        "tags": ["built-in"]
    })
}

impl NativeHandler for CurrentTime {
    fn call<'a>(
        &'a self,
        _tool: &'a str,
        input: Object,
        _context: &'a Object,
    ) -> BoxFuture<'a, Result<HandlerResult, String>> {
        Box::pin(async move {
            let offset = input.get("utc_offset").and_then(Value::as_str).map_or(Ok(UtcOffset::UTC), offset)?;
            tell(OffsetDateTime::now_utc(), offset)
        })
    }
}

/// Reads `+10:00`; the schema has checked the form, except that the widest offset is 18 hours.
fn offset(text: &str) -> Result<UtcOffset, String> {
    let part = |range: std::ops::Range<usize>| text.get(range).and_then(|digits| digits.parse::<i8>().ok());
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let offset = match (part(1..3), part(4..6)) {
        (Some(hours), Some(minutes)) if hours < 18 || minutes == 0 => {
            UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
        }
        _ => None,
    };
    offset.ok_or_else(|| "utc_offset must be an offset between -18:00 and +18:00, such as +10:00".to_owned())
}

fn tell(now: OffsetDateTime, offset: UtcOffset) -> Result<HandlerResult, String> {
    let now = now.replace_nanosecond(0).unwrap_or(now).to_offset(offset);
    let text = now.format(&Rfc3339).map_err(|_| "the clock of this service cannot be read".to_owned())?;
    let weekday = now.weekday().to_string();
    let mut data = Object::new();
    data.insert("unix_seconds".to_owned(), now.unix_timestamp().into());
    data.insert("rfc3339".to_owned(), text.clone().into());
    data.insert("weekday".to_owned(), weekday.clone().into());
    Ok(HandlerResult::with_data(format!("{text} ({weekday})"), data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn at_an_offset() {
        let now = datetime!(2026-11-30 23:45:06.789 UTC);
        for (at, expected) in [
            ("+00:00", "2026-11-30T23:45:06Z (Monday)"),
            ("+10:00", "2026-12-01T09:45:06+10:00 (Tuesday)"),
            ("-03:30", "2026-11-30T20:15:06-03:30 (Monday)"),
        ] {
            assert_eq!(tell(now, offset(at).unwrap()).unwrap().content.text(), expected);
        }
        for bad in ["+18:01", "", "+1", "+aa:bb", "ü10:00"] {
            assert!(offset(bad).is_err(), "{bad}");
        }
    }
}
