//! Compiled schemas by their text: tools that say the same share one, whoever's they are.
//!
//! Many tenants take the same tools from the same catalogue. What they share is what follows from the bytes alone, so that
//! nothing of one tenant reaches another: a key is a hash of the whole text and of what the schema is for, and a text that
//! differs in one space is another one. An author's own text is always compiled when it is checked, even if it is known here:
//! how long a write takes tells nobody what others have written.

use super::{Compiled, InputSchema, SchemaFault};
use crate::domain::Tool;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// About how many bytes are kept although no tool has them at the moment.
const KEPT_BYTES: usize = 32 * 1024 * 1024;
/// How many are known before those that are gone are looked for.
const FIRST_SWEEP: usize = 1024;

/// What a schema is for, which decides what is allowed at its root.
#[derive(Clone, Copy)]
enum Purpose {
    Input = 0,
    Output = 1,
}

type Key = [u8; 32];

/// The compiled schemas of a process. Cheap to clone; the clones share them.
///
/// It holds none of them for long: whoever has a tool has its schema. Only the last ones that were dropped are kept for a
/// while, since a tenant whose snapshot is dropped for a change of one tool soon has a new one with all the others in it.
#[derive(Clone, Default)]
pub struct SharedSchemas(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    alive: HashMap<Key, Weak<Compiled>>,
    /// How many make the next sweep.
    sweep_at: usize,
    kept: VecDeque<Arc<Compiled>>,
    kept_bytes: usize,
    compiled: u64,
}

impl SharedSchemas {
    /// The schema of a stored tool's input, compiled unless it is known.
    pub fn input(&self, raw: &RawValue) -> Result<InputSchema, Vec<SchemaFault>> {
        self.open(raw, Purpose::Input)
    }

    /// The schema of a stored tool's structured output, compiled unless it is known.
    pub fn output(&self, raw: &RawValue) -> Result<InputSchema, Vec<SchemaFault>> {
        self.open(raw, Purpose::Output)
    }

    /// Takes over the schemas of a tool that was just written, so that it is not compiled again when it is read.
    pub fn learn(&self, tool: &Tool) {
        let output = tool.output_schema.as_ref().map(|schema| (schema, Purpose::Output));
        for (schema, purpose) in std::iter::once((&tool.input_schema, Purpose::Input)).chain(output) {
            let key = key(schema.raw(), purpose);
            let mut known = self.known();
            let shared = known.share(key, &schema.0);
            known.keep(shared);
        }
    }

    /// Keeps a tool's schemas for a while, although it is dropped now.
    pub fn keep(&self, tool: &Tool) {
        let mut known = self.known();
        for schema in std::iter::once(&tool.input_schema).chain(&tool.output_schema) {
            known.keep(Arc::clone(&schema.0));
        }
    }

    /// How many schemas of stored tools were compiled so far.
    pub fn compiled(&self) -> u64 {
        self.known().compiled
    }

    /// How many are in use now, or kept.
    pub fn count(&self) -> usize {
        self.known().alive.values().filter(|schema| schema.strong_count() > 0).count()
    }

    fn open(&self, raw: &RawValue, purpose: Purpose) -> Result<InputSchema, Vec<SchemaFault>> {
        let key = key(raw, purpose);
        let found = self.known().alive.get(&key).and_then(Weak::upgrade);
        if let Some(found) = found {
            return Ok(InputSchema(found));
        }
        // Without the lock: nobody waits for another's schema. Two that compile the same one at once go on with the first.
        let compiled = match purpose {
            Purpose::Input => InputSchema::compile(raw)?,
            Purpose::Output => InputSchema::compile_output(raw)?,
        };
        let mut known = self.known();
        known.compiled += 1;
        Ok(InputSchema(known.share(key, &compiled.0)))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The one that all share from now on: the one that is known, or else this one.
    fn share(&mut self, key: Key, own: &Arc<Compiled>) -> Arc<Compiled> {
        if let Some(known) = self.alive.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        if self.alive.len() >= self.sweep_at.max(FIRST_SWEEP) {
            self.alive.retain(|_, schema| schema.strong_count() > 0);
            self.sweep_at = self.alive.len() * 2;
        }
        self.alive.insert(key, Arc::downgrade(own));
        Arc::clone(own)
    }

    fn keep(&mut self, schema: Arc<Compiled>) {
        self.kept_bytes += schema.footprint;
        self.kept.push_back(schema);
        while self.kept_bytes > KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.kept_bytes -= oldest.footprint;
        }
    }
}

fn key(raw: &RawValue, purpose: Purpose) -> Key {
    Sha256::new().chain_update([purpose as u8]).chain_update(raw.get()).finalize().into()
}

impl std::fmt::Debug for SharedSchemas {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SharedSchemas")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn same(one: &InputSchema, other: &InputSchema) -> bool {
        Arc::ptr_eq(&one.0, &other.0)
    }

    #[test]
    fn the_same_text_is_compiled_once_while_somebody_has_it() {
        let schemas = SharedSchemas::default();
        let text = raw(r#"{"type":"object","properties":{"a":{"minimum":1.10}}}"#);
        let (one, other) = (schemas.input(&text).unwrap(), schemas.input(&text).unwrap());
        assert!(same(&one, &other));
        assert_eq!((schemas.compiled(), schemas.count()), (1, 1));
        assert_eq!(other.raw().get(), text.get());
        drop((one, other));
        assert_eq!(schemas.count(), 0, "nothing is held for nobody");
        schemas.input(&text).unwrap();
        assert_eq!(schemas.compiled(), 2);
    }

    #[test]
    fn texts_that_mean_the_same_keep_their_own_bytes() {
        let schemas = SharedSchemas::default();
        let texts = [r#"{"type":"object"}"#, r#"{"type": "object"}"#, "{\"type\":\"object\"}\n"];
        let opened = texts.map(|text| schemas.input(&raw(text)).unwrap());
        for (schema, text) in opened.iter().zip(texts) {
            assert_eq!(schema.raw().get(), raw(text).get());
        }
        assert!(!same(&opened[0], &opened[1]));
    }

    #[test]
    fn what_is_allowed_as_output_is_not_let_in_as_input() {
        let schemas = SharedSchemas::default();
        let list = raw(r#"{"type":"array"}"#);
        let _held = schemas.output(&list).unwrap();
        assert!(schemas.input(&list).is_err());
        assert!(schemas.input(&list).is_err(), "a refusal is not remembered as anything else");
        assert_eq!(schemas.count(), 1);
    }

    #[test]
    fn neither_what_is_gone_nor_what_is_kept_piles_up() {
        let schemas = SharedSchemas::default();
        let wide = "x".repeat(2_000);
        for n in 0..6 * FIRST_SWEEP {
            let schema = schemas.input(&raw(&format!(r#"{{"title":"{n} {wide}"}}"#))).unwrap();
            schemas.known().keep(schema.0);
        }
        let known = schemas.known();
        assert!(known.kept_bytes <= KEPT_BYTES && known.kept_bytes > KEPT_BYTES / 2, "{}", known.kept_bytes);
        assert!(known.kept.len() < FIRST_SWEEP, "{}", known.kept.len());
        assert!(known.alive.len() <= 2 * FIRST_SWEEP, "{}", known.alive.len());
    }

    #[test]
    fn many_patterns_in_a_short_text_count_for_what_they_take() {
        let small = InputSchema::compile(&raw(r#"{"properties":{"a":{"pattern":"^a$"}}}"#)).unwrap();
        let large = InputSchema::compile(&raw(r#"{"properties":{"a":{"pattern":"^\\w{900}$"}}}"#)).unwrap();
        assert!(small.0.footprint < 64 * 1024, "{}", small.0.footprint);
        assert!(large.0.footprint > 256 * 1024, "{}", large.0.footprint);
    }
}
