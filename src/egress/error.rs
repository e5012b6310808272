//! How a request fails, with a face for the log and one for everybody else.

use std::error::Error;

use super::guard::Cause;

/// The HTTP client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client could not be set up; are root certificates (ca-certificates) installed?")]
pub struct SetupFailed(#[source] pub(super) Cause);

/// A request that brought no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The policy closes the target. Nothing was sent; at most a connection was opened and dropped.
    #[error("blocked by the egress policy")]
    Blocked(#[source] Cause),
    /// The request did not leave: unresolved, refused, no TLS, or it could not be written down as HTTP.
    #[error("not sent")]
    NotSent(#[source] Cause),
    /// The request may have arrived, and no answer came that could be understood.
    #[error("no answer after sending")]
    Lost(#[source] Cause),
    /// The deadline passed.
    #[error("timed out {}", if *sent { "after sending" } else { "before sending" })]
    TimedOut {
        /// Whether the request may have left by then.
        sent: bool,
    },
    /// The answer's body is larger than the request allowed for.
    #[error("answer {status} has a body of over {cap} bytes")]
    TooLarge {
        /// The answer's status.
        status: u16,
        /// The cap, in bytes.
        cap: usize,
    },
    /// The answer came compressed although only `identity` was accepted. Refused unread: a small body can become a huge one.
    #[error("answer {status} came with content-encoding {encoding:?}")]
    Encoded {
        /// The answer's status.
        status: u16,
        /// The encoding that it names.
        encoding: String,
    },
    /// The answer has both a content-length and a transfer-encoding (RFC 9112, 6.3: possibly an attack on what comes after).
    #[error("answer {status} has two lengths")]
    Ambiguous {
        /// The answer's status.
        status: u16,
    },
    /// The answer's body ended before its end.
    #[error("answer {status} was cut off")]
    CutOff {
        /// The answer's status.
        status: u16,
        /// What the connection reported.
        #[source]
        cause: Cause,
    },
}

impl EgressError {
    /// Whether the receiver may have acted on the request. `false` is certain; `true` is not.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Blocked(_) | Self::NotSent(_) => false,
            Self::TimedOut { sent } => *sent,
            Self::Lost(_)
            | Self::TooLarge { .. }
            | Self::Encoded { .. }
            | Self::Ambiguous { .. }
            | Self::CutOff { .. } => true,
        }
    }

    /// The answer's status, if its head arrived before the failure.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::TooLarge { status, .. }
            | Self::Encoded { status, .. }
            | Self::Ambiguous { status }
            | Self::CutOff { status, .. } => Some(*status),
            Self::Blocked(_) | Self::NotSent(_) | Self::Lost(_) | Self::TimedOut { .. } => None,
        }
    }

    /// Everything that is known, for the log alone: it names addresses.
    pub fn diagnostic(&self) -> String {
        let mut text = self.to_string();
        for cause in std::iter::successors(self.source(), |e| (*e).source()) {
            let cause = cause.to_string();
            // Some wrappers repeat what they wrap.
            if !text.ends_with(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        text
    }

    /// What others may see. One text for everything before an exchange, time-outs too (a filtered port, a name server that hangs), so that
    /// nobody can map a network by it.
    pub fn public(&self) -> &'static str {
        match self {
            Self::Blocked(_) | Self::NotSent(_) | Self::TimedOut { sent: false } => "the handler could not be reached",
            Self::Lost(_) => "the handler's answer was lost",
            Self::TimedOut { sent: true } => "the handler did not answer in time",
            Self::TooLarge { .. } => "the handler's answer is too large",
            Self::Encoded { .. } | Self::Ambiguous { .. } => "the handler's answer could not be decoded",
            Self::CutOff { .. } => "the handler's answer was cut off",
        }
    }
}
