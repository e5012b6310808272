//! Which pages may speak to the server: a page of another site could otherwise use a browser's reach into the network.

use crate::http::problem::{Code, Problem};
use axum::http::request::Parts;
use axum::http::{header, uri::Authority};
use url::Url;

/// Refuses a request that comes from a page, unless it is one of this very host. (Which scheme the service was reached by is not
/// to be seen behind a proxy, so the host and the port decide.)
pub(super) fn check(parts: &Parts) -> Result<(), Problem> {
    let mut origins = parts.headers.get_all(header::ORIGIN).iter();
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| parts.uri.authority().map(Authority::as_str)).unwrap_or_default();
    if origins.all(|origin| origin.to_str().is_ok_and(|origin| is_own(origin, host))) {
        return Ok(());
    }
    Err(Problem::new(Code::ForeignOrigin, "pages of other sites may not send requests here"))
}

fn is_own(origin: &str, host: &str) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    // Read under the origin's scheme, so that a default port is the same whether it is written or not.
    let Ok(own) = Url::parse(&format!("{}://{host}", origin.scheme())) else { return false };
    let place = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
    matches!(origin.scheme(), "http" | "https") && own.username().is_empty() && place(&origin) == place(&own)
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn only_the_same_host_and_port() {
        for (origin, host) in [
            ("http://tools.example", "tools.example"),
            ("https://tools.example", "tools.example"),
            ("https://tools.example", "Tools.Example:443"),
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://[::1]:8080", "[::1]:8080"),
        ] {
            assert!(is_own(origin, host), "{origin} {host}");
        }
        for (origin, host) in [
            ("https://evil.example", "tools.example"),
            ("https://tools.example.evil.example", "tools.example"),
            ("http://127.0.0.1:3000", "127.0.0.1:8080"),
            ("https://tools.example:8443", "tools.example"),
            ("https://evil.example", "tools.example@evil.example"),
            ("null", "tools.example"),
            ("file://", ""),
            ("", ""),
            ("tools.example", "tools.example"),
            ("chrome-extension://tools.example", "tools.example"),
        ] {
            assert!(!is_own(origin, host), "{origin} {host}");
        }
    }
}
