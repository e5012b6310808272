//! The hot paths: the list that every model turn fetches, and the call that it waits for; beside nginx doing the least that could be
//! done.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::connection::{Connection, Load, Met, Wire, as_fast_as_it_goes};
use crate::cost::{TICKS, resident_kib, ticks};
use crate::figures::{Section, millis, percentile, ratio};
use crate::nginx::Nginx;
use crate::process::{Scratch, Server};
use crate::receiver::Webhooks;
use crate::service::{Database, Tenant, address};

/// Something that is measured again and again.
struct Line {
    name: &'static str,
    address: String,
    load: Load,
    /// Whose processor time it is.
    pid: u32,
    connections: usize,
    met: Met,
    seconds: f64,
    ticks: u64,
    database_ticks: u64,
}

impl Line {
    fn new(name: &'static str, address: &str, pid: u32, connections: usize, load: Load) -> Self {
        let (met, address) = (Met::default(), address.to_owned());
        Self { name, address, load, pid, connections, met, seconds: 0.0, ticks: 0, database_ticks: 0 }
    }

    fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let count = self.met.micros.len() as f64;
        count / self.seconds.max(0.001)
    }

    /// Seconds of processors for a thousand requests.
    fn cost(&self, ticks: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let (ticks, count) = (ticks as f64, self.met.micros.len().max(1) as f64);
        ticks / TICKS / count * 1_000.0
    }
}

/// What is compared with what, and the ratio that is aimed at.
const RATIOS: [(&str, &str, &str, &str); 10] = [
    ("list of 100 tools", "nginx: the same 100 tools", "requests", "≥ 0.9"),
    ("list of 100 tools", "nginx: the same 100 tools", "processor", "≤ 1.3"),
    ("list of 1,000 tools", "nginx: the same 1,000 tools", "requests", "≥ 0.9"),
    ("list of 100 tools, not modified", "list of 100 tools", "requests", "≥ 1.5"),
    ("call", "nginx: the same POST passed on", "requests", "≥ 0.20"),
    ("call", "nginx: the same POST passed on", "p99", "≤ 4"),
    ("call", "nginx: the same POST passed on", "processor", "≤ 4"),
    ("call, 64 connections", "nginx: the same POST passed on, 64 connections", "requests", "≥ 0.28"),
    ("call with a key, 64 connections", "nginx: the same POST passed on, 64 connections", "requests", "≥ 0.18"),
    ("call, relaxed log, 64 connections", "nginx: the same POST passed on, 64 connections", "requests", "≥ 0.30"),
];

/// Measures everything in turns.
pub(crate) async fn measure(quick: bool) -> Section {
    let (rounds, time) = if quick { (2, 1) } else { (5, 3) };
    let time = Duration::from_secs(time);
    let scratch = Scratch::within("/var/tmp".into());
    let webhooks = Webhooks::start().await;
    let database = Database::start(&scratch);
    let server = Server::start(&scratch, &mut database.serve());
    let relaxed = Server::start(&scratch, database.serve().env("TOOLHOOK_CALL_LOG", "relaxed"));
    let limits = json!({"calls_per_second": 1_000_000, "concurrent_calls": 100_000, "tools": 10_000});
    let (hundred, thousand) = (
        stocked(&database, &server, "hundred", &limits, &webhooks, 100),
        stocked(&database, &server, "thousand", &limits, &webhooks, 1_000),
    );
    let tag = kept(&scratch, &server, "hundred.json", &list(&hundred.key, &[])).await;
    kept(&scratch, &server, "thousand.json", &list(&thousand.key, &[])).await;
    let Some(nginx) = Nginx::start(scratch.path(), &webhooks.url) else {
        return Section {
            title: "The hot paths",
            text: "nginx is not installed here: nothing to compare with.\n".to_owned(),
        };
    };

    let both = Tags { hundred: (hundred.key, tag), thousand: thousand.key };
    let mut lines = lines(&server, &relaxed, &nginx, &both);
    for _ in 0..=rounds {
        for line in &mut lines {
            turn(line, time, database.pid()).await;
        }
        if lines[0].seconds < 1.5 * time.as_secs_f64() {
            lines.iter_mut().for_each(forget_warm_up);
        }
    }
    let memory = resident_kib(server.pid()) / 1024;
    Section { title: "The hot paths", text: told(&mut lines, memory, rounds, time) }
}

/// The keys of the tenants, and the tag of the list of a hundred tools.
struct Tags {
    hundred: (String, String),
    thousand: String,
}

fn list(key: &str, headers: &[(&str, &str)]) -> Wire {
    Wire::get("/v1/formats/openai-chat/tools", key, headers)
}

fn lines(server: &Server, relaxed: &Server, nginx: &Nginx, keys: &Tags) -> Vec<Line> {
    let input = r#"{"input": {"city": "Bern", "days": 3}}"#;
    let call = Load::Same(Wire::post("/v1/tools/tool_0001/calls", &keys.hundred.0, &[], input));
    let keyed = Load::Keyed {
        path: "/v1/tools/tool_0001/calls".to_owned(),
        key: keys.hundred.0.clone(),
        body: input.to_owned(),
    };
    let batch = Load::Same(Wire::post("/v1/formats/toolhook/calls", &keys.hundred.0, &[], &eight_calls()));
    let passed = Load::Same(Wire::post("/proxied", "", &[], input));
    let (ours, floor, lazy) = (address(server), nginx.address.clone(), address(relaxed));
    let (our_pid, lazy_pid) = (server.pid(), relaxed.pid());
    vec![
        Line::new(
            "nginx: the same 100 tools",
            &floor,
            nginx.pid(),
            16,
            Load::Same(Wire::get("/hundred.json", "", &[])),
        ),
        Line::new("list of 100 tools", &ours, our_pid, 16, Load::Same(list(&keys.hundred.0, &[]))),
        Line::new(
            "list of 100 tools, not modified",
            &ours,
            our_pid,
            16,
            Load::Same(list(&keys.hundred.0, &[("if-none-match", &keys.hundred.1)])),
        ),
        Line::new(
            "nginx: the same 1,000 tools",
            &floor,
            nginx.pid(),
            16,
            Load::Same(Wire::get("/thousand.json", "", &[])),
        ),
        Line::new("list of 1,000 tools", &ours, our_pid, 16, Load::Same(list(&keys.thousand, &[]))),
        Line::new("nginx: the same POST passed on", &floor, nginx.pid(), 16, passed.clone()),
        Line::new("call", &ours, our_pid, 16, call.clone()),
        Line::new("nginx: the same POST passed on, 64 connections", &floor, nginx.pid(), 64, passed),
        Line::new("call, 64 connections", &ours, our_pid, 64, call.clone()),
        Line::new("call with a key, 64 connections", &ours, our_pid, 64, keyed),
        Line::new("call, relaxed log, 64 connections", &lazy, lazy_pid, 64, call),
        Line::new("reply of 8 calls", &ours, our_pid, 16, batch),
    ]
}

/// The first round is for warming up.
fn forget_warm_up(line: &mut Line) {
    if line.met.warm {
        return;
    }
    (line.seconds, line.ticks, line.database_ticks) = (0.0, 0, 0);
    line.met = Met { warm: true, ..Met::default() };
}

async fn turn(line: &mut Line, time: Duration, database: u32) {
    let (before, database_before) = (ticks(line.pid), ticks(database));
    let began = std::time::Instant::now();
    let met = as_fast_as_it_goes(&line.address, &line.load, line.connections, time).await;
    line.seconds += began.elapsed().as_secs_f64();
    line.ticks += ticks(line.pid) - before;
    line.database_ticks += ticks(database) - database_before;
    line.met.add(met);
}

/// A tenant with so many tools.
fn stocked<'a>(
    database: &Database,
    server: &'a Server,
    name: &str,
    limits: &serde_json::Value,
    webhooks: &Webhooks,
    tools: usize,
) -> Tenant<'a> {
    let tenant = Tenant::make(database, server, name, limits);
    tenant.handler("weather", &webhooks.url);
    for number in 0..tools {
        tenant.tool_of(&format!("tool_{number:04}"), "weather");
    }
    tenant
}

/// Writes what the service answers into a file that nginx serves; says its tag.
async fn kept(scratch: &Scratch, server: &Server, file: &str, request: &Wire) -> String {
    let mut connection = Connection::open(&address(server)).await;
    assert_eq!(connection.send(request).await.unwrap(), 200);
    fs::write(scratch.path().join(file), connection.body()).unwrap();
    connection.header("etag")
}

fn eight_calls() -> String {
    let call = |number: usize| json!({"id": format!("c{number}"), "name": format!("tool_{number:04}"), "input": {"city": "Bern", "days": 3}});
    json!({"reply": (0..8).map(call).collect::<Vec<_>>()}).to_string()
}

fn told(lines: &mut [Line], memory: u64, rounds: u32, time: Duration) -> String {
    let mut text = format!(
        "{rounds} rounds of {} s for each line, in turns; 16 connections unless said. Processor: seconds for 1,000 requests, of the \
         server itself and of Postgres beside it. The load generator, the webhook, Postgres and the server share the machine. \
         Memory of the service afterwards: {memory} MiB.\n\n\
         | what | requests/s | p50 | p99 | processor | Postgres | bad |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        time.as_secs()
    );
    for line in lines.iter_mut() {
        let (p50, p99) = (percentile(&mut line.met.micros, 50.0), percentile(&mut line.met.micros, 99.0));
        let (own, database) = (line.cost(line.ticks), line.cost(line.database_ticks));
        let rate = line.rate();
        let _ = writeln!(
            text,
            "| {} | {rate:.0} | {} | {} | {own:.3} | {database:.3} | {} |",
            line.name,
            millis(p50),
            millis(p99),
            line.met.bad
        );
    }
    text.push_str("\n| ratio | of | measured | target |\n| --- | --- | --- | --- |\n");
    for (one, other, of, target) in RATIOS {
        let find = |name: &str| lines.iter().find(|line| line.name == name);
        let (Some(one), Some(other)) = (find(one), find(other)) else { continue };
        let measured = match of {
            "requests" => one.rate() / other.rate().max(0.001),
            "processor" => one.cost(one.ticks) / other.cost(other.ticks).max(0.000_001),
            _ => ratio(percentile(&mut one.met.micros.clone(), 99.0), percentile(&mut other.met.micros.clone(), 99.0)),
        };
        let _ = writeln!(text, "| {}: {of} | {} | {measured:.2} | {target} |", one.name, other.name);
    }
    text
}
