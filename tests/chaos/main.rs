//! Money under fire: keyed calls from many callers over three replicas on one Postgres, while replicas are killed and Postgres is
//! restarted at random. What has to hold: a tool that is not idempotent is delivered at most once for each key; every call that was
//! accepted ends; and no answer contradicts another, or the log.
//!
//! `cargo test` runs a short round of it; `script/chaos` a long one. Both print their figures and the seed that repeats their dice.

#![expect(clippy::unwrap_used, reason = "a test's preparations may fail loudly too")]
#![expect(clippy::print_stdout, reason = "it prints its figures")]

mod callers;
mod fleet;
#[path = "../process/http.rs"]
#[expect(dead_code, reason = "the tests of processes use the rest")]
mod http;
#[path = "../process/process.rs"]
#[expect(dead_code, reason = "the tests of processes use the rest")]
mod process;
mod receiver;
mod verdict;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use callers::Callers;
use fleet::{Blows, Fleet};
use receiver::Receiver;

/// What a run is asked for.
struct Run {
    keys: usize,
    seed: u64,
}

impl Run {
    /// Reads `--calls N` and `--seed N`; nothing if the test runner was asked for other tests.
    fn read(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut run = Self { keys: 300, seed: u64::from(clock.subsec_nanos()) };
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            let number = arguments.peek().and_then(|value| value.parse().ok());
            match (argument.as_str(), number) {
                ("--calls", Some(number)) => run.keys = usize::try_from(number).ok()?,
                ("--seed", Some(number)) => run.seed = number,
                (name, _) if name.starts_with('-') || name.parse::<u64>().is_ok() => {}
                (filter, _) if "chaos".contains(filter) => {}
                _ => return None,
            }
        }
        Some(run)
    }
}

fn main() -> ExitCode {
    let Some(Run { keys, seed }) = Run::read(std::env::args().skip(1)) else { return ExitCode::SUCCESS };
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    println!("chaos: {keys} keys, each sent three times at once, 3 replicas, seed {seed}");
    let began = Instant::now();
    let receiver = Receiver::start(seed);
    let fleet = Fleet::start(&receiver);
    let (callers, over) = (Callers::new(&fleet, keys, seed), AtomicBool::new(false));
    let blows = std::thread::scope(|scope| {
        let blows = scope.spawn(|| fleet.torment(seed, &over));
        callers.run();
        over.store(true, Ordering::SeqCst);
        blows.join().unwrap()
    });
    let calling = began.elapsed();
    let log = fleet.log_at_rest();
    let verdict = verdict::of(&callers.into_answered(), &log, &receiver);
    let Blows { killed, restarted, crashed } = blows;
    println!(
        "chaos: {killed} replicas killed, Postgres restarted {restarted} times and crashed {crashed} times, in {:.1} s",
        calling.as_secs_f64()
    );
    println!("{verdict}");
    if verdict.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
