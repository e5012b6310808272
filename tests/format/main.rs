//! The wire formats, held to golden files and to rules that are checked without their code.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod accepted;
mod compatibility;
mod dice;
mod generated;
mod given;
mod lists;
mod matrix;
mod outcomes;
mod replies;
mod rules;
mod strict;
