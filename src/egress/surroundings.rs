//! What outbound requests have to know of the process that sends them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use reqwest::Certificate;

/// The process around an [`Egress`](super::Egress). Empty where nothing listens and the system's roots are enough.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The addresses on which this process listens. No policy opens them: a tool that calls the service that runs it would hold one
    /// call for the other, and its author's headers would be a key inside the network.
    pub listening: Vec<SocketAddr>,
    /// Authorities that are trusted beside the system's.
    pub roots: Roots,
}

impl Surroundings {
    /// Whether a peer is this process itself. `local` is our own end of the connection, if there is one: of an address of this
    /// machine it is the same, which is how a listener on every interface knows its own.
    pub(super) fn is_own(&self, peer: SocketAddr, local: Option<IpAddr>) -> bool {
        let ip = peer.ip().to_canonical();
        let reaches = |listening: &SocketAddr| {
            let at = listening.ip().to_canonical();
            let everywhere = at.is_unspecified() && (ip.is_loopback() || local.is_some_and(|l| l.to_canonical() == ip));
            listening.port() == peer.port() && (at == ip || ip.is_unspecified() || everywhere)
        };
        self.listening.iter().any(reaches)
    }
}

/// Certificates of authorities, as an operator gives them.
#[derive(Clone, Default)]
pub struct Roots(Vec<Certificate>);

impl Roots {
    /// Reads certificates in PEM form; there has to be one at least.
    pub fn parse(pem: &[u8]) -> Result<Self, String> {
        let found = Certificate::from_pem_bundle(pem).map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Err("there is no certificate in it (-----BEGIN CERTIFICATE-----)".to_owned());
        }
        Ok(Self(found))
    }

    pub(super) fn certificates(&self) -> Vec<Certificate> {
        self.0.clone()
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Roots({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a11_a_process_knows_its_own_addresses() {
        let listening = |at: &str| Surroundings { listening: vec![at.parse().unwrap()], ..Surroundings::default() };
        for (at, peer, local, own) in [
            ("192.0.2.1:80", "192.0.2.1:80", None, true),
            ("192.0.2.1:80", "192.0.2.1:81", None, false),
            ("192.0.2.1:80", "192.0.2.2:80", Some("192.0.2.2"), false),
            ("192.0.2.1:80", "[::ffff:192.0.2.1]:80", None, true),
            ("127.0.0.1:80", "127.0.0.2:80", None, false),
            ("127.0.0.1:80", "0.0.0.0:80", None, true),
            ("0.0.0.0:80", "127.0.0.2:80", None, true),
            ("0.0.0.0:80", "192.0.2.1:80", None, false),
            ("0.0.0.0:80", "192.0.2.1:80", Some("192.0.2.1"), true),
            ("[::]:80", "192.0.2.1:80", Some("192.0.2.1"), true),
            ("[::]:80", "[2001:db8::1]:80", Some("2001:db8::2"), false),
        ] {
            let local = local.map(|ip| ip.parse().unwrap());
            assert_eq!(listening(at).is_own(peer.parse().unwrap(), local), own, "{peer} from {local:?}, at {at}");
        }
    }

    #[test]
    fn what_holds_no_certificate_is_refused() {
        for text in ["", "nonsense", "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n"] {
            assert!(Roots::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
