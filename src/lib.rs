//! Toolhook: tools as data for AI agents.

pub mod cli;
