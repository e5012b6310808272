//! Toolhook: tools as data for AI agents.
