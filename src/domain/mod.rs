//! Values and rules: what a tool, a handler, a call and an answer *are*.
//!
//! What is absent here on purpose: I/O, async, clocks, randomness, status codes, SQL. Everything in this room is a
//! value or a pure function, so that every other room can rely on it and every rule can be tested without a server.

pub mod arguments;
mod audit;
pub mod call;
mod canonical;
pub mod fault;
pub mod fields;
mod fingerprint;
pub mod handler;
pub mod headers;
pub mod json;
pub mod key;
pub mod limits;
pub mod mismatch;
pub mod options;
pub mod role;
pub mod schema;
mod shown;
pub mod tenant;
pub mod tool;
pub mod violation;

pub use audit::{AuditAction, AuditEntry, AuditKind};
pub use call::{Answered, CallStatus, Caller, Content, Failure, Outcome, Success, ToolCall};
pub use canonical::canonical_hash;
pub use fault::{Fault, Faults, Pointer};
pub use fields::{Fields, Reader};
pub use fingerprint::fingerprint;
pub use handler::{Handler, HandlerDraft, HandlerKind, HandlerName};
pub use key::KeyToken;
pub use limits::Limits;
pub use mismatch::Mismatch;
pub use options::ToolOptions;
pub use role::Role;
pub use schema::{InputSchema, SharedSchemas};
pub use shown::Shown;
pub use tenant::{TenantFacts, TenantLimits, TenantName};
pub use tool::{HandlerRef, Tool, ToolDraft, ToolName};
pub use violation::Violation;
