//! Toolhook: tools as data for AI agents.

pub mod cli;
pub mod config;
pub mod domain;
pub mod egress;
pub mod execution;
pub mod format;
pub mod http;
pub mod registry;
pub mod store;
