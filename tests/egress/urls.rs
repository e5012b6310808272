//! What a handler's URL may be when it is written.

use toolhook::egress::{Egress, MAX_URL_BYTES, Policy, UrlRefused};
use url::Url;

fn parse(text: &str, policy: &Policy) -> Result<Url, UrlRefused> {
    Egress::new(policy.clone()).unwrap().check_url(text)
}

/// Production's addresses with development's schemes and ports, so that only the host decides.
fn open_but_public() -> Policy {
    Policy { allow: Vec::new(), plain_http: true, ports: None }
}

#[test]
fn every_spelling_of_a_private_address_is_refused() {
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2001::1]",
        "127。0。0。1",
        "①②⑦.⓪.⓪.①",
        "１２７.0.0.1",
        "%31%32%37.0.0.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "[fd00:ec2::254]",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "[fc00::1]",
        "[fe80::1]",
        "[ff02::1]",
        "192.0.2.1",
        "[2001:db8::1]",
    ] {
        let refused = parse(&format!("https://{host}/x"), &open_but_public());
        assert_eq!(refused, Err(UrlRefused::Address), "{host}");
    }
}

#[test]
fn names_of_private_networks_are_refused() {
    for host in [
        "localhost",
        "LOCALHOST.",
        "x.localhost",
        "ｌocalhost",
        "metadata.google.internal",
        "metadata",
        "metadata.azure.example",
        "backend",
        "backend.",
        "db.internal",
        "printer.local",
        "router.lan",
        "nas.home.arpa",
        "a..example.com",
        ".example.com",
        "example.com..",
    ] {
        let refused = parse(&format!("https://{host}/x"), &open_but_public());
        assert_eq!(refused, Err(UrlRefused::Name), "{host}");
    }
}

#[test]
fn public_targets_are_kept_as_they_are_dialled() {
    for (text, kept) in [
        ("https://hooks.example.com/run?x=1", "https://hooks.example.com/run?x=1"),
        ("HTTPS://Hooks.Example.com:443", "https://hooks.example.com/"),
        ("https://hooks.example.com:8443/a/../b", "https://hooks.example.com:8443/b"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://internal.example.com/", "https://internal.example.com/"),
        ("https://notlocalhost.example/", "https://notlocalhost.example/"),
    ] {
        assert_eq!(parse(text, &Policy::production()).unwrap().as_str(), kept, "{text}");
    }
}

#[test]
fn schemes_and_ports_are_the_policys() {
    let production = Policy::production();
    for text in [
        "http://example.com/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:text/plain,x",
        "unix:/run/x.sock",
        "javascript:1",
    ] {
        assert_eq!(parse(text, &production), Err(UrlRefused::Scheme { plain_http: false }), "{text}");
    }
    for port in [22, 25, 80, 6379] {
        let refused = parse(&format!("https://example.com:{port}/"), &production).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("uses port {port}, which is not open to handlers here; use 443 or 8443")
        );
    }
    assert_eq!(parse("ftp://example.com/", &open_but_public()), Err(UrlRefused::Scheme { plain_http: true }));
    assert!(parse("http://example.com:9/", &open_but_public()).is_ok());
}

#[test]
fn what_parsers_disagree_about_is_refused() {
    let production = Policy::production();
    for (text, why) in [
        ("https://user:pw@example.com/", UrlRefused::UserInfo),
        ("https://user@127.0.0.1/", UrlRefused::UserInfo),
        ("https://:pw@example.com/", UrlRefused::UserInfo),
        ("https://example.com#@evil.example/", UrlRefused::Fragment),
        ("https://example.com\\@evil.example/", UrlRefused::Character),
        ("https://exa\tmple.com/", UrlRefused::Character),
        ("https://example.com/\r\nhost: x", UrlRefused::Character),
        (" https://example.com/", UrlRefused::Character),
        ("https://", UrlRefused::NoHost),
        ("https:///", UrlRefused::NoHost),
    ] {
        assert_eq!(parse(text, &production), Err(why), "{text}");
    }
    for text in [
        "",
        "example.com",
        "/run",
        "https://exa mple.com/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://1.2.3.256/",
        "https://example.com:99999/",
    ] {
        assert!(parse(text, &production).is_err(), "{text}");
    }
    let long = format!("https://example.com/{}", "x".repeat(MAX_URL_BYTES));
    assert_eq!(parse(&long, &production), Err(UrlRefused::TooLong));
}

#[test]
fn development_opens_this_machine_and_nothing_else() {
    let development = Policy::development();
    for host in ["localhost", "api.localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
        assert!(parse(&format!("http://{host}:9000/"), &development).is_ok(), "{host}");
    }
    for host in [
        "10.0.0.1",
        "169.254.169.254",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "backend",
        "db.internal",
        "metadata.google.internal",
    ] {
        assert!(parse(&format!("http://{host}:9000/"), &development).is_err(), "{host}");
    }
}

#[test]
fn an_operators_network_opens_its_addresses_and_names_but_neither_schemes_nor_ports() {
    let policy = Policy { allow: vec!["10.1.0.0/16".parse().unwrap()], ..Policy::production() };
    for (url, open) in [
        ("https://10.1.2.3/", true),
        ("https://billing/", true),
        ("https://billing.internal:8443/", true),
        ("http://10.1.2.3/", false),
        ("https://10.1.2.3:9000/", false),
        ("https://10.2.0.1/", false),
        ("https://localhost/", false),
        ("https://metadata.google.internal/", false),
    ] {
        assert_eq!(parse(url, &policy).is_ok(), open, "{url}");
    }
}
