//! The body of an HTTP answer, read by what its content type declares. Pure.

use crate::domain::{arguments, json};
use encoding_rs::{Encoding, UTF_8};
use mime::Mime;
use serde_json::Value;

/// A body that could be read.
#[derive(Debug, PartialEq)]
pub(super) enum Body {
    /// There is none.
    Empty,
    /// JSON, read strictly.
    Json { value: Value, text: String },
    /// Text of any kind.
    Text(String),
    /// A picture of a type that models take.
    Image { media_type: &'static str },
    /// Something else, by its declared type.
    Other(String),
}

type Begins = fn(&[u8]) -> bool;

/// The types of picture that models take, each with whether bytes begin like one: a provider refuses the whole
/// conversation for a picture that is none.
const PICTURES: [(&str, Begins); 4] = [
    ("image/png", |bytes| bytes.starts_with(b"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", |bytes| bytes.starts_with(b"\xff\xd8\xff")),
    ("image/gif", |bytes| bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a")),
    ("image/webp", |bytes| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")),
];

/// Reads a body. The error says what is wrong with it, in words that follow "its answer".
pub(super) fn read(content_type: Option<&str>, body: &[u8]) -> Result<Body, String> {
    if body.is_empty() {
        return Ok(Body::Empty);
    }
    let Some(declared) = content_type.map(str::trim).filter(|declared| !declared.is_empty()) else {
        return undeclared(body);
    };
    // A dangling semicolon is common and means nothing.
    let Ok(kind) = declared.trim_end_matches([';', ' ']).parse::<Mime>() else {
        return Ok(Body::Other(declared.chars().take(100).collect()));
    };
    if is_json(&kind) {
        return as_json(text(&kind, body)?);
    }
    if kind.type_() == mime::TEXT {
        return text(&kind, body).map(Body::Text);
    }
    let essence = if kind.essence_str() == "image/jpg" { "image/jpeg" } else { kind.essence_str() };
    match PICTURES.iter().find(|(name, _)| *name == essence) {
        Some((media_type, begins)) if begins(body) => Ok(Body::Image { media_type }),
        Some((media_type, _)) => Err(format!("says that it is {media_type} and is not")),
        None => Ok(Body::Other(essence.chars().take(100).collect())),
    }
}

/// A JSON MIME type as the WHATWG's MIME Sniffing standard defines it.
fn is_json(kind: &Mime) -> bool {
    kind.suffix() == Some(mime::JSON) || matches!(kind.essence_str(), "application/json" | "text/json")
}

/// Without a content type, what reads as JSON is JSON, and what else reads as UTF-8 is text.
fn undeclared(body: &[u8]) -> Result<Body, String> {
    match std::str::from_utf8(body) {
        Ok(text) => Ok(as_json(text.to_owned()).unwrap_or_else(|_| Body::Text(text.to_owned()))),
        Err(_) => Err("has no content type and is no text".to_owned()),
    }
}

fn as_json(text: String) -> Result<Body, String> {
    match json::parse(text.as_bytes(), arguments::MAX_DEPTH) {
        Ok(value) => Ok(Body::Json { value, text }),
        Err(detail) => Err(format!("says that it is JSON and cannot be read as such: {detail}")),
    }
}

/// Decodes by a byte order mark, else by the declared charset, else as UTF-8.
fn text(kind: &Mime, body: &[u8]) -> Result<String, String> {
    let declared = kind.get_param(mime::CHARSET);
    let declared = match &declared {
        None => UTF_8,
        Some(name) => Encoding::for_label(name.as_str().as_bytes()).ok_or_else(|| {
            let name: String = name.as_str().chars().take(50).collect();
            format!("declares the charset {name:?}, which is not known here; UTF-8 is")
        })?,
    };
    let (encoding, mark) = Encoding::for_bom(body).unwrap_or((declared, 0));
    let decoded = encoding.decode_without_bom_handling_and_without_replacement(&body[mark..]);
    decoded.map(std::borrow::Cow::into_owned).ok_or_else(|| format!("is not text in the charset {}", encoding.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn json(value: Value, text: &str) -> Body {
        Body::Json { value, text: text.to_owned() }
    }

    #[test]
    fn by_the_declared_type() {
        let text = |text: &str| Body::Text(text.to_owned());
        let other = |kind: &str| Body::Other(kind.to_owned());
        for (kind, body, expected) in [
            (Some("application/json"), &b"{\"a\":1}"[..], json(json!({"a": 1}), "{\"a\":1}")),
            (Some("Application/JSON; charset=\"utf-8\";"), b" [1]\n", json(json!([1]), " [1]\n")),
            (Some("application/problem+json"), b"1", json(json!(1), "1")),
            (Some("text/json"), b"null", json(json!(null), "null")),
            (
                Some("application/json;charset=ISO-8859-15"),
                b"{\"p\":\"10 \xa4\"}",
                json(json!({"p": "10 €"}), r#"{"p":"10 €"}"#),
            ),
            (Some("application/json"), b"\xef\xbb\xbf1", json(json!(1), "1")),
            (Some("text/plain"), b"{\"a\":1}", text("{\"a\":1}")),
            (Some("text/html; charset=windows-1252"), b"\x93a\x94\0", text("“a”\0")),
            (Some("text/plain; charset=utf-16"), b"\xff\xfea\0", text("a")),
            (Some("image/gif"), b"GIF89a...", Body::Image { media_type: "image/gif" }),
            (Some("image/jpg"), b"\xff\xd8\xff\xe0", Body::Image { media_type: "image/jpeg" }),
            (Some("image/webp"), b"RIFF....WEBPVP8 ", Body::Image { media_type: "image/webp" }),
            (Some("image/svg+xml"), b"<svg/>", other("image/svg+xml")),
            (Some("application/octet-stream"), b"x", other("application/octet-stream")),
            (Some("json"), b"{}", other("json")),
            (Some("application/octet-stream"), b"", Body::Empty),
            (Some(" "), b"{\"a\":1}", json(json!({"a": 1}), "{\"a\":1}")),
            (None, b"{\"a\":1}", json(json!({"a": 1}), "{\"a\":1}")),
            (None, b"{\"a\":", text("{\"a\":")),
        ] {
            assert_eq!(read(kind, body), Ok(expected), "{kind:?} {body:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let deep = [vec![b'['; 65], vec![b']'; 65]].concat();
        for (kind, body, part) in [
            (Some("application/json"), &b"{\"a\":1,\"a\":2}"[..], "twice"),
            (Some("application/json"), b"{\"a\":NaN}", "JSON"),
            (Some("application/json"), b"\"\\ud800\"", "JSON"),
            (Some("application/json"), b"\"\xff\"", "charset UTF-8"),
            (Some("application/json"), &deep, "64 levels"),
            (Some("text/plain"), b"\xff", "charset UTF-8"),
            (Some("text/plain; charset=made-up-1"), b"hi", "charset \"made-up-1\""),
            (Some("image/png"), b"<html>", "image/png"),
            (None, b"\xff\xfe\x00", "no content type"),
        ] {
            let why = read(kind, body).unwrap_err();
            assert!(why.contains(part), "{kind:?}: {why}");
        }
    }
}
