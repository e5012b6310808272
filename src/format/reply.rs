//! Finding the calls in what a provider's API returned.
//!
//! SDKs dump absent members as null, so null and absent are the same everywhere here.

use crate::domain::json::{Object, kind};
use crate::domain::{Pointer, ToolCall};
use serde_json::Value;
use std::fmt;

/// What a reply asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The calls, in the reply's order. None in a reply of text alone.
    pub calls: Vec<ToolCall>,
}

/// Why something is no reply of this provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyFault {
    /// The place in the reply.
    pub pointer: Pointer,
    /// What is wrong there, for the author of the agent backend.
    pub detail: String,
}

impl fmt::Display for ReplyFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.as_str().is_empty() { "the reply" } else { self.pointer.as_str() };
        write!(out, "{place}: {}", self.detail)
    }
}

impl std::error::Error for ReplyFault {}

impl Reply {
    /// These calls; all of them cut off if the reply says so.
    pub(super) fn of(mut calls: Vec<ToolCall>, cut_off: bool) -> Self {
        for call in &mut calls {
            call.cut_off |= cut_off;
        }
        Self { calls }
    }
}

/// A value in a reply, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) at: Pointer,
}

impl<'a> Node<'a> {
    pub(super) const fn root(value: &'a Value) -> Self {
        Self { value, at: Pointer::root() }
    }

    /// A member that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Self { value, at: self.at.key(key) })
    }

    /// The first of these members that is there and not null: two spellings of one thing.
    pub(super) fn either(&self, keys: [&str; 2]) -> Option<Self> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// A text member.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.value.get(key)?.as_str()
    }

    pub(super) fn is_text(&self, key: &str, text: &str) -> bool {
        self.text(key) == Some(text)
    }

    pub(super) fn object(&self) -> Option<&'a Object> {
        self.value.as_object()
    }

    /// The elements, if this is an array.
    pub(super) fn elements(&self) -> Option<Vec<Self>> {
        let elements = self.value.as_array()?;
        Some(elements.iter().enumerate().map(|(n, value)| Self { value, at: self.at.index(n) }).collect())
    }

    /// The elements of what has to be an array.
    pub(super) fn list(&self) -> Result<Vec<Self>, ReplyFault> {
        self.elements().ok_or_else(|| self.fault(format!("expected an array, got {}", kind(self.value))))
    }

    /// A text member that has to be there and not blank.
    pub(super) fn required(&self, key: &str, why: &str) -> Result<String, ReplyFault> {
        match self.value.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            Some(Value::Null | Value::String(_)) | None => {
                Err(ReplyFault { pointer: self.at.key(key), detail: format!("is required: {why}") })
            }
            Some(other) => {
                Err(ReplyFault { pointer: self.at.key(key), detail: format!("expected a string, got {}", kind(other)) })
            }
        }
    }

    /// The name of the tool that is called.
    pub(super) fn name(&self) -> Result<String, ReplyFault> {
        self.required("name", "the name of the tool that is called")
    }

    /// The id by which the provider pairs the result.
    pub(super) fn id(&self, key: &str) -> Result<String, ReplyFault> {
        self.required(key, "this provider pairs results with calls by it, so the call could not be answered")
    }

    /// The arguments as they came; null if there are none.
    pub(super) fn arguments(&self, key: &str) -> Value {
        self.value.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn fault(&self, detail: impl Into<String>) -> ReplyFault {
        ReplyFault { pointer: self.at.clone(), detail: detail.into() }
    }

    /// That this is nothing that the provider's API returns.
    pub(super) fn no_reply(&self, expected: &str) -> ReplyFault {
        self.fault(format!("is no reply of this provider; expected {expected}"))
    }
}
