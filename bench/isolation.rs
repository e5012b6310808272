//! What a tenant feels of another one whose thousand webhooks hang.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::connection::{Met, Pool, Wire, at_a_rate};
use crate::figures::{Section, millis, percentile, ratio};
use crate::process::{Scratch, Server};
use crate::receiver::Webhooks;
use crate::service::{Database, Tenant, address};

/// How many webhooks hang.
const HUNG: usize = 1_000;
/// How often the other tenant calls, in a second.
const RATE: u32 = 200;
/// How much of the first calls of a phase is left out: connections are made then.
const SETTLING: Duration = Duration::from_secs(1);
/// How long it may take until all of them hang.
const STARTING: Duration = Duration::from_secs(3);

/// Measures calls of one tenant in turns: while the other is quiet, and while a thousand of its calls hang.
pub(crate) async fn measure(quick: bool) -> Section {
    let (rounds, phase) = if quick { (2, 3) } else { (6, 8) };
    let phase = Duration::from_secs(phase);
    let scratch = Scratch::within("/var/tmp".into());
    let webhooks = Webhooks::start().await;
    let database = Database::start(&scratch);
    let server = Server::start(&scratch, &mut database.serve());
    let limits = json!({"calls_per_second": 100_000, "concurrent_calls": 10_000, "tools": 10_000});
    let noisy = Tenant::make(&database, &server, "noisy", &limits);
    for number in 0..HUNG {
        noisy.tool(&format!("hung_{number}"), &format!("{}/never/{number}", webhooks.url));
    }
    let steady = Tenant::make(&database, &server, "steady", &limits);
    steady.tool("weather", &webhooks.url);
    let call = Wire::post("/v1/tools/weather/calls", &steady.key, &[], r#"{"input": {"city": "Bern"}}"#);

    let pool = Pool::new(&address(&server));
    at_a_rate(&pool, &call, RATE, SETTLING).await;
    let (mut quiet, mut beside) = (Met::default(), Met::default());
    for round in 1..=rounds {
        quiet.add(at_a_rate(&pool, &call, RATE, phase).await);
        let hung = hang(&address(&server), &noisy.key, &webhooks, SETTLING + phase).await;
        at_a_rate(&pool, &call, RATE, SETTLING).await;
        beside.add(at_a_rate(&pool, &call, RATE, phase).await);
        println!("round {round} of {rounds}: {} calls hung", webhooks.hung());
        hung.join_all().await; // they time out
        at_a_rate(&pool, &call, RATE, SETTLING).await;
    }
    let mut text = format!(
        "{RATE} calls a second of one tenant, sent whether or not the others are answered; {rounds} rounds of {} s each way.\n\n\
         | the other tenant | p50 | p99 | calls | bad |\n| --- | --- | --- | --- | --- |\n",
        phase.as_secs()
    );
    for (name, met) in [("is quiet", &mut quiet), ("has 1,000 webhooks that hang", &mut beside)] {
        let (p50, p99) = (percentile(&mut met.micros, 50.0), percentile(&mut met.micros, 99.0));
        let _ = writeln!(text, "| {name} | {} | {} | {} | {} |", millis(p50), millis(p99), met.micros.len(), met.bad);
    }
    let mut grown = |percent| ratio(percentile(&mut beside.micros, percent), percentile(&mut quiet.micros, percent));
    let (p50, p99) = (grown(50.0), grown(99.0));
    let _ = writeln!(
        text,
        "\nBeside hung webhooks the p50 is {p50:.2} times and the p99 {p99:.2} times as long; the target is at most 1.2."
    );
    Section { title: "A neighbour whose webhooks hang", text }
}

/// Calls every webhook that hangs, and comes back when all calls are under way; they time out after the given time.
async fn hang(address: &str, key: &str, webhooks: &Webhooks, time: Duration) -> JoinSet<()> {
    let time = (time + STARTING).as_millis().to_string();
    let mut hung = JoinSet::new();
    for number in 0..HUNG {
        let path = format!("/v1/tools/hung_{number}/calls");
        let call = Wire::post(&path, key, &[("toolhook-timeout-ms", &time)], r#"{"input": {"city": "Bern"}}"#);
        let pool = Pool::new(address);
        hung.spawn(async move {
            pool.send(&call, |_, _| true).await;
        });
    }
    let began = Instant::now();
    while webhooks.hung() < HUNG && began.elapsed() < STARTING {
        sleep(Duration::from_millis(10)).await;
    }
    hung
}
