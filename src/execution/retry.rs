//! Sending again. A request is repeated if it certainly did not arrive, or if the tool says that a second time does no harm:
//! then also where the handler has too much to do, where something in front of it fails, and where its answer was lost.
//! Always within the call's time, never more often than the handler's author lets us, and for a fifth of a handler's requests.

use super::job::Job;
use super::limiting::{Limiter, Pass, Verdict, jitter};
use super::run::allowance;
use crate::domain::Failure;
use crate::egress::{EgressError, Inbound};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The longest wait between two attempts that nobody asked for.
const LONGEST_BACKOFF: Duration = Duration::from_secs(20);

/// What an attempt brought: an answer, none, or that it could not even be written.
pub(super) type Brought = Result<Result<Inbound, EgressError>, Failure>;

/// Makes attempts, numbered from 1, until one brings something to answer with. `pass` is the turn of the first; each of the
/// others waits for its own. Says what came of it, and how many there were.
pub(super) async fn attempts<F>(
    limiter: &Limiter,
    job: &Job<'_>,
    mut pass: Pass,
    attempt: impl Fn(u32) -> F,
) -> (Brought, u32)
where
    F: Future<Output = Brought>,
{
    let most = job.entry.handler.max_attempts;
    let repeatable = job.entry.tool.options.annotations.may_repeat();
    let mut number = 1;
    let mut arrived = None;
    pass.gates().count();
    loop {
        let began = Instant::now();
        let brought = attempt(number).await;
        let gates = pass.ended(verdict(&brought, job, began));
        let asked = asked(&brought);
        let wait = match asked {
            // Everybody who was sent away is asked to come at the same time.
            Some(asked) => asked + jitter(limiter.settings().first_backoff),
            None => jitter(backoff(limiter.settings().first_backoff, number)),
        };
        let fits = Instant::now() + wait < job.deadline;
        if !(number < most && may_repeat(&brought, repeatable) && fits && gates.may_repeat()) {
            return (told(brought, arrived), number);
        }
        sleep(wait).await;
        match gates.enter(job.deadline).await {
            Ok(next) => pass = next,
            // It is known already how the call went.
            Err(_) => return (told(brought, arrived), number),
        }
        if may_have_arrived(&brought) {
            arrived = Some(brought);
        }
        limiter.metrics().repeated();
        number += 1;
    }
}

/// What the call is answered: an attempt that did not arrive does not undo one that may have.
fn told(last: Brought, arrived: Option<Brought>) -> Brought {
    arrived.filter(|_| !may_have_arrived(&last)).unwrap_or(last)
}

fn may_have_arrived(brought: &Brought) -> bool {
    match brought {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => error.may_have_arrived(),
        Err(_) => false,
    }
}

/// Whether another attempt may be made after this one.
fn may_repeat(brought: &Brought, repeatable: bool) -> bool {
    match brought {
        Ok(Ok(inbound)) => repeatable && matches!(inbound.status, 429 | 502..=504),
        Ok(Err(error)) => match error {
            EgressError::NotSent(_) => true,
            EgressError::Lost(_) | EgressError::CutOff { .. } => repeatable,
            // A policy does not change its mind, a time that is over is over, and an answer that cannot be read was one.
            EgressError::Blocked(_)
            | EgressError::TimedOut { .. }
            | EgressError::TooLarge { .. }
            | EgressError::Encoded { .. }
            | EgressError::Ambiguous { .. } => false,
        },
        Err(_) => false,
    }
}

/// How long a handler that has too much to do asks to wait.
fn asked(brought: &Brought) -> Option<Duration> {
    let Ok(Ok(inbound)) = brought else { return None };
    inbound.retry_after.filter(|_| matches!(inbound.status, 429 | 503))
}

/// The longest wait after an attempt.
fn backoff(first: Duration, number: u32) -> Duration {
    first.saturating_mul(1 << (number - 1).min(16)).min(LONGEST_BACKOFF)
}

/// What an attempt says about the handler.
fn verdict(brought: &Brought, job: &Job<'_>, began: Instant) -> Verdict {
    let status = match brought {
        Ok(Ok(inbound)) => Some(inbound.status),
        Ok(Err(EgressError::Blocked(_))) | Err(_) => return Verdict::Nothing,
        // Whoever gives a handler no time must not be able to have it called dead.
        Ok(Err(EgressError::TimedOut { .. })) => {
            let given = job.deadline.saturating_duration_since(began);
            let usual = allowance(job.entry, &job.tenant.limits);
            return if given * 2 < usual { Verdict::Nothing } else { Verdict::Fault };
        }
        Ok(Err(EgressError::CutOff { .. })) => None,
        Ok(Err(error)) => error.status(),
    };
    match status {
        None | Some(500..) => Verdict::Fault,
        Some(_) => Verdict::Up,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn inbound(status: u16) -> Inbound {
        Inbound { status, content_type: None, retry_after: Some(Duration::from_secs(7)), body: Bytes::new() }
    }

    fn cause<E: From<std::io::Error>>() -> E {
        std::io::Error::other("c").into()
    }

    #[test]
    fn what_is_repeated() {
        for (brought, always, if_repeatable) in [
            (Ok(Err(EgressError::NotSent(cause()))), true, true),
            (Ok(Err(EgressError::Blocked(cause()))), false, false),
            (Ok(Err(EgressError::TimedOut { sent: false })), false, false),
            (Ok(Err(EgressError::Lost(cause()))), false, true),
            (Ok(Err(EgressError::CutOff { status: 200, cause: cause() })), false, true),
            (Ok(Err(EgressError::TooLarge { status: 200, cap: 1 })), false, false),
            (Ok(Ok(inbound(200))), false, false),
            (Ok(Ok(inbound(400))), false, false),
            (Ok(Ok(inbound(429))), false, true),
            (Ok(Ok(inbound(500))), false, false),
            (Ok(Ok(inbound(502))), false, true),
            (Ok(Ok(inbound(503))), false, true),
            (Ok(Ok(inbound(504))), false, true),
            (Err(Failure::failed("handler_misconfigured", "m")), false, false),
        ] {
            let verdict = (may_repeat(&brought, false), may_repeat(&brought, true));
            assert_eq!(verdict, (always, if_repeatable), "{brought:?}");
        }
    }

    #[test]
    fn the_waits_double_and_end() {
        let first = Duration::from_millis(250);
        let waits: Vec<u128> = [1, 2, 3, 8, 10].map(|number| backoff(first, number).as_millis()).to_vec();
        assert_eq!(waits, [250, 500, 1_000, 20_000, 20_000]);
        assert_eq!(asked(&Ok(Ok(inbound(503)))), Some(Duration::from_secs(7)));
        assert_eq!(asked(&Ok(Ok(inbound(502)))), None);
    }

    #[test]
    fn a_repeat_that_did_not_arrive_does_not_undo_what_may_have() {
        let unsent = || Ok(Err(EgressError::NotSent(cause())));
        let lost = || Ok(Err(EgressError::Lost(cause())));
        let is_lost = |brought: Brought| matches!(brought, Ok(Err(EgressError::Lost(_))));
        assert!(is_lost(told(unsent(), Some(lost()))));
        assert!(!is_lost(told(unsent(), None)));
        assert!(!is_lost(told(Ok(Ok(inbound(200))), Some(lost()))));
    }
}
