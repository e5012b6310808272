//! The circuit breaker: a handler that fails again and again is left alone, then tried with one call, then trusted again.
//! Pure but for the time that it is told.

use std::time::Duration;
use tokio::time::Instant;

/// How many parts a window of time has: as they get old they are forgotten one by one.
const PARTS: usize = 10;

/// When a handler is left alone, and for how long. A fault is a request that did not reach it, got no answer, or a 5xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaking {
    /// So many faults in a row are too many.
    pub in_a_row: u32,
    /// Half of the requests within this time are too many as well,
    pub within: Duration,
    /// if there are so many of them.
    pub at_least: u32,
    /// For how long it is left alone at first; twice as long after each call that shows that it is not back.
    pub pause: Duration,
    /// For how long at most.
    pub longest_pause: Duration,
}

impl Default for Breaking {
    fn default() -> Self {
        Self {
            in_a_row: 5,
            within: Duration::from_secs(30),
            at_least: 20,
            pause: Duration::from_secs(30),
            longest_pause: Duration::from_mins(5),
        }
    }
}

/// What a request says about its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execution) enum Verdict {
    /// It is up: it answered, if only that it does not like the request.
    Up,
    /// It is not.
    Fault,
    /// Nothing: what went wrong was not its doing.
    Nothing,
}

/// One handler's breaker.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: Breaking,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed {
        in_a_row: u32,
        window: Box<Window>,
    },
    Open {
        until: Instant,
        pause: Duration,
        /// Whether a call is out that tries it.
        probing: bool,
    },
}

/// A request that was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// As any other.
    Freely,
    /// To see whether the handler is back.
    AsProbe,
}

impl Breaker {
    pub(super) fn new(settings: Breaking, now: Instant) -> Self {
        Self { settings, state: State::closed(&settings, now) }
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// How long requests are refused for from now on; nothing if one would be let through.
    pub(super) fn refuses(&self, now: Instant) -> Option<Duration> {
        match &self.state {
            State::Open { until, .. } if now < *until => Some(*until - now),
            State::Open { probing: true, .. } => Some(Duration::from_secs(1)),
            State::Open { .. } | State::Closed { .. } => None,
        }
    }

    /// Lets a request through, or says when to come back. Each that is let through has to be told the end of.
    pub(super) fn pass(&mut self, now: Instant) -> Result<Passed, Duration> {
        if let Some(wait) = self.refuses(now) {
            return Err(wait);
        }
        match &mut self.state {
            State::Closed { .. } => Ok(Passed::Freely),
            State::Open { probing, .. } => {
                *probing = true;
                Ok(Passed::AsProbe)
            }
        }
    }

    /// Hears how a request ended.
    pub(super) fn ended(&mut self, passed: Passed, verdict: Verdict, now: Instant) {
        let settings = &self.settings;
        match (&mut self.state, passed, verdict) {
            (State::Closed { in_a_row, window }, _, Verdict::Up) => {
                *in_a_row = 0;
                window.add(false, now);
            }
            (State::Closed { in_a_row, window }, _, Verdict::Fault) => {
                *in_a_row += 1;
                let (all, bad) = window.add(true, now);
                if *in_a_row >= settings.in_a_row || (all >= settings.at_least && bad * 2 >= all) {
                    let pause = settings.pause;
                    self.state = State::Open { until: now + pause, pause, probing: false };
                }
            }
            (State::Open { .. }, Passed::AsProbe, Verdict::Up) => self.state = State::closed(settings, now),
            (State::Open { until, pause, probing }, Passed::AsProbe, Verdict::Fault) => {
                *pause = (*pause * 2).min(settings.longest_pause);
                *until = now + *pause;
                *probing = false;
            }
            (State::Open { probing, .. }, Passed::AsProbe, Verdict::Nothing) => *probing = false,
            // What was sent before it opened is no news.
            (State::Open { .. }, Passed::Freely, _) | (State::Closed { .. }, _, Verdict::Nothing) => {}
        }
    }
}

impl State {
    fn closed(settings: &Breaking, now: Instant) -> Self {
        let part = (settings.within / u32::try_from(PARTS).unwrap_or(1)).max(Duration::from_millis(1));
        let window = Window { began: now, part, parts: [Part::default(); PARTS] };
        Self::Closed { in_a_row: 0, window: Box::new(window) }
    }
}

/// Requests and faults of the last time.
#[derive(Debug)]
struct Window {
    began: Instant,
    part: Duration,
    parts: [Part; PARTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Which part of all time this is.
    number: u128,
    all: u32,
    bad: u32,
}

impl Window {
    /// Counts a request, and says how many there are with it, and how many of them bad.
    fn add(&mut self, bad: bool, now: Instant) -> (u32, u32) {
        let number = now.saturating_duration_since(self.began).as_nanos() / self.part.as_nanos();
        let place = usize::try_from(number % PARTS as u128).unwrap_or_default();
        if let Some(part) = self.parts.get_mut(place) {
            if part.number != number {
                *part = Part { number, all: 0, bad: 0 };
            }
            part.all = part.all.saturating_add(1);
            part.bad = part.bad.saturating_add(bad.into());
        }
        let recent = self.parts.iter().filter(|part| part.number + (PARTS as u128) > number);
        recent.fold((0, 0), |(all, bad), part| (all.saturating_add(part.all), bad.saturating_add(part.bad)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Fault, Nothing, Up};

    struct Handler {
        breaker: Breaker,
        now: Instant,
    }

    impl Handler {
        fn new() -> Self {
            let now = Instant::now();
            Self { breaker: Breaker::new(Breaking::default(), now), now }
        }

        fn calls(&mut self, verdicts: impl IntoIterator<Item = Verdict>) -> &mut Self {
            for verdict in verdicts {
                let passed = self.breaker.pass(self.now).unwrap();
                self.breaker.ended(passed, verdict, self.now);
            }
            self
        }

        fn later(&mut self, seconds: u64) -> &mut Self {
            self.now += Duration::from_secs(seconds);
            self
        }

        fn refuses(&self) -> Option<u64> {
            self.breaker.refuses(self.now).map(|wait| wait.as_secs())
        }
    }

    #[test]
    fn five_faults_in_a_row_open_it_and_nothing_less() {
        let mut handler = Handler::new();
        handler.calls([Fault, Fault, Fault, Fault, Up, Fault, Fault, Fault, Fault, Nothing]);
        assert_eq!(handler.refuses(), None);
        handler.calls([Fault]);
        assert_eq!(handler.refuses(), Some(30));
        assert!(handler.breaker.pass(handler.now).is_err());
    }

    #[test]
    fn half_of_twenty_within_the_window_open_it() {
        let mut handler = Handler::new();
        for _ in 0..9 {
            handler.calls([Up, Fault]);
        }
        assert_eq!(handler.refuses(), None, "18 are too few");
        handler.calls([Up]).later(31).calls([Fault]);
        assert_eq!(handler.refuses(), None, "what is old does not count");
        for _ in 0..9 {
            handler.calls([Up, Fault]).later(1);
        }
        assert_eq!(handler.refuses(), None);
        handler.calls([Up]);
        assert_eq!(handler.refuses(), None, "an answer opens nothing");
        handler.calls([Fault]);
        assert_eq!(handler.refuses(), Some(30));
    }

    #[test]
    fn one_probe_goes_through_and_decides() {
        let mut handler = Handler::new();
        handler.calls([Fault; 5]).later(30);
        for pause in [60, 120, 240, 300, 300] {
            assert_eq!(handler.refuses(), None);
            assert_eq!(handler.breaker.pass(handler.now), Ok(Passed::AsProbe));
            assert!(handler.breaker.pass(handler.now).is_err(), "one at a time");
            handler.breaker.ended(Passed::AsProbe, Fault, handler.now);
            assert_eq!(handler.refuses(), Some(pause));
            handler.breaker.ended(Passed::Freely, Up, handler.now);
            assert_eq!(handler.refuses(), Some(pause), "an answer to an old request");
            handler.later(pause);
        }
        handler.calls([Nothing, Up, Fault, Fault, Fault, Fault]);
        assert!(!handler.breaker.is_open(), "closed, with a clean record");
        handler.calls([Fault]);
        assert_eq!(handler.refuses(), Some(30), "and the pauses are short again");
    }
}
