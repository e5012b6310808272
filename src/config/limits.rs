//! What calls may take: of a tenant, of a handler, of this process.

use clap::Args;

use super::given;
use super::problems::{Problems, number};
use crate::execution::Limiting;

const CALLS_PER_SECOND: &str = "10000";
const CONCURRENT_CALLS: &str = "64";
const HANDLER_CONCURRENCY: &str = "16";
const IN_FLIGHT_CALLS: &str = "4096";

/// What calls may take.
#[derive(Debug, Args)]
pub(super) struct Limits {
    /// Calls that a tenant may start in a second, and as many at once, if its `calls_per_second` says nothing
    #[arg(long, env = "TOOLHOOK_CALLS_PER_SECOND", value_name = "N", default_value = CALLS_PER_SECOND)]
    calls_per_second: String,
    /// Calls that a tenant may have running, if its `concurrent_calls` says nothing; four times as many may wait
    #[arg(long, env = "TOOLHOOK_CONCURRENT_CALLS", value_name = "N", default_value = CONCURRENT_CALLS)]
    concurrent_calls: String,
    /// Calls that one handler of a tenant may have running; four times as many may wait
    #[arg(long, env = "TOOLHOOK_HANDLER_CONCURRENCY", value_name = "N", default_value = HANDLER_CONCURRENCY)]
    handler_concurrency: String,
    /// Calls that all tenants together may have in this process, running and waiting
    #[arg(long, env = "TOOLHOOK_IN_FLIGHT_CALLS", value_name = "N", default_value = IN_FLIGHT_CALLS)]
    in_flight_calls: String,
}

impl Limits {
    /// Checks them.
    pub(super) fn check(&self, problems: &mut Problems) -> Option<Limiting> {
        const MOST: u32 = 1_000_000;
        let rate = given(&self.calls_per_second, CALLS_PER_SECOND);
        let rate = problems.read("TOOLHOOK_CALLS_PER_SECOND", rate, number(1, MOST));
        let running = given(&self.concurrent_calls, CONCURRENT_CALLS);
        let running = problems.read("TOOLHOOK_CONCURRENT_CALLS", running, number(1, MOST));
        let handler = given(&self.handler_concurrency, HANDLER_CONCURRENCY);
        let handler = problems.read("TOOLHOOK_HANDLER_CONCURRENCY", handler, number(1, MOST));
        let in_flight = given(&self.in_flight_calls, IN_FLIGHT_CALLS);
        let in_flight = problems.read("TOOLHOOK_IN_FLIGHT_CALLS", in_flight, number(1, MOST));
        Some(Limiting {
            calls_per_second: rate?,
            concurrent_calls: running?,
            handler_concurrency: handler?,
            in_flight_calls: in_flight?,
            ..Limiting::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        limits: Limits,
    }

    #[test]
    fn the_defaults_are_the_librarys() {
        let alone = Alone::try_parse_from(["toolhook"]).unwrap();
        assert_eq!(alone.limits.check(&mut Problems::default()), Some(Limiting::default()));
        let given = ["toolhook", "--concurrent-calls=7", "--in-flight-calls=9", "--calls-per-second="];
        let limiting = Alone::try_parse_from(given).unwrap().limits.check(&mut Problems::default()).unwrap();
        assert_eq!((limiting.concurrent_calls, limiting.in_flight_calls), (7, 9));
        assert_eq!(limiting.calls_per_second, 10_000, "empty counts as not given");
        let mut problems = Problems::default();
        let none = Alone::try_parse_from(["toolhook", "--handler-concurrency=0"]).unwrap().limits.check(&mut problems);
        assert!(none.is_none() && problems.finish(Some(())).is_err());
    }
}
