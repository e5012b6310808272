//! What a schema may cost, told before anything is compiled: local references only, bounded patterns, a bounded number
//! of places, and bounded weight and depth once references are followed.
//!
//! Nothing here recurses along references: [`places`] lists what the document holds, whose own depth is bounded, and
//! [`Measure`] follows the references over that list with a stack of its own.

use super::places::{self, Place};
use super::{MAX_LEVELS, MAX_PLACES, MAX_WEIGHT, SchemaFault};
use serde_json::Value;

/// What is known of a schema that was let through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// How many places a check may pass on the way through the schema once, references followed.
    pub(super) weight: u64,
    /// How many patterns it has, of texts or of names.
    pub(super) patterns: usize,
    /// The most bytes of one keyword that says what a value has to be.
    pub(super) repeated: u64,
    /// How many schemas may be inside each other while the compiler is at work: it follows a reference at once as long
    /// as it is inside fewer than nine.
    pub(super) compiler_levels: usize,
}

/// How many references the compiler follows inside each other before it puts them off.
const NESTED_REFERENCES: usize = 8;

pub(super) fn check(root: &Value) -> Result<Facts, SchemaFault> {
    let found = places::of(root)?;
    if found.entries > MAX_PLACES {
        let detail = format!("has too many places: {} schemas and listed values, at most {MAX_PLACES}", found.entries);
        return Err(SchemaFault::at("", detail));
    }
    let references = found.all.iter().filter(|place| !place.leads_to.is_empty()).count();
    let (weight, levels) = Measure::new(&found.all).take();
    if levels > MAX_LEVELS {
        let detail = format!("is nested deeper than {MAX_LEVELS} levels once references are followed");
        return Err(SchemaFault::at("", detail));
    }
    if weight > MAX_WEIGHT {
        let detail = format!("too much to check: more than {MAX_WEIGHT} places once references are followed");
        return Err(SchemaFault::at("", detail));
    }
    let compiler_levels = found.depth.saturating_mul(1 + references.min(NESTED_REFERENCES));
    Ok(Facts { weight, patterns: found.patterns, repeated: found.repeated, compiler_levels })
}

/// Weight and depth of every place, each found out once. What is met while it is still being looked into is a circle,
/// and counts as one place: how often a value goes round is metered while it is checked.
struct Measure<'a> {
    places: &'a [Place],
    known: Vec<Option<(u64, usize)>>,
    /// Which places are being looked into.
    inside: Vec<bool>,
}

/// A place that is being looked into.
struct Open {
    place: usize,
    next: usize,
    weight: u64,
    levels: usize,
}

impl Open {
    const fn new(place: usize, weight: u64) -> Self {
        Self { place, next: 0, weight, levels: 0 }
    }

    fn add(&mut self, weight: u64, levels: usize) {
        self.weight = self.weight.saturating_add(weight);
        self.levels = self.levels.max(levels);
    }
}

impl<'a> Measure<'a> {
    fn new(places: &'a [Place]) -> Self {
        Self { places, known: vec![None; places.len()], inside: vec![false; places.len()] }
    }

    /// The weight of the root, and the most levels of any place.
    fn take(mut self) -> (u64, usize) {
        let mut deepest = 0;
        for place in 0..self.places.len() {
            deepest = deepest.max(self.measure(place).1);
        }
        (self.known.first().copied().flatten().map_or(0, |(weight, _)| weight), deepest)
    }

    fn measure(&mut self, place: usize) -> (u64, usize) {
        if let Some(known) = self.known[place] {
            return known;
        }
        let mut stack = vec![Open::new(place, self.places[place].cost)];
        self.inside[place] = true;
        loop {
            let Some(top) = stack.last_mut() else { return (0, 0) };
            let here = &self.places[top.place];
            let Some(next) = here.applies.iter().chain(&here.leads_to).nth(top.next).copied() else {
                let done = (top.weight, top.levels + 1);
                self.known[top.place] = Some(done);
                self.inside[top.place] = false;
                stack.pop();
                match stack.last_mut() {
                    Some(outer) => outer.add(done.0, done.1),
                    None => return done,
                }
                continue;
            };
            top.next += 1;
            match self.known[next] {
                Some((weight, levels)) => top.add(weight, levels),
                None if self.inside[next] => top.add(1, 0),
                None => {
                    self.inside[next] = true;
                    stack.push(Open::new(next, self.places[next].cost));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A chain of definitions, each a few levels deep, that lead to the next one.
    fn chain(links: usize, levels: usize, reference: impl Fn(usize) -> (Value, Value)) -> Value {
        let mut root = json!({"properties": {"a": reference(0).0}, "$defs": {}});
        for n in 0..links {
            let end = if n + 1 == links { json!({"type": "object"}) } else { reference(n + 1).0 };
            let mut schema = (0..levels).fold(end, |inner, _| json!({ "not": inner }));
            for (key, value) in reference(n).1.as_object().into_iter().flatten() {
                schema[key] = value.clone();
            }
            root["$defs"][format!("d{n}")] = schema;
        }
        root
    }

    #[test]
    fn depth_is_counted_along_every_kind_of_reference() {
        let pointer = |n: usize| (json!({"$ref": format!("#/$defs/d{n}")}), json!({}));
        let anchor = |n: usize| (json!({"$ref": format!("#a{n}")}), json!({"$anchor": format!("a{n}")}));
        let dynamic = |n: usize| (json!({"$dynamicRef": format!("#a{n}")}), json!({"$dynamicAnchor": format!("a{n}")}));
        for schema in [chain(60, 28, pointer), chain(1350, 0, pointer), chain(60, 28, anchor), chain(60, 28, dynamic)] {
            let fault = check(&schema).unwrap_err();
            assert!(fault.detail.contains("levels"), "{}", fault.detail);
        }
        for schema in [chain(4, 28, pointer), chain(4, 28, anchor), chain(4, 28, dynamic)] {
            check(&schema).unwrap();
        }
    }

    #[test]
    fn weight_is_counted_along_every_kind_of_reference() {
        let doubled = |reference: &dyn Fn(usize) -> Value, anchor: &str| {
            let mut root = json!({"properties": {"a": reference(0)}, "$defs": {}});
            for n in 0..20 {
                root["$defs"][format!("d{n}")] = json!({"anyOf": [reference(n + 1), reference(n + 1)]});
                root["$defs"][format!("d{n}")][anchor] = json!(format!("a{n}"));
            }
            root["$defs"]["d20"] = json!({ anchor: "a20" });
            root
        };
        let schemas = [
            doubled(&|n| json!({"$ref": format!("#/$defs/d{n}")}), "$comment"),
            doubled(&|n| json!({"$ref": format!("#/%24defs/d{n}")}), "$comment"),
            doubled(&|n| json!({"$ref": format!("#a{n}")}), "$anchor"),
            doubled(&|n| json!({"$dynamicRef": format!("#a{n}")}), "$dynamicAnchor"),
        ];
        for schema in schemas {
            assert!(check(&schema).unwrap_err().detail.contains("too much"), "{schema}");
        }
    }

    #[test]
    fn a_circle_ends() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"$anchor": "a", "items": {"$ref": "#a"}}),
            json!({"$recursiveAnchor": true, "items": {"$recursiveRef": "#"}}),
        ] {
            let facts = check(&schema).unwrap();
            assert!(facts.weight < 10, "{schema}: {facts:?}");
        }
    }

    #[test]
    fn long_lists_are_counted() {
        let names = |count: usize| (0..count).map(|n| json!(n)).collect::<Vec<_>>();
        assert!(check(&json!({"properties": {"a": {"enum": names(20_000)}}})).unwrap_err().detail.contains("places"));
        assert!(check(&json!({"required": names(20_000)})).unwrap_err().detail.contains("places"));
        assert!(check(&json!({"dependentRequired": {"a": names(20_000)}})).is_err());
        check(&json!({"properties": {"a": {"enum": names(5_000)}}})).unwrap();
    }
}
