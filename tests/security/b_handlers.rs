//! What a handler may say, what its server's certificate has to be, and what arguments can do to a request.

use std::io::{Read as _, Write as _};

use serde_json::{Map, Value, json};

use crate::receiver::Receiver;
use crate::stage::{OK, Tenant, outcome};
use crate::tls::{self, Certificate};

#[test]
fn b07_without_a_good_certificate_nothing_is_sent() {
    let tenant = Tenant::new();
    let of = |certificate| {
        let config = tenant.stage.authority.server(certificate, &["http/1.1"]);
        Receiver::new(move |this, connection| {
            tls::over(&config, connection, |stream| {
                this.read_request(stream)?;
                stream.write_all(OK)
            })
        })
    };
    let good = of(Certificate::Good);
    let call = tenant.try_out("good", &format!("https://{}/", good.address), 5_000);
    assert_eq!(call["result"]["text"], "ok", "or the rest shows nothing: {call}");
    // A server of TLS 1.1: its hello, with a session of 32 bytes and an old cipher.
    let old = Receiver::new(|_, connection| {
        let _ = connection.read(&mut [0; 4096])?;
        let hello = [&[3, 2][..], &[7; 32], &[0], &[0xc0, 0x14], &[0]].concat();
        let length = u8::try_from(hello.len()).unwrap();
        connection.write_all(&[&[22, 3, 2, 0, length + 4, 2, 0, 0, length], &hello[..]].concat())?;
        connection.read_to_end(&mut Vec::new()).map(drop)
    });
    let silent = Receiver::new(|_, connection| connection.read_to_end(&mut Vec::new()).map(drop));
    let plain = Receiver::answering(OK);
    for (name, receiver) in [
        ("expired", of(Certificate::Expired)),
        ("of_another_name", of(Certificate::OfAnotherName)),
        ("self_signed", of(Certificate::SelfSigned)),
        ("tls_1_1", old),
        ("silent", silent),
        ("plain", plain),
    ] {
        let call = tenant.try_out(name, &format!("https://{}/", receiver.address), 700);
        assert_eq!(outcome(&call), ("failed", "handler_unreachable"), "{name}: {call}");
        assert!(call["error"]["message"].as_str().unwrap().contains("has not run"), "{call}");
        assert!(receiver.connections() >= 1 && receiver.requests().is_empty(), "{name}: nothing was sent");
    }
    // The server that trusts the system's authorities alone takes not even the good one.
    let strict = tenant.call_by(&tenant.stage.strict, "good", &json!({}));
    assert_eq!(outcome(&strict), ("failed", "handler_unreachable"));
    assert_eq!(good.requests().len(), 1);
}

fn refused_headers(headers: &Value, at: &str) {
    let tenant = Tenant::new();
    let handler = json!({"name": "h", "kind": "webhook", "url": "https://hooks.example.com/", "headers": headers});
    let refused = tenant.ask_of(&tenant.stage.strict, "POST", "/v1/handlers", &handler);
    assert_eq!(refused.status, 422, "{headers}: {}", refused.text);
    let places = refused.body["errors"].as_array().unwrap();
    assert!(places.iter().any(|place| place["pointer"] == at), "{headers}: {}", refused.text);
    assert!(!refused.text.contains("s3cret"), "a value is repeated: {}", refused.text);
}

#[test]
fn b10_a_value_cannot_begin_another_header() {
    for value in ["s3cret\r\nx-injected: 1", "s3cret\nx", "s3cret\rx", "s3cret\0", "s3cret\u{7f}"] {
        refused_headers(&json!({ "x-team": value }), "/headers/x-team");
    }
    refused_headers(&json!({"x-team\r\nx-injected": "1"}), "/headers/x-team\r\nx-injected");
}

#[test]
fn b11_headers_that_are_not_an_authors_are_refused() {
    for name in [
        "host",
        "Content-Length",
        "transfer-encoding",
        "Connection",
        "expect",
        "te",
        "upgrade",
        "webhook-signature",
        "webhook-id",
        "idempotency-key",
        "x-amz-date",
        "X-Google-Metadata-Request",
        "metadata-flavor",
        "cookie",
        "x-forwarded-for",
        "proxy-authorization",
        "accept-encoding",
    ] {
        refused_headers(&json!({ name: "s3cret" }), &format!("/headers/{name}"));
    }
}

#[test]
fn b12_too_many_or_too_long_headers_are_refused() {
    let many: Map<String, Value> = (0..200).map(|n| (format!("x-{n}"), json!("v"))).collect();
    refused_headers(&many.into(), "/headers/x-20");
    refused_headers(&json!({"x-long": "v".repeat(900_000)}), "/headers/x-long");
}

#[test]
fn b13_b14_arguments_are_plain_data_in_the_body() {
    let tenant = Tenant::new();
    let receiver = Receiver::answering(OK);
    let input = json!({
        "crlf": "x\r\n\r\nPOST /admin HTTP/1.1\r\nhost: evil\r\ncontent-length: 0\r\n\r\n",
        "template": "{{secret}} ${env.TOOLHOOK_MASTER_KEY} %{x} #{x} <%= x %> $(id) `id`",
        "url": "http://169.254.169.254/latest/meta-data",
        "whsec": "whsec_{signing_secret}",
        "a\r\nb: c": "in a name",
    });
    tenant.tool("t", &json!({"kind": "webhook", "url": receiver.url(), "headers": {"x-key": "s3cret"}}));
    assert_eq!(outcome(&tenant.call("t", &input)), ("succeeded", ""));
    let requests = receiver.requests();
    assert_eq!((requests.len(), receiver.connections()), (1, 1));
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(!head.contains("admin") && !head.contains("b: c"), "{head}");
    assert!(!body.contains('\r') && !body.contains('\n'), "{body}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["data"]["input"], input);
}
