//! Outbound HTTP over real TCP: a receiver that speaks bytes, and misbehaves in every way that the house has an answer for.

#![expect(clippy::unwrap_used, reason = "a test's preparations may fail loudly too")]

mod answers;
mod exchange;
mod receiver;
mod targets;
mod urls;

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};
use toolhook::egress::{Egress, EgressError, Inbound, Lookup, Method, Outbound, Policy};
use url::Url;

pub(crate) const UNREACHABLE: &str = "the handler could not be reached";
/// An answer after which the receiver says that it closes, so that no later request can meet the closing connection.
pub(crate) const OK_AND_BYE: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A resolver that answers from a list, one entry for each look-up.
pub(crate) struct Answers(Mutex<VecDeque<Vec<IpAddr>>>);

impl Answers {
    pub(crate) fn new<const N: usize>(answers: [&[&str]; N]) -> Self {
        let parse = |set: &[&str]| set.iter().map(|ip| ip.parse().unwrap()).collect();
        Self(Mutex::new(answers.into_iter().map(parse).collect()))
    }
}

impl Lookup for Answers {
    fn lookup(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let next = self.0.lock().unwrap().pop_front();
        Box::pin(async move { next.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

/// A resolver that takes its time.
pub(crate) struct Slow;

impl Lookup for Slow {
    fn lookup(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async {
            sleep(Duration::from_secs(20)).await;
            Ok(Vec::new())
        })
    }
}

/// Any scheme and port, and only 127.0.0.2 of this machine: it plays the public internet, 127.0.0.1 stays private.
pub(crate) fn marked_public() -> Policy {
    Policy { allow: vec!["127.0.0.2/32".parse().unwrap()], plain_http: true, ports: None }
}

pub(crate) fn development() -> Egress {
    Egress::new(Policy::development()).unwrap()
}

pub(crate) fn post(url: &str) -> Outbound {
    Outbound {
        method: Method::POST,
        url: Url::parse(url).unwrap(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Bytes::from_static(b"{\"a\":1}"),
        deadline: Instant::now() + Duration::from_secs(5),
        max_body_bytes: 1024,
    }
}

pub(crate) async fn send(url: &str) -> Result<Inbound, EgressError> {
    development().send(post(url)).await
}

/// Sends with a short deadline, and checks that it held.
pub(crate) async fn send_in(egress: &Egress, url: &str, ms: u64) -> Result<Inbound, EgressError> {
    let begun = Instant::now();
    let deadline = begun + Duration::from_millis(ms);
    let result = egress.send(Outbound { deadline, ..post(url) }).await;
    let over = begun.elapsed().saturating_sub(Duration::from_millis(ms));
    // Security check B3 allows 250 ms; the rest is for a busy test machine.
    assert!(over < Duration::from_millis(500), "{over:?} after the deadline");
    result
}
