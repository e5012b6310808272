//! What is wrong with a document, and where.

use serde::Serialize;
use std::fmt::{self, Write};

/// A place in a JSON document, as RFC 6901 writes it: `""` is the whole, `/a/0` the first member of `a`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Pointer(String);

impl Pointer {
    /// The whole document.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// The member `key` of the object at this place.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}/{}", self.0, key.replace('~', "~0").replace('/', "~1")))
    }

    /// The element `index` of the array at this place.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}/{index}", self.0))
    }

    /// This place, continued by another pointer.
    #[must_use]
    pub fn join(&self, rest: &str) -> Self {
        Self(format!("{}{rest}", self.0))
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// One thing that is wrong with a document: where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Fault {
    /// The place.
    pub pointer: Pointer,
    /// What is wrong, for the author of the document. Never repeats the value that stands there.
    pub detail: String,
}

/// Everything that is wrong with a document. Empty means that it is right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// How many faults of one document are told; more would not help its author.
    const MOST: usize = 50;

    /// None so far.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// A single fault.
    pub fn one(pointer: Pointer, detail: impl Into<String>) -> Self {
        let mut faults = Self::none();
        faults.add(pointer, detail);
        faults
    }

    /// Notes a fault.
    pub fn add(&mut self, pointer: Pointer, detail: impl Into<String>) {
        if self.0.len() < Self::MOST {
            self.0.push(Fault { pointer, detail: detail.into() });
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The faults in the order in which they were found.
    pub fn as_slice(&self) -> &[Fault] {
        &self.0
    }

    /// All of them in one line: `/name: expected a string; /tags/0: …`.
    pub fn summary(&self) -> String {
        let mut line = String::new();
        for fault in &self.0 {
            if !line.is_empty() {
                line.push_str("; ");
            }
            if !fault.pointer.as_str().is_empty() {
                let _ = write!(line, "{}: ", fault.pointer);
            }
            line.push_str(&fault.detail);
        }
        line
    }
}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
