//! Somebody on loopback who takes POSTs: a webhook, or a collector of traces.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// One request.
pub(crate) struct Posted {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Posted {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &str| line.split_once(": ").is_some_and(|(known, _)| known.eq_ignore_ascii_case(name));
        self.head.lines().find(|line| named(line)).and_then(|line| Some(line.trim_end().split_once(": ")?.1))
    }
}

/// Where it is, and what it got.
pub(crate) struct Webhook {
    pub(crate) url: String,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl Webhook {
    /// Answers every POST with this text.
    pub(crate) fn start(answer: &'static str) -> Self {
        Self::that("200 OK", answer)
    }

    /// Takes every call, and answers none.
    pub(crate) fn that_takes() -> Self {
        Self::that("202 Accepted", "")
    }

    fn that(status: &'static str, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let posted = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&posted);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || while serve(&connection, (status, answer), &kept).is_some() {});
            }
        });
        Self { url, posted }
    }

    /// Looks at what it got so far.
    pub(crate) fn posted<T>(&self, look: impl FnOnce(&[Posted]) -> T) -> T {
        look(&self.posted.lock().unwrap())
    }
}

fn serve(connection: &TcpStream, (status, answer): (&str, &str), kept: &Mutex<Vec<Posted>>) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let mut posted = Posted { head, body: Vec::new() };
    let length = posted.header("content-length").map_or(0, |length| length.parse().unwrap());
    posted.body.resize(length, 0);
    reader.read_exact(&mut posted.body).ok()?;
    kept.lock().unwrap().push(posted);
    let mut connection = connection;
    let length = answer.len();
    write!(connection, "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n{answer}").ok()
}
