//! What a model is told of a call that was not sent because of a limit: that nothing has run, and when to try again.

use crate::domain::Failure;
use std::time::Duration;

/// When to come back where only others can tell: who is in front, and how long they take.
pub(super) const SOON: Duration = Duration::from_secs(2);

/// Whole seconds, at least one.
pub(super) fn seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

fn refused(code: &'static str, why: &str, wait: Duration) -> Failure {
    let again = match seconds(wait) {
        1 => "in a second".to_owned(),
        seconds => format!("in {seconds} seconds"),
    };
    Failure::rejected(
        code,
        format!(
            "The call was not sent: {why}. The tool has not run; call it again {again} if it is still needed, or go on \
             without it."
        ),
    )
}

/// The tenant makes calls faster than it may.
pub(super) fn rate_limited(wait: Duration) -> Failure {
    refused("rate_limited", "too many calls were made within a short time", wait)
}

/// The tenant has as many calls running as it may have, and the wait was too long.
pub(super) fn too_many_calls() -> Failure {
    refused("too_many_calls", "too many calls are running at the moment", SOON)
}

/// The handler has as many calls as it may have.
pub(super) fn handler_busy() -> Failure {
    refused("handler_busy", "the tool's handler is busy with other calls", SOON)
}

/// The handler failed too often to be called now.
pub(super) fn handler_unavailable(wait: Duration) -> Failure {
    refused("handler_unavailable", "the tool's handler has failed repeatedly and is left alone for a while", wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::CallStatus;

    #[test]
    fn each_refusal_says_that_nothing_ran_and_when_to_try_again() {
        for (failure, code, when) in [
            (rate_limited(Duration::from_millis(300)), "rate_limited", "again in a second"),
            (too_many_calls(), "too_many_calls", "again in 2 seconds"),
            (handler_busy(), "handler_busy", "again in 2 seconds"),
            (handler_unavailable(Duration::from_millis(29_100)), "handler_unavailable", "again in 30 seconds"),
        ] {
            assert_eq!((failure.status, failure.code), (CallStatus::Rejected, code));
            assert!(failure.message.contains("has not run") && failure.message.contains(when), "{}", failure.message);
        }
    }
}
