//! Where webhooks may be. Two servers on one database: one with production's rules, and one that takes every address, so that it
//! can store what the other has to refuse when it is called.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use toolhook::egress::{Egress, Policy};

use crate::process::Server;
use crate::receiver::Receiver;
use crate::stage::{OK, Tenant, everywhere, key, outcome, serve, tool};
use crate::tls::{self, Certificate};

/// Has each URL refused when it is written, and when it is called although it is stored; none is connected to.
fn refused_everywhere(hosts: &[&str]) {
    let tenant = Tenant::new();
    let receiver = Receiver::answering(OK);
    let port = receiver.address.port();
    for (number, host) in hosts.iter().enumerate() {
        let handler = json!({"kind": "webhook", "url": format!("http://{host}:{port}/"), "max_attempts": 1});
        let stored = tenant.ask("PUT", &format!("/v1/tools/t{number}"), &tool(&format!("t{number}"), &handler));
        assert_eq!(stored.status, 201, "{host}: {}", stored.text);
    }
    for (number, host) in hosts.iter().enumerate() {
        for url in [format!("https://{host}/run"), format!("https://{host}:8443/run")] {
            refused_when_written(&tenant, &url);
        }
        let call = tenant.call_by(&tenant.stage.strict, &format!("t{number}"), &json!({}));
        assert_eq!(outcome(&call), ("failed", "handler_unreachable"), "{host}: {call}");
    }
    assert_eq!(receiver.connections(), 0);
}

fn refused_when_written(tenant: &Tenant, url: &str) {
    let handler = json!({"name": "h", "kind": "webhook", "url": url});
    let refused = tenant.ask_of(&tenant.stage.strict, "POST", "/v1/handlers", &handler);
    assert_eq!(refused.status, 422, "{url}: {}", refused.text);
    assert_eq!(refused.body["errors"][0]["pointer"], "/url", "{url}: {}", refused.text);
}

#[test]
fn a01_literal_loopback_is_refused() {
    refused_everywhere(&["127.0.0.1", "127.8.9.10", "[::1]"]);
}

#[test]
fn a02_other_spellings_of_loopback_are_refused() {
    refused_everywhere(&[
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "１２７.0.0.1",
        "127。0。0。1",
        "①②⑦.⓪.⓪.①",
        "%31%32%37.0.0.1",
    ]);
}

/// The promise is about spellings that nobody listed.
#[test]
fn a02_ten_thousand_generated_spellings_are_refused() {
    let egress = Egress::new(Policy { plain_http: true, ports: None, ..Policy::production() }).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut roll = |sides: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % sides as u64).unwrap()
    };
    for _ in 0..10_000 {
        let private = [[127, 0, 0, 1], [10, 1, 2, 3], [169, 254, 169, 254], [192, 168, 7, 9], [172, 20, 1, 1]];
        let bytes: [u8; 4] = private[roll(5)];
        // The last part of an address may stand for several bytes.
        let parts = 1 + roll(4);
        let mut numbers: Vec<u32> = bytes[..parts - 1].iter().map(|byte| u32::from(*byte)).collect();
        numbers.push(bytes[parts - 1..].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
        let mut spelled: Vec<String> = Vec::new();
        for number in numbers {
            let plain = match roll(4) {
                0 => format!("{number:#x}"),
                1 => format!("0{number:o}"),
                2 => format!("0X{:0>2$X}{:X}", 0, number, 1 + roll(6)),
                _ => number.to_string(),
            };
            let wide = |c: char| char::from_u32(u32::from(c) + 0xfee0).filter(|_| c.is_ascii_digit()).unwrap_or(c);
            spelled.push(if roll(3) == 0 { plain.chars().map(wide).collect() } else { plain });
        }
        let dots = [".", "。", "．"];
        let mut host = spelled.join(dots[roll(3)]);
        if roll(5) == 0 {
            host.push('.');
        }
        assert!(egress.check_url(&format!("http://{host}/")).is_err(), "{host}");
    }
}

#[test]
fn a03_zero_is_refused() {
    refused_everywhere(&["0", "0.0.0.0", "0x0", "[::]"]);
}

#[test]
fn a04_ipv4_inside_ipv6_is_refused() {
    refused_everywhere(&["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:8.8.8.8]", "[::127.0.0.1]"]);
}

#[test]
fn a05_addresses_that_translate_to_ipv4_are_refused() {
    refused_everywhere(&["[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001::1]", "[2001:0:1::1]"]);
}

#[test]
fn a06_metadata_services_are_refused() {
    refused_everywhere(&[
        "169.254.169.254",
        "[fd00:ec2::254]",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "0xa9fea9fe",
    ]);
}

#[test]
fn a07_ranges_that_are_not_public_are_refused() {
    refused_everywhere(&[
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "[fc00::1]",
        "[fe80::1]",
        "[ff02::1]",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "[2001:db8::1]",
    ]);
}

#[test]
fn a08_names_of_private_networks_are_refused() {
    refused_everywhere(&["localhost", "LOCALHOST.", "x.localhost", "backend", "db.internal", "printer.local"]);
    let tenant = Tenant::new();
    for host in ["metadata.google.internal", "metadata", "metadata.azure.example", "a..example.com"] {
        refused_when_written(&tenant, &format!("https://{host}/run"));
    }
}

#[test]
fn a09_schemes_but_https_are_refused() {
    let tenant = Tenant::new();
    for url in [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:text/plain,x",
        "unix:/run/x.sock",
        "https://",
        "https:///run",
        "//example.com/",
        "example.com",
    ] {
        refused_when_written(&tenant, url);
        let by_the_open = tenant.ask("POST", "/v1/handlers", &json!({"name": "h", "kind": "webhook", "url": url}));
        assert_eq!(by_the_open.status, 422, "{url}: {}", by_the_open.text);
    }
}

#[test]
fn a10_plain_http_and_other_ports_are_refused() {
    let tenant = Tenant::new();
    let urls =
        ["http://example.com/", "https://example.com:22/", "https://example.com:25/", "https://example.com:6379/"];
    for (number, url) in urls.iter().enumerate() {
        refused_when_written(&tenant, url);
        tenant.tool(&format!("t{number}"), &json!({"kind": "webhook", "url": url, "max_attempts": 1}));
    }
    for number in 0..urls.len() {
        let call = tenant.call_by(&tenant.stage.strict, &format!("t{number}"), &json!({}));
        assert_eq!(outcome(&call), ("failed", "handler_unreachable"), "{call}");
    }
}

/// What an operator reads about the last call.
fn diagnostic(tenant: &Tenant) -> String {
    let bearer = format!("Bearer {}", tenant.stage.operator);
    let headers = [("authorization", bearer.as_str()), ("toolhook-tenant", tenant.name.as_str())];
    let log = crate::http::send_with(&tenant.stage.open.base_url, &headers, "GET", "/v1/calls?limit=1", None).unwrap();
    log.body["data"][0]["diagnostic"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a11_the_service_does_not_call_itself() {
    let tenant = Tenant::new();
    let own = tenant.stage.open.base_url.clone();
    let port = own.rsplit_once(':').unwrap().1;
    let refused = tenant.ask("POST", "/v1/handlers", &json!({"name": "h", "kind": "webhook", "url": own}));
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert!(refused.text.contains("this service itself"), "{}", refused.text);
    // A name is judged when it is connected to.
    let headers = json!({"authorization": format!("Bearer {}", tenant.key)});
    let url = format!("http://localhost:{port}/v1/tools/t/calls");
    tenant.tool("t", &json!({"kind": "webhook", "url": url, "headers": headers, "max_attempts": 1}));
    let call = tenant.call("t", &json!({}));
    assert_eq!(outcome(&call), ("failed", "handler_unreachable"), "{call}");
    assert!(diagnostic(&tenant).contains("this service itself"), "{}", diagnostic(&tenant));
    let dry = tenant.ask("POST", "/v1/tools/t/calls?dry_run=true", &json!({"input": {}}));
    assert_eq!(dry.body["egress"]["allowed"], false, "{}", dry.text);
    // The port for metrics is one of the service's too.
    let log = tenant.stage.open.logged();
    let metrics =
        log.split_once("metrics are served address=Some(").or_else(|| log.split_once("metrics are served address="));
    let metrics = metrics.unwrap().1.split(|c: char| c == ')' || c.is_whitespace()).next().unwrap();
    let refused = tenant.ask(
        "POST",
        "/v1/handlers",
        &json!({"name": "h", "kind": "webhook", "url": format!("http://{metrics}/metrics")}),
    );
    assert!(refused.text.contains("this service itself"), "{}", refused.text);
}

#[test]
fn a11_a_listener_on_every_interface_knows_its_own() {
    let tenant = Tenant::new();
    let stage = &tenant.stage;
    let mut everyone = serve(&stage.database(), "0.0.0.0:0");
    let server = Server::start(&stage.scratch, everywhere(&mut everyone));
    let port = server.base_url.rsplit_once(':').unwrap().1.to_owned();
    for host in ["127.0.0.1", "127.0.0.2", "localhost"] {
        let url = format!("http://{host}:{port}/");
        tenant.ask("PUT", "/v1/tools/t", &tool("t", &json!({"kind": "webhook", "url": url, "max_attempts": 1})));
        let call = tenant.call_by(&server, "t", &json!({}));
        assert_eq!(outcome(&call), ("failed", "handler_unreachable"), "{call}");
        assert!(diagnostic(&tenant).contains("this service itself"), "{host}: {}", diagnostic(&tenant));
        tenant.ask_of(&server, "DELETE", "/v1/tools/t", &json!({}));
    }
}

#[test]
fn a12_what_parsers_disagree_about_is_refused() {
    let tenant = Tenant::new();
    for url in [
        "https://user:pw@example.com/",
        "https://user@127.0.0.1/",
        "https://example.com#@evil.example/",
        "https://example.com\\@evil.example/",
        "https://exa\tmple.com/",
        "https://example.com/\r\nhost: x",
        " https://example.com/",
        "https://exa mple.com/",
        "https://[fe80::1%25eth0]/",
        "https://1.2.3.256/",
        "https://example.com:99999/",
    ] {
        refused_when_written(&tenant, url);
    }
}

#[test]
fn a16_redirects_are_not_followed() {
    let tenant = Tenant::new();
    let inside = Receiver::answering(OK);
    for status in [301, 302, 303, 307, 308] {
        let answer = format!("HTTP/1.1 {status} There\r\nlocation: {}\r\ncontent-length: 4\r\n\r\nbody", inside.url());
        let outside = Receiver::answering(answer);
        let call = tenant.try_out(&format!("t{status}"), &outside.url(), 5_000);
        assert_eq!(outcome(&call), ("failed", "redirect_refused"), "{call}");
        assert_eq!(outside.requests().len(), 1);
        assert!(!call.to_string().contains(&inside.address.to_string()), "{call}");
    }
    assert_eq!(inside.connections(), 0);
}

#[test]
fn a17_proxies_in_the_environment_are_ignored() {
    let tenant = Tenant::new();
    let receiver = Receiver::answering(OK);
    assert_eq!(tenant.try_out("plain", &receiver.url(), 5_000)["result"]["text"], "ok");
    let certificate = tenant.stage.authority.server(Certificate::Good, &["http/1.1"]);
    let secure = Receiver::new(move |this, connection| {
        tls::over(&certificate, connection, |stream| {
            this.read_request(stream)?;
            stream.write_all(OK)
        })
    });
    let call = tenant.try_out("secure", &format!("https://{}/", secure.address), 5_000);
    assert_eq!(call["result"]["text"], "ok", "{call}");
    // Nor where the target cannot be reached.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let call = tenant.try_out("closed", &format!("http://{closed}/"), 5_000);
    assert_eq!(outcome(&call), ("failed", "handler_unreachable"), "{call}");
    assert_eq!(tenant.stage.proxy.connections(), 0);
}

#[test]
fn a18_cookies_and_other_services_are_not_remembered() {
    let tenant = Tenant::new();
    let other = Receiver::answering(OK);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nset-cookie: a=b; Path=/\r\nalt-svc: h2=\"{0}\", http/1.1=\"{0}\"\r\nrefresh: 0; url=http://{0}/\r\n\
         link: <http://{0}/>; rel=preload\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok",
        other.address
    );
    let receiver = Receiver::answering(answer);
    tenant.tool("t", &json!({"kind": "webhook", "url": receiver.url()}));
    for _ in 0..3 {
        assert_eq!(outcome(&tenant.call("t", &json!({}))), ("succeeded", ""));
    }
    let requests = receiver.requests();
    assert_eq!((requests.len(), other.connections()), (3, 0));
    for request in requests {
        let head = request.split_once("\r\n\r\n").unwrap().0.to_lowercase();
        assert!(!head.contains("cookie") && !head.contains("alt-used") && !head.contains("referer"), "{head}");
    }
}

#[test]
fn a19_why_a_handler_is_out_of_reach_is_not_told() {
    let tenant = Tenant::new();
    let (inside, closed) = (Receiver::answering(OK), TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let silent = Receiver::new(|_, connection| connection.read_to_end(&mut Vec::new()).map(drop));
    tenant.tool("blocked", &json!({"kind": "webhook", "url": inside.url(), "max_attempts": 1}));
    let blocked = tenant.call_by(&tenant.stage.strict, "blocked", &json!({}));
    assert_eq!(outcome(&blocked), ("failed", "handler_unreachable"), "{blocked}");
    for (name, url) in [
        ("closed", format!("http://{closed}/")),
        ("unknown", "http://nobody.invalid/".to_owned()),
        ("silent", format!("https://{}/", silent.address)),
    ] {
        let call = tenant.try_out(name, &url, 300);
        assert_eq!((&call["status"], &call["error"]), (&blocked["status"], &blocked["error"]), "{name}");
    }
    // An editor's log says no more than the answer did.
    let log = tenant.ask("GET", "/v1/calls", &Value::Null);
    assert!(!log.text.contains(&closed.to_string()) && !log.text.contains("refused"), "{}", log.text);
    let agent = key(&tenant.stage.open, &tenant.stage.operator, &tenant.name, "viewer");
    let log = tenant.stage.open.get(&agent, "/v1/calls").unwrap();
    assert!(!log.text.contains("diagnostic\":\""), "{}", log.text);
}
