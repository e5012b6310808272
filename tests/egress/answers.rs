//! Answers that are not taken.

use std::io::Write as _;

use toolhook::egress::EgressError;

use crate::receiver::Receiver;
use crate::{development, post, send};

#[tokio::test]
async fn what_is_not_http_is_lost() {
    let many = "x: y\r\n".repeat(1000);
    for answer in [
        "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\n{many}content-length: 0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)),
    ] {
        let error = send(&Receiver::answering(answer).url()).await.unwrap_err();
        assert!(matches!(error, EgressError::Lost(_)), "{error:?}");
    }
}

#[tokio::test]
async fn encodings_are_refused_unread() {
    for encoding in ["gzip", "br", "zstd", "identity, gzip", "identity\r\ncontent-encoding: x-unknown"] {
        let receiver = Receiver::answering(format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: 3\r\n\r\nabc"
        ));
        let error = send(&receiver.url()).await.unwrap_err();
        assert!(matches!(error, EgressError::Encoded { status: 200, .. }), "{error:?}");
        assert_eq!(error.public(), "the handler's answer could not be decoded");
        assert!(error.may_have_arrived());
    }
    let plain = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-encoding: Identity\r\ncontent-length: 2\r\n\r\nok");
    assert_eq!(send(&plain.url()).await.unwrap().body, "ok");
}

#[tokio::test]
async fn bodies_end_at_the_cap() {
    let head = "HTTP/1.1 200 OK\r\n";
    let full = "x".repeat(1024);
    for good in [
        format!("{head}content-length: 1024\r\n\r\n{full}"),
        format!("{head}\r\n{full}"),
        format!("{head}transfer-encoding: chunked\r\n\r\n400\r\n{full}\r\n0\r\n\r\n"),
    ] {
        assert_eq!(send(&Receiver::answering(good).url()).await.unwrap().body.len(), 1024);
    }
    let declared = Receiver::answering(format!("{head}content-length: 10000000000\r\n\r\n"));
    let longer = Receiver::answering(format!("{head}\r\n{full}x"));
    let endless = Receiver::new(move |this, connection| {
        this.read_request(connection)?;
        connection.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
        loop {
            connection.write_all(b"4\r\nabcd\r\n")?;
        }
    });
    for receiver in [declared, longer, endless] {
        let error = send(&receiver.url()).await.unwrap_err();
        assert!(matches!(error, EgressError::TooLarge { status: 200, cap: 1024 }), "{error:?}");
        assert_eq!(error.public(), "the handler's answer is too large");
    }
}

#[tokio::test]
async fn bodies_that_end_early_or_twice_are_no_answers() {
    for cut in [
        "content-length: 5\r\n\r\nabc",
        "transfer-encoding: chunked\r\n\r\n5\r\nabc",
        "transfer-encoding: chunked\r\n\r\nzz\r\nabc",
    ] {
        let receiver = Receiver::answering(format!("HTTP/1.1 500 Oops\r\n{cut}"));
        let error = send(&receiver.url()).await.unwrap_err();
        assert!(matches!(error, EgressError::CutOff { status: 500, .. }), "{error:?}");
        assert_eq!(error.public(), "the handler's answer was cut off");
        assert_eq!(error.status(), Some(500));
    }
    let receiver = Receiver::new(|this, connection| {
        loop {
            this.read_request(connection)?;
            connection
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nok")?;
        }
    });
    let egress = development();
    for connections in 1..=2 {
        let error = egress.send(post(&receiver.url())).await.unwrap_err();
        assert!(matches!(error, EgressError::Ambiguous { .. }), "{error:?}");
        assert_eq!(receiver.connections(), connections);
    }
}
