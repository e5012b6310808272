//! What is sent, how long it may take, and whether it may have arrived.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;
use toolhook::egress::{Egress, EgressError, Method, Outbound};

use crate::receiver::Receiver;
use crate::{OK, Slow, UNREACHABLE, development, marked_public, post, send, send_in};

#[tokio::test]
async fn a_request_arrives_as_given_and_its_answer_comes_back() {
    let receiver = Receiver::answering(
        &b"HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-type: text/plain; charset=latin1\r\nretry-after: 900\r\ncontent-length: 4\r\nset-cookie: a=b\r\n\r\nbusy"[..],
    );
    let mut outbound = post(&receiver.url());
    outbound.headers.push(("authorization".to_owned(), "Bearer s3cret".to_owned()));
    // The caller cannot ask for what would be refused.
    outbound.headers.push(("accept-encoding".to_owned(), "gzip".to_owned()));
    let egress = development();
    let inbound = egress.send(outbound).await.unwrap();
    assert_eq!(inbound.status, 503);
    assert_eq!(inbound.content_type.as_deref(), Some("text/plain; charset=latin1"));
    assert_eq!(inbound.retry_after, Some(Duration::from_mins(5)));
    assert_eq!(inbound.body, "busy");

    egress.send(post(&receiver.url())).await.unwrap();
    let requests = receiver.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "{\"a\":1}");
    let mut lines: Vec<&str> = head.split("\r\n").collect();
    assert_eq!(lines.remove(0), "POST /run HTTP/1.1");
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "accept-encoding: identity",
            "accept: */*",
            "authorization: Bearer s3cret",
            "content-length: 7",
            "content-type: application/json",
            format!("host: {}", receiver.address).as_str(),
            concat!("user-agent: toolhook/", env!("CARGO_PKG_VERSION")),
        ]
    );
    assert!(!requests[1].contains("cookie"));
}

#[tokio::test]
async fn connections_are_reused() {
    let receiver = Receiver::new(|this, connection| {
        loop {
            this.read_request(connection)?;
            connection.write_all(OK)?;
        }
    });
    let egress = development();
    for _ in 0..5 {
        assert_eq!(egress.clone().send(post(&receiver.url())).await.unwrap().status, 200);
    }
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 5));
}

#[tokio::test]
async fn an_idle_connection_that_the_receiver_closed_costs_no_call_and_no_second_delivery() {
    let receiver = Receiver::answering(OK);
    let egress = development();
    for n in 1..=20 {
        let answer = egress.send(post(&receiver.url())).await;
        assert_eq!(answer.unwrap().status, 200);
        // Closing and sending at once is a race that somebody has to lose; this is about connections known to be closed.
        while receiver.closed() < n {
            sleep(Duration::from_millis(1)).await;
        }
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(receiver.requests().len(), 20);
}

#[tokio::test]
async fn redirects_are_answers() {
    let inside = Receiver::answering(OK);
    for status in [301, 302, 307, 308] {
        let outside = Receiver::answering(format!(
            "HTTP/1.1 {status} Elsewhere\r\nlocation: {}\r\nrefresh: 0; url={0}\r\nalt-svc: h2=\"{}\"\r\ncontent-length: 0\r\n\r\n",
            inside.url(),
            inside.address,
        ));
        assert_eq!(send(&outside.url()).await.unwrap().status, status);
    }
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn without_tls_nothing_is_sent() {
    let silent = Receiver::new(|_, connection| connection.read_to_end(&mut Vec::new()).map(drop));
    let url = format!("https://{}/", silent.address);
    let error = send_in(&development(), &url, 300).await.unwrap_err();
    assert!(matches!(error, EgressError::TimedOut { sent: false }), "{error:?}");
    assert!(!error.may_have_arrived());
    assert_eq!(error.public(), UNREACHABLE);

    let plain = Receiver::new(|_, connection| match connection.read(&mut [0; 1024])? {
        0 => Ok(()),
        _ => connection.write_all(OK),
    });
    let error = send(&format!("https://{}/", plain.address)).await.unwrap_err();
    drop(silent);
    assert!(matches!(error, EgressError::NotSent(_)), "{error:?}");
    assert_eq!(error.public(), UNREACHABLE);
}

#[tokio::test]
async fn the_deadline_covers_the_resolver() {
    let egress = Egress::with_lookup(marked_public(), Slow).unwrap();
    let error = send_in(&egress, "http://slow.example/", 200).await.unwrap_err();
    assert!(matches!(error, EgressError::TimedOut { sent: false }), "{error:?}");
    let error = send_in(&egress, "http://slow.example/", 0).await.unwrap_err();
    assert!(matches!(error, EgressError::TimedOut { sent: false }), "{error:?}");
}

#[tokio::test]
async fn silence_after_the_request_may_have_run() {
    let receiver = Receiver::new(|this, connection| {
        this.read_request(connection)?;
        connection.read_to_end(&mut Vec::new()).map(drop)
    });
    let error = send_in(&development(), &receiver.url(), 300).await.unwrap_err();
    assert!(matches!(error, EgressError::TimedOut { sent: true }), "{error:?}");
    assert!(error.may_have_arrived());
    assert_eq!(error.public(), "the handler did not answer in time");
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn drips_end_at_the_deadline() {
    let drips: [(&[u8], &[u8]); 3] = [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    ];
    for (begin, drop) in drips {
        let receiver = Receiver::new(move |this, connection| {
            this.read_request(connection)?;
            connection.write_all(begin)?;
            loop {
                connection.write_all(drop)?;
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let error = send_in(&development(), &receiver.url(), 400).await.unwrap_err();
        assert!(matches!(error, EgressError::TimedOut { sent: true }), "{error:?}");
    }
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_may_have_run_and_is_not_repeated() {
    let receiver = Receiver::new(Receiver::read_request);
    let error = send(&receiver.url()).await.unwrap_err();
    assert!(matches!(error, EgressError::Lost(_)), "{error:?}");
    assert!(error.may_have_arrived());
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 1));

    // An empty body is never asked for, so nothing is known about it.
    let empty = Outbound { method: Method::GET, body: Bytes::new(), headers: Vec::new(), ..post(&receiver.url()) };
    let error = development().send(empty).await.unwrap_err();
    assert!(matches!(error, EgressError::Lost(_)), "{error:?}");
}

#[tokio::test]
async fn a_header_that_cannot_be_written_is_not_sent() {
    let receiver = Receiver::answering(OK);
    for (name, value) in [("x-team", "a\r\nx-injected: 1"), ("x team", "a"), ("", "a")] {
        let mut outbound = post(&receiver.url());
        outbound.headers.push((name.to_owned(), value.to_owned()));
        let error = development().send(outbound).await.unwrap_err();
        assert!(matches!(error, EgressError::NotSent(_)), "{error:?}");
    }
    assert_eq!(receiver.connections(), 0);
}
