//! Webhooks that answer as no honest server would, in HTTP/1.1.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::receiver::Receiver;
use crate::stage::{Tenant, outcome, peak_memory};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
/// Far more than a call of half a second takes, and far less than what the drips below would go on for.
const SOON: Duration = Duration::from_secs(10);

/// Reads a request and answers with these bytes, again and again.
fn drip(begin: &'static [u8], drop: &'static [u8], pause: Duration) -> Receiver {
    Receiver::new(move |this, connection| {
        this.read_request(connection)?;
        connection.write_all(begin)?;
        loop {
            connection.write_all(drop)?;
            std::thread::sleep(pause);
        }
    })
}

#[test]
fn b01_compressed_answers_are_refused_unread() {
    let tenant = Tenant::new();
    for encoding in ["gzip", "br", "zstd", "deflate", "gzip, gzip", "identity, gzip", "x-made-up"] {
        let bomb = Receiver::new(move |this, connection| {
            this.read_request(connection)?;
            write!(connection, "HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: 65536\r\n\r\n")?;
            connection.write_all(&vec![0x1f; 65_536])
        });
        let name = encoding.replace([',', ' '], "_");
        let call = tenant.try_out(&name, &bomb.url(), 5_000);
        assert_eq!(outcome(&call), ("failed", "answer_undecodable"), "{encoding}: {call}");
        let requests = bomb.requests();
        assert_eq!(requests.len(), 1);
        assert!(requests[0].contains("accept-encoding: identity\r\n"), "{}", requests[0]);
    }
}

#[test]
fn b02_answers_without_an_end_are_cut_at_the_cap() {
    let tenant = Tenant::new();
    let declared = Receiver::answering([HEAD, b"content-length: 10000000000\r\n\r\n"].concat());
    let endless = Receiver::new(|this, connection| {
        this.read_request(connection)?;
        connection.write_all(&[HEAD, b"transfer-encoding: chunked\r\n\r\n"].concat())?;
        let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
        loop {
            connection.write_all(&chunk)?;
        }
    });
    let until_closed = Receiver::new(|this, connection| {
        this.read_request(connection)?;
        connection.write_all(&[HEAD, b"\r\n"].concat())?;
        let much = vec![b'x'; 0x10000];
        loop {
            connection.write_all(&much)?;
        }
    });
    let before = peak_memory(&tenant.stage.open);
    for (name, receiver) in [("declared", declared), ("endless", endless), ("until_closed", until_closed)] {
        let call = tenant.try_out(name, &receiver.url(), 60_000);
        assert_eq!(outcome(&call), ("failed", "answer_too_large"), "{name}: {call}");
        assert_eq!(receiver.requests().len(), 1);
    }
    let grown = peak_memory(&tenant.stage.open) - before;
    assert!(grown < 128, "{grown} MiB more than before");
}

#[test]
fn b03_drips_end_at_the_deadline() {
    let tenant = Tenant::new();
    let slowly = Duration::from_millis(5);
    let (few, none) = (Duration::from_millis(100), Duration::ZERO);
    for (name, receiver) in [
        ("body", drip(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", b"x", few)),
        ("head", drip(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n", few)),
        ("interim", drip(b"", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", slowly)),
        ("interim_flood", drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n", none)),
        ("silence", drip(b"", b"", few)),
    ] {
        let began = Instant::now();
        let call = tenant.try_out(name, &receiver.url(), 500);
        assert!(began.elapsed() < SOON, "{name}: {:?}", began.elapsed());
        assert_eq!(outcome(&call), ("timed_out", "timed_out"), "{name}: {call}");
        assert_eq!(receiver.requests().len(), 1, "{name}");
    }
}

#[test]
fn b04_heads_that_are_too_large_are_refused() {
    let tenant = Tenant::new();
    let (long, many) = ("y".repeat(1 << 20), "x: y\r\n".repeat(1_000));
    for (name, head) in [("long", format!("x: {long}\r\n")), ("many", many), ("name", format!("{long}: x\r\n"))] {
        let receiver = Receiver::answering(format!("HTTP/1.1 200 OK\r\n{head}content-length: 2\r\n\r\nok"));
        let call = tenant.try_out(name, &receiver.url(), 5_000);
        assert_eq!(outcome(&call), ("unknown", "answer_lost"), "{name}: {call}");
        assert_eq!(receiver.requests().len(), 1, "{name}");
    }
    let endless = drip(
        b"HTTP/1.1 200 OK\r\nx: ",
        b"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
        Duration::ZERO,
    );
    let call = tenant.try_out("endless", &endless.url(), 20_000);
    assert_eq!(outcome(&call), ("unknown", "answer_lost"), "{call}");
}

#[test]
fn b05_lengths_that_do_not_fit_are_no_answers() {
    let tenant = Tenant::new();
    for (name, rest, expected) in [
        ("short", "content-length: 5\r\n\r\nabc", ("unknown", "answer_lost")),
        ("chunk", "transfer-encoding: chunked\r\n\r\nzz\r\nabc", ("unknown", "answer_lost")),
        ("no_last_chunk", "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", ("unknown", "answer_lost")),
        ("two", "content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nok", ("failed", "answer_undecodable")),
        ("different", "content-length: 2\r\ncontent-length: 3\r\n\r\nabc", ("unknown", "answer_lost")),
        ("negative", "content-length: -2\r\n\r\nok", ("unknown", "answer_lost")),
        ("huge", "content-length: 99999999999999999999999\r\n\r\nok", ("unknown", "answer_lost")),
        ("signed", "content-length: +2\r\n\r\nok", ("unknown", "answer_lost")),
    ] {
        let receiver = Receiver::answering(format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n{rest}"));
        let call = tenant.try_out(name, &receiver.url(), 5_000);
        assert_eq!(outcome(&call), expected, "{name}: {call}");
        assert_eq!(receiver.requests().len(), 1, "{name}");
    }
}

/// What stands behind one answer must not become the answer of the next request.
#[test]
fn b05_what_follows_an_answer_is_not_the_next_one() {
    let tenant = Tenant::new();
    for (name, first) in [
        ("longer", "content-length: 2\r\n\r\nok"),
        ("chunks", "transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        ("both", "content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    ] {
        let receiver = Receiver::new(move |this, connection| {
            let poison = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n\r\npoison";
            loop {
                this.read_request(connection)?;
                write!(connection, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n{first}{poison}")?;
            }
        });
        tenant.tool(name, &json!({"kind": "webhook", "url": receiver.url(), "max_attempts": 1}));
        for _ in 0..4 {
            let call = tenant.call(name, &json!({}));
            assert!(!call.to_string().contains("poison"), "{name}: {call}");
            assert!(matches!(outcome(&call), ("succeeded", "") | ("failed", "answer_undecodable")), "{name}: {call}");
        }
        assert_eq!((receiver.requests().len(), receiver.connections()), (4, 4), "{name}: not reused");
    }
}

/// Closes with something unread, which resets the connection.
fn reset_after(connection: &mut TcpStream, answer: &[u8]) -> io::Result<()> {
    connection.read_exact(&mut [0; 16])?;
    connection.write_all(answer)?;
    std::thread::sleep(Duration::from_millis(20)); // so that what was written goes out before
    Ok(())
}

#[test]
fn b06_connections_that_break_after_sending_may_have_run_and_are_not_repeated() {
    let tenant = Tenant::new();
    let half = [HEAD, b"content-length: 100\r\n\r\nhalf"].concat();
    let closed = Receiver::new(Receiver::read_request);
    let half_closed = Receiver::new(|this, connection| {
        this.read_request(connection)?;
        connection.shutdown(std::net::Shutdown::Write)?;
        connection.read_to_end(&mut Vec::new()).map(drop)
    });
    let cut = Receiver::answering(half.clone());
    let reset = Receiver::new(|this, connection| {
        this.note("reset");
        reset_after(connection, b"")
    });
    let reset_in_the_body = Receiver::new(move |this, connection| {
        this.note("reset");
        reset_after(connection, &half)
    });
    for (name, receiver) in [
        ("closed", closed),
        ("half_closed", half_closed),
        ("cut", cut),
        ("reset", reset),
        ("reset_in_the_body", reset_in_the_body),
    ] {
        let call = tenant.try_out(name, &receiver.url(), 5_000);
        assert_eq!(outcome(&call), ("unknown", "answer_lost"), "{name}: {call}");
        assert!(call["error"]["message"].as_str().unwrap().contains("may have done its work"), "{call}");
        assert_eq!(receiver.requests().len(), 1, "{name}");
    }
}

#[test]
fn b08_bodies_that_are_no_json_are_told_and_break_nothing() {
    let tenant = Tenant::new();
    let deep = ["[".repeat(10_000), "]".repeat(10_000)].concat();
    for (name, body, expected) in [
        ("nonsense", &b"nonsense"[..], ("failed", "bad_answer")),
        ("half", b"{\"a\":", ("failed", "bad_answer")),
        ("two", b"{} {}", ("failed", "bad_answer")),
        ("utf8", b"{\"a\":\"\xff\"}", ("failed", "bad_answer")),
        ("deep", deep.as_bytes(), ("failed", "bad_answer")),
        ("twice", b"{\"text\":\"a\",\"text\":\"b\"}", ("failed", "bad_answer")),
        ("half_character", b"{\"text\":\"\\ud800\"}", ("failed", "bad_answer")),
        ("nan", b"{\"a\":NaN}", ("failed", "bad_answer")),
        ("token", b"{\"$serde_json::private::Number\":\"1\"}", ("failed", "bad_answer")),
        ("nul", b"{\"text\":\"a\\u0000b\",\"data\":{\"\\u0000\":\"\\u0000\"}}", ("succeeded", "")),
        ("huge_number", b"{\"a\":1e400}", ("succeeded", "")),
        ("wrong_text", b"{\"text\":7}", ("failed", "bad_answer")),
    ] {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        let receiver = Receiver::answering([head.as_bytes(), body].concat());
        let call = tenant.try_out(name, &receiver.url(), 5_000);
        assert_eq!(outcome(&call), expected, "{name}: {call}");
        assert_eq!(receiver.requests().len(), 1, "{name}");
    }
    let log = tenant.ask("GET", "/v1/calls", &json!({}));
    assert_eq!(log.status, 200, "what was logged can be read: {}", log.text);
    assert!(!tenant.stage.open.logged().contains("panicked"), "{}", tenant.stage.open.logged());
}
