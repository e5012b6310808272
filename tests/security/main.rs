//! A hostile world around the real binary: the checks of `docs/security.md`, each under its number.
//!
//! A file is one letter of the list. What is shown elsewhere has its number in its name there.

#![expect(clippy::unwrap_used, reason = "a test's preparations may fail loudly too")]

mod a_egress;
mod b_answers;
mod b_handlers;
mod b_http2;
mod c_schemas;
mod f_at_most_once;
mod frames;
mod h_models;
#[path = "../process/http.rs"]
mod http;
mod i_secrets;
mod l_operations;
#[path = "../process/process.rs"]
#[expect(dead_code, reason = "another target uses the rest")]
mod process;
#[path = "../egress/receiver.rs"]
#[expect(dead_code, reason = "another target uses the rest")]
mod receiver;
mod stage;
mod table;
mod tls;
