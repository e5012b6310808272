//! What a URL must be: the first of the three hooks, and the one that can explain itself.
//!
//! The host is judged as [`url`] parsed it, since that is what is dialled: `0x7f000001`, `127.1` and `①②⑦.⓪.⓪.①` all are 127.0.0.1 by then.
//! It has to be judged here at all because the HTTP connector asks no resolver about a host that is an address.

use url::{Host, Url};

use super::policy::Policy;

/// How many bytes a URL may have: what common servers and proxies take in a request line with room to spare.
pub const MAX_URL_BYTES: usize = 2048;

/// Endings of names that by RFC 6761, RFC 6762, RFC 8375, ICANN's reservation or custom exist only inside a network.
const INSIDE: &[&str] = &[
    "internal",
    "local",
    "localdomain",
    "lan",
    "home.arpa",
    "intranet",
    "corp",
    "home",
    "private",
];

/// Why a handler's URL is refused, in words for its author. Nothing here depends on what a name resolves to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefused {
    /// Longer than [`MAX_URL_BYTES`].
    #[error("is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    /// A parser would drop or rewrite such a character, so the stored text would not be what is dialled.
    #[error("has a space, a control character or a backslash in it")]
    Character,
    /// Not an absolute URL.
    #[error("is not a URL: {0}")]
    Malformed(#[from] url::ParseError),
    /// Neither https nor, where it is accepted, http.
    #[error("must begin with {}", if *plain_http { "https:// or http://" } else { "https://" })]
    Scheme {
        /// Whether http is accepted here.
        plain_http: bool,
    },
    /// No host to call.
    #[error("has no host")]
    NoHost,
    /// Credentials in a URL end up in logs.
    #[error("carries a user name or password; set an authorization header instead")]
    UserInfo,
    /// A fragment is never sent.
    #[error("has a fragment (#…), which is never sent")]
    Fragment,
    /// A port that the policy does not list.
    #[error(
        "uses port {port}, which is not open to handlers here; use {}",
        list(open)
    )]
    Port {
        /// The port that the URL names.
        port: u16,
        /// The ports that it may name.
        open: Vec<u16>,
    },
    /// The host is an address outside the public ranges and the allow list.
    #[error("has an address for its host that is not a public one")]
    Address,
    /// The host is a name that only a private network could answer for.
    #[error("has a host that is not a public name")]
    Name,
}

fn list(ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    ports.join(" or ")
}

/// Parses and checks a URL as an author writes it.
pub(super) fn parse(text: &str, policy: &Policy) -> Result<Url, UrlRefused> {
    if text.len() > MAX_URL_BYTES {
        return Err(UrlRefused::TooLong);
    }
    if text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(UrlRefused::Character);
    }
    let url = match Url::parse(text) {
        Err(url::ParseError::EmptyHost) => return Err(UrlRefused::NoHost),
        parsed => parsed?,
    };
    check(&url, policy)?;
    Ok(url)
}

/// Checks a URL that is parsed already. Every send does so again: a stored URL may be older than the policy.
pub(super) fn check(url: &Url, policy: &Policy) -> Result<(), UrlRefused> {
    let plain_http = policy.plain_http;
    if !(url.scheme() == "https" || plain_http && url.scheme() == "http") {
        return Err(UrlRefused::Scheme { plain_http });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlRefused::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(UrlRefused::Fragment);
    }
    let port = url.port_or_known_default().ok_or(UrlRefused::NoHost)?;
    if let Some(open) = policy.ports.as_ref().filter(|open| !open.contains(&port)) {
        return Err(UrlRefused::Port {
            port,
            open: open.clone(),
        });
    }
    match url.host().ok_or(UrlRefused::NoHost)? {
        Host::Ipv4(ip) if policy.closed(ip.into()).is_some() => Err(UrlRefused::Address),
        Host::Ipv6(ip) if policy.closed(ip.into()).is_some() => Err(UrlRefused::Address),
        Host::Domain(name) if !plausible(name, policy) => Err(UrlRefused::Name),
        _ => Ok(()),
    }
}

/// Whether a name could be public. The resolver's answer decides; this tells an author early, and keeps names that only our own network
/// answers for away from the resolver.
fn plausible(name: &str, policy: &Policy) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let below = |parent: &str| {
        name.strip_suffix(parent)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if name.split('.').any(str::is_empty) || name.split('.').any(|label| label == "metadata") {
        return false;
    }
    if below("localhost") {
        return policy.allows_loopback();
    }
    policy.allows_private_network()
        || (name.contains('.') && !INSIDE.iter().any(|parent| below(parent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Production's addresses with development's schemes and ports, so that only the host decides.
    fn open_but_public() -> Policy {
        Policy {
            allow: Vec::new(),
            plain_http: true,
            ports: None,
        }
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
            (
                "https://hooks.example.com/run?x=1",
                "https://hooks.example.com/run?x=1",
            ),
            (
                "HTTPS://Hooks.Example.com:443",
                "https://hooks.example.com/",
            ),
            (
                "https://hooks.example.com:8443/a/../b",
                "https://hooks.example.com:8443/b",
            ),
            ("https://8.8.8.8/", "https://8.8.8.8/"),
            (
                "https://[2606:4700:4700::1111]/",
                "https://[2606:4700:4700::1111]/",
            ),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            (
                "https://internal.example.com/",
                "https://internal.example.com/",
            ),
            (
                "https://notlocalhost.example/",
                "https://notlocalhost.example/",
            ),
        ] {
            assert_eq!(
                parse(text, &Policy::production()).unwrap().as_str(),
                kept,
                "{text}"
            );
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
            assert_eq!(
                parse(text, &production),
                Err(UrlRefused::Scheme { plain_http: false }),
                "{text}"
            );
        }
        for port in [22, 25, 80, 6379] {
            let refused = parse(&format!("https://example.com:{port}/"), &production).unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!("uses port {port}, which is not open to handlers here; use 443 or 8443")
            );
        }
        assert_eq!(
            parse("ftp://example.com/", &open_but_public()),
            Err(UrlRefused::Scheme { plain_http: true })
        );
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
        for host in [
            "localhost",
            "api.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
        ] {
            assert!(
                parse(&format!("http://{host}:9000/"), &development).is_ok(),
                "{host}"
            );
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
            assert!(
                parse(&format!("http://{host}:9000/"), &development).is_err(),
                "{host}"
            );
        }
    }

    #[test]
    fn an_operators_network_opens_its_addresses_and_names_but_neither_schemes_nor_ports() {
        let policy = Policy {
            allow: vec!["10.1.0.0/16".parse().unwrap()],
            ..Policy::production()
        };
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
}
