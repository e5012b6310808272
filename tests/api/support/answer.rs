//! An answer as it came over the wire.

use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Reads an answer from all the bytes of a connection that the server has closed.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let answer = Self { status, headers, body: bytes[end + 4..].to_vec() };
        let length: Option<usize> = answer.header("content-length").map(|length| length.parse().unwrap());
        if let Some(length) = length {
            assert_eq!(answer.body.len(), length, "the body is cut off");
        }
        answer
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body; a text that is no JSON counts as a string.
    pub(crate) fn json(&self) -> Value {
        if self.header("content-type").is_some_and(|kind| kind.starts_with("text/")) {
            return self.text().into();
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// The tag of the resource.
    pub(crate) fn etag(&self) -> String {
        self.header("etag").unwrap_or_else(|| panic!("no tag: {self:?}")).to_owned()
    }

    /// The body of an answer that is expected to have this status.
    #[track_caller]
    pub(crate) fn with(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The body of a problem that is expected to have this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let body = self.with(status);
        assert_eq!(body["code"], code, "{body}");
        body
    }
}
