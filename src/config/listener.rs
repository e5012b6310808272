//! What connections are held to.

use std::time::Duration;

use clap::Args;

use super::problems::{Problems, number};
use super::{given, settings};
use crate::http::Bounds;

const CONNECTIONS: &str = "10000";
const HEADER_MS: &str = "10000";
const BODY_MS: &str = "30000";
const IDLE_MS: &str = "75000";
const WRITE_MS: &str = "30000";
const BAD_KEYS: &str = "300";

#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub(super) struct Listener {
    /// The most connections at one time; those beyond wait to be accepted
    #[arg(long, env = "TOOLHOOK_CONNECTIONS", value_name = "N", default_value = CONNECTIONS)]
    connections: String,
    /// How long the head of a request may take to arrive, in milliseconds
    #[arg(long, env = "TOOLHOOK_HEADER_TIMEOUT_MS", value_name = "MS", default_value = HEADER_MS)]
    header_timeout_ms: String,
    /// How long the body of a request may take to arrive, in milliseconds
    #[arg(long, env = "TOOLHOOK_BODY_TIMEOUT_MS", value_name = "MS", default_value = BODY_MS)]
    body_timeout_ms: String,
    /// How long a connection may rest between two requests, in milliseconds; longer than a load balancer in front keeps its own
    #[arg(long, env = "TOOLHOOK_IDLE_TIMEOUT_MS", value_name = "MS", default_value = IDLE_MS)]
    idle_timeout_ms: String,
    /// How long a client may take nothing of an answer, in milliseconds
    #[arg(long, env = "TOOLHOOK_WRITE_TIMEOUT_MS", value_name = "MS", default_value = WRITE_MS)]
    write_timeout_ms: String,
    /// How many bad keys an address may send in a minute before it is answered 429; 0 for any number, where all requests come
    /// from the address of a proxy
    #[arg(long, env = "TOOLHOOK_BAD_KEYS_PER_MINUTE", value_name = "N", default_value = BAD_KEYS)]
    bad_keys_per_minute: String,
}

impl Listener {
    /// Checks it.
    pub(super) fn check(&self, problems: &mut Problems) -> Option<settings::Listener> {
        const LONGEST_MS: u64 = 3_600_000;
        let mut time = |name, text, default| {
            let time = problems.read(name, given(text, default), number(10, LONGEST_MS));
            time.map(Duration::from_millis)
        };
        let head = time("TOOLHOOK_HEADER_TIMEOUT_MS", &self.header_timeout_ms, HEADER_MS);
        let body = time("TOOLHOOK_BODY_TIMEOUT_MS", &self.body_timeout_ms, BODY_MS);
        let idle = time("TOOLHOOK_IDLE_TIMEOUT_MS", &self.idle_timeout_ms, IDLE_MS);
        let write = time("TOOLHOOK_WRITE_TIMEOUT_MS", &self.write_timeout_ms, WRITE_MS);
        let connections = given(&self.connections, CONNECTIONS);
        let connections = problems.read("TOOLHOOK_CONNECTIONS", connections, number(1, 1_000_000));
        let bad_keys = given(&self.bad_keys_per_minute, BAD_KEYS);
        let bad_keys = problems.read("TOOLHOOK_BAD_KEYS_PER_MINUTE", bad_keys, number(0, 1_000_000));
        Some(settings::Listener {
            bounds: Bounds { connections: connections?, head: head?, idle: idle?, write: write? },
            body_timeout: body?,
            bad_keys_per_minute: bad_keys?,
        })
    }
}
