//! Arguments that a model plainly meant and sent in another spelling: read as they were meant, each repair named.
//!
//! There are three spellings: an object or array sent as its JSON text, a number or boolean sent as its exact text, and a
//! null for an optional property that takes none. (The fourth, all arguments encoded twice, is
//! [`crate::domain::arguments::read`]'s.) Nothing is guessed:
//!
//! - Only what the schema finds fault with is touched, and only in a value that does not fit: a text stays a text
//!   wherever the schema takes it.
//! - A text is read only if the value has just this text, so that nothing is lost or made up: `"12abc"`, `" 5"`, `"1e3"`,
//!   `"0x10"` and `"yes"` stay texts, and `"3.0"` is no integer. A null is left out only where the schema names the
//!   property; the entries of a free map stay.
//! - The outcome has to fit. If two different ones do, which was meant is a guess, and the model is told what is wrong
//!   instead.
//!
//! It is the schema's own verdict that is followed, not its text, so references, unions and every draft's keywords mean
//! here what they mean there. The work is bounded by the constants below. Pure.

#[cfg(test)]
mod properties;

use crate::domain::json::{self, Object};
use crate::domain::mismatch::{Mismatch, Wanted};
use crate::domain::{InputSchema, arguments};
use serde_json::{Number, Value};
use std::collections::BTreeMap;

/// How often one value is held against its schema.
const MAX_CHECKS: usize = 32;
/// How deep texts may be inside texts: each round reads one level of them.
const MAX_ROUNDS: usize = 8;
/// How many ways to put one value right are followed at once.
const MAX_WAYS: usize = 8;

/// Arguments that fit now.
#[derive(Debug, PartialEq)]
pub(super) struct Repaired {
    /// The arguments.
    pub(super) object: Object,
    /// What was put right, each with its place.
    pub(super) repairs: Vec<String>,
}

/// What is done at one place.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The text there is read as this value.
    Read(Value),
    /// The null there is left out.
    LeaveOut,
}

/// What is done at all places, by their pointers.
type Way = BTreeMap<String, Step>;

/// A value on its way, and what was done to it.
struct Attempt {
    value: Value,
    repairs: Vec<String>,
}

/// Puts arguments right that do not fit a schema; `None` if that cannot be done without a guess. `settle` maps what came
/// out of a text as the arguments themselves were mapped: back to the names of the stored schema.
pub(super) fn repair(schema: &InputSchema, object: &Object, settle: &dyn Fn(Object) -> Object) -> Option<Repaired> {
    let mut checks = MAX_CHECKS;
    let mut fitting: Option<Attempt> = None;
    let mut open = vec![Attempt { value: Value::Object(object.clone()), repairs: Vec::new() }];
    for _ in 0..MAX_ROUNDS {
        let mut next: Vec<Attempt> = Vec::new();
        for attempt in open {
            for way in ways(&attempt.value, &schema.mismatches(&attempt.value)?, true)? {
                checks = checks.checked_sub(1)?;
                let tried = attempt.taken(&way, settle)?;
                if next.iter().chain(&fitting).any(|known| known.value == tried.value) {
                    continue;
                }
                if schema.check(&tried.value).is_err() {
                    next.push(tried);
                } else if fitting.replace(tried).is_some() {
                    return None; // both fit, and nothing says which was meant
                }
            }
        }
        open = next;
    }
    let Attempt { value: Value::Object(object), repairs } = fitting.filter(|_| open.is_empty())? else { return None };
    Some(Repaired { object: arguments::bounded(object).ok()?, repairs })
}

/// The ways to put a value right in one round, none of them empty; no value if there are too many. Of a union's branch
/// each mismatch has to be put right; of the whole, what is left over may go away with the rest.
fn ways(value: &Value, mismatches: &[Mismatch], whole: bool) -> Option<Vec<Way>> {
    let mut found = vec![Way::new()];
    let mut left: Vec<&str> = Vec::new();
    for mismatch in mismatches {
        match mismatch {
            Mismatch::Rule { pointer } => left.push(pointer),
            Mismatch::Place { pointer, wanted, property } => match step(value.pointer(pointer), wanted, *property) {
                Some(step) => found.iter_mut().for_each(|way| drop(way.insert(pointer.clone(), step.clone()))),
                None => left.push(pointer),
            },
            Mismatch::Either(branches) => {
                let mut choices: Vec<Way> = Vec::new();
                for branch in branches {
                    let more = ways(value, branch, false)?;
                    choices.extend(more.into_iter().filter(|way| !choices.contains(way)).collect::<Vec<_>>());
                }
                match choices.as_slice() {
                    [] if whole => {}
                    [] => return Some(Vec::new()),
                    _ => found = products(&found, &choices)?,
                }
            }
        }
    }
    // A rule about a value goes away when another value takes its place.
    let settled = |way: &Way, place: &str| way.keys().any(|done| within(place, done));
    found.retain(|way| !way.is_empty() && (whole || left.iter().all(|place| settled(way, place))));
    Some(found)
}

fn products(ways: &[Way], choices: &[Way]) -> Option<Vec<Way>> {
    let both =
        |way: &Way, choice: &Way| way.iter().chain(choice).map(|(at, step)| (at.clone(), step.clone())).collect();
    let all: Vec<Way> = ways.iter().flat_map(|way| choices.iter().map(move |choice| both(way, choice))).collect();
    (all.len() <= MAX_WAYS).then_some(all)
}

fn within(place: &str, outer: &str) -> bool {
    place.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What can be done about a value that stands where another is wanted.
fn step(found: Option<&Value>, wanted: &Wanted, property: bool) -> Option<Step> {
    match found? {
        Value::Null if property => Some(Step::LeaveOut),
        Value::String(text) => Some(Step::Read(meant(text).filter(|value| wanted.takes(value))?)),
        _ => None,
    }
}

/// The value whose text this is: a boolean or a number that is written just so, or the JSON of an object or array.
fn meant(text: &str) -> Option<Value> {
    match text {
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        _ => {}
    }
    if text.trim_start().starts_with(['{', '[']) {
        return json::parse(text.as_bytes(), arguments::MAX_DEPTH).ok();
    }
    let number: Number = text.parse().ok()?;
    (number.to_string() == text).then_some(Value::Number(number))
}

impl Attempt {
    fn taken(&self, way: &Way, settle: &dyn Fn(Object) -> Object) -> Option<Self> {
        let (mut value, mut repairs) = (self.value.clone(), self.repairs.clone());
        for (pointer, step) in way {
            match step {
                Step::Read(read) => {
                    *value.pointer_mut(pointer)? = read.clone();
                    let how = match read {
                        Value::Object(_) | Value::Array(_) => "JSON text",
                        Value::Bool(_) => "text as a boolean",
                        _ => "text as a number",
                    };
                    repairs.push(format!("{pointer}: read from its {how}"));
                }
                Step::LeaveOut => {
                    let (parent, key) = pointer.rsplit_once('/')?;
                    let key = key.replace("~1", "/").replace("~0", "~");
                    value.pointer_mut(parent)?.as_object_mut()?.shift_remove(&key)?;
                    repairs.push(format!("{pointer}: null, left out"));
                }
            }
        }
        let Value::Object(object) = value else { return None };
        Some(Self { value: Value::Object(settle(object)), repairs })
    }
}
