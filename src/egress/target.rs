//! What a URL must be: the first of the three hooks, and the one that can explain itself.
//!
//! The host is judged as [`url`] parsed it, since that is what is dialled: `0x7f000001`, `127.1` and `①②⑦.⓪.⓪.①` all are 127.0.0.1 by then.
//! It has to be judged here at all because the HTTP connector asks no resolver about a host that is an address.

use url::{Host, Url};

use super::policy::Policy;

/// How many bytes a URL may have: what common servers and proxies take in a request line with room to spare.
pub const MAX_URL_BYTES: usize = 2048;

/// Endings of names that by RFC 6761, RFC 6762, RFC 8375, ICANN's reservation or custom exist only inside a network.
const INSIDE: &[&str] =
    &["internal", "local", "localdomain", "lan", "home.arpa", "intranet", "corp", "home", "private"];

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
    #[error("uses port {port}, which is not open to handlers here; use {}", list(open))]
    Port {
        /// The port that the URL names.
        port: u16,
        /// The ports that it may name.
        open: Vec<u16>,
    },
    /// The host is an address outside the public ranges and the allow list.
    #[error("has an address for its host that is not a public one")]
    Address,
    /// The address and the port are this process's own.
    #[error("is this service itself")]
    Own,
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
    // Browsers' rules also read `https:host` and `https:///host` as a host; other parsers see a path.
    let authority = text.get(url.scheme().len()..).and_then(|rest| rest.strip_prefix("://"));
    if matches!(url.scheme(), "http" | "https") && authority.is_none_or(|rest| rest.starts_with('/')) {
        return Err(UrlRefused::NoHost);
    }
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
        return Err(UrlRefused::Port { port, open: open.clone() });
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
    let below = |parent: &str| name.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if name.split('.').any(str::is_empty) || name.split('.').any(|label| label == "metadata") {
        return false;
    }
    if below("localhost") {
        return policy.allows_loopback();
    }
    policy.allows_private_network() || (name.contains('.') && !INSIDE.iter().any(|parent| below(parent)))
}
