//! Agents that send every request three times at once, to any replica, and again until it is answered.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::http::send_with;

/// How many keys are under way at once.
const LANES: usize = 12;
/// How often each is sent at once.
const TIMES: usize = 3;
/// A request is answered by then, whatever is done to the service.
const PATIENCE: Duration = Duration::from_mins(2);

/// What one key was answered, in as many voices as it was sent; an error is one that was never answered.
pub(crate) struct Answered {
    pub(crate) key: usize,
    pub(crate) voices: Vec<Result<Vec<Value>, String>>,
    /// How many requests that took.
    pub(crate) sent: usize,
}

/// Everybody who calls.
pub(crate) struct Callers<'a> {
    fleet: &'a Fleet,
    keys: usize,
    seed: u64,
    next: AtomicUsize,
    answered: Mutex<Vec<Answered>>,
}

impl<'a> Callers<'a> {
    pub(crate) fn new(fleet: &'a Fleet, keys: usize, seed: u64) -> Self {
        Self { fleet, keys, seed, next: AtomicUsize::new(0), answered: Mutex::default() }
    }

    pub(crate) fn into_answered(self) -> Vec<Answered> {
        self.answered.into_inner().unwrap()
    }

    /// Sends everything.
    pub(crate) fn run(&self) {
        scope(|lanes| {
            for _ in 0..LANES {
                lanes.spawn(|| {
                    loop {
                        let key = self.next.fetch_add(1, Ordering::SeqCst);
                        if key >= self.keys {
                            return;
                        }
                        let answered = self.send_three_times(key);
                        self.answered.lock().unwrap().push(answered);
                    }
                });
            }
        });
    }

    fn send_three_times(&self, key: usize) -> Answered {
        let voices: Vec<(Result<Vec<Value>, String>, usize)> = scope(|voices| {
            let voices: Vec<_> = (0..TIMES)
                .map(|voice| {
                    let seed = self.seed ^ ((key * TIMES + voice) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    voices.spawn(move || self.until_answered(key, fastrand::Rng::with_seed(seed)))
                })
                .collect();
            voices.into_iter().map(|voice| voice.join().unwrap()).collect()
        });
        let sent = voices.iter().map(|(_, sent)| sent).sum();
        Answered { key, sent, voices: voices.into_iter().map(|(voice, _)| voice).collect() }
    }

    /// Sends a request until it is answered with what became of its calls.
    fn until_answered(&self, key: usize, mut dice: fastrand::Rng) -> (Result<Vec<Value>, String>, usize) {
        let (path, body) = request(key);
        let authorization = format!("Bearer {}", self.fleet.key);
        let idempotency = format!("key-{key}");
        let headers = [("authorization", authorization.as_str()), ("idempotency-key", idempotency.as_str())];
        let (began, mut sent, mut last) = (Instant::now(), 0, String::new());
        while began.elapsed() < PATIENCE {
            let url = &self.fleet.urls[dice.usize(0..self.fleet.urls.len())];
            sent += 1;
            match send_with(url, &headers, "POST", path, Some(&body)) {
                Ok(answer) if answer.status == 200 => {
                    let calls = answer.body["calls"].as_array().cloned();
                    return (Ok(calls.unwrap_or_else(|| vec![answer.body])), sent);
                }
                // Away, or another request with the key still runs: what a client repeats.
                Ok(answer) if matches!(answer.status, 409 | 429 | 503) => last = answer.text,
                Ok(answer) => return (Err(format!("{}: {}", answer.status, answer.text)), sent),
                Err(error) => last = error.to_string(),
            }
            sleep(Duration::from_millis(dice.u64(10..120)));
        }
        (Err(format!("no answer in {} s: {last}", PATIENCE.as_secs())), sent)
    }
}

/// The tool that a key's calls are of: one of five may run twice.
pub(crate) const fn tool(key: usize) -> &'static str {
    if key % 5 == 4 { "look_up" } else { "charge" }
}

/// The effects that a key asks for: some by a reply of two calls.
pub(crate) fn effects(key: usize) -> Vec<String> {
    let count = if key.is_multiple_of(3) { 2 } else { 1 };
    (0..count).map(|place| format!("effect-{key}-{place}")).collect()
}

fn request(key: usize) -> (&'static str, Value) {
    let effects = effects(key);
    match (effects.as_slice(), tool(key)) {
        ([effect], "charge") => ("/v1/tools/charge/calls", json!({"input": {"effect": effect}})),
        ([effect], _) => ("/v1/tools/look_up/calls", json!({"input": {"effect": effect}})),
        (_, name) => {
            let call = |effect: &String| json!({"id": effect, "name": name, "input": {"effect": effect}});
            let calls: Vec<Value> = effects.iter().map(call).collect();
            ("/v1/formats/toolhook/calls", json!({"reply": calls}))
        }
    }
}
