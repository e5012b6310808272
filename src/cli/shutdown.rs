//! The signals that ask a process to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;

/// Ctrl-C and SIGTERM. From [`Signals::listen`] on, neither ends the process by itself.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one, and says which it is.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// Does something that a signal stops at once.
    pub(super) async fn stopping<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            name = self.next() => Err(Failure::Failed(format!("stopped by {name} before it was ready"))),
        }
    }

    /// Finishes something, unless a (second) signal says not to.
    pub(super) async fn unless_again<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            done = work => Ok(done),
            _ = self.next() => Err(Failure::Interrupted),
        }
    }
}
