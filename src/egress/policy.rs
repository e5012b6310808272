//! Where this service lets webhooks be.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::address;

/// Where outbound requests may go. Fixed for the life of an [`Egress`](super::Egress): pooled connections were judged by it.
///
/// The three rules are apart: an address on the allow list is still held to the scheme and the ports.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Ranges that are let through although they are not public (`TOOLHOOK_EGRESS_ALLOW`).
    pub allow: Vec<IpNet>,
    /// Whether `http:` URLs are accepted beside `https:`.
    pub plain_http: bool,
    /// The ports that a URL may name; `None` for any.
    pub ports: Option<Vec<u16>>,
}

impl Policy {
    /// Public addresses by https, on its two usual ports.
    pub fn production() -> Self {
        Self { allow: Vec::new(), plain_http: false, ports: Some(vec![443, 8443]) }
    }

    /// Also this machine itself, by http, on any port. The rest of the private ranges stays closed.
    pub fn development() -> Self {
        let loopback = [
            IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
            IpNet::new_assert(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
        ];
        Self { allow: loopback.into(), plain_http: true, ports: None }
    }

    /// Says which closed range an address lies in, for the log; `None` if it may be connected to.
    pub(super) fn closed(&self, ip: IpAddr) -> Option<&'static str> {
        address::closed_for(ip, &self.allow)
    }

    /// Whether this machine's own addresses, and so `localhost`, are targets.
    pub(super) fn allows_loopback(&self) -> bool {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        loopback.into_iter().any(|ip| self.closed(ip).is_none())
    }

    /// Whether the operator has targets in a network of their own. Such targets have names that the public does not.
    pub(super) fn allows_private_network(&self) -> bool {
        self.allow.iter().any(|net| !net.addr().is_loopback())
    }
}
