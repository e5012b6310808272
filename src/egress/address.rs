//! Which addresses are public.
//!
//! The table names what is *not* public; for IPv6 it starts from the one block that is handed out to the public, `2000::/3`. It follows
//! IANA's two special-purpose registries, and adds the addresses that clouds serve their machines on from public space.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Says which closed range an address lies in, for the log; `None` for a public address.
pub(super) fn closed_range(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => closed_v4(ip),
        IpAddr::V6(ip) => closed_v6(ip),
    }
}

/// Like [`closed_range`], after the operator's allow list.
///
/// The list is compared with the address as it stands: an IPv4 address inside an IPv6 one is not what an IPv4 entry allows. The one
/// exception closes rather than opens: an entry for the NAT64 prefix (RFC 6052) reaches all of IPv4, so what it embeds is judged too.
pub(super) fn closed_for(ip: IpAddr, allow: &[IpNet]) -> Option<&'static str> {
    if !allow.iter().any(|net| net.contains(&ip)) {
        return closed_range(ip);
    }
    match ip {
        IpAddr::V6(v6) => nat64(v6).and_then(|v4| closed_for(IpAddr::V4(v4), allow)),
        IpAddr::V4(_) => None,
    }
}

fn nat64(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => Some(Ipv4Addr::new(a, b, c, d)),
        _ => None,
    }
}

fn closed_v4(ip: Ipv4Addr) -> Option<&'static str> {
    Some(match ip.octets() {
        [0, ..] => "0.0.0.0/8, this host",
        [10, ..] => "10.0.0.0/8, private",
        [100, 64..=127, ..] => "100.64.0.0/10, carrier-grade NAT",
        [127, ..] => "127.0.0.0/8, loopback",
        [168, 63, 129, 16] => "168.63.129.16, Azure's host service",
        [169, 254, ..] => "169.254.0.0/16, link-local and metadata",
        [172, 16..=31, ..] => "172.16.0.0/12, private",
        [192, 0, 0, _] => "192.0.0.0/24, protocol assignments",
        [192, 0, 2, _] => "192.0.2.0/24, documentation",
        [192, 88, 99, _] => "192.88.99.0/24, 6to4 relays",
        [192, 168, ..] => "192.168.0.0/16, private",
        [198, 18..=19, ..] => "198.18.0.0/15, benchmarks",
        [198, 51, 100, _] => "198.51.100.0/24, documentation",
        [203, 0, 113, _] => "203.0.113.0/24, documentation",
        [224..=239, ..] => "224.0.0.0/4, multicast",
        [240..=255, ..] => "240.0.0.0/4, reserved and broadcast",
        _ => return None,
    })
}

fn closed_v6(ip: Ipv6Addr) -> Option<&'static str> {
    if ip.to_ipv4_mapped().is_some() {
        // Also with a public address inside: nobody publishes such an answer, and parsers disagree about it.
        return Some("::ffff:0:0/96, IPv4 inside IPv6");
    }
    Some(match ip.segments() {
        [0x2001, 0..0x0200, ..] => "2001::/23, protocol assignments and Teredo",
        [0x2001, 0x0db8, ..] => "2001:db8::/32, documentation",
        [0x2002, ..] => "2002::/16, 6to4",
        [0x3fff, 0..0x1000, ..] => "3fff::/20, documentation",
        [0x2000..=0x3fff, ..] => return None,
        _ => "outside 2000::/3, the public block",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &[&str] = &[
        "8.8.8.8",
        "1.1.1.1",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "168.63.129.15",
        "192.0.1.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "2001:200::1",
        "2001:4860:4860::8888",
        "3fff:1000::1",
    ];

    const CLOSED: &[&str] = &[
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "192.0.0.192",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "127.255.255.255",
        "168.63.129.16",
        "::1",
        "::",
        "::ffff:10.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001::1",
        "2001:0:1::1",
        "2001:1ff::1",
        "fd00:ec2::254",
        "fc00::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "3fff::1",
        "3fff:fff::1",
        "5f00::1",
        "100::1",
        "4000::1",
        "1fff::1",
    ];

    /// The same knowledge a second time, as the registries print it, to hold the match arms against.
    const NETS: &[&str] = &[
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/3",
        "4000::/2",
        "8000::/1",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    ];

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn nets() -> Vec<IpNet> {
        NETS.iter().map(|n| n.parse().unwrap()).collect()
    }

    #[test]
    fn the_table() {
        for text in PUBLIC {
            assert_eq!(closed_range(ip(text)), None, "{text}");
        }
        for text in CLOSED {
            assert!(closed_range(ip(text)).is_some(), "{text}");
        }
    }

    #[test]
    fn edges_of_every_range_and_many_others_agree_with_the_registries() {
        let nets = nets();
        let agree = |ip: IpAddr| {
            assert_eq!(closed_range(ip).is_some(), nets.iter().any(|n| n.contains(&ip)), "{ip}");
        };
        for net in &nets {
            match net {
                IpNet::V4(n) => {
                    let (first, last) = (u32::from(n.network()), u32::from(n.broadcast()));
                    for n in [first.wrapping_sub(1), first, first + (last - first) / 2, last, last.wrapping_add(1)] {
                        agree(Ipv4Addr::from(n).into());
                    }
                }
                IpNet::V6(n) => {
                    let (first, last) = (u128::from(n.network()), u128::from(n.broadcast()));
                    for n in [first.wrapping_sub(1), first, first + (last - first) / 2, last, last.wrapping_add(1)] {
                        agree(Ipv6Addr::from(n).into());
                    }
                }
            }
        }
        // Every /16 of IPv4, and an even walk over IPv6 with its interesting first 32 bits.
        for high in 0..=0xffff_u32 {
            agree(Ipv4Addr::from(high << 16 | (high.wrapping_mul(40_503) & 0xffff)).into());
            agree(
                Ipv6Addr::from(u128::from(high) << 112 | u128::from(high.wrapping_mul(40_503) & 0x3fff) << 96).into(),
            );
            agree(Ipv6Addr::from(0x2001_u128 << 112 | u128::from(high) << 96 | 1).into());
            agree(Ipv6Addr::from(0x3fff_u128 << 112 | u128::from(high) << 96 | 1).into());
        }
    }

    #[test]
    fn the_allow_list_opens_exactly_what_it_names() {
        let allow: Vec<IpNet> = vec!["127.0.0.0/8".parse().unwrap(), "10.1.0.0/16".parse().unwrap()];
        for (text, open) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("10.2.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("169.254.169.254", false),
            ("8.8.8.8", true),
        ] {
            assert_eq!(closed_for(ip(text), &allow).is_none(), open, "{text}");
        }
    }

    #[test]
    fn nat64_opens_public_ipv4_alone() {
        let allow: Vec<IpNet> = vec!["64:ff9b::/96".parse().unwrap()];
        assert_eq!(closed_for(ip("64:ff9b::8.8.8.8"), &allow), None);
        assert!(closed_for(ip("64:ff9b::127.0.0.1"), &allow).is_some());
        assert!(closed_for(ip("64:ff9b::169.254.169.254"), &allow).is_some());
    }
}
