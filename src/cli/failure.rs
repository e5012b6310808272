//! How a command ends when it does not end well.

use std::{error::Error, fmt, process::ExitCode};

use crate::config::Problems;
use crate::store::StoreError;

/// Why a command failed, in words for the person at the terminal.
#[derive(Debug)]
pub enum Failure {
    /// The command line or the environment is wrong. Exit code 2.
    Configuration(Problems),
    /// It could not be done. Exit code 1.
    Failed(String),
    /// A second signal came while the first was being obeyed: nothing is waited for any more. Exit code 1.
    Interrupted,
}

impl Failure {
    /// For `map_err`: says what failed, and why, down to the first cause.
    pub fn because<E: Error>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed(format!("{what}: {}", causes(&error)))
    }

    /// The exit code that says the same.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Configuration(_) => ExitCode::from(2),
            Self::Failed(_) | Self::Interrupted => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(problems) => problems.fmt(out),
            Self::Failed(text) => out.write_str(text),
            Self::Interrupted => out.write_str("ended by a second signal, without waiting for what was running"),
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Configuration(problems)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Failed(causes(&error))
    }
}

/// An error with its causes, each said once: many repeat the next one's text in their own.
pub(super) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
