//! The commands: each composes the rooms below it into something an operator runs.
//!
//! A command gets checked [`settings`](crate::config::settings), never flags or the environment. It writes its result to standard
//! output, and logs and complaints to standard error; how it ended is a [`Failure`], of which `main` makes an exit code.

mod answer;
pub mod audit;
mod collector;
mod credentials;
mod database;
mod demo;
mod descriptors;
pub mod dev;
pub mod doctor;
mod embedded;
mod failure;
pub mod keys;
pub mod logging;
pub mod migrate;
pub mod postgres;
mod private_file;
mod pulse;
pub mod rotate;
pub mod serve;
mod server;
pub mod shutdown;
pub mod tenants;
mod welcome;

pub use failure::Failure;
