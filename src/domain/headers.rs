//! Which headers an author may put on a handler.
//!
//! The HTTP client sends what it is given, and some headers change more than they say: `content-length: 3` cuts the body, `host`
//! picks another site at a shared front end, `transfer-encoding` changes the framing, and a cloud's own headers open its metadata
//! service. So the rule is about whole families of names, and it is checked when the handler is written: what is accepted
//! here is sent unchanged.

use std::collections::HashSet;

/// How many headers one handler may set.
pub const MAX_HEADERS: usize = 20;

/// How many bytes the names and values of one handler's headers may take together: half of what common servers accept for a whole
/// request head (8 KiB in nginx and Apache), so that ours fit beside them.
pub const MAX_HEADER_BYTES: usize = 4096;

/// How many characters a header's name may have.
pub const MAX_NAME_CHARS: usize = 64;

const ROUTING: &str = "decides where or how the request travels, which is Toolhook's part";
const BODY: &str = "describes the body, which Toolhook writes";
const OURS: &str = "is set by Toolhook";
const COOKIE: &str = "is not sent: calls carry no cookies";
const CLOUD: &str = "is reserved by a cloud provider's internal services";

/// Names that are refused as they stand, in lower case.
const NAMES: &[(&str, &str)] = &[
    ("host", ROUTING),
    ("connection", ROUTING),
    ("keep-alive", ROUTING),
    ("te", ROUTING),
    ("trailer", ROUTING),
    ("transfer-encoding", ROUTING),
    ("upgrade", ROUTING),
    ("http2-settings", ROUTING),
    ("expect", ROUTING),
    ("forwarded", ROUTING),
    ("via", ROUTING),
    ("x-real-ip", ROUTING),
    ("cookie", COOKIE),
    ("cookie2", COOKIE),
    ("accept-encoding", OURS),
    ("user-agent", OURS),
    ("idempotency-key", OURS),
    ("traceparent", OURS),
    ("tracestate", OURS),
    ("metadata", CLOUD),
    ("metadata-flavor", CLOUD),
];

/// Beginnings of names that are refused, in lower case.
const PREFIXES: &[(&str, &str)] = &[
    ("content-", BODY),
    ("proxy-", ROUTING),
    ("x-forwarded-", ROUTING),
    ("webhook-", OURS),
    ("toolhook-", OURS),
    ("x-amz-", CLOUD),
    ("x-aws-", CLOUD),
    ("x-azure-", CLOUD),
    ("x-goog", CLOUD),
];

/// Says why an author may not set this header, in words that follow its name; `None` if they may. Letter case does not matter.
pub fn forbidden_header(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let exact = NAMES.iter().find(|(n, _)| *n == name);
    let family = || PREFIXES.iter().find(|(p, _)| name.starts_with(p));
    exact.or_else(family).map(|(_, why)| *why)
}

/// Checks a handler's headers together, and gives every fault as the header's name (as written) and what is wrong with it.
///
/// A limit over all headers is reported once, at the first header that goes over it. Values appear in no message.
pub fn check_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    let mut seen = HashSet::new();
    let mut bytes = 0_usize;
    for (index, (name, value)) in headers.into_iter().enumerate() {
        let mut fault = |detail: String| faults.push((name.to_owned(), detail));
        if index == MAX_HEADERS {
            fault(format!("is one too many: a handler has at most {MAX_HEADERS} headers"));
        }
        let before = bytes;
        bytes = bytes.saturating_add(name.len()).saturating_add(value.len());
        if before <= MAX_HEADER_BYTES && bytes > MAX_HEADER_BYTES {
            fault(format!("takes the headers over {MAX_HEADER_BYTES} bytes together"));
        }
        if !seen.insert(name.to_ascii_lowercase()) {
            fault("is there twice: letter case does not tell header names apart".to_owned());
        }
        if let Some(detail) = name_fault(name) {
            fault(detail);
        }
        if let Some(detail) = value_fault(value) {
            fault(detail.to_owned());
        }
    }
    faults
}

fn name_fault(name: &str) -> Option<String> {
    let known = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.bytes().all(known) {
        return Some(format!("is not a header name: 1 to {MAX_NAME_CHARS} letters, digits and hyphens"));
    }
    forbidden_header(name).map(str::to_owned)
}

fn value_fault(value: &str) -> Option<&'static str> {
    if value.contains(['\r', '\n']) {
        return Some("has a value with a line break, which would begin another header");
    }
    if !value.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return Some("has a value with characters outside visible ASCII");
    }
    // A server strips them, so what arrives would not be what was written.
    (value.starts_with(' ') || value.ends_with(' ')).then_some("has a value with a space at an end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(headers: &[(&str, &str)]) -> Vec<(String, String)> {
        check_headers(headers.iter().copied())
    }

    #[test]
    fn what_authors_need_is_allowed() {
        let headers = [
            ("authorization", "Bearer s3cret"),
            ("X-Team", "a, b; c=\"d\""),
            ("accept", "application/json"),
            ("x-empty", ""),
        ];
        assert_eq!(details(&headers), []);
    }

    #[test]
    fn families_are_refused_in_any_letter_case() {
        for name in [
            "Host",
            "content-length",
            "Content-Type",
            "Transfer-Encoding",
            "connection",
            "keep-alive",
            "te",
            "trailer",
            "upgrade",
            "expect",
            "Proxy-Authorization",
            "cookie",
            "forwarded",
            "X-Forwarded-For",
            "user-agent",
            "accept-encoding",
            "webhook-id",
            "WEBHOOK-Signature",
            "toolhook-anything",
            "idempotency-key",
            "x-amz-date",
            "x-goog-user-project",
            "X-Google-Metadata-Request",
            "metadata-flavor",
            "Metadata",
            "x-azure-ref",
            "x-aws-ec2-metadata-token",
        ] {
            let faults = details(&[(name, "1")]);
            assert_eq!(faults.len(), 1, "{name}: {faults:?}");
            assert_eq!(faults[0].0, name);
        }
    }

    #[test]
    fn values_cannot_begin_another_header() {
        for value in ["a\r\nX-Injected: 1", "a\nb", "a\rb", "a\0b", "a\tb", "grüß", " a", "a ", "\u{7f}"] {
            assert_eq!(details(&[("x-team", value)]).len(), 1, "{value:?}");
        }
    }

    #[test]
    fn names_are_plain() {
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for name in ["", "X Team", "X-Team\n", "x:y", "x_y", "ü", long.as_str()] {
            assert_eq!(details(&[(name, "a")]).len(), 1, "{name:?}");
        }
    }

    #[test]
    fn limits_over_all_are_reported_once_and_no_value_is_repeated() {
        let names: Vec<String> = (0..200).map(|n| format!("x-{n}")).collect();
        let secret = "s3cret".repeat(20);
        let faults = check_headers(names.iter().map(|n| (n.as_str(), secret.as_str())));
        assert_eq!(faults.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["x-20", "x-33"]);
        assert!(faults.iter().all(|(_, d)| !d.contains("s3cret")));
        let full = "v".repeat(MAX_HEADER_BYTES - 1);
        assert_eq!(details(&[("x", &full)]), []);
        assert_eq!(details(&[("xx", &full)]).len(), 1);
    }

    #[test]
    fn a_name_twice_is_one_header() {
        assert_eq!(
            details(&[("X-Team", "a"), ("x-team", "b")]),
            [("x-team".to_owned(), "is there twice: letter case does not tell header names apart".to_owned())]
        );
    }
}
