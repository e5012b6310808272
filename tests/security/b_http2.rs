//! Webhooks that answer as no honest server would, in HTTP/2.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustls::{ServerConnection, Stream};
use serde_json::{Value, json};

use crate::frames::{
    CONTINUATION, DATA, END, END_HEADERS, GOAWAY, HEADERS, OK_HEAD, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, greet,
    request, write,
};
use crate::receiver::Receiver;
use crate::stage::{Tenant, outcome, peak_memory};
use crate::tls::{self, Certificate};

type Secure<'a> = Stream<'a, ServerConnection, TcpStream>;

const TIMEOUT_MS: u32 = 1_500;
/// Far more than the time of a call.
const SOON: Duration = Duration::from_secs(15);

/// A server of HTTP/2 that notes each request it has read whole and then goes its own way.
fn http2(tenant: &Tenant, then: impl Fn(&mut Secure<'_>, u32) -> io::Result<()> + Send + Sync + 'static) -> Receiver {
    let config = tenant.stage.authority.server(Certificate::Good, &["h2"]);
    Receiver::new(move |this, connection| {
        tls::over(&config, connection, |stream| {
            greet(stream, &[])?;
            loop {
                let (id, body) = request(stream)?;
                this.note(&String::from_utf8_lossy(&body));
                then(stream, id)?;
            }
        })
    })
}

/// Calls it once: the call has to end in time, and to be delivered once at most.
fn met(tenant: &Tenant, name: &str, receiver: &Receiver) -> Value {
    let began = Instant::now();
    let call = tenant.try_out(name, &format!("https://{}/", receiver.address), TIMEOUT_MS);
    assert!(began.elapsed() < SOON, "{name}: {:?}", began.elapsed());
    assert!(receiver.requests().len() <= 1, "{name}: {:?}", receiver.requests());
    call
}

fn goodbye(code: u32, last: u32) -> Vec<u8> {
    [last.to_be_bytes(), code.to_be_bytes()].concat()
}

#[test]
fn b09_http2_that_is_polite_is_answered() {
    let tenant = Tenant::new();
    let polite = http2(&tenant, |stream, id| {
        write(stream, HEADERS, END_HEADERS, id, OK_HEAD)?;
        write(stream, DATA, END, id, b"ok")
    });
    let call = met(&tenant, "polite", &polite);
    assert_eq!(call["result"]["text"], "ok", "or the rest shows nothing: {call}");
    assert!(polite.requests()[0].contains("\"tool\":\"polite\""), "{:?}", polite.requests());
    let frames = http2(&tenant, |stream, id| {
        write(stream, HEADERS, END_HEADERS, id, OK_HEAD)?;
        for _ in 0..10_000 {
            write(stream, DATA, 0, id, b"x")?;
        }
        write(stream, DATA, END, id, b"")
    });
    let call = met(&tenant, "frames", &frames);
    assert!(matches!(outcome(&call), ("succeeded" | "timed_out" | "unknown", _)), "{call}");
}

#[test]
fn b09_http2_refusals_are_not_answered_by_a_second_delivery() {
    let tenant = Tenant::new();
    for (name, code, last) in
        [("goaway", 0, 0), ("goaway_refused", 7, 0), ("goaway_error", 1, 0), ("goaway_known", 0, 1)]
    {
        let receiver = http2(&tenant, move |stream, _| {
            write(stream, GOAWAY, 0, 0, &goodbye(code, last))?;
            Err(io::ErrorKind::ConnectionAborted.into())
        });
        let call = met(&tenant, name, &receiver);
        assert_eq!(outcome(&call), ("unknown", "answer_lost"), "{name}: {call}");
        assert_eq!(receiver.requests().len(), 1, "{name}");
    }
    // 7 is REFUSED_STREAM, by which a server says that it did nothing. It may be lying.
    for (name, code) in [("refused_stream", 7_u32), ("cancel", 8), ("no_error", 0), ("enhance_your_calm", 11)] {
        let receiver = http2(&tenant, move |stream, id| write(stream, RST_STREAM, 0, id, &code.to_be_bytes()));
        let call = met(&tenant, name, &receiver);
        // Without an error it is no refusal, and may as well be waited out.
        let waited = code == 0 && outcome(&call) == ("timed_out", "timed_out");
        assert!(waited || outcome(&call) == ("unknown", "answer_lost"), "{name}: {call}");
        assert_eq!(receiver.requests().len(), 1, "{name}");
    }
}

#[test]
fn b09_http2_floods_end_at_the_deadline() {
    let tenant = Tenant::new();
    let frames: [(&str, u8, u8, &'static [u8]); 5] = [
        ("settings", SETTINGS, 0, &[0, 3, 0, 0, 0, 100]),
        ("pings", PING, 0, &[0; 8]),
        ("windows", WINDOW_UPDATE, 0, &[0, 0, 0, 1]),
        ("goaways", GOAWAY, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        ("unknown_frames", 0xaa, 0, &[0; 64]),
    ];
    for (name, kind, flags, payload) in frames {
        let receiver = http2(&tenant, move |stream, _| {
            loop {
                write(stream, kind, flags, 0, payload)?;
            }
        });
        let call = met(&tenant, name, &receiver);
        assert!(matches!(outcome(&call), ("timed_out" | "unknown", _)), "{name}: {call}");
    }
    let before = peak_memory(&tenant.stage.open);
    let heads = http2(&tenant, |stream, id| {
        write(stream, HEADERS, 0, id, OK_HEAD)?;
        loop {
            // A literal header of 4 KiB, again and again, and never the end of the head.
            let header = [&[0, 1, b'x', 0x7f, 0x81, 0x1f][..], &[b'y'; 4_096]].concat();
            write(stream, CONTINUATION, 0, id, &header)?;
        }
    });
    let empty = http2(&tenant, |stream, id| {
        write(stream, HEADERS, END_HEADERS, id, OK_HEAD)?;
        loop {
            write(stream, DATA, 0, id, b"")?;
        }
    });
    let endless = http2(&tenant, |stream, id| {
        write(stream, HEADERS, END_HEADERS, id, OK_HEAD)?;
        loop {
            write(stream, DATA, 0, id, &[b'x'; 16_384])?;
        }
    });
    for (name, receiver) in [("heads", heads), ("empty", empty), ("endless", endless)] {
        let call = met(&tenant, name, &receiver);
        assert!(matches!(outcome(&call), ("timed_out" | "unknown" | "failed", _)), "{name}: {call}");
    }
    let grown = peak_memory(&tenant.stage.open) - before;
    assert!(grown < 128, "{grown} MiB more than before");
}

/// A server that takes the beginning of a body and never the rest.
#[test]
fn b09_http2_without_a_window_ends_at_the_deadline() {
    let tenant = Tenant::new();
    let config = tenant.stage.authority.server(Certificate::Good, &["h2"]);
    let receiver = Receiver::new(move |this, connection| {
        tls::over(&config, connection, |stream| {
            greet(stream, &[(4, 0)])?;
            let (_, body) = request(stream)?;
            this.note(&String::from_utf8_lossy(&body));
            Ok(())
        })
    });
    let handler = json!({"kind": "webhook", "url": format!("https://{}/", receiver.address), "timeout_ms": TIMEOUT_MS});
    tenant.tool("closed_window", &handler);
    let began = Instant::now();
    let call = tenant.call("closed_window", &json!({"long": "x".repeat(200_000)}));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert!(matches!(outcome(&call), ("timed_out", _) | ("failed", "handler_unreachable")), "{call}");
    assert!(receiver.requests().is_empty());
}
