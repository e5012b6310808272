//! Measures the service as it runs in production: the release binary, a durable Postgres, real sockets on loopback. Everything
//! that is compared is measured in one run, in turns, so that what the machine does besides falls on both sides.
//!
//! `script/bench SCENARIO` runs it. It prints its figures and never fails on one: figures are for people to judge.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot begin may fail loudly")]
#![expect(clippy::print_stdout, reason = "it prints its figures")]

mod connection;
mod cost;
mod figures;
mod hot;
#[path = "../tests/process/http.rs"]
#[expect(dead_code, reason = "the tests of processes use the rest")]
mod http;
mod isolation;
mod nginx;
#[path = "../tests/process/process.rs"]
#[expect(dead_code, reason = "the tests of processes use the rest")]
mod process;
mod receiver;
mod report;
mod service;
mod tenants;

use std::process::ExitCode;

use figures::Section;
use futures_util::future::BoxFuture;

type Measure = fn(bool) -> BoxFuture<'static, Section>;

const SCENARIOS: [(&str, Measure); 3] = [
    ("hot", |quick| Box::pin(hot::measure(quick))),
    ("isolation", |quick| Box::pin(isolation::measure(quick))),
    ("tenants", |quick| Box::pin(tenants::measure(quick))),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let scenario = arguments.iter().find(|argument| !argument.starts_with('-')).map(String::as_str);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut sections = Vec::new();
    for (name, measure) in SCENARIOS {
        if scenario.is_none_or(|chosen| chosen == name) {
            sections.push(runtime.block_on(measure(quick)));
        }
    }
    if sections.is_empty() {
        println!("scenarios: {}", SCENARIOS.map(|(name, _)| name).join(", "));
        return ExitCode::from(2);
    }
    let told: Vec<String> = sections.iter().map(|Section { title, text }| format!("## {title}\n\n{text}")).collect();
    let told = told.join("\n");
    println!("\n{told}");
    if let Some(file) = arguments.iter().find_map(|argument| argument.strip_prefix("--write=")) {
        std::fs::write(file, report::whole(&told)).unwrap();
    }
    ExitCode::SUCCESS
}
