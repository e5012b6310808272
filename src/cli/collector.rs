//! Carries traces to the operator's collector: the exporter knows what to say, [`egress`](crate::egress) how to send.

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::egress::{Collector, SetupFailed};
use crate::telemetry::traces::{Bytes, HttpClient, HttpError, Request, Response};

/// The exporter works on a thread without a runtime, so the sending is done on ours.
#[derive(Debug)]
pub(super) struct Courier {
    collector: Collector,
    runtime: Handle,
    tasks: TaskTracker,
}

impl Courier {
    pub(super) fn new(url: Url) -> Result<Self, SetupFailed> {
        Ok(Self { collector: Collector::new(url)?, runtime: Handle::current(), tasks: TaskTracker::new() })
    }
}

#[async_trait::async_trait]
impl HttpClient for Courier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let headers: Vec<(String, String)> = head.headers.iter().filter_map(header).collect();
        let collector = self.collector.clone();
        let sending = async move { collector.post(&headers, body).await };
        let (status, body) = self.tasks.spawn_on(sending, &self.runtime).await??;
        Ok(Response::builder().status(status).body(body)?)
    }
}
