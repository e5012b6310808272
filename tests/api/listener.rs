//! What connections are held to: those who send half a head, nothing, or too much, or read nothing, cost the others nothing.

use crate::support::{Answer, TestService, exchange};
use futures_util::future::join_all;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use toolhook::http::{Bounds, Settings};

const PATIENCE: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_mins(10);

/// Bounds of which none is reached but those that a test sets.
fn bounds() -> Bounds {
    Bounds { connections: 1_000, head: LONG, idle: LONG, write: LONG }
}

async fn within(bounds: Bounds, settings: Settings) -> TestService {
    TestService::start().await.restart_within(bounds, settings).await
}

/// Connects, and sends a part of a request.
async fn begin(address: SocketAddr, part: &[u8]) -> TcpStream {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(part).await.unwrap();
    connection
}

/// Reads until the server closes the connection, which it has to do.
async fn rest(mut connection: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ended = timeout(PATIENCE, connection.read_to_end(&mut bytes)).await;
    drop(ended.unwrap_or_else(|_| panic!("it is still open after {PATIENCE:?}")));
    bytes
}

/// Reads one answer of a connection that stays open.
async fn answer(connection: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(br#"{"status":"ok"}"#) {
        let read = timeout(PATIENCE, connection.read_buf(&mut bytes)).await.unwrap().unwrap();
        assert!(read > 0, "it was closed: {}", String::from_utf8_lossy(&bytes));
    }
    String::from_utf8(bytes).unwrap()
}

const LIVEZ: &[u8] = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test]
async fn j05_half_open_heads_and_silent_connections_are_closed_and_others_are_served_meanwhile() {
    let service = within(Bounds { head: Duration::from_millis(700), ..bounds() }, Settings::default()).await;
    let halves: [&[u8]; 4] =
        [b"", b"G", b"GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"];
    let half_open = join_all((0..200).map(|n| begin(service.address, halves[n % 4]))).await;
    service.anonymous().get("/v1/openapi.json").await.with(200);
    // One that sends a byte now and then is no better.
    let trickle = async {
        let mut connection = begin(service.address, b"GET /livez HTTP/1.1\r\nx-slow: ").await;
        while connection.write_all(b"a").await.is_ok() {
            sleep(Duration::from_millis(30)).await;
        }
    };
    let closed = async { join_all(half_open.into_iter().map(rest)).await };
    let (answers, trickled) = tokio::join!(closed, timeout(PATIENCE, trickle));
    trickled.unwrap();
    // Only those that speak HTTP/2 hear what its server says first.
    assert!(answers.iter().enumerate().all(|(n, bytes)| bytes.is_empty() || n % 4 == 3));
    service.anonymous().get("/livez").await.with(200);
}

#[tokio::test]
async fn j05_a_connection_rests_longer_between_requests_than_a_head_may_take() {
    let head = Duration::from_millis(400);
    let service = within(Bounds { head, idle: LONG, ..bounds() }, Settings::default()).await;
    let mut resting = begin(service.address, LIVEZ).await;
    assert!(answer(&mut resting).await.starts_with("HTTP/1.1 200"));
    sleep(head * 2).await;
    resting.write_all(LIVEZ).await.unwrap();
    answer(&mut resting).await;
    // The next head has the time of a head again.
    resting.write_all(b"GET /li").await.unwrap();
    assert_eq!(rest(resting).await, b"");
}

#[tokio::test]
async fn j05_a_connection_that_rests_for_long_is_closed() {
    let idle = Duration::from_millis(500);
    let service = within(Bounds { idle, ..bounds() }, Settings::default()).await;
    let mut resting = begin(service.address, LIVEZ).await;
    answer(&mut resting).await;
    assert_eq!(rest(resting).await, b"");
}

#[tokio::test]
async fn j05_connections_beyond_the_bound_wait_for_their_turn() {
    let bounds = Bounds { connections: 3, head: Duration::from_millis(400), ..bounds() };
    let service = within(bounds, Settings::default()).await;
    let half_open = join_all((0..3).map(|_| begin(service.address, b"GET /livez"))).await;
    service.anonymous().get("/livez").await.with(200);
    // It could only be served after one of them was closed.
    let mut open = 0;
    for connection in &half_open {
        open +=
            usize::from(connection.try_read(&mut [0]).is_err_and(|why| why.kind() == std::io::ErrorKind::WouldBlock));
    }
    assert!(open < 3, "more connections than there may be");
}

#[tokio::test]
async fn j05_a_huge_head_is_refused() {
    let service = within(bounds(), Settings::default()).await;
    let huge = format!("GET /livez HTTP/1.1\r\nhost: x\r\nx-huge: {}\r\n\r\n", "a".repeat(200 * 1024));
    let many = format!("GET /livez HTTP/1.1\r\nhost: x\r\n{}\r\n", "x-more: 1\r\n".repeat(200));
    for request in [huge, many] {
        let bytes = {
            let mut connection = TcpStream::connect(service.address).await.unwrap();
            drop(connection.write_all(request.as_bytes()).await); // it may be closed before all was sent
            rest(connection).await
        };
        assert!(bytes.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&bytes));
    }
    let large =
        format!("GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-large: {}\r\n\r\n", "a".repeat(32 * 1024));
    assert_eq!(exchange(service.address, large.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn j05_a_body_that_trickles_is_answered_408_and_closed() {
    let settings = Settings { body_timeout: Duration::from_millis(300), ..Settings::default() };
    let first = TestService::start().await;
    let acme = first.tenant("acme").await;
    let service = first.restart_within(bounds(), settings).await;
    let request = acme.editor.with("connection", "keep-alive").request("POST", "/v1/tools", Some(b""));
    let head = String::from_utf8(request).unwrap().replace("connection: close\r\n", "");
    let head = head.replace("content-length: 0", "content-length: 1000");
    let mut connection = begin(service.address, head.as_bytes()).await;
    let (mut reader, mut writer) = connection.split();
    let trickle = async {
        while writer.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let mut bytes = Vec::new();
    let closed = timeout(PATIENCE, async { tokio::join!(reader.read_to_end(&mut bytes), trickle) });
    drop(closed.await.unwrap());
    Answer::read(&bytes).problem(408, "request_timeout");
}

#[tokio::test]
async fn e05_a_slow_reader_of_large_answers_gives_its_place_to_others() {
    let bounds = Bounds { connections: 1, write: Duration::from_millis(500), ..bounds() };
    let service = within(bounds, Settings::default()).await;
    let length = service.anonymous().get("/v1/openapi.json").await.body.len();
    // More than the system keeps for both ends together.
    let requests = 64 * 1024 * 1024 / length;
    let ask = b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(requests);
    let slow = begin(service.address, &ask).await;
    // There is one place, so this is answered only when the slow reader has lost it.
    service.anonymous().get("/livez").await.with(200);
    assert!(rest(slow).await.len() < requests * length, "it got everything");
}

#[tokio::test]
async fn a_reader_that_takes_its_time_but_reads_gets_everything() {
    let (idle, write) = (Duration::from_millis(800), Duration::from_millis(800));
    let service = within(Bounds { idle, write, ..bounds() }, Settings::default()).await;
    let length = service.anonymous().get("/v1/openapi.json").await.body.len();
    let requests = 16 * 1024 * 1024 / length;
    let mut ask = b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(requests);
    ask.extend_from_slice(b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut slow = begin(service.address, &ask).await;
    let (mut all, mut part) = (0, vec![0; 1024 * 1024]);
    loop {
        let read = timeout(PATIENCE, slow.read(&mut part)).await.unwrap().unwrap();
        all += read;
        if read == 0 {
            break;
        }
        sleep(Duration::from_millis(60)).await;
    }
    assert!(all > (requests + 1) * length, "it was cut off");
}
