//! References: gathered in `$defs`, or written out.

use super::walk::{self, take, visit};
use super::{Adapted, Effect};
use crate::domain::Pointer;
use crate::domain::json::Object;
use crate::domain::schema::keywords;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Parts of a place that would say nothing as the name of what stands there.
const UNTELLING: [&str; 8] =
    ["additionalProperties", "allOf", "anyOf", "items", "not", "oneOf", "prefixItems", "properties"];
/// How often a definition may be open inside itself: "unrolled a little".
const MAX_OPEN: usize = 2;
/// The most schemas that writing references out may make. A few definitions that refer to each other can stand for a
/// tree of any size.
const MAX_WRITTEN_OUT: usize = 2_000;
/// The most bytes of definitions that are written out: one long text can be referred to from many places.
const MAX_BYTES: usize = 256 * 1024;
/// The deepest place, in parts of its pointer, at which a reference is still written out.
const MAX_DEPTH: usize = 16;

/// Makes every reference lead to the root or to a member of the root's `$defs`, so that later passes may move what
/// stands elsewhere. `definitions` becomes `$defs`.
pub(super) fn lift(adapted: &mut Adapted) {
    let original = adapted.schema.clone();
    let mut lifted = Lifted {
        root: &original,
        anchors: anchors(&original),
        names: BTreeMap::new(),
        taken: BTreeSet::new(),
        waiting: VecDeque::new(),
    };
    let Some(root) = adapted.schema.as_object_mut() else { return };
    let mut definitions: Vec<(String, Value)> = Vec::new();
    for keyword in ["$defs", "definitions"] {
        let Some(Value::Object(all)) = root.get(keyword) else { continue };
        for (key, schema) in all {
            let name = lifted.unused(&plain(key));
            lifted.names.insert(Pointer::root().key(keyword).key(key).as_str().to_owned(), name.clone());
            definitions.push((name, schema.clone()));
        }
    }
    if root.get("$defs").is_some_and(Value::is_object) {
        take(root, "definitions");
        root.insert("$defs".to_owned(), json!({}));
    } else {
        walk::rename(root, "definitions", "$defs");
        if root.get("$defs").is_some() {
            root.insert("$defs".to_owned(), json!({}));
        }
    }
    lifted.redirect(&mut adapted.schema);
    for (_, schema) in &mut definitions {
        lifted.redirect(schema);
    }
    while let Some((name, mut schema)) = lifted.waiting.pop_front() {
        lifted.redirect(&mut schema);
        definitions.push((name, schema));
    }
    if !definitions.is_empty()
        && let Some(root) = adapted.root()
    {
        root.insert("$defs".to_owned(), Value::Object(definitions.into_iter().collect()));
    }
}

struct Lifted<'a> {
    root: &'a Value,
    /// The place of each anchor.
    anchors: BTreeMap<String, String>,
    /// The name in `$defs` of each place that is referred to.
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    waiting: VecDeque<(String, Value)>,
}

impl Lifted<'_> {
    /// A name in `$defs` that is not taken, like the one wished for.
    fn unused(&mut self, wished: &str) -> String {
        let mut name = wished.to_owned();
        let mut n = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{wished}_{n}");
            n += 1;
        }
        name
    }

    fn redirect(&mut self, schema: &mut Value) {
        visit(schema, &Pointer::root(), &mut |schema, at| {
            if !at.as_str().is_empty() {
                take(schema, "$defs"); // what is referred to there is lifted out
                take(schema, "definitions");
            }
            take(schema, "$anchor");
            let Some(Value::String(reference)) = schema.get("$ref") else { return };
            match self.target(reference) {
                Some(place) if place.is_empty() => {
                    schema.insert("$ref".to_owned(), json!("#"));
                }
                Some(place) => {
                    let name = self.name_of(&place);
                    let reference = format!("#{}", Pointer::root().key("$defs").key(&name));
                    schema.insert("$ref".to_owned(), json!(reference));
                }
                None => {
                    take(schema, "$ref");
                }
            }
        });
    }

    fn name_of(&mut self, place: &str) -> String {
        if let Some(name) = self.names.get(place) {
            return name.clone();
        }
        let telling = |part: &&str| part.parse::<usize>().is_err() && !UNTELLING.contains(part);
        let last = place.rsplit('/').find(telling).unwrap_or_default();
        let name = self.unused(&plain(last));
        self.names.insert(place.to_owned(), name.clone());
        let schema = self.root.pointer(place).cloned().unwrap_or(json!(true));
        self.waiting.push_back((name.clone(), schema));
        name
    }

    /// The place that a reference leads to.
    fn target(&self, reference: &str) -> Option<String> {
        let fragment = keywords::fragment(reference.strip_prefix('#')?);
        if fragment.is_empty() || fragment.starts_with('/') {
            return resolve(self.root, &fragment);
        }
        self.anchors.get(&fragment).cloned()
    }
}

fn anchors(root: &Value) -> BTreeMap<String, String> {
    let mut anchors = BTreeMap::new();
    let mut copy = root.clone();
    visit(&mut copy, &Pointer::root(), &mut |schema, at| {
        if let Some(Value::String(anchor)) = schema.get("$anchor") {
            anchors.entry(anchor.clone()).or_insert_with(|| at.as_str().to_owned());
        }
    });
    anchors
}

/// A name that a reference can hold without any escaping.
fn plain(name: &str) -> String {
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')).collect();
    if plain.is_empty() { "schema".to_owned() } else { plain }
}

/// The place in a translated schema that a pointer into the schema as written leads to.
fn resolve(root: &Value, pointer: &str) -> Option<String> {
    let mut at = Pointer::root();
    let mut here = root;
    let segments: Vec<String> =
        pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect();
    for (n, segment) in segments.iter().enumerate() {
        let indexed = segments.get(n + 1).is_some_and(|next| next.parse::<usize>().is_ok());
        let key = match segment.as_str() {
            "items" if indexed && here.get("prefixItems").is_some() => "prefixItems",
            "additionalItems" if here.get("additionalItems").is_none() => "items",
            "dependencies" if here.get("dependencies").is_none() => "dependentSchemas",
            same => same,
        };
        here = match here {
            Value::Array(all) => all.get(key.parse::<usize>().ok()?)?,
            other => other.get(key)?,
        };
        at = at.key(key);
    }
    Some(at.as_str().to_owned())
}

/// What a reference of a lifted schema leads to.
pub(super) fn follow<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Writes every reference of a lifted schema out and takes `$defs` away. Where a definition holds itself, the inner one
/// is only named by its type: a declaration is a finite text.
pub(super) fn inline(adapted: &mut Adapted) {
    let root = adapted.schema.clone();
    let mut writer = Writer { root: &root, open: Vec::new(), sizes: Sizes::default(), written: 0, cut: Vec::new() };
    if let Some(members) = adapted.schema.as_object_mut() {
        take(members, "$defs");
    }
    writer.write_out(&mut adapted.schema, &Pointer::root());
    for place in writer.cut {
        adapted.change(
            place,
            Effect::Lost,
            "the schema holds itself; how it goes on further inside is not declared to this provider",
        );
    }
}

struct Writer<'a> {
    root: &'a Value,
    /// The references that are being written out, outermost first.
    open: Vec<String>,
    sizes: Sizes,
    written: usize,
    cut: Vec<Pointer>,
}

/// How many bytes of definitions were written out.
#[derive(Default)]
pub(super) struct Sizes {
    known: BTreeMap<String, usize>,
    spent: usize,
}

impl Sizes {
    /// Whether what a reference leads to may be written out once more.
    pub(super) fn allow(&mut self, reference: &str, target: &Value) -> bool {
        let size = *self.known.entry(reference.to_owned()).or_insert_with(|| target.to_string().len());
        self.spent = self.spent.saturating_add(size);
        self.spent <= MAX_BYTES
    }
}

impl Writer<'_> {
    fn write_out(&mut self, schema: &mut Value, at: &Pointer) {
        self.written += 1;
        let opened = self.open.len();
        while let Some(Value::String(reference)) = schema.get("$ref") {
            let reference = reference.clone();
            let Some(members) = schema.as_object_mut() else { break };
            take(members, "$ref");
            let Some(target) = follow(self.root, &reference) else { continue };
            let deep = at.as_str().matches('/').count() > MAX_DEPTH || self.open.len() >= MAX_DEPTH;
            let times = self.open.iter().filter(|open| **open == reference).count();
            if times >= MAX_OPEN || deep || self.written > MAX_WRITTEN_OUT || !self.sizes.allow(&reference, target) {
                self.cut.push(at.clone());
                merge_beside(members, stub(target));
                break;
            }
            self.open.push(reference);
            merge_beside(members, target.clone());
        }
        self.write_out_children(schema, at);
        self.open.truncate(opened);
    }

    fn write_out_children(&mut self, schema: &mut Value, at: &Pointer) {
        // One level at a time, so that each child sees the references that are open around it and no others.
        walk::children(schema, at, &mut |child, place| self.write_out(child, &place));
    }
}

/// What is said of a schema that is not written out again.
fn stub(target: &Value) -> Value {
    target.get("type").map_or_else(|| json!({}), |kind| json!({ "type": kind }))
}

/// Puts a definition where a reference to it stood, beside the reference's siblings, which keep their word.
fn merge_beside(members: &mut Object, target: Value) {
    let Value::Object(target) = target else { return };
    let clash = target.iter().any(|(key, value)| {
        members.get(key).is_some_and(|own| own != value) && !super::merge::ANNOTATIONS.contains(&key.as_str())
    });
    if clash {
        let own = std::mem::take(members);
        let (said, rules): (Object, Object) =
            own.into_iter().partition(|(key, _)| super::merge::ANNOTATIONS.contains(&key.as_str()));
        members.extend(said);
        members.insert("allOf".to_owned(), json!([target, rules]));
        return;
    }
    for (key, value) in target {
        // A reference to the root would bring the root's definitions along.
        if key != "$defs" {
            members.entry(key).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::InputSchema;
    use serde_json::value::to_raw_value;

    fn lifted(schema: &Value) -> Value {
        let stored = InputSchema::compile(&to_raw_value(schema).unwrap()).unwrap();
        let mut adapted = Adapted::new(&stored);
        super::super::dialect::modernise(&mut adapted);
        lift(&mut adapted);
        adapted.schema
    }

    #[test]
    fn references_lead_to_definitions_alone() {
        let schema = json!({"properties": {
                "a": {"$ref": "#/properties/b/items"}, "b": {"type": "array", "items": {"type": "string"}},
                "c": {"$ref": "#/$defs/List%5Bstr%5D"}, "d": {"$ref": "#here"}, "e": {"$ref": "#"}},
            "$defs": {"List[str]": {"type": "array", "items": {"$ref": "#/definitions/x~1y"}}},
            "definitions": {"x/y": {"$anchor": "here", "type": "integer"}}});
        let lifted = lifted(&schema);
        let target = |name: &str| {
            let reference = lifted["properties"][name]["$ref"].as_str().unwrap();
            (reference.to_owned(), follow(&lifted, reference).unwrap().clone())
        };
        assert_eq!(target("a"), ("#/$defs/b".to_owned(), json!({"type": "string"})));
        assert_eq!(
            target("c"),
            ("#/$defs/Liststr".to_owned(), json!({"type": "array", "items": {"$ref": "#/$defs/xy"}}))
        );
        assert_eq!(target("d"), ("#/$defs/xy".to_owned(), json!({"type": "integer"})));
        assert_eq!(target("e").0, "#");
        assert!(lifted.get("definitions").is_none());
    }

    #[test]
    fn a_schema_without_references_stays_as_it_is() {
        let schema =
            json!({"type": "object", "properties": {"$ref": {"type": "string"}, "definitions": {"type": "object"}}});
        assert_eq!(lifted(&schema).to_string(), schema.to_string());
    }

    #[test]
    fn references_are_written_out_beside_what_stands_there() {
        let schema = json!({"properties": {"t": {"$ref": "#/$defs/T", "description": "Mine"}},
            "$defs": {"T": {"type": "object", "description": "Its own", "properties": {"u": {"$ref": "#/$defs/U"}}}, "U": {"type": "integer"}}});
        let mut adapted = Adapted { schema: lifted(&schema), changes: Vec::new() };
        inline(&mut adapted);
        let written = json!({"properties": {"t": {"description": "Mine", "type": "object", "properties": {"u": {"type": "integer"}}}}});
        assert_eq!(adapted.schema, written);
        assert!(adapted.changes.is_empty());
    }
}
