//! A webhook on loopback that speaks bytes, and remembers what it got.

use serde_json::Value;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

/// One request that was read whole.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The request line.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    /// The very bytes, which are text.
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Whether the Standard Webhooks library accepts the request under this secret.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers = names.into_iter().map(|name| {
            let value = self.header(name).unwrap_or_default().parse().unwrap();
            (axum::http::HeaderName::from_static(name), value)
        });
        let webhook = standardwebhooks::Webhook::new(secret).unwrap();
        webhook.verify(self.body.as_bytes(), &headers.collect()).is_ok()
    }
}

/// What the receiver does with a request.
pub(crate) struct Reaction {
    pub(crate) after: Duration,
    pub(crate) bytes: Vec<u8>,
}

impl From<Vec<u8>> for Reaction {
    fn from(bytes: Vec<u8>) -> Self {
        Self { after: Duration::ZERO, bytes }
    }
}

#[derive(Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

impl Receiver {
    pub(crate) async fn start<R: Into<Reaction>>(react: impl Fn(&Seen) -> R + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver =
            Self { address: listener.local_addr().unwrap(), seen: Arc::default(), connections: Arc::default() };
        let (this, tasks) = (receiver.clone(), TaskTracker::new());
        let (connections, react) = (tasks.clone(), Arc::new(move |seen: &Seen| react(seen).into()));
        tasks.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                this.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(serve(connection, Arc::clone(&this.seen), Arc::clone(&react)));
            }
        });
        receiver
    }

    /// Answers the name of the tool and the city of the input, as text and as data.
    pub(crate) async fn weather() -> Self {
        Self::start(|seen| {
            let data = &seen.json()["data"];
            let text = format!("{} in {}", data["tool"].as_str().unwrap(), data["input"]["city"].as_str().unwrap());
            json_answer(&serde_json::json!({"text": text}))
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/run", self.address)
    }

    /// What was seen, in the order of arrival.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(
    mut connection: TcpStream,
    seen: Arc<Mutex<Vec<Seen>>>,
    react: Arc<impl Fn(&Seen) -> Reaction + Send + Sync + 'static>,
) {
    while let Some(request) = read(&mut connection).await {
        let Reaction { after, bytes } = react(&request);
        seen.lock().unwrap().push(request);
        tokio::time::sleep(after).await;
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
            let mut lines = head.split("\r\n");
            let line = lines.next().unwrap_or_default().to_owned();
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
            if body.len() >= length.parse().unwrap() {
                return Some(Seen { line, headers, body: body.to_owned() });
            }
        }
        let mut buffer = [0; 4096];
        match connection.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

pub(crate) fn json_answer(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}
