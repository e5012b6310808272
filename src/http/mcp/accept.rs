//! Whether the asker can take the one form in which everything here is answered.

use crate::http::problem::{Code, Problem};
use axum::http::{HeaderMap, header};

/// Refuses a request that does not take JSON. The protocol wants a client to take `text/event-stream` as well; one that does
/// not loses nothing here, where nothing is streamed.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let lines: Vec<&str> =
        headers.get_all(header::ACCEPT).iter().map(|line| line.to_str().unwrap_or_default()).collect();
    if lines.is_empty() || lines.iter().flat_map(|line| line.split(',')).any(takes_json) {
        return Ok(());
    }
    Err(Problem::new(Code::NotAcceptable, "the answer is application/json; name it in Accept"))
}

fn takes_json(range: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let named = parts.next().unwrap_or_default();
    let fits = ["application/json", "application/*", "*/*"].iter().any(|one| named.eq_ignore_ascii_case(one));
    let refused = |parameter: &str| {
        let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
        weight.is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0))
    };
    fits && !parts.any(refused)
}

#[cfg(test)]
mod tests {
    use super::takes_json;

    #[test]
    fn ranges() {
        for good in ["application/json", " Application/JSON ; q=0.5", "application/*", "*/*", "application/json;q=x"] {
            assert!(takes_json(good), "{good}");
        }
        for bad in ["", "text/event-stream", "text/*", "application/json;q=0", "*/*; q=0.0", "application/jsonp"] {
            assert!(!takes_json(bad), "{bad}");
        }
    }
}
