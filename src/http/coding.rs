//! `Accept-Encoding` (RFC 9110, 12.5.3): whether an answer may be sent in gzip's format.

use axum::http::{HeaderMap, header};

/// Whether the asker takes gzip. One that says nothing gets the answer as it is.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut any = None;
    for one in values.flat_map(|value| value.split(',')) {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0));
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => return weight > 0.0,
            "*" => any = Some(weight > 0.0),
            _ => {}
        }
    }
    any == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn what_an_asker_takes() {
        for (value, taken) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5, br", true),
            ("*", true),
            ("x-gzip", true),
            ("gzip;q=0, *", false),
            ("*;q=0", false),
            ("br, deflate", false),
            ("identity", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(takes_gzip(&headers), taken, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
