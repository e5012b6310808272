//! Where log records go: standard error, so that standard output holds nothing but answers.

use std::io::{self, IsTerminal};

use crate::config::settings::Logging;

/// Starts logging. To be called once, before anything logs.
pub fn start(settings: Logging) {
    let builder = tracing_subscriber::fmt().with_env_filter(settings.filter).with_writer(io::stderr);
    if settings.json {
        builder.json().flatten_event(true).init();
    } else {
        builder.with_ansi(io::stderr().is_terminal()).init();
    }
}
