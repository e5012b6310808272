//! The commands: each composes the rooms below it into something an operator runs.

pub mod postgres;
