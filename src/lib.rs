//! Toolhook: tools as data for AI agents.

pub mod domain;
pub mod egress;
pub mod registry;
