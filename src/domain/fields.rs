//! Reading an object field by field, so that everything wrong with it is told at once.

use super::arguments::MAX_DEPTH;
use super::fault::{Faults, Pointer};
use super::json;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// An object whose members keep their text as it was written. Repeated keys are refused.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Reads an object. The error is a sentence for its author.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        json::check_keys(text)?;
        serde_json::from_slice(text).map_err(|e| json::describe(&e))
    }

    /// The text of a member.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Sets a member, in its place if it is there already.
    pub fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Removes a member.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// The members in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), &**value))
    }

    /// Applies a merge patch (RFC 7396) to these members: a null removes, an object merges, anything else replaces.
    /// The members named in `whole` are replaced even where both sides are objects.
    pub fn merge(&mut self, patch: &Self, whole: &[&str]) -> Result<(), String> {
        for (name, value) in patch.iter() {
            if value.get() == "null" {
                self.remove(name);
                continue;
            }
            let both_objects =
                value.get().starts_with('{') && self.get(name).is_some_and(|old| old.get().starts_with('{'));
            if both_objects && !whole.contains(&name) {
                let mut merged = Self::parse(self.get(name).map_or("{}", RawValue::get).as_bytes())?;
                merged.merge(&Self::parse(value.get().as_bytes())?, &[])?;
                self.set(name, merged.to_raw()?);
            } else {
                self.set(name, value.to_owned());
            }
        }
        Ok(())
    }

    /// The object as text.
    pub fn to_raw(&self) -> Result<Box<RawValue>, String> {
        let members: Vec<String> = self
            .iter()
            .map(|(name, value)| Ok(format!("{}:{}", serde_json::to_string(name)?, value.get())))
            .collect::<Result<_, serde_json::Error>>()
            .map_err(|e| e.to_string())?;
        RawValue::from_string(format!("{{{}}}", members.join(","))).map_err(|e| e.to_string())
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((name, value)) = source.next_entry::<String, Box<RawValue>>()? {
                    if fields.get(&name).is_some() {
                        return Err(de::Error::custom(format!("the key {name:?} stands twice in one object")));
                    }
                    fields.0.push((name, value));
                }
                Ok(fields)
            }
        }
        source.deserialize_map(Members)
    }
}

/// Takes an object's members one after the other and notes what is wrong with each.
pub struct Reader<'a> {
    fields: &'a Fields,
    at: Pointer,
    known: Vec<&'static str>,
    faults: &'a mut Faults,
}

impl<'a> Reader<'a> {
    /// Reads `fields`, which stand at the place `at` of the document.
    pub const fn new(fields: &'a Fields, at: Pointer, faults: &'a mut Faults) -> Self {
        Self { fields, at, known: Vec::new(), faults }
    }

    /// The place of a member.
    pub fn place(&self, name: &str) -> Pointer {
        self.at.key(name)
    }

    /// Notes a fault of a member.
    pub fn fault(&mut self, name: &str, detail: impl Into<String>) {
        self.faults.add(self.at.key(name), detail);
    }

    /// Where faults are noted, for readers of nested objects.
    pub const fn faults(&mut self) -> &mut Faults {
        self.faults
    }

    /// The text of a member, if it is there. An explicit null is there.
    pub fn raw(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.known.push(name);
        self.fields.get(name)
    }

    /// A member that may be absent or null.
    pub fn optional<T: DeserializeOwned>(&mut self, name: &'static str, expected: &str) -> Option<T> {
        let raw = self.raw(name)?;
        if raw.get() == "null" {
            return None;
        }
        self.decode(name, raw, expected)
    }

    /// A member that must be there.
    pub fn required<T: DeserializeOwned>(&mut self, name: &'static str, expected: &str) -> Option<T> {
        if let Some(raw) = self.raw(name) {
            return self.decode(name, raw, expected);
        }
        self.fault(name, format!("is required: {expected}"));
        None
    }

    /// A member that is read strictly, as [`json::parse`] reads, and is a collection of values as deep as an input.
    pub fn value(&mut self, name: &'static str) -> Option<serde_json::Value> {
        let raw = self.raw(name)?;
        json::parse(raw.get().as_bytes(), MAX_DEPTH + 1).map_err(|detail| self.fault(name, detail)).ok()
    }

    /// A member that is an object of its own.
    pub fn object(&mut self, name: &'static str) -> Option<Fields> {
        self.object_of(name, "an object")
    }

    /// A member that is an object of its own; `expected` says what is in it.
    pub fn object_of(&mut self, name: &'static str, expected: &str) -> Option<Fields> {
        let raw = self.raw(name)?;
        if raw.get() == "null" {
            return None;
        }
        if !raw.get().starts_with('{') {
            return self.decode(name, raw, expected);
        }
        Fields::parse(raw.get().as_bytes()).map_err(|detail| self.fault(name, detail)).ok()
    }

    /// A text of at least one visible and at most `max` characters, without control characters.
    pub fn text(&mut self, name: &'static str, max: usize, required: bool) -> Option<String> {
        let expected = "a string";
        let text: String = if required { self.required(name, expected)? } else { self.optional(name, expected)? };
        match text_fault(&text, max) {
            Some(detail) => {
                self.fault(name, detail);
                None
            }
            None => Some(text),
        }
    }

    /// Notes every member that nobody asked for.
    pub fn finish(self) {
        for (name, _) in self.fields.iter() {
            if !self.known.contains(&name) {
                self.faults
                    .add(self.at.key(name), format!("unknown field {name:?}; known are {}", self.known.join(", ")));
            }
        }
    }

    fn decode<T: DeserializeOwned>(&mut self, name: &str, raw: &RawValue, expected: &str) -> Option<T> {
        if let Ok(value) = serde_json::from_str(raw.get()) {
            return Some(value);
        }
        let found = serde_json::from_str(raw.get()).map_or("something unreadable", |value| json::kind(&value));
        self.fault(name, format!("expected {expected}, got {found}"));
        None
    }
}

/// What is wrong with a text that people and models read: emptiness, length, or characters that nobody can see and
/// that Postgres (NUL) or a reader's eye (bidirectional overrides, tags) would trip over.
pub fn text_fault(text: &str, max: usize) -> Option<String> {
    if text.trim().is_empty() {
        return Some("must not be empty".to_owned());
    }
    let length = text.chars().count();
    if length > max {
        return Some(format!("must have at most {max} characters, has {length}"));
    }
    let control = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    control.map(named).or_else(|| hidden_fault(text))
}

/// What is wrong with a text that models read and people review: characters that only one of the two sees, or that make
/// a line read in another order than it is written. Joiners, marks of direction and single variation selectors stay, for
/// scripts and emoji need them; the others say nothing that a text would lack without them.
pub fn hidden_fault(text: &str) -> Option<String> {
    let selector = |c: char| matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
    let mut before = ' ';
    for c in text.chars() {
        if is_hidden(c) || (selector(c) && selector(before)) {
            return Some(named(c));
        }
        before = c;
    }
    None
}

fn named(c: char) -> String {
    format!("must not hold the invisible character U+{:04X}", u32::from(c))
}

fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_told_at_once() {
        let fields = Fields::parse(br#"{"name": 5, "size": "x", "odd": 1}"#).unwrap();
        let mut faults = Faults::none();
        let mut reader = Reader::new(&fields, Pointer::root(), &mut faults);
        assert_eq!(reader.required::<String>("name", "a string"), None);
        assert_eq!(reader.required::<String>("title", "a string"), None);
        assert_eq!(reader.optional::<u32>("size", "an integer"), None);
        reader.finish();
        let told: Vec<_> = faults.as_slice().iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(told, ["/name", "/title", "/size", "/odd"]);
    }

    #[test]
    fn what_a_reader_cannot_see_is_refused_and_what_scripts_need_is_not() {
        for bad in
            ["a\u{200b}b", "a\u{ad}b", "\u{feff}a", "a\u{2060}", "a\u{202e}b", "a\u{e0041}", "a\0", "a\u{fe0f}\u{fe0e}"]
        {
            assert!(text_fault(bad, 100).unwrap().contains("U+"), "{bad:?}");
        }
        for good in ["👩\u{200d}👧", "می\u{200c}خواهم", "❤\u{fe0f}", "a\u{200e}b", "line\nline\ttab"] {
            assert_eq!(text_fault(good, 100), None, "{good:?}");
        }
    }

    #[test]
    fn a_merge_patch_follows_rfc_7396() {
        let mut fields = Fields::parse(br#"{"a": {"x": 1, "y": 2}, "b": 1, "s": {"p": 1}}"#).unwrap();
        let patch = Fields::parse(br#"{"a": {"y": null, "z": 3}, "b": null, "s": {"q": 2}}"#).unwrap();
        fields.merge(&patch, &["s"]).unwrap();
        assert_eq!(fields.to_raw().unwrap().get(), r#"{"a":{"x":1,"z":3},"s":{"q": 2}}"#);
    }
}
