//! The binary as its users meet it: real processes, their exit codes, what they print, and what they leave behind.

#![expect(clippy::unwrap_used, reason = "a test's preparations may fail loudly too")]

mod audit;
mod commands;
mod crash;
mod crash_points;
mod dev;
mod doctor;
mod failover;
mod http;
mod listener;
mod outage;
mod pair;
mod pooler;
mod process;
mod replicas;
mod rotation;
mod serve;
mod stopping;
mod telemetry;
mod upgrade;
mod walls;
mod webhook;
