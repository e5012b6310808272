//! A JSON value as the validator sees it: each look at it takes a step of the [`meter`].

use super::meter;
use super::unique;
use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;

/// Values whose every use is counted.
pub(super) struct Counted;

/// A value, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Metered<'a>(pub(super) &'a Value);

/// An object, or a part of one.
pub(super) struct Members<'a>(&'a Map<String, Value>);

/// An array, or a part of one.
pub(super) struct Elements<'a>(&'a [Value]);

/// An object's members, each worth a step.
pub(super) struct MembersIter<'a>(serde_json::map::Iter<'a>);

/// An array's elements, each worth a step.
pub(super) struct ElementsIter<'a>(std::slice::Iter<'a, Value>);

impl Json for Counted {
    type Node<'a> = Metered<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;
    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Metered<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(Metered(buffer))
    }
}

impl Metered<'_> {
    fn address(self) -> usize {
        std::ptr::from_ref(self.0).addr()
    }
}

impl<'a> Node<'a, Counted> for Metered<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        meter::step(1);
        self.0.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        meter::step(1);
        self.0.as_array().map(|elements| Elements(elements))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Value::String(text) = self.0 else {
            meter::step(1);
            return None;
        };
        meter::read(text, self.address());
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        let Value::Number(number) = self.0 else {
            meter::step(1);
            return None;
        };
        meter::step(1 + digits_cost(number));
        Some(number)
    }

    fn as_boolean(&self) -> Option<bool> {
        meter::step(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        meter::step(1);
        self.0.is_null()
    }

    fn is_number(&self) -> bool {
        meter::step(1);
        self.0.is_number()
    }

    fn json_type(&self) -> JsonType {
        meter::step(1);
        Node::<SerdeJson>::json_type(&self.0)
    }

    fn string_length(&self) -> Option<u64> {
        meter::step(1 + self.0.as_str().map_or(0, |text| text.len() as u64 / 256));
        Node::<SerdeJson>::string_length(&self.0)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        meter::step(match self.0 {
            Value::Number(number) => 1 + digits_cost(number),
            Value::Array(elements) => 1 + elements.len() as u64,
            Value::Object(members) => 1 + members.len() as u64,
            _ => 1,
        });
        Node::<SerdeJson>::equals_value(&self.0, expected)
    }

    /// For an error: what else may want the value is said otherwise here.
    fn to_value(&self) -> Cow<'a, Value> {
        meter::error(self.0);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        meter::step(1);
        Some(NodeIdentity::new(self.address()))
    }
}

impl<'a> Object<'a, Counted> for Members<'a> {
    type Node = Metered<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Metered<'a>> {
        meter::step(1);
        self.0.get(key).map(Metered)
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.0.iter())
    }
}

impl<'a> Array<'a, Counted> for Elements<'a> {
    type Node = Metered<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        unique::all_differ(self.0)
    }
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Metered<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        meter::read(name, std::ptr::from_ref(value).addr());
        Some((name, Metered(value)))
    }
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Metered<'a>;

    fn next(&mut self) -> Option<Metered<'a>> {
        let value = self.0.next()?;
        meter::step(1);
        Some(Metered(value))
    }
}

/// What arithmetic with a number costs: with all its digits it is quadratic in them, and an exponent stands for digits.
fn digits_cost(number: &Number) -> u64 {
    let text = number.as_str();
    let written =
        text.split_once(['e', 'E']).map_or(0, |(_, exponent)| match exponent.trim_start_matches(['+', '-']).len() {
            0..=2 => 100,
            3 => 1_000,
            _ => 10_000,
        });
    let digits = text.len() as u64 + written;
    digits * digits / 1_024
}
