//! The second and the third hook: every answer of the resolver whose answer is connected to, and the peer of every new connection.
//!
//! Checking a name beforehand and connecting by name afterwards asks twice, and the second answer may differ (DNS rebinding). So the check
//! sits in the look-up that the connector uses. The check of the peer is for what a later change would let slip: a proxy, a new
//! transport, another parser. It runs after TCP and TLS and before a byte of the request, so alone it would let an author probe which
//! inner ports accept.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;
use tower::{Layer, Service};

use super::policy::Policy;
use super::surroundings::Surroundings;

pub(super) type Cause = Box<dyn Error + Send + Sync>;

/// How many look-ups of the system's resolver run at once. One blocks a thread for as long as the name server likes, even after its
/// call gave up; the runtime has 512 such threads for everything, files too.
const LOOKUPS_AT_ONCE: usize = 128;

/// Turns a host name into addresses.
pub trait Lookup: Send + Sync + 'static {
    /// All addresses of a name. No answer at all may be an empty list or an error.
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's own resolver.
#[derive(Clone, Debug)]
pub struct SystemLookup {
    slots: Arc<Semaphore>,
}

impl Default for SystemLookup {
    fn default() -> Self {
        Self { slots: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)) }
    }
}

impl Lookup for SystemLookup {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let slots = Arc::clone(&self.slots);
        Box::pin(async move {
            let slot = slots.acquire_owned().await.map_err(io::Error::other)?;
            // The slot goes with the thread: a call that gives up does not free it.
            let lookup = tokio::task::spawn_blocking(move || {
                let _slot = slot;
                let found = (host.as_str(), 0).to_socket_addrs()?;
                Ok(found.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// An address that the policy closes, with the range it lies in. For the log only.
#[derive(Debug, thiserror::Error)]
#[error("blocked: {ip} is in {range}")]
pub(super) struct BlockedAddress {
    ip: IpAddr,
    range: &'static str,
}

/// The connector did not say whom it connected to. Not knowing is refusing.
#[derive(Debug, thiserror::Error)]
#[error("blocked: the connection does not name its peer")]
pub(super) struct BlockedUnknown;

/// The peer is this process itself.
#[derive(Debug, thiserror::Error)]
#[error("blocked: {0} is this service itself")]
pub(super) struct BlockedSelf(SocketAddr);

/// Whether an error has a refusal of ours somewhere in its chain.
pub(super) fn is_blocked(error: &(dyn Error + 'static)) -> bool {
    let mut chain = std::iter::successors(Some(error), |e| (*e).source());
    chain.any(|e| e.is::<BlockedAddress>() || e.is::<BlockedUnknown>() || e.is::<BlockedSelf>())
}

fn admit(policy: &Policy, ip: IpAddr) -> Result<(), BlockedAddress> {
    match policy.closed(ip) {
        None => Ok(()),
        Some(range) => Err(BlockedAddress { ip, range }),
    }
}

/// A resolver whose answers are all allowed, or refused as a whole: of a mixed set, the connector would try each in turn.
#[derive(Clone)]
pub(super) struct GuardedResolver {
    policy: Arc<Policy>,
    lookup: Arc<dyn Lookup>,
}

impl GuardedResolver {
    pub(super) fn new(policy: Arc<Policy>, lookup: Arc<dyn Lookup>) -> Self {
        Self { policy, lookup }
    }

    /// The addresses of a name; there is at least one, and each may be connected to.
    pub(super) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Cause> {
        let found = self.lookup.lookup(host.to_owned()).await?;
        if found.is_empty() {
            return Err("the name has no addresses".into());
        }
        for ip in &found {
            admit(&self.policy, *ip)?;
        }
        Ok(found)
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let found = this.addresses(name.as_str()).await?;
            // Port 0 stands for the URL's.
            let found = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

/// Wraps the connector so that it gives out only connections to allowed peers.
#[derive(Clone)]
pub(super) struct PeerGuard {
    policy: Arc<Policy>,
    surroundings: Arc<Surroundings>,
}

impl PeerGuard {
    pub(super) fn new(policy: Arc<Policy>, surroundings: Arc<Surroundings>) -> Self {
        Self { policy, surroundings }
    }

    fn admit(&self, peer: &HttpInfo) -> Result<(), Cause> {
        admit(&self.policy, peer.remote_addr().ip())?;
        if self.surroundings.is_own(peer.remote_addr(), Some(peer.local_addr().ip())) {
            return Err(BlockedSelf(peer.remote_addr()).into());
        }
        Ok(())
    }
}

impl<S> Layer<S> for PeerGuard {
    type Service = GuardedConnector<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GuardedConnector { inner, guard: self.clone() }
    }
}

/// A connector behind a [`PeerGuard`]. Its request type is the client's secret; the peer is all it needs.
#[derive(Clone)]
pub(super) struct GuardedConnector<S> {
    inner: S,
    guard: PeerGuard,
}

impl<S, R> Service<R> for GuardedConnector<S>
where
    S: Service<R, Error = Cause>,
    S::Response: Connection + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = Cause;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Cause>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connecting = self.inner.call(request);
        let guard = self.guard.clone();
        Box::pin(async move {
            let connection = connecting.await?;
            #[expect(clippy::default_trait_access, reason = "http::Extensions, which nothing we depend on re-exports")]
            let mut facts = Default::default();
            connection.connected().get_extras(&mut facts);
            let peer = facts.get::<HttpInfo>().ok_or(BlockedUnknown)?;
            guard.admit(peer)?;
            Ok(connection)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    /// With the other two hooks missing, as a later change might leave it.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the guard is what is tested")]
    async fn the_peer_guard_alone_lets_no_byte_of_a_request_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let receiver = std::thread::spawn(move || {
            let mut received = Vec::new();
            let (mut peer, _) = listener.accept().unwrap();
            peer.read_to_end(&mut received).unwrap();
            received
        });
        // Building needs a provider although nothing here is TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy();
        let client = client.connector_layer(PeerGuard::new(Arc::new(Policy::production()), Arc::default()));
        let error = client.build().unwrap().post(url).body("secret").send().await;
        let error = error.unwrap_err();
        assert!(is_blocked(&error), "{error:?}");
        assert!(error.is_connect(), "{error:?}");
        assert_eq!(receiver.join().unwrap(), b"");
    }
}
