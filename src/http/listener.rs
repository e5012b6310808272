//! The listener: how many connections there are at most, how long each may take, and how large a request's head may be.

use super::patience::{Activity, Answering, Patience, Patient};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::serve::Listener;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// The largest head of a request, in bytes; a larger one, or one of more than 100 headers, is answered 431.
const MAX_HEAD: usize = 64 * 1024;
/// How many requests may be under way at once on one connection over HTTP/2.
const MAX_STREAMS: u32 = 100;
/// How often a peer that says nothing over HTTP/2 is asked whether it is still there, and how long it may take to say so.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// What connections are held to.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many there are at most. Those beyond wait to be accepted.
    pub connections: usize,
    /// How long a request's head may take to arrive.
    pub head: Duration,
    /// How long a connection may rest between two requests.
    pub idle: Duration,
    /// How long a peer may take nothing of an answer.
    pub write: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 10_000,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
        }
    }
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

/// Serves until `stop`; then takes no new connections, and ends when those that there are have been answered.
pub async fn serve(mut listener: TcpListener, app: Router, bounds: Bounds, stop: CancellationToken) {
    let (free, connections) = (Arc::new(Semaphore::new(bounds.connections)), TaskTracker::new());
    let builder = Arc::new(builder());
    let mut full = false;
    loop {
        if (free.available_permits() == 0) != full {
            full = !full;
            if full {
                tracing::warn!(most = bounds.connections, "as many connections as there may be; others wait");
            }
        }
        // A place is taken before the connection is: where there is none, it waits in the system's queue.
        let accepted = async { (Arc::clone(&free).acquire_owned().await, Listener::accept(&mut listener).await) };
        let (place, (stream, peer)) = tokio::select! {
            accepted = accepted => accepted,
            () = stop.cancelled() => break,
        };
        let connection = serve_one(stream, peer, app.clone(), Arc::clone(&builder), bounds, stop.clone());
        connections.spawn(async move {
            connection.await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // Times are the connection's own, see `Patient`.
    builder.http1().header_read_timeout(None).max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
    builder
}

async fn serve_one(
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    builder: Arc<Builder<TokioExecutor>>,
    bounds: Bounds,
    stop: CancellationToken,
) {
    // Answers are small, and a peer that waits for the rest of one should not wait for a timer.
    drop(stream.set_nodelay(true));
    let activity = Arc::new(Activity::default());
    let patience = Patience { head: bounds.head, idle: bounds.idle, write: bounds.write };
    let io = TokioIo::new(Patient::new(stream, patience, Arc::clone(&activity)));
    let service = tower::service_fn(move |request: Request<Incoming>| {
        let answering = activity.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        let answer = app.clone().oneshot(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await?.map(|body| Watched { body, _answering: answering })) }
    });
    let mut connection = pin!(builder.serve_connection(io, TowerToHyperService::new(service)));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(why) = ended {
        tracing::debug!(%why, "a connection ended early");
    }
}

/// A body that says when it is over.
struct Watched {
    body: Body,
    _answering: Answering,
}

impl HttpBody for Watched {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
