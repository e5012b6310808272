//! Toolhook: tools as data for AI agents.

pub mod domain;
pub mod registry;
pub mod store;
