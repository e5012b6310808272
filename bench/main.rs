//! Measures the service as it runs in production: the release binary, a durable Postgres, real sockets on loopback. Everything
//! that is compared is measured in one run, in turns, so that what the machine does besides falls on both sides.
//!
//! `script/bench SCENARIO` runs it. It prints its figures and never fails on one: figures are for people to judge.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot begin may fail loudly")]
#![expect(clippy::print_stdout, reason = "it prints its figures")]

mod connection;
mod figures;
#[path = "../tests/process/http.rs"]
#[expect(dead_code, reason = "the tests of processes use the rest")]
mod http;
mod isolation;
#[path = "../tests/process/process.rs"]
#[expect(dead_code, reason = "the tests of processes use the rest")]
mod process;
mod receiver;
mod service;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let scenario = arguments.iter().find(|argument| !argument.starts_with('-')).map(String::as_str);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if scenario != Some("isolation") {
        println!("scenarios: isolation");
        return ExitCode::from(2);
    }
    runtime.block_on(isolation::measure(quick));
    ExitCode::SUCCESS
}
