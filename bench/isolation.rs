//! What a tenant feels of another one whose thousand webhooks hang.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::connection::{Met, Pool, Wire, at_a_rate};
use crate::figures::{millis, percentile, ratio};
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
pub(crate) async fn measure(quick: bool) {
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
        add(&mut quiet, at_a_rate(&pool, &call, RATE, phase).await);
        let hung = hang(&address(&server), &noisy.key, &webhooks, SETTLING + phase).await;
        at_a_rate(&pool, &call, RATE, SETTLING).await;
        add(&mut beside, at_a_rate(&pool, &call, RATE, phase).await);
        println!("round {round} of {rounds}: {} calls hung", webhooks.hung());
        hung.join_all().await; // they time out
        at_a_rate(&pool, &call, RATE, SETTLING).await;
    }
    println!("{RATE} calls a second of one tenant, {rounds} rounds of {} s each way", phase.as_secs());
    for (name, met) in [("the other tenant is quiet", &mut quiet), ("1,000 of its webhooks hang", &mut beside)] {
        let (p50, p99) = (percentile(&mut met.micros, 50.0), percentile(&mut met.micros, 99.0));
        println!("{name}: p50 {}, p99 {}, {} calls, {} bad", millis(p50), millis(p99), met.micros.len(), met.bad);
    }
    for percent in [50.0, 99.0] {
        let of = |met: &mut Met| percentile(&mut met.micros, percent);
        println!("p{percent}: {:.2} times as long", ratio(of(&mut beside), of(&mut quiet)));
    }
}

fn add(all: &mut Met, met: Met) {
    all.micros.extend(met.micros);
    all.bad += met.bad;
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
