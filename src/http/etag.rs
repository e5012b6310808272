//! Entity tags: a resource's state in a few characters, and the requests that depend on it.

use super::problem::{Code, Problem};
use crate::domain::fingerprint;
use axum::http::{HeaderMap, HeaderValue, header};

/// How often a change is applied anew when somebody else's came between its read and its write. Each time one of them got
/// through, so only a crowd runs out of tries; a request with `If-Match` ends at once, for its state is gone.
const TRIES: u32 = 20;

/// Reads, changes and writes; anew, while somebody else's change comes in between.
pub(super) async fn contended<T, F>(attempt: impl Fn() -> F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, Problem>>,
{
    for _ in 1..TRIES {
        match attempt().await {
            Err(problem) if matches!(problem.code(), Code::Changed | Code::NameTaken) => {}
            done => return done,
        }
    }
    attempt().await
}

/// The tag of a representation: the same bytes have the same tag, on every replica.
pub(super) fn of(representation: &[u8]) -> String {
    quoted(&fingerprint(representation))
}

/// A fingerprint as a tag.
pub(super) fn quoted(fingerprint: &str) -> String {
    format!("\"{fingerprint}\"")
}

/// A tag as a header's value.
pub(super) fn header_value(tag: &str) -> HeaderValue {
    HeaderValue::from_str(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Holds `If-Match` against the present state (RFC 9110, 13.1.1): `present` is the tag of what is there, or nothing.
pub(super) fn check_match(headers: &HeaderMap, present: Option<&str>) -> Result<(), Problem> {
    let Some(wanted) = header_text(headers, header::IF_MATCH) else { return Ok(()) };
    let fits = present.is_some_and(|tag| wanted.trim() == "*" || tags(&wanted).any(|one| one == tag));
    if fits {
        return Ok(());
    }
    let now = present.map_or_else(|| "is not there".to_owned(), |tag| format!("has the tag {tag}"));
    Err(Problem::new(Code::PreconditionFailed, format!("it {now}; read it again before you change it")))
}

/// Holds the `If-None-Match: *` of a write against what is there: it asks to make something, never to replace it.
pub(super) fn check_absent(headers: &HeaderMap) -> Result<(), Problem> {
    match header_text(headers, header::IF_NONE_MATCH) {
        Some(known) if known.trim() == "*" => Err(Problem::new(Code::PreconditionFailed, "it is there already")),
        _ => Ok(()),
    }
}

/// Whether `If-None-Match` says that the asker has this state already (RFC 9110, 13.1.2; compared weakly).
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    header_text(headers, header::IF_NONE_MATCH).is_some_and(|known| {
        known.trim() == "*" || tags(&known).any(|one| one.strip_prefix("W/").unwrap_or(one) == tag)
    })
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    let lines: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    (!lines.is_empty()).then(|| lines.join(","))
}

fn tags(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn if_match() {
        let with = |value| headers(header::IF_MATCH, value);
        assert!(check_match(&HeaderMap::new(), None).is_ok());
        assert!(check_match(&with("\"a\", \"b\""), Some("\"b\"")).is_ok());
        assert!(check_match(&with("*"), Some("\"b\"")).is_ok());
        assert!(check_match(&with("*"), None).is_err());
        assert!(check_match(&with("\"a\""), Some("\"b\"")).is_err());
        assert!(check_match(&with("W/\"b\""), Some("\"b\"")).is_err(), "a weak tag never matches strongly");
    }

    #[test]
    fn if_none_match() {
        assert!(is_known(&headers(header::IF_NONE_MATCH, "\"x\", W/\"b\""), "\"b\""));
        assert!(!is_known(&headers(header::IF_NONE_MATCH, "\"x\""), "\"b\""));
    }
}
