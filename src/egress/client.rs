//! The one client, and one attempt with it.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    TRANSFER_ENCODING,
};
use reqwest::{Method, Response, redirect, retry};
use time::OffsetDateTime;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

use super::body::{MarkedBody, ReadFault, SentMark, read_capped};
use super::error::{EgressError, SetupFailed};
use super::guard::{Cause, GuardedResolver, Lookup, PeerGuard, SystemLookup, is_blocked};
use super::policy::Policy;
use super::retry_after;
use super::surroundings::Surroundings;
use super::target::{self, UrlRefused};

/// The longest that resolving, connecting and TLS may take together: Linux repeats a lost SYN after 1, 3 and 7 seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next request. Node and uvicorn close theirs after 5 s, and a POST that is written into a
/// closing connection is lost and may not be repeated: ours has to go first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How many such connections one host may have; more are closed after use.
const IDLE_PER_HOST: usize = 32;
/// How many headers an answer may have; the HTTP library's own default, kept here so that it stays.
const MAX_ANSWER_HEADERS: usize = 100;

/// Outbound HTTP under one [`Policy`]. Cheap to clone; the clones share their connections.
#[derive(Clone)]
pub struct Egress {
    policy: Arc<Policy>,
    surroundings: Arc<Surroundings>,
    resolver: GuardedResolver,
    client: reqwest::Client,
}

/// One request. Not printable: its headers and body are others' secrets.
pub struct Outbound {
    /// The method.
    pub method: Method,
    /// The target, checked again when it is sent.
    pub url: Url,
    /// Headers to send as they are, besides `host`, `content-length`, `accept`, `accept-encoding` and `user-agent`. An author's were checked
    /// when they were written.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// When to give up, wherever the exchange is by then.
    pub deadline: Instant,
    /// How many bytes of body the answer may have.
    pub max_body_bytes: usize,
}

/// One complete answer, of any status.
pub struct Inbound {
    /// The status code.
    pub status: u16,
    /// The `content-type`, as sent.
    pub content_type: Option<String>,
    /// How long the receiver asks to wait, from either form of `retry-after`; at most [`MAX_RETRY_AFTER`](super::MAX_RETRY_AFTER).
    pub retry_after: Option<Duration>,
    /// The body, complete.
    pub body: Bytes,
}

impl fmt::Debug for Inbound {
    /// Tells of the body its length alone: what handlers answer is not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbound")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .field("retry_after", &self.retry_after)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// Whether a request to a URL would be let out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it would.
    pub allowed: bool,
    /// Why not, for the author of the URL.
    pub reason: Option<String>,
}

impl Egress {
    /// A client that asks the system's resolver. Fails if the system has no root certificates.
    pub fn new(policy: Policy) -> Result<Self, SetupFailed> {
        Self::within(policy, Surroundings::default())
    }

    /// The same, of a process that listens, or that trusts more authorities than the system does.
    pub fn within(policy: Policy, surroundings: Surroundings) -> Result<Self, SetupFailed> {
        Self::build(policy, surroundings, SystemLookup::default())
    }

    /// A client with a resolver of the caller's. Its answers are guarded all the same.
    pub fn with_lookup(policy: Policy, lookup: impl Lookup) -> Result<Self, SetupFailed> {
        Self::build(policy, Surroundings::default(), lookup)
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where the guarded client is built")]
    fn build(policy: Policy, surroundings: Surroundings, lookup: impl Lookup) -> Result<Self, SetupFailed> {
        // The process may have its provider already. Which call won is the same to us.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (policy, surroundings) = (Arc::new(policy), Arc::new(surroundings));
        let resolver = GuardedResolver::new(Arc::clone(&policy), Arc::new(lookup));
        let client = reqwest::Client::builder()
            .dns_resolver(resolver.clone())
            .connector_layer(PeerGuard::new(Arc::clone(&policy), Arc::clone(&surroundings)))
            .tls_certs_merge(surroundings.roots.certificates())
            .https_only(!policy.plain_http)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .http1_max_headers(MAX_ANSWER_HEADERS)
            .user_agent(concat!("toolhook/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| SetupFailed(e.into()))?;
        Ok(Self { policy, surroundings, resolver, client })
    }

    /// Checks a handler's URL as its author writes it. Asks no resolver; a name is judged when it is connected to.
    pub fn check_url(&self, text: &str) -> Result<Url, UrlRefused> {
        let url = target::parse(text, &self.policy)?;
        let literal = match url.host() {
            Some(Host::Ipv4(ip)) => self.is_own(&url, ip.into()),
            Some(Host::Ipv6(ip)) => self.is_own(&url, ip.into()),
            _ => false,
        };
        if literal { Err(UrlRefused::Own) } else { Ok(url) }
    }

    /// Says whether a request to this URL would be let out now, resolving its name. Sends nothing.
    ///
    /// One reason stands for every way in which a name fails: which names resolve inside our network is nobody's business.
    pub async fn verdict(&self, url: &Url) -> Verdict {
        let refused = |reason: String| Verdict { allowed: false, reason: Some(reason) };
        if let Err(why) = target::check(url, &self.policy) {
            return refused(format!("the URL {why}"));
        }
        let addresses = match url.host() {
            Some(Host::Domain(name)) => match timeout(CONNECT_TIMEOUT, self.resolver.addresses(name)).await {
                Ok(Ok(found)) => found,
                _ => return refused("the URL's host does not resolve to public addresses".to_owned()),
            },
            Some(Host::Ipv4(ip)) => vec![ip.into()],
            Some(Host::Ipv6(ip)) => vec![ip.into()],
            None => Vec::new(),
        };
        if addresses.into_iter().any(|ip| self.is_own(url, ip)) {
            return refused(format!("the URL {}", UrlRefused::Own));
        }
        Verdict { allowed: true, reason: None }
    }

    fn is_own(&self, url: &Url, ip: IpAddr) -> bool {
        let port = url.port_or_known_default();
        port.is_some_and(|port| self.surroundings.is_own(SocketAddr::new(ip, port), None))
    }

    /// Sends one request, once, and reads its whole answer. A redirect is an answer like any other.
    pub async fn send(&self, outbound: Outbound) -> Result<Inbound, EgressError> {
        let (body, mark) = MarkedBody::new(outbound.body);
        // The first poll may already write to a pooled connection.
        if outbound.deadline <= Instant::now() {
            return Err(EgressError::TimedOut { sent: false });
        }
        target::check(&outbound.url, &self.policy).map_err(|e| EgressError::Blocked(e.into()))?;
        let headers = header_map(&outbound.headers).map_err(EgressError::NotSent)?;
        let request =
            self.client.request(outbound.method, outbound.url).headers(headers).body(reqwest::Body::wrap(body));
        let exchange = async {
            let answer = request.send().await;
            let answer = answer.map_err(|e| classify(e.without_url(), &mark))?;
            receive(answer, outbound.max_body_bytes).await
        };
        // Boxed, since the client's futures are large and calls hold many of them.
        match timeout_at(outbound.deadline, Box::pin(exchange)).await {
            Ok(result) => result,
            Err(_) => Err(EgressError::TimedOut { sent: mark.is_set() }),
        }
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, Cause> {
    let mut map = HeaderMap::with_capacity(headers.len() + 1);
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value)?;
        // Any may be a secret: kept out of debug output and of HTTP/2's compression tables.
        value.set_sensitive(true);
        map.append(HeaderName::from_bytes(name.as_bytes())?, value);
    }
    map.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Ok(map)
}

fn classify(error: reqwest::Error, mark: &SentMark) -> EgressError {
    if is_blocked(&error) {
        EgressError::Blocked(error.into())
    } else if error.is_connect() || error.is_builder() || !mark.is_set() {
        EgressError::NotSent(error.into())
    } else {
        EgressError::Lost(error.into())
    }
}

/// Reads an answer, or says why it is not read. Dropping it unread closes its connection.
async fn receive(mut answer: Response, cap: usize) -> Result<Inbound, EgressError> {
    let status = answer.status().as_u16();
    let headers = answer.headers();
    if headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING) {
        return Err(EgressError::Ambiguous { status });
    }
    if let Some(encoding) = foreign_encoding(headers) {
        return Err(EgressError::Encoded { status, encoding });
    }
    let text = |name| headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok());
    let content_type = text(CONTENT_TYPE).map(str::to_owned);
    let retry_after = text(RETRY_AFTER).and_then(|v| retry_after::parse(v, OffsetDateTime::now_utc()));
    let body = read_capped(&mut answer, cap).await.map_err(|fault| match fault {
        ReadFault::TooLarge => EgressError::TooLarge { status, cap },
        ReadFault::CutOff(error) => EgressError::CutOff { status, cause: error.without_url().into() },
    })?;
    Ok(Inbound { status, content_type, retry_after, body })
}

fn foreign_encoding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let mut values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let plain = |value: &str| value.is_empty() || value.eq_ignore_ascii_case("identity");
    let foreign = values.find(|value| !value.split(',').all(|part| plain(part.trim())));
    foreign.map(Cow::into_owned)
}
