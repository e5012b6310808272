//! The way to the operator's own collector of traces.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect;
use url::Url;

use super::body::{ReadFault, read_capped};
use super::error::SetupFailed;
use super::guard::Cause;

/// How long one delivery may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How large an answer may be: it says at most how many spans were refused, and why.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// A client for one address that the operator configured. No guard: a collector is usually in the private network, and no
/// tenant has a say in where it is.
#[derive(Clone)]
pub struct Collector {
    url: Url,
    client: reqwest::Client,
}

impl Collector {
    /// A client for this URL and no other.
    #[expect(
        clippy::disallowed_methods,
        reason = "the operator's address, fixed at the start; it is not reached through the guard"
    )]
    pub fn new(url: Url) -> Result<Self, SetupFailed> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none()).timeout(TIMEOUT).build();
        Ok(Self { url, client: client.map_err(|e| SetupFailed(e.into()))? })
    }

    /// Where it is.
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// Posts bytes, and answers status and body.
    pub async fn post(&self, headers: &[(String, String)], body: Bytes) -> Result<(u16, Bytes), Cause> {
        let mut map = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let mut value = HeaderValue::from_str(value)?;
            value.set_sensitive(true); // an authorization, as a rule
            map.append(HeaderName::from_bytes(name.as_bytes())?, value);
        }
        let mut answer = self.client.post(self.url.clone()).headers(map).body(body).send().await?;
        let status = answer.status().as_u16();
        let body = read_capped(&mut answer, MAX_ANSWER_BYTES).await.map_err(|fault| match fault {
            ReadFault::TooLarge => Cause::from("the collector's answer is too large"),
            ReadFault::CutOff(error) => error.into(),
        })?;
        Ok((status, body))
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Collector").field(&self.url.host_str()).finish()
    }
}
