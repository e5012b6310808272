//! How much work holding values against schemas may take.
//!
//! A schema of a few lines can make a check as long as one likes: each level of a value may double the work, and a text
//! may be long for its pattern. So every look at a value costs steps, and when they are used up the check unwinds to
//! where its [`Budget`] was given. (It unwinds by `resume_unwind`, which is no panic: nothing is printed and no hook
//! runs.) Steps are counted, not timed, so the same value gets the same verdict on a busy machine. The depth of the
//! stack is bounded along with them, since a check recurses as deep as value and schema together say.

use serde_json::Value;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest text, in bytes, that is held against a pattern, and the longest name where names are.
pub const MAX_MATCHED: usize = 8 * 1024;
/// How much stack a check may take: half of what threads have, since it may start with some of it in use.
const MAX_STACK: usize = 1024 * 1024;
/// Steps to collect all that is wrong with a value, out of those of the check.
const ERRORS: u64 = 200_000;
/// Steps for one error, without what it repeats of value and schema.
const ERROR: u64 = 20;

/// Work that may be done in one go.
#[derive(Clone, Debug)]
pub struct Budget {
    steps: u64,
    /// Whether a step is priced by the most that the schema can make of it, instead of what it usually does.
    careful: bool,
    stop: Option<Arc<AtomicBool>>,
}

impl Budget {
    /// What may be done where others wait: some milliseconds, whatever the schema is like.
    pub const fn small() -> Self {
        Self { steps: 20_000, careful: true, stop: None }
    }

    /// What may be done at all: about a tenth of a second, unless the schema is made to be slow.
    pub const fn full() -> Self {
        Self { steps: 1_000_000, careful: false, stop: None }
    }

    /// What may be done to find out what the log must not have, where others wait: steps there are short.
    pub(super) const fn for_masking() -> Self {
        Self { steps: 200_000, careful: false, stop: None }
    }

    /// The same, until somebody sets `stop`.
    #[must_use]
    pub fn until(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), ..self }
    }
}

/// The budget was used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// Why a check unwinds.
pub(super) enum Stop {
    Exhausted,
    /// The value at this address is too long for a pattern.
    Long(usize),
}

/// What one schema makes of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// How many of its places may be passed without looking at the value.
    pub(super) weight: u64,
    /// Whether texts and names are held against patterns.
    pub(super) patterns: bool,
    /// Whether a pattern is large.
    pub(super) large_patterns: bool,
    /// The most bytes of the schema that one error repeats.
    pub(super) repeated: u64,
}

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    static FLOOR: Cell<usize> = const { Cell::new(0) };
    static CAREFUL: Cell<bool> = const { Cell::new(false) };
    static STEP: Cell<u64> = const { Cell::new(1) };
    /// Sixteenths of a step for each byte of a text that is read.
    static BYTE: Cell<u64> = const { Cell::new(1) };
    static REPEATED: Cell<u64> = const { Cell::new(0) };
    static MATCHES: Cell<bool> = const { Cell::new(false) };
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// What was in force when a budget was given, put back when it ends in whatever way.
struct Outer {
    left: u64,
    floor: usize,
    careful: bool,
    stop: Option<Arc<AtomicBool>>,
    steps: u64,
}

impl Outer {
    fn begin(budget: Budget) -> Self {
        let (left, floor, careful) = (LEFT.get(), FLOOR.get(), CAREFUL.get());
        let steps = if floor == 0 { budget.steps } else { budget.steps.min(left) };
        LEFT.set(steps);
        if floor == 0 {
            FLOOR.set(stack().saturating_sub(MAX_STACK).max(1));
        }
        CAREFUL.set(budget.careful || careful);
        let stop = STOP.with_borrow_mut(|stop| {
            let outer = stop.clone();
            *stop = budget.stop.or_else(|| outer.clone());
            outer
        });
        Self { left, floor, careful, stop, steps }
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        LEFT.set(self.left.saturating_sub(self.steps - LEFT.get()));
        FLOOR.set(self.floor);
        CAREFUL.set(self.careful);
        STOP.set(self.stop.take());
    }
}

/// Does `work`, and all checks in it together within `budget`. Inside another budget, no more than that has left.
pub fn within<T>(budget: Budget, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let _outer = Outer::begin(budget);
    catch(work).map_err(|_| Exhausted)
}

/// Does `work` that may be left undone when the budget is used up; not so if there is a larger one to try.
pub fn attempt<T>(work: impl FnOnce() -> T) -> Option<T> {
    if CAREFUL.get() {
        return Some(work());
    }
    within(Budget::full(), work).ok()
}

/// Whether a budget was given.
pub(super) fn is_given() -> bool {
    FLOOR.get() != 0
}

/// Collects errors within the budget that is meant for it.
pub(super) fn collecting<T>(work: impl FnOnce() -> T) -> Result<T, Stop> {
    if CAREFUL.get() {
        return catch(work).map_err(|stop| match stop {
            Stop::Exhausted => exhaust(),
            stop @ Stop::Long(_) => stop,
        });
    }
    let long = Cell::new(None);
    let done = within(Budget { steps: ERRORS, careful: false, stop: None }, || {
        catch(work).map_err(|stop| match stop {
            Stop::Exhausted => exhaust(),
            Stop::Long(place) => long.set(Some(place)),
        })
    });
    match (done, long.get()) {
        (Ok(Ok(done)), _) => Ok(done),
        (_, Some(place)) => Err(Stop::Long(place)),
        _ => Err(Stop::Exhausted),
    }
}

/// Does `work` until it stops itself.
pub(super) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|cause: Box<dyn Any + Send>| match cause.downcast::<Stop>() {
        Ok(stop) => *stop,
        Err(panic) => resume_unwind(panic),
    })
}

/// Ends what [`within`] began.
pub(super) fn exhaust() -> ! {
    resume_unwind(Box::new(Stop::Exhausted))
}

/// Says which schema the next steps are about.
pub(super) fn price(prices: Prices) {
    let careful = CAREFUL.get();
    STEP.set(if careful { 1 + prices.weight / 64 } else { 1 });
    BYTE.set(match (prices.patterns, prices.large_patterns, careful) {
        (false, ..) => 1,
        (true, _, false) => 4,
        (true, false, true) => 32,
        (true, true, true) => 1_024,
    });
    REPEATED.set(prices.repeated);
    MATCHES.set(prices.patterns);
}

/// Takes `count` steps of the budget for work beside a check; without a budget, none.
pub fn work(count: u64) {
    if is_given() {
        pay(count);
    }
}

/// Takes `count` steps.
pub(super) fn step(count: u64) {
    pay(count.saturating_mul(STEP.get()));
}

fn pay(cost: u64) {
    match LEFT.get().checked_sub(cost) {
        Some(left) if stack() >= FLOOR.get() => LEFT.set(left),
        _ => exhaust(),
    }
    if STOP.with_borrow(|stop| stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))) {
        exhaust();
    }
}

/// Reads a text that may be held against a pattern; `place` finds it again.
pub(super) fn read(text: &str, place: usize) {
    if MATCHES.get() && text.len() > MAX_MATCHED {
        resume_unwind(Box::new(Stop::Long(place)));
    }
    step(1 + (text.len() as u64).saturating_mul(BYTE.get()) / 16 / STEP.get());
}

/// Makes an error, which may hold a copy of the value that it is about, and of a keyword of the schema.
pub(super) fn error(value: &Value) {
    let mut size = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        size += 1;
        match value {
            Value::String(text) => size += text.len() as u64 / 64,
            Value::Array(elements) => open.extend(elements),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    step(ERROR + (size / 4 + REPEATED.get() / 16) / STEP.get());
}

/// About where the stack ends at present.
#[inline]
fn stack() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inner_budget_is_part_of_the_outer_one() {
        let spent = within(Budget::full(), || {
            let inner = within(Budget { steps: 100, careful: false, stop: None }, || {
                (0..1_000).for_each(|_| step(1));
            });
            (inner, Budget::full().steps - LEFT.get())
        });
        assert_eq!(spent, Ok((Err(Exhausted), 100)));
        assert!(!is_given());
        assert_eq!(within(Budget::full(), || within(Budget::full(), || step(2_000_000))), Ok(Err(Exhausted)));
    }

    #[test]
    fn somebody_else_can_stop_it() {
        let stop = Arc::new(AtomicBool::new(false));
        let work = within(Budget::full().until(Arc::clone(&stop)), || {
            step(1);
            stop.store(true, Ordering::Relaxed);
            step(1);
        });
        assert_eq!(work, Err(Exhausted));
        assert_eq!(within(Budget::full(), || step(1)), Ok(()));
    }

    #[test]
    fn the_stack_is_bounded() {
        fn deeper(level: u64) -> u64 {
            step(1);
            if level == u64::MAX {
                return 0;
            }
            std::hint::black_box(level) + deeper(level + 1) + std::hint::black_box(1)
        }
        let deep = std::thread::spawn(|| within(Budget { steps: u64::MAX, ..Budget::full() }, || deeper(0)));
        assert_eq!(deep.join().unwrap(), Err(Exhausted));
    }

    #[test]
    fn a_panic_stays_a_panic() {
        let broken = catch_unwind(|| within(Budget::full(), || assert_eq!(1, 2)));
        assert!(broken.is_err() && !is_given());
    }
}
