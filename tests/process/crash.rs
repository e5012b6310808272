//! What a `kill -9` costs: nothing that was answered.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::Signal;

use crate::http::send;
use crate::process::{Credentials, Scratch, Server, tool};

const CREATES: usize = 1_000;
const CLIENTS: usize = 8;

#[test]
fn every_create_that_was_answered_survives_a_kill_in_the_middle() {
    let scratch = Scratch::new();
    let mut server = Server::dev(&scratch);
    let keys = Credentials::read(&scratch.data_dir());
    let (next, answered) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| create(&server, &keys.demo_key, &next, &answered));
        }
    });
    server.ended();
    let answered = answered.into_inner().unwrap();
    assert!(answered.len() >= CREATES / 2 && answered.len() < CREATES, "killed in the middle: {}", answered.len());

    let server = Server::dev(&scratch);
    let stored = names(&server, &keys.demo_key);
    let lost: Vec<&String> = answered.difference(&stored).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), answered.len());
    server.expect(201, &keys.demo_key, ("POST", "/v1/tools"), Some(&tool("afterwards", "http://127.0.0.1:9/")));
    server.stop(Signal::SIGTERM);
}

/// Makes tools until the numbers run out or the server is gone; whoever gets the middle one answered kills the server.
fn create(server: &Server, key: &str, next: &AtomicUsize, answered: &Mutex<BTreeSet<String>>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= CREATES {
            return;
        }
        let name = format!("tool_{number}");
        let body = tool(&name, "http://127.0.0.1:9/");
        let Ok(answer) = send(&server.base_url, key, "POST", "/v1/tools", Some(&body)) else {
            return;
        };
        assert_eq!(answer.status, 201, "{}", answer.body);
        let count = {
            let mut answered = answered.lock().unwrap();
            answered.insert(name);
            answered.len()
        };
        if count == CREATES / 2 {
            server.signal(Signal::SIGKILL);
        }
    }
}

fn names(server: &Server, key: &str) -> BTreeSet<String> {
    let (mut names, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = server.expect(200, key, ("GET", &format!("/v1/tools?limit=200{cursor}")), None);
        names.extend(page["data"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return names,
        }
    }
}
