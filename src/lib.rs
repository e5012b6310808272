//! Toolhook lets a product's own customers give tools to its AI agents. A tool is a row, not code: a name, a description,
//! a JSON Schema of its input, and a handler that runs it. An agent backend makes two requests per model turn: it fetches
//! a tenant's tools in its provider's exact format, and posts the model's reply back to have the calls run.
//!
//! This page is the architecture; every room named here is a link, so that a stale name fails the build. What a user can
//! rely on is in the service's own `/v1/openapi.json`.
//!
//! # The idea
//!
//! *Parse at the edge, compute on an immutable snapshot of one tenant, render at the edge.*
//!
//! ```text
//! main, cli, config  compose                     ┌──────────────┐
//! http               status codes, keys, JSON    │   the edge   │
//! execution          find → check → dispatch     │     act      │
//! registry           one tenant's tools, compiled│     know     │
//! store egress format telemetry                  │    reach     │  Postgres; outbound HTTP; wire formats; what operators see
//! domain             values and rules            │     mean     │  no I/O, no async, no clock
//!                                                └──────────────┘
//! ```
//!
//! An import may only point down, and rooms on one floor do not know each other. `tests/architecture.rs` reads the source
//! and fails on an import that points up, on SQL outside [`store`], on an HTTP client outside [`egress`], on an exporter
//! outside [`telemetry`], on a status code outside [`http`], on the environment outside [`config`], on an effect inside
//! [`domain`] or [`mod@format`], and on files that grew past 400 lines.
//!
//! # The rooms
//!
//! - [`domain`]: what a tool, a handler, a call and an answer *are*. A [`domain::Tool`] exists only checked;
//!   [`domain::ToolDraft::check`] is the one door. [`domain::InputSchema`] keeps its text byte for byte beside the compiled
//!   validator, and [`domain::SharedSchemas`] has stored tools with the same text share one. [`domain::ToolOptions`] is what
//!   we tell a provider, [`domain::Limits`] how we run a tool.
//! - [`mod@format`]: one file per wire format, three pure functions each: declare tools, find the calls in a reply, render
//!   results. A renderer works on a copy of the options and takes what it understands; what is left over is reported as
//!   dropped, so there is no list of supported options to keep in step.
//! - [`store`]: SQL only. A public function is one business fact in one transaction, and the tenant comes first in its
//!   arguments. A transaction takes a role as it begins, that of its tenant or that of the system, and row-level security holds
//!   it there; the pool has no other door (`store/scope.rs`, [`store::walls`]). A connection fails once the database's address leads to another server,
//!   and sends statements as the pooler in between needs it ([`store::Statements`]). Secrets are sealed by [`store::Vault`], bound to table,
//!   column, tenant and row. Which constraint refused a write decides what the conflict is. A write takes a [`store::Change`], who
//!   does it, and adds to the [audit trail](store::audit) in its own transaction.
//! - [`egress`]: the one HTTP client. Authors write URLs, so it checks the URL, every answer of the resolver, and the
//!   connected peer; it follows nothing, repeats nothing, never reaches the process itself, and reads under a cap. It signs
//!   requests by the Standard Webhooks specification.
//! - [`telemetry`]: what operators see: [`telemetry::Metrics`], counted where things happen, with labels that cannot hold a
//!   tenant's words; and [`telemetry::traces`], from the caller's `traceparent` to the webhook's.
//! - [`registry`]: [`registry::Registry`] is a tenant's tools at one version, immutable, ordered by name, with validators
//!   compiled once and each format's list rendered once. [`registry::Registries`] keeps the tenants that are being served,
//!   bounded in number, and drops a snapshot when this process writes to its tenant. [`registry::watch`] hears of what
//!   other replicas write, and asks once a second in case it did not.
//! - [`execution`]: every call is answered, in the reply's order, within one deadline; nothing that goes wrong with one
//!   ends the others. [`execution::NativeHandler`] is the trait for tools that are Rust code.
//! - [`http`]: a file per resource: the words of a request, its handler, its entry in the reference. Extractors whose type
//!   is an authority; one catalogue of errors ([`http::Code`]). [`http::serve`] is the listener, which holds connections to
//!   [`http::Bounds`].
//! - [`cli`] and [`config`]: the commands, and the one documented set of settings. [`cli::postgres`] starts the private
//!   Postgres of `toolhook dev` and of the tests.
//!
//! # The way of a tool list
//!
//! `GET /v1/formats/anthropic/tools`: the key's checksum is checked, then the key itself, from memory if it was used within
//! the last seconds; [`registry::Registries::get`] answers the tenant's snapshot; [`registry::Registry::list`] answers
//! bytes that were rendered when the first request asked for them. Warm, that is no query, no rendering and no copy of the
//! list. A write through this process drops the snapshot before it is answered, so whoever asks after the answer gets what
//! was written, even if a load that began earlier ends later.
//!
//! # The way of a call
//!
//! `POST /v1/formats/anthropic/calls`: the body is read strictly (a key that stands twice is refused, numbers keep every
//! digit); the format finds the calls; [`execution::Executor::admit`] says how many of them the tenant may make, before anything is
//! done for them; a task of its own runs and logs them, so that a caller that hangs up does not cut
//! one in half. Each call is found, admitted, read, mapped back from what the format declared, and held against its
//! schema before anything is sent; what does not fit and is plainly meant is repaired, and named. Neighbours that are
//! `concurrent` run beside each other, any other call runs alone. Each waits for its turn, at its handler first and then among its
//! tenant's calls. A webhook's request is serialized once, and those bytes are signed and sent; again, in another turn, only if it cannot have
//! arrived or if the tool says that it may. Its answer becomes an outcome, is held against what the tool promised, and cut to its
//! cap. The [`execution::Journal`] logs the calls of all requests in flight in one commit, and then the format renders one
//! result per call.
//!
//! # The way of a request with a key
//!
//! With an `Idempotency-Key` the calls are checked first, and then [`execution::Ledger`] claims the key and writes the calls as
//! `running`, in one statement, before anything is sent. The key's row is the fence: it names a lease, by the database's clock,
//! and the end of the calls is written together with the answer only while it names ours. So there are three ways to find a
//! key: answered (its answer is repeated), leased (it is waited for), or left behind. What a dead process left behind becomes
//! `unknown` in [`execution::upkeep`], which never sends anything; a repeat takes the key over, answers what is unknown as
//! unknown, and runs what was never sent or may run twice. Claims and ends are committed in groups, as the log is.
//!
//! ```text
//!             claim                 send                  end, if the lease still holds
//! (received) ───────▶ running ───────────────▶ succeeded | failed | timed_out | …
//!       │                │  lease ran out
//!       ▼                └──────────────────▶ unknown ──▶ running, by a repeat, if the tool says that it may
//!   rejected
//! ```
//!
//! # The way of a call whose result comes later
//!
//! A call of an asynchronous handler is written as `running` before it is sent, with or without a key: its report may come before the
//! handler's 202 is read, and to another replica. The URL that the handler gets names the call and is signed by the vault, so that
//! nobody is asked about a forged one. Whatever ends the call — the handler's own answer, a report, the end of its time — is one
//! update that counts only while nothing ended it before, and the caller is told what the log then says. Who waits is woken by the
//! report if it comes to this process; [`execution::Underway`] asks the log for all others in one query, which also finds the calls
//! that somebody asked to cancel.
//!
//! ```text
//!             noted, sent              202                  report
//! (received) ────────────▶ running ──────────▶ pending ──────────────▶ succeeded | failed
//!                             │                   │  24 hours              ▲
//!                             │ its time ran out  └───────────▶ timed_out  │
//!                             └─────────────────────────────▶ unknown ─────┘ report
//! ```
//!
//! # Errors
//!
//! Requests fail with problem documents; *tools fail with results*. An unknown tool, an invalid input, a time-out, a refused
//! address or a 500 from the webhook is a result that the model can read and act on. Only keys, unreadable envelopes and our
//! own faults are HTTP errors. A failure has two faces: one sentence for the model, a diagnostic for operators.
//!
//! # What changes most, and where
//!
//! | change | where |
//! | --- | --- |
//! | a tool option | a field in `domain/options.rs`, a line in each format that knows the idea (the last one, `8ce4d2a`: these two files, and one row of the snapshot of options and formats) |
//! | a setting of how a tool runs | a field in `domain/limits.rs`, its use in `execution/` |
//! | a provider's format | one file in `format/`, one arm in its `mod.rs` |
//! | a kind of handler | a variant in `domain/handler.rs`, one file in `execution/`, one arm in its `run.rs` |
//! | an endpoint | one file in `http/` |
//! | an error | a variant where it is found, a row in `http/problem.rs` |
//! | a metric | a field in `telemetry/metrics.rs`, a line where it happens |

pub mod cli;
pub mod config;
pub mod domain;
pub mod egress;
pub mod execution;
pub mod format;
pub mod http;
pub mod registry;
pub mod store;
pub mod telemetry;
