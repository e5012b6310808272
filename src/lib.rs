//! Toolhook: tools as data for AI agents.

pub mod domain;
pub mod format;
