//! How long a peer is waited for: for its first byte, for the rest of a head, for its next request, and for it to read on.
//!
//! It looks at the bytes that pass, because only from them can be seen that a peer begins a head and does not end it: HTTP
//! libraries count one time for that and for a connection that rests between requests, which should be much longer.

use futures_util::task::AtomicWaker;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// What every connection over HTTP/2 begins with.
const HTTP2: &[u8] = b"PRI";

/// How long a peer is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// From the start of a connection to the end of its first head, and from the first byte of a head to its last.
    pub(super) head: Duration,
    /// From the end of an answer to the next request.
    pub(super) idle: Duration,
    /// Until it takes more of an answer.
    pub(super) write: Duration,
}

/// The requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    running: AtomicUsize,
    begun: AtomicUsize,
    /// Who reads the connection: it looks again by itself only when bytes come, which may be never.
    reader: AtomicWaker,
}

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(super) struct Answering(Arc<Activity>);

impl Activity {
    /// Notes that the head of a request is there.
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::Relaxed);
        Answering(Arc::clone(self))
    }

    /// Whether a request is being answered. The reader is woken when the last one is over.
    fn is_answering(&self, cx: &Context<'_>) -> bool {
        self.reader.register(cx.waker());
        self.running.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.reader.wake(); // the waiting for the next request begins
        }
    }
}

/// What the peer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// Nothing: a request is being answered, or nobody has looked yet.
    Nothing,
    /// A request.
    Request,
    /// The rest of a head that has begun.
    Head,
}

/// A connection whose peer is not waited for longer than that: reads and writes fail then, and the connection ends.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    patience: Patience,
    activity: Arc<Activity>,
    awaited: Awaited,
    /// How many requests had begun when the waiting did.
    begun: usize,
    until: Option<Pin<Box<Sleep>>>,
    /// Whether it speaks HTTP/2, once that can be seen.
    http2: Option<bool>,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) const fn new(stream: S, patience: Patience, activity: Arc<Activity>) -> Self {
        Self {
            stream,
            patience,
            activity,
            awaited: Awaited::Nothing,
            begun: 0,
            until: None,
            http2: None,
            stalled: None,
        }
    }

    /// Waits from now on.
    fn wait(&mut self, awaited: Awaited) {
        let first = self.begun == 0;
        let time = if awaited == Awaited::Head || first { self.patience.head } else { self.patience.idle };
        // The first head has one time, with the wait for its first byte.
        if awaited != Awaited::Head || !first || self.until.is_none() {
            let deadline = Instant::now() + time;
            match &mut self.until {
                Some(sleep) => sleep.as_mut().reset(deadline),
                None => self.until = Some(Box::pin(sleep_until(deadline))),
            }
        }
        self.awaited = awaited;
    }

    /// Takes note of what was read, and says whether the peer has had its time.
    fn has_waited(&mut self, read: Option<&[u8]>, cx: &mut Context<'_>) -> bool {
        if let Some(bytes) = read {
            self.http2.get_or_insert_with(|| bytes.starts_with(HTTP2));
        }
        if self.activity.is_answering(cx) {
            self.awaited = Awaited::Nothing;
            return false;
        }
        let begun = self.activity.begun.load(Ordering::Relaxed);
        if begun != self.begun {
            (self.begun, self.awaited) = (begun, Awaited::Nothing);
        }
        // Over HTTP/2 bytes come at rest too, so they begin nothing.
        match (self.awaited, read.is_some() && self.http2 != Some(true)) {
            (Awaited::Nothing | Awaited::Request, true) => self.wait(Awaited::Head),
            (Awaited::Nothing, false) => self.wait(Awaited::Request),
            _ => {}
        }
        read.is_none() && self.until.as_mut().is_some_and(|until| until.as_mut().poll(cx).is_ready())
    }

    /// Notes whether the peer takes what is written, and ends the waiting for one that does not.
    fn written(&mut self, done: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if done.is_ready() {
            self.stalled = None;
            // An answer that is still on its way is no rest.
            if self.awaited == Awaited::Request && self.http2 != Some(true) {
                self.awaited = Awaited::Nothing;
            }
            return done;
        }
        let deadline = Instant::now() + self.patience.write;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        stalled.as_mut().poll(cx).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let done = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let read = match &done {
            Poll::Pending => None,
            Poll::Ready(Ok(())) if buffer.filled().len() > before => Some(&buffer.filled()[before..]),
            Poll::Ready(_) => return done,
        };
        if self.has_waited(read, cx) { Poll::Ready(Err(ErrorKind::TimedOut.into())) } else { done }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(done, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.written(done, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
