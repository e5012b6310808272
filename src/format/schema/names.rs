//! Property names that a provider refuses: renamed for the model, and mapped back for the handler.
//!
//! A mapping belongs to the whole schema: one name is renamed in one way wherever it stands, and to nothing that any
//! other property is called. It is made from the stored schema alone, so a call finds the one that the list was made by.

use super::walk::{self, visit};
use super::{Adapted, Effect};
use crate::domain::Pointer;
use crate::domain::json::Object;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name under either rule.
const MAX_LENGTH: usize = 64;

/// Which property names a provider takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format) enum NameRule {
    /// `^[a-zA-Z0-9_.-]{1,64}$` (**E**, Anthropic; one other name fails the whole request).
    Anthropic,
    /// `^[a-zA-Z_][a-zA-Z0-9_]{0,63}$` (**S**, Gemini's `parameters`; **U** for `parametersJsonSchema`).
    Gemini,
}

impl NameRule {
    fn takes(self, name: &str) -> bool {
        !name.is_empty()
            && name.len() <= MAX_LENGTH
            && name.chars().all(|c| self.takes_char(c))
            && (self == Self::Anthropic || !name.starts_with(|c: char| c.is_ascii_digit()))
    }

    fn takes_char(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || (self == Self::Anthropic && matches!(c, '.' | '-'))
    }

    /// A name that is taken, as much like the other as can be.
    fn like(self, name: &str) -> String {
        let mut like: String = name.chars().map(|c| if self.takes_char(c) { c } else { '_' }).collect();
        if self == Self::Gemini && like.starts_with(|c: char| c.is_ascii_digit()) {
            like.insert(0, '_');
        }
        while like.len() > 1 && like.ends_with('_') && !name.ends_with('_') {
            like.pop();
        }
        like.truncate(MAX_LENGTH);
        if like.is_empty() { "_".to_owned() } else { like }
    }
}

/// The new names of the properties of a schema that need one.
pub(super) fn renamed(stored: &Value, rule: NameRule) -> BTreeMap<String, String> {
    let mut taken = BTreeSet::new();
    let mut refused = Vec::new();
    walk::any(stored, &mut |schema| {
        for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Object::keys) {
            if rule.takes(name) {
                taken.insert(name.clone());
            } else if !refused.contains(name) {
                refused.push(name.clone());
            }
        }
        false
    });
    let mut names = BTreeMap::new();
    for name in refused {
        let like = rule.like(&name);
        let mut new = like.clone();
        let mut n = 2;
        while !taken.insert(new.clone()) {
            let suffix = format!("_{n}");
            new.clone_from(&like);
            new.truncate(MAX_LENGTH - suffix.len()); // all of it is ASCII
            new.push_str(&suffix);
            n += 1;
        }
        names.insert(name, new);
    }
    names
}

/// Gives the properties names that the provider takes.
pub(super) fn rename(adapted: &mut Adapted, stored: &Value, rule: NameRule) {
    let names = renamed(stored, rule);
    if names.is_empty() {
        return;
    }
    let mut changed = Vec::new();
    visit(&mut adapted.schema, &Pointer::root(), &mut |schema, at| {
        for keyword in ["properties", "dependentSchemas", "dependentRequired"] {
            if let Some(Value::Object(members)) = schema.get_mut(keyword) {
                if keyword == "properties" {
                    changed.extend(
                        members
                            .keys()
                            .filter(|name| names.contains_key(*name))
                            .map(|name| (at.key(keyword).key(name), names.get(name).cloned().unwrap_or_default())),
                    );
                }
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(name, value)| (names.get(&name).cloned().unwrap_or(name), value))
                    .collect();
            }
        }
        for keyword in ["required", "propertyOrdering"] {
            if let Some(Value::Array(listed)) = schema.get_mut(keyword) {
                rename_listed(listed, &names);
            }
        }
        if let Some(Value::Object(members)) = schema.get_mut("dependentRequired") {
            members.values_mut().filter_map(Value::as_array_mut).for_each(|listed| rename_listed(listed, &names));
        }
    });
    for (place, new) in changed {
        adapted.change(
            place,
            Effect::Rewritten,
            format!("is called {new:?} here, since the provider refuses the name"),
        );
    }
}

/// Leaves properties out whose names the provider does not take, where they cannot be renamed: in a schema of what a tool
/// answers. Objects that lose one are open, so what is said stays true.
pub(super) fn leave_out(adapted: &mut Adapted, rule: NameRule) {
    let mut lost = Vec::new();
    visit(&mut adapted.schema, &Pointer::root(), &mut |schema, at| {
        let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
        let refused: Vec<String> = properties.keys().filter(|name| !rule.takes(name)).cloned().collect();
        if refused.is_empty() {
            return;
        }
        properties.retain(|name, _| rule.takes(name));
        if properties.is_empty() {
            walk::take(schema, "properties");
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| name.as_str().is_none_or(|name| rule.takes(name)));
        }
        walk::take(schema, "additionalProperties");
        lost.extend(refused.iter().map(|name| at.key("properties").key(name)));
    });
    for place in lost {
        adapted.change(place, Effect::Lost, "is not declared, since the provider refuses the name");
    }
}

fn rename_listed(listed: &mut [Value], names: &BTreeMap<String, String>) {
    for name in listed {
        if let Some(new) = name.as_str().and_then(|name| names.get(name)) {
            *name = json!(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_are_taken_alike_and_distinct() {
        let long = "x".repeat(70);
        let schema = json!({"properties": {"filter[name]": {}, "filter_name": {}, "filter(name)": {}, "": {}, "a.b": {},
            "é": {"properties": {"9th": {}}}, &long: {}, "plain": {}}});
        for rule in [NameRule::Anthropic, NameRule::Gemini] {
            let names = renamed(&schema, rule);
            let mut all: Vec<&String> = names.values().collect();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), names.len(), "{names:?}");
            assert!(names.values().all(|name| rule.takes(name)), "{names:?}");
            assert!(!names.contains_key("plain"));
        }
        let names = renamed(&schema, NameRule::Anthropic);
        assert_eq!(names["filter[name]"], "filter_name_2");
        assert_eq!(names["filter(name)"], "filter_name_3");
        assert_eq!(names[&long], "x".repeat(64));
        assert!(!names.contains_key("a.b") && !names.contains_key("9th"));
        let names = renamed(&schema, NameRule::Gemini);
        assert_eq!((names["a.b"].as_str(), names["9th"].as_str()), ("a_b", "_9th"));
    }
}
