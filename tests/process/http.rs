//! The smallest client: one request, one connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Sends a request as the holder of `key`, and reads the whole answer. An error means that there was no (whole) answer.
pub(crate) fn send(base_url: &str, key: &str, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
    send_with("", base_url, key, (method, path), body)
}

/// The same with more lines in the head.
pub(crate) fn send_with(
    more: &str,
    base_url: &str,
    key: &str,
    (method, path): (&str, &str),
    body: Option<&Value>,
) -> io::Result<Answer> {
    let host = base_url.strip_prefix("http://").unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let cut_off = head
        .to_lowercase()
        .lines()
        .any(|line| line.strip_prefix("content-length: ").is_some_and(|length| length.parse() != Ok(body.len())));
    if cut_off {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Answer { status, body: serde_json::from_str(body).unwrap_or(Value::Null) })
}
