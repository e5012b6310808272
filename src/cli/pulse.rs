//! Keeps timers on time while a single task is busy.
//!
//! A worker of the runtime that wakes for one task runs it and leaves the timers alone meanwhile, and no other worker wakes to look after
//! them. So a webhook's server that sends interim answers without a pause, which the HTTP library reads in one go, would hold up
//! every deadline of an otherwise idle service. A thread that is no worker wakes one now and then, and that one looks after the timers.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

/// How often: a small part of how exact deadlines have to be, and nothing beside what a request costs.
const INTERVAL: Duration = Duration::from_millis(50);

/// Is woken again and again, until it is dropped.
pub(super) async fn run() {
    let woken = Arc::new(Notify::new());
    let thread = {
        let woken = Arc::downgrade(&woken);
        thread::Builder::new().name("pulse".to_owned()).spawn(move || beat(&woken))
    };
    if let Err(error) = thread {
        tracing::warn!(%error, "no thread for the pulse; deadlines may be kept late");
        return;
    }
    loop {
        woken.notified().await;
    }
}

fn beat(woken: &Weak<Notify>) {
    while let Some(woken) = woken.upgrade() {
        woken.notify_one();
        drop(woken);
        thread::sleep(INTERVAL);
    }
}
