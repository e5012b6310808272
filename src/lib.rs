//! Toolhook: tools as data for AI agents.

pub mod cli;
pub mod config;
pub mod domain;
pub mod egress;
pub mod registry;
pub mod settings;
pub mod store;
