//! A webhook on loopback that speaks bytes, and remembers what it got and when.

use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

/// One request that was read whole.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) headers: Vec<(String, String)>,
    /// The very bytes, which are text.
    pub(crate) body: String,
    pub(crate) arrived: Instant,
    /// When the answer was written; the arrival until then.
    pub(crate) answered: Instant,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn data(&self) -> Value {
        serde_json::from_str::<Value>(&self.body).unwrap()["data"].take()
    }

    /// The member `n` of the input, by which these tests tell calls apart.
    pub(crate) fn n(&self) -> u64 {
        self.data()["input"]["n"].as_u64().unwrap()
    }
}

/// What the receiver does with a request.
pub(crate) enum Reaction {
    Answer(Vec<u8>),
    After(Duration, Vec<u8>),
    /// Some bytes now, then one by one.
    Drip(Vec<u8>, Duration),
    Silence,
    /// Some bytes, perhaps none, and the end of the connection.
    Close(&'static [u8]),
}

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Receiver {
    pub(crate) async fn start(react: impl Fn(&Seen) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let (seen, react, tasks) = (Arc::clone(&receiver.seen), Arc::new(react), TaskTracker::new());
        let connections = tasks.clone();
        tasks.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                connections.spawn(serve(connection, Arc::clone(&seen), Arc::clone(&react)));
            }
        });
        receiver
    }

    /// Answers `{"text": "<n>"}`.
    pub(crate) async fn echo() -> Self {
        Self::start(|seen| Reaction::Answer(json(&format!("{{\"text\":\"{}\"}}", seen.n())))).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/run", self.address)
    }

    /// What was seen, in the order of arrival.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    mut connection: TcpStream,
    seen: Arc<Mutex<Vec<Seen>>>,
    react: Arc<impl Fn(&Seen) -> Reaction + Send + Sync + 'static>,
) {
    while let Some(request) = read(&mut connection).await {
        let reaction = react(&request);
        let place = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len() - 1
        };
        let (wait, bytes) = match reaction {
            Reaction::Answer(bytes) => (Duration::ZERO, bytes),
            Reaction::After(wait, bytes) => (wait, bytes),
            Reaction::Close(bytes) => {
                let _ = connection.write_all(bytes).await;
                return;
            }
            Reaction::Silence => return std::future::pending().await,
            Reaction::Drip(head, pause) => {
                let mut alive = connection.write_all(&head).await.is_ok();
                while alive {
                    sleep(pause).await;
                    alive = connection.write_all(b"x").await.is_ok();
                }
                return;
            }
        };
        sleep(wait).await;
        seen.lock().unwrap()[place].answered = Instant::now();
        if connection.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read(connection: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let headers: Vec<(String, String)> = head
                .split("\r\n")
                .skip(1)
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
            if body.len() >= length.parse().unwrap() {
                let arrived = Instant::now();
                return Some(Seen { headers, body: body.to_owned(), arrived, answered: arrived });
            }
        }
        let mut buffer = [0; 4096];
        match connection.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

pub(crate) fn json(body: &str) -> Vec<u8> {
    answer("200 OK", "application/json", body)
}

pub(crate) fn answer(status: &str, kind: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
