//! The places of a schema where something is checked, and which of them lead to which.

use super::keywords::{self, LIST, NAMED, ONE};
use super::{MAX_PATTERNS, SchemaFault};
use crate::domain::fault::Pointer;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Keywords of drafts before 4, whose value is one schema. Nobody checks by them here; a document may still hold them.
const OLD: [&str; 2] = ["extends", "disallow"];
/// Keywords that hold a schema only where something refers to it.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Keywords that no error repeats.
const UNSAID: [&str; 6] = ["$comment", "default", "description", "examples", "example", "title"];
/// Keywords that lead to another place.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that name a place.
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// A place of a schema, and what a check goes on to from there.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// What it costs by itself.
    pub(super) cost: u64,
    /// The places inside it.
    pub(super) applies: Vec<usize>,
    /// The places that it refers to.
    pub(super) leads_to: Vec<usize>,
}

/// All places of a schema; the first is its root.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) all: Vec<Place>,
    /// How many schemas and listed values there are.
    pub(super) entries: usize,
    /// How many patterns there are.
    pub(super) patterns: usize,
    /// How deep schemas are inside each other as they are written.
    pub(super) depth: usize,
    /// The most memory, in bytes, of one keyword that an error may repeat.
    pub(super) repeated: u64,
}

/// Lists the places below the root, and those that references lead to wherever they stand.
pub(super) fn of(root: &Value) -> Result<Places, SchemaFault> {
    let mut finder = Finder {
        root,
        anchors: HashMap::new(),
        index: HashMap::new(),
        found: Places::default(),
        references: Vec::new(),
    };
    finder.find_anchors(root);
    finder.visit(root, &Pointer::root(), 1)?;
    // What a reference leads to may stand under a keyword that nobody knows, and refer further.
    let mut next = 0;
    while let Some((from, reference)) = finder.references.get(next).copied() {
        next += 1;
        for (target, at) in finder.targets(reference) {
            let target = finder.visit(target, &at, 1)?;
            finder.found.all[from].leads_to.push(target);
        }
    }
    Ok(finder.found)
}

struct Finder<'a> {
    root: &'a Value,
    /// What each anchor names, wherever it stands.
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// The places that were visited, by the address of their value.
    index: HashMap<usize, usize>,
    found: Places,
    references: Vec<(usize, &'a str)>,
}

fn key(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'a> Finder<'a> {
    /// Recurses over the document alone, whose depth was bounded when it was read.
    fn find_anchors(&mut self, value: &'a Value) {
        match value {
            Value::Object(members) => {
                for name in ANCHORS.iter().filter_map(|anchor| members.get(*anchor)?.as_str()) {
                    self.anchors.entry(name).or_default().push(value);
                }
                members.values().for_each(|inner| self.find_anchors(inner));
            }
            Value::Array(elements) => elements.iter().for_each(|inner| self.find_anchors(inner)),
            _ => {}
        }
    }

    /// Recurses over the document alone; references are noted for later.
    fn visit(&mut self, schema: &'a Value, at: &Pointer, depth: usize) -> Result<usize, SchemaFault> {
        if let Some(known) = self.index.get(&key(schema)) {
            return Ok(*known);
        }
        let place = self.found.all.len();
        self.index.insert(key(schema), place);
        self.found.all.push(Place { cost: 1, ..Place::default() });
        self.found.entries += 1;
        self.found.depth = self.found.depth.max(depth);
        let Value::Object(members) = schema else { return Ok(place) };
        for (keyword, value) in members {
            let at = at.key(keyword);
            self.note_size(keyword, value);
            match (keyword.as_str(), value) {
                (name, Value::String(reference)) if REFERENCES.contains(&name) => {
                    if !reference.starts_with('#') {
                        return Err(SchemaFault::at(
                            at.as_str(),
                            "refers outside this document; only references that start with # are followed",
                        ));
                    }
                    self.references.push((place, reference));
                }
                ("$id" | "id", Value::String(_)) => {
                    return Err(SchemaFault::at(
                        at.as_str(),
                        "is not taken: it would move what the references below it mean",
                    ));
                }
                ("pattern", _) => self.count_pattern(&at)?,
                ("enum" | "required", Value::Array(all)) => {
                    self.found.entries += all.len();
                    self.found.all[place].cost += all.len() as u64 / 10;
                }
                ("dependentRequired", Value::Object(all)) => self.count_lists(all),
                (name, value) => self.visit_keyword(place, name, value, &at, depth)?,
            }
        }
        Ok(place)
    }

    fn visit_keyword(
        &mut self,
        place: usize,
        keyword: &str,
        value: &'a Value,
        at: &Pointer,
        depth: usize,
    ) -> Result<(), SchemaFault> {
        match value {
            Value::Array(all) if LIST.contains(&keyword) => {
                for (index, inner) in all.iter().enumerate() {
                    let inner = self.visit(inner, &at.index(index), depth + 1)?;
                    self.found.all[place].applies.push(inner);
                }
            }
            Value::Object(all) if NAMED.contains(&keyword) => {
                if keyword == "dependencies" {
                    self.count_lists(all);
                }
                for (name, inner) in all {
                    if keyword == "patternProperties" {
                        self.count_pattern(&at.key(name))?;
                    }
                    let inner = self.visit(inner, &at.key(name), depth + 1)?;
                    if !DEFINITIONS.contains(&keyword) {
                        self.found.all[place].applies.push(inner);
                    }
                }
            }
            Value::Object(_) | Value::Bool(_) if (ONE.contains(&keyword) || OLD.contains(&keyword)) => {
                let inner = self.visit(value, at, depth + 1)?;
                self.found.all[place].applies.push(inner);
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes how long a keyword is that errors repeat. (They may repeat names of properties too.)
    fn note_size(&mut self, keyword: &str, value: &Value) {
        let size = match value {
            Value::Object(all) if NAMED.contains(&keyword) => all.keys().map(String::len).max().unwrap_or(0) as u64,
            Value::Array(_) if LIST.contains(&keyword) => 0,
            _ if ONE.contains(&keyword) || OLD.contains(&keyword) || UNSAID.contains(&keyword) => 0,
            value => memory(value),
        };
        self.found.repeated = self.found.repeated.max(size);
    }

    fn count_lists(&mut self, all: &Map<String, Value>) {
        self.found.entries += all.values().filter_map(Value::as_array).map(Vec::len).sum::<usize>();
    }

    fn count_pattern(&mut self, at: &Pointer) -> Result<(), SchemaFault> {
        self.found.patterns += 1;
        if self.found.patterns > MAX_PATTERNS {
            return Err(SchemaFault::at(at.as_str(), format!("a schema has at most {MAX_PATTERNS} patterns")));
        }
        Ok(())
    }

    /// What a reference leads to, with its place. A reference that leads nowhere is the compiler's error to tell.
    fn targets(&self, reference: &str) -> Vec<(&'a Value, Pointer)> {
        let fragment = keywords::fragment(reference);
        if fragment.is_empty() || fragment.starts_with('/') {
            let at = Pointer::root().join(&fragment);
            return self.root.pointer(&fragment).map(|target| (target, at)).into_iter().collect();
        }
        let at = Pointer::root().join(reference);
        self.anchors.get(fragment.as_str()).into_iter().flatten().map(|target| (*target, at.clone())).collect()
    }
}

/// About how much memory a value takes. Recurses over the document alone.
fn memory(value: &Value) -> u64 {
    32 + match value {
        Value::String(text) => text.len() as u64,
        Value::Array(elements) => elements.iter().map(memory).sum(),
        Value::Object(members) => members.iter().map(|(name, inner)| name.len() as u64 + memory(inner)).sum(),
        _ => 0,
    }
}
