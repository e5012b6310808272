//! The smallest client: one request, one connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The status line and the headers.
    pub(crate) head: String,
    /// The body as text.
    pub(crate) text: String,
    /// The body, if it is JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &str| line.split_once(": ").is_some_and(|(known, _)| known.eq_ignore_ascii_case(name));
        self.head.lines().find(|line| named(line)).and_then(|line| Some(line.split_once(": ")?.1))
    }
}

/// Sends a request as the holder of `key`, and reads the whole answer. An error means that there was no (whole) answer.
pub(crate) fn send(base_url: &str, key: &str, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
    send_with(base_url, &[("authorization", &format!("Bearer {key}"))], method, path, body)
}

/// The same with any headers.
pub(crate) fn send_with(
    base_url: &str,
    headers: &[(&str, &str)],
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> io::Result<Answer> {
    send_text(base_url, headers, method, path, &body.map(Value::to_string).unwrap_or_default())
}

/// The same with a body as it is written.
pub(crate) fn send_text(
    base_url: &str,
    headers: &[(&str, &str)],
    method: &str,
    path: &str,
    body: &str,
) -> io::Result<Answer> {
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let headers = headers.concat();
    let host = base_url.strip_prefix("http://").unwrap();
    let length = body.len();
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
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
    let (head, text) = (head.to_owned(), body.to_owned());
    Ok(Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::Null), head, text })
}
