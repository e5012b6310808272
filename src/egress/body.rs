//! The two bodies: ours, which knows whether it was sent, and theirs, which is read under a cap.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Whether a request may have left this process.
///
/// The client's error classes cannot tell: a time-out in the TLS handshake looks like one after sending. But the client asks for
/// the body only when it writes the request, so a body that was never asked for was never sent. (Over HTTP/2 the head may have gone
/// ahead of it; a receiver cannot check a signature over a body that it does not have, so it has nothing to act on.)
#[derive(Clone, Debug)]
pub(super) struct SentMark(Arc<AtomicBool>);

impl SentMark {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A request body that sets its [`SentMark`] when it is asked for.
#[derive(Debug)]
pub(super) struct MarkedBody {
    bytes: Bytes,
    mark: SentMark,
}

impl MarkedBody {
    /// Nobody asks for an empty body, so its mark is set from the start: what we cannot know counts as sent.
    pub(super) fn new(bytes: Bytes) -> (Self, SentMark) {
        let mark = SentMark(Arc::new(AtomicBool::new(bytes.is_empty())));
        let body = Self { bytes, mark: mark.clone() };
        (body, mark)
    }
}

impl Body for MarkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.mark.0.store(true, Ordering::SeqCst);
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    // An exact hint makes the client write a content-length.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// Why a response body could not be had.
#[derive(Debug)]
pub(super) enum ReadFault {
    TooLarge,
    CutOff(reqwest::Error),
}

/// Reads a body of at most `cap` bytes, and stops reading at the first byte over it or before the first byte if the size is declared.
pub(super) async fn read_capped(response: &mut reqwest::Response, cap: usize) -> Result<Bytes, ReadFault> {
    let over = |size: u64| !usize::try_from(size).is_ok_and(|size| size <= cap);
    if response.content_length().is_some_and(over) {
        return Err(ReadFault::TooLarge);
    }
    // Grown by what arrives, not by what was declared: a declared megabyte costs a hostile receiver nothing.
    let mut read = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(ReadFault::CutOff)? {
        if chunk.len() > cap - read.len() {
            return Err(ReadFault::TooLarge);
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.into())
}
