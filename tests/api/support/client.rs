//! Somebody who talks to the service over TCP, one connection a request. Every answer is held to the service's own reference.

use super::answer::Answer;
use super::contract;
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) headers: Vec<(String, String)>,
    /// Where it comes from, if that matters.
    pub(crate) from: Option<IpAddr>,
}

impl Client {
    /// Somebody without a key.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, headers: Vec::new(), from: None }
    }

    /// The same with a header on each request.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| known != name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// The same with a key.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.with("authorization", &format!("Bearer {key}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, Some(body.to_string().as_bytes())).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, Some(body.to_string().as_bytes())).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        let client = self.with("content-type", "application/merge-patch+json");
        client.send("PATCH", path, Some(body.to_string().as_bytes())).await
    }

    /// Sends a request; a body is JSON unless a header of this client says something else.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Answer {
        let answer = exchange_from(self.from, self.address, &self.request(method, path, body)).await;
        contract::check(method, path, &answer);
        answer
    }

    /// The bytes of a request.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&[u8]>) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        let Some(body) = body else { return format!("{head}\r\n").into_bytes() };
        if !self.headers.iter().any(|(name, _)| name == "content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        let mut bytes = format!("{head}content-length: {}\r\n\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(body);
        bytes
    }
}

/// Sends bytes and reads until the server closes the connection.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    exchange_from(None, address, request).await
}

async fn exchange_from(from: Option<IpAddr>, address: SocketAddr, request: &[u8]) -> Answer {
    let talk = async {
        let mut connection = match from {
            None => TcpStream::connect(address).await.unwrap(),
            Some(from) => {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind(SocketAddr::new(from, 0)).unwrap();
                socket.connect(address).await.unwrap()
            }
        };
        // A server that refuses a large body may close before it has read all of it.
        let _ = connection.write_all(request).await;
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer).await;
        Answer::read(&answer)
    };
    tokio::time::timeout(Duration::from_secs(30), talk).await.unwrap()
}
