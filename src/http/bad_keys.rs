//! How many bad keys an address has sent of late.

use moka::future::Cache;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// After how long an address begins anew.
const WINDOW: Duration = Duration::from_mins(1);
/// How many addresses are remembered.
const MOST: u64 = 100_000;

/// Bad keys by the address that they came from, in a bounded memory. Cheap to clone; the clones share it.
#[derive(Clone)]
pub(super) struct BadKeys {
    /// How many an address may send in a minute; none for any number.
    most: Option<u32>,
    counts: Cache<IpAddr, Arc<AtomicU32>>,
}

impl BadKeys {
    pub(super) fn new(per_minute: u32) -> Self {
        let counts = Cache::builder().max_capacity(MOST).time_to_live(WINDOW).build();
        Self { most: (per_minute > 0).then_some(per_minute), counts }
    }

    /// Whether an address has sent as many as it may.
    pub(super) async fn are_too_many(&self, from: Option<IpAddr>) -> bool {
        let (Some(most), Some(from)) = (self.most, from) else { return false };
        self.counts.get(&network(from)).await.is_some_and(|count| count.load(Ordering::Relaxed) >= most)
    }

    /// Counts one more.
    pub(super) async fn count(&self, from: Option<IpAddr>) {
        let (Some(_), Some(from)) = (self.most, from) else { return };
        let count = self.counts.get_with(network(from), async { Arc::default() }).await;
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// What one holder of addresses has: of IPv6, 64 bits of them at least.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (!0 << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_holder_are_one() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("192.0.2.7"), of("::ffff:192.0.2.7"));
        assert_ne!(of("192.0.2.7"), of("192.0.2.8"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    }
}
