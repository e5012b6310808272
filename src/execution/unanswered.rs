//! What becomes of a call that brought no usable answer. Pure. The model is told whether the tool may have run, since it
//! has to decide whether to call again; what led to it stays in the log.

use crate::domain::{CallStatus, Failure};
use crate::egress::EgressError;
use uuid::Uuid;

/// A call whose turn had not come when its reply's time was up.
pub(super) fn not_started() -> Failure {
    Failure {
        status: CallStatus::TimedOut,
        code: "not_started",
        message: "The call was not sent: the time for this reply was up before its turn came. The tool has not run; \
                  call it again if it is still needed."
            .to_owned(),
        diagnostic: None,
    }
}

/// A call that the service, which is stopping, did not begin.
pub(super) fn stopped() -> Failure {
    Failure::rejected(
        "not_sent",
        "The call was not sent: the service was stopped before its turn came. The tool has not run; call it again if it is still \
         needed.",
    )
}

/// A call that was claimed, and whose end nobody saw.
pub(super) fn lost_sight() -> Failure {
    Failure {
        status: CallStatus::Unknown,
        code: "outcome_unknown",
        message: "The service lost sight of the call while it ran. The tool may have done its work: check before calling it again."
            .to_owned(),
        diagnostic: None,
    }
}

/// The code of a call that somebody asked to cancel.
pub(super) const CANCELLED: &str = "cancelled";

/// A call that was cancelled before it was sent.
pub(super) fn cancelled_unsent() -> Failure {
    Failure::rejected(CANCELLED, "The call was cancelled before it was sent. The tool has not run.")
}

/// A call that was cancelled while its handler was at work.
pub(super) fn cancelled() -> Failure {
    Failure {
        status: CallStatus::Unknown,
        code: CANCELLED,
        message: "The call was cancelled after it had been sent. The tool may have done its work, or may still be doing it: check \
                  before calling it again."
            .to_owned(),
        diagnostic: None,
    }
}

/// An asynchronous handler's answer that it has taken the call: no failure, and turned into [`pending`] before anybody sees it.
pub(super) fn taken() -> Failure {
    Failure { status: CallStatus::Pending, code: "pending", message: String::new(), diagnostic: None }
}

/// What the model is told of a call whose result comes later.
pub(super) fn pending(id: Uuid) -> String {
    format!(
        "The tool has taken the call and is still working on it; this is not its result. The result will be reported later, to the \
         application, under the call id {id}. Do not call the tool again for the same thing, and do not guess the result."
    )
}

/// A pending call on which nobody reported in time.
pub(super) fn callback_expired() -> Failure {
    Failure {
        status: CallStatus::TimedOut,
        code: "callback_expired",
        message: "The tool took the call and never reported a result. It may have done its work: check before calling it again."
            .to_owned(),
        diagnostic: None,
    }
}

/// A call of an asynchronous handler that could not be noted before it was sent: its report would find nothing.
pub(super) fn not_noted() -> Failure {
    Failure::rejected(
        "not_sent",
        "The call was not sent: the service could not note it down first. The tool has not run; try again later.",
    )
}

/// A call whose handler was at work when its time was up.
pub(super) fn timed_out() -> Failure {
    Failure {
        status: CallStatus::TimedOut,
        code: "timed_out",
        message: "The tool did not answer in time. It was called and may have done its work, or may still be doing it: check \
                  before calling it again."
            .to_owned(),
        diagnostic: None,
    }
}

/// A handler that could not be called. One text for every reason, time-outs before sending too, so that nobody can map our
/// network by it.
pub(super) fn unreachable() -> Failure {
    Failure::failed(
        "handler_unreachable",
        "The tool's handler could not be reached, so the tool has not run. Try again later; if that does not help, go on without \
         it.",
    )
}

/// A call that one of our own faults ended.
pub(super) fn broken(may_have_run: bool) -> Failure {
    let ran = if may_have_run { "It may have run: check before calling it again." } else { "It has not run." };
    Failure::failed("internal_error", format!("The call was broken off by a fault of the service. {ran}"))
}

/// What a failed exchange means for the call.
pub(super) fn failure(error: &EgressError) -> Failure {
    let failure = match error {
        EgressError::Blocked(_) | EgressError::NotSent(_) | EgressError::TimedOut { sent: false } => unreachable(),
        EgressError::TimedOut { sent: true } => timed_out(),
        EgressError::Lost(_) => {
            lost("The connection to the tool's handler was lost after the call had been sent, before an answer came.")
        }
        EgressError::CutOff { status: 200..=299, .. } => {
            lost("The connection to the tool's handler was cut off in the middle of its answer.")
        }
        EgressError::CutOff { status, .. } => read_badly("answer_cut_off", *status, "was cut off"),
        EgressError::TooLarge { status, cap } => {
            let what = format!("is too large: more than {cap} bytes");
            read_badly("answer_too_large", *status, &what)
        }
        EgressError::Encoded { status, .. } => {
            read_badly("answer_undecodable", *status, "could not be decoded: it is compressed, which was not asked for")
        }
        EgressError::Ambiguous { status } => {
            read_badly("answer_undecodable", *status, "could not be decoded: it is not proper HTTP")
        }
    };
    failure.because(error.diagnostic())
}

fn lost(what: &str) -> Failure {
    Failure {
        status: CallStatus::Unknown,
        code: "answer_lost",
        message: format!("{what} The tool may have done its work: check before calling it again."),
        diagnostic: None,
    }
}

/// An answer whose status is known and whose body is not.
fn read_badly(code: &'static str, status: u16, what: &str) -> Failure {
    let ran = match status {
        200..=299 => "The tool ran, and its result cannot be told",
        _ => "The tool may not have done its work",
    };
    Failure::failed(
        code,
        format!("The answer of the tool's handler (status {status}) {what}. {ran}: check before calling it again."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_without_an_answer_is_told_honestly() {
        let cause = || Box::new(std::io::Error::other("10.0.0.7:443 refused"));
        for (error, status, code, parts) in [
            (
                EgressError::Blocked(cause()),
                CallStatus::Failed,
                "handler_unreachable",
                ["could not be reached", "has not run"],
            ),
            (
                EgressError::NotSent(cause()),
                CallStatus::Failed,
                "handler_unreachable",
                ["could not be reached", "has not run"],
            ),
            (
                EgressError::TimedOut { sent: false },
                CallStatus::Failed,
                "handler_unreachable",
                ["could not be reached", "has not run"],
            ),
            (EgressError::TimedOut { sent: true }, CallStatus::TimedOut, "timed_out", ["in time", "may have"]),
            (EgressError::Lost(cause()), CallStatus::Unknown, "answer_lost", ["connection", "may have"]),
            (
                EgressError::CutOff { status: 200, cause: cause() },
                CallStatus::Unknown,
                "answer_lost",
                ["cut off", "may have"],
            ),
            (
                EgressError::CutOff { status: 500, cause: cause() },
                CallStatus::Failed,
                "answer_cut_off",
                ["cut off", "500"],
            ),
            (
                EgressError::TooLarge { status: 200, cap: 9 },
                CallStatus::Failed,
                "answer_too_large",
                ["too large", "ran"],
            ),
            (
                EgressError::Encoded { status: 200, encoding: "br".to_owned() },
                CallStatus::Failed,
                "answer_undecodable",
                ["compressed", "ran"],
            ),
            (EgressError::Ambiguous { status: 200 }, CallStatus::Failed, "answer_undecodable", ["decoded", "ran"]),
        ] {
            let failure = failure(&error);
            assert_eq!((failure.status, failure.code), (status, code), "{error:?}");
            assert!(parts.iter().all(|part| failure.message.contains(part)), "{}", failure.message);
            assert!(!failure.message.contains("10.0.0.7") && failure.diagnostic.is_some(), "{}", failure.message);
        }
    }
}
