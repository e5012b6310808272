//! Holds what was answered, what was logged and what arrived against each other.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde_json::Value;

use crate::callers::{self, Answered};
use crate::receiver::Receiver;

/// How many faults are shown.
const SHOWN: usize = 20;

/// The figures, and what must not be.
pub(crate) struct Verdict {
    keys: usize,
    sent: usize,
    delivered: u32,
    most: u32,
    twice: usize,
    replayed: usize,
    ends: BTreeMap<String, usize>,
    pub(crate) faults: Vec<String>,
}

pub(crate) fn of(answered: &[Answered], log: &HashMap<String, Value>, receiver: &Receiver) -> Verdict {
    let counted = receiver.counted();
    let mut faults = Vec::new();
    let (mut most, mut twice, mut replayed) = (0, 0, 0);
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for Answered { key, voices, .. } in answered {
        for (place, effect) in callers::effects(*key).iter().enumerate() {
            let times = counted.get(effect).copied().unwrap_or_default();
            if callers::tool(*key) == "charge" {
                most = most.max(times);
                twice += usize::from(times > 1);
                if times > 1 {
                    faults.push(format!("{effect} was delivered {times} times"));
                }
            }
            let voices = voices.iter().filter_map(|voice| match voice {
                Ok(calls) => calls.get(place),
                Err(_) => None,
            });
            let voices: Vec<&Value> = voices.collect();
            replayed += voices.iter().filter(|call| call["replayed"] == true).count();
            faults.extend(contradictions(effect, &voices, times, log));
            if let Some(call) = voices.first() {
                *ends.entry(call["status"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
        for voice in voices {
            if let Err(why) = voice {
                faults.push(format!("key-{key} was not answered: {why}"));
            }
        }
    }
    faults.extend(unfinished(log));
    let delivered = counted.values().sum();
    let sent = answered.iter().map(|answered| answered.sent).sum();
    Verdict { keys: answered.len(), sent, delivered, most, twice, replayed, ends, faults }
}

/// Every voice of a call says the same, the log says so too, and what arrived fits.
fn contradictions(effect: &str, voices: &[&Value], times: u32, log: &HashMap<String, Value>) -> Vec<String> {
    let mut faults = Vec::new();
    let said =
        |call: &Value| [call["id"].clone(), call["status"].clone(), call["result"].clone(), call["error"].clone()];
    for call in voices {
        if said(call) != said(voices[0]) {
            faults.push(format!("{effect} was answered {} and {call}", voices[0]));
        }
        let Some(logged) = call["id"].as_str().and_then(|id| log.get(id)) else {
            faults.push(format!("{effect} is not in the log: {call}"));
            continue;
        };
        if logged["status"] != call["status"] || logged["result"]["text"] != call["result"]["text"] {
            faults.push(format!("{effect} was answered {call} and logged {logged}"));
        }
        match (call["status"].as_str(), times) {
            (Some("succeeded"), 0) => faults.push(format!("{effect} succeeded and never arrived")),
            (Some("rejected"), 1..) => faults.push(format!("{effect} was rejected and arrived")),
            (Some("succeeded"), _) if call["result"]["text"] != *effect => {
                faults.push(format!("{effect} has another's answer: {call}"));
            }
            _ => {}
        }
    }
    faults
}

fn unfinished(log: &HashMap<String, Value>) -> Vec<String> {
    let ended = |call: &&Value| !matches!(call["status"].as_str(), Some("running" | "pending") | None);
    log.values().filter(|call| !ended(call)).map(|call| format!("a call never ended: {call}")).collect()
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, sent, delivered, most, twice, replayed, ends, faults } = self;
        writeln!(out, "chaos: {keys} keys answered, by {sent} requests; {replayed} answers were replays")?;
        writeln!(out, "chaos: calls by their end: {ends:?}")?;
        writeln!(
            out,
            "chaos: {delivered} deliveries; of a tool that is not idempotent at most {most} for a call, {twice} calls twice"
        )?;
        for fault in faults.iter().take(SHOWN) {
            writeln!(out, "FAULT {fault}")?;
        }
        write!(out, "chaos: {} faults", faults.len())
    }
}
