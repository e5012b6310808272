//! `POST /mcp`: the tenant's tools as an MCP server over Streamable HTTP. One request, one JSON answer.
//!
//! Two generations of clients are served by one route: those up to 2025-11-25, which shake hands by `initialize`, and those from
//! 2026-07-28 on, which say with each request what they speak. Neither gets a session: a tenant's tools depend on its key
//! alone, so any replica can answer any request. Nothing is streamed, so there is no GET, and `listChanged` is not promised.
//!
//! `rmcp` knows the protocol: its revisions, its error codes, the shapes of its handshake. Its HTTP server is not used, for what
//! it would do to a tenant's tools: its own type of a tool drops the members that a tenant gives in `provider_options`, its
//! reader keeps the last of two equal keys in silence, its refusals are plain text, and each request would cost a task that no
//! shutdown waits for.

mod accept;
mod message;
mod methods;
mod origin;
mod reply;
mod revision;

use super::AppState;
use super::auth::Agent;
use super::calls::{About, CallHeaders};
use super::extract::{JsonText, MAX_REPLY, Query};
use super::formats;
use super::idempotency;
use super::problem::Problem;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use message::{McpMessage, Message};
use methods::Exchange;
use reply::{McpAnswer, McpRefusal};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of this folder.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(serve))
}

/// What the protocol says in headers, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "read by hand; documented here")]
struct McpHeaders {
    /// The revision of the protocol that the request speaks; 2025-03-26 where nothing says it.
    #[param(rename = "MCP-Protocol-Version", example = "2025-11-25")]
    version: Option<String>,
    /// From 2026-07-28 on: the body's `method`.
    #[param(rename = "Mcp-Method")]
    method: Option<String>,
    /// From 2026-07-28 on, with `tools/call`: the body's `params.name`.
    #[param(rename = "Mcp-Name")]
    name: Option<String>,
}

/// Takes one message of the Model Context Protocol (Streamable HTTP) and answers it.
///
/// Methods: `initialize`, `ping`, `tools/list`, `tools/call`, and from 2026-07-28 on `server/discover` in place of the first two.
/// `tools/list` answers what `GET /v1/formats/mcp/tools` does, in pages; `tools/call` runs a tool as every other route does. There
/// are no sessions, no streams and no batches.
#[utoipa::path(post, path = "/mcp", operation_id = "mcp", tag = "mcp", request_body = McpMessage,
    params(("tag" = Option<Vec<String>>, Query, description = "Only tools with this tag; repeated: with all of them. Others are neither listed nor called"), McpHeaders, CallHeaders),
    responses(
        (status = 200, description = "The answer: a result, or an error that is about the request's content", body = McpAnswer,
            headers(("Toolhook-Stale" = Option<u64>, description = "`tools/list`: the database is away, and the list is as it was this many seconds ago"))),
        (status = 202, description = "A notification was taken"),
        (status = 400, description = "`-32700` no JSON, `-32600` no message of the protocol, `-32602` no parameters, `-32020` a header says something else than the body, `-32022` a revision that is not known", body = McpRefusal),
        (status = 404, description = "From 2026-07-28 on: `-32601` there is no such method", body = McpRefusal)))]
async fn serve(
    Head(headers): Head,
    Agent(access): Agent,
    State(state): State<AppState>,
    mut about: About,
    mut query: Query,
    JsonText(text): JsonText<MAX_REPLY>,
) -> Result<Response, Problem> {
    let tags = query.all("tag");
    query.finish()?;
    idempotency::refuse(&headers)?;
    let message = match Message::read(&text) {
        Ok(message) => message,
        Err(refusal) => return refusal.response(),
    };
    let revision = match revision::of(&headers, &message) {
        Ok(revision) => revision,
        Err(error) => return message.refusal(error).response(),
    };
    let Some(id) = message.id().cloned() else { return Ok(reply::taken()) };
    if message.method() == "tools/call" {
        about.admit(&state, &access, 1).await?;
    }
    let registry = about.registry(&state, &access).await?;
    let exchange = Exchange { state: &state, access, about, registry, tags, revision: revision.clone() };
    let mut response = reply::answer(id, &revision, exchange.answer(&message).await)?;
    if message.method() == "tools/list" {
        formats::mark_stale(&state, &mut response);
    }
    Ok(response)
}

/// The headers of a request that may be looked at further.
struct Head(HeaderMap);

impl<S: Send + Sync> FromRequestParts<S> for Head {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        origin::check(parts)?;
        accept::check(&parts.headers)?;
        Ok(Self(parts.headers.clone()))
    }
}
