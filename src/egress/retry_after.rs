//! The `retry-after` header (RFC 9110, 10.2.3).

use std::time::Duration;

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

/// The longest wait that is believed; longer than any call may last.
pub const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// RFC 9110's preferred date. Its two obsolete forms are not read: a header that cannot be read is advice not taken.
const HTTP_DATE: &[BorrowedFormatItem<'_>] =
    format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");

/// How long to wait, from either form, at most [`MAX_RETRY_AFTER`]; a date in the past means not at all.
pub(super) fn parse(value: &str, now: OffsetDateTime) -> Option<Duration> {
    let value = value.trim();
    let wait = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // Too many digits for a number are still a number over the cap.
        value.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs)
    } else {
        let date = PrimitiveDateTime::parse(value, HTTP_DATE).ok()?;
        Duration::try_from(date.assume_utc() - now).unwrap_or_default()
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn both_forms_and_the_cap() {
        let now = datetime!(2026-11-30 09:00:00 UTC);
        for (value, seconds) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("300", Some(300)),
            ("301", Some(300)),
            ("99999999999999999999999", Some(300)),
            ("Mon, 30 Nov 2026 09:00:12 GMT", Some(12)),
            ("Mon, 30 Nov 2026 10:00:00 GMT", Some(300)),
            ("Mon, 30 Nov 2026 08:00:00 GMT", Some(0)),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("soon", None),
        ] {
            let parsed = parse(value, now);
            assert_eq!(parsed, seconds.map(Duration::from_secs), "{value:?}");
        }
    }
}
