//! `/v1/formats`: the wire formats, and a tenant's tools in one of them.

use super::auth::{Agent, Viewer};
use super::extract::{PathPart, Query};
use super::problem::Problem;
use super::respond::{json, tagged};
use super::{AppState, coding, etag, registry_version};
use crate::format::{About, FormatName, ListOptions, Note, Omitted};
use crate::registry::{ListRequest, Registry, RenderedList};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Says that a list is from memory, since the database is away: the seconds since it last answered.
const STALE: HeaderName = HeaderName::from_static("toolhook-stale");

/// From how many tools on rendering takes long enough to be felt by others.
const LARGE: usize = 100;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(tools))
}

/// The formats.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct FormatsView {
    /// Each format with what it can express.
    pub data: Vec<FormatView>,
    /// Always null: there are few.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// What a format can express.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"name": "anthropic", "title": "Anthropic Messages", "pairs_by_id": true, "marks_errors": true,
    "pictures": true, "objects": false, "max_tools": null, "options": {"strict": true, "defer_loading": true}}))]
pub(super) struct FormatView {
    /// The name in URLs and in `provider_options`.
    pub name: &'static str,
    /// What its messages can hold.
    #[serde(flatten)]
    pub about: About,
    /// Whether a declaration carries an option, by the option's name.
    pub options: BTreeMap<String, bool>,
}

/// A tool list, for the reference.
#[derive(Debug, utoipa::ToSchema)]
#[schema(example = json!({"format": "anthropic", "registry_version": 17, "tools": [{"name": "get_weather",
    "description": "Current weather for a city", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}],
    "omitted": [], "notes": []}))]
#[expect(dead_code, reason = "the reference's words for bytes that a snapshot keeps rendered")]
pub(super) struct ToolListView {
    /// The format.
    pub format: String,
    /// Goes up with every change of the tenant's tools.
    pub registry_version: i64,
    /// Goes into the provider's request as it is.
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<serde_json::Value>,
    /// The tools that are not in the list, and why.
    pub omitted: Vec<Omitted>,
    /// What was adapted or lost.
    pub notes: Vec<Note>,
}

/// What a list may be asked for, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by hand, so that every fault is told; documented here")]
struct ListParameters {
    /// Only tools with this tag; repeated: with all of them.
    tag: Option<Vec<String>>,
    /// Only the tool of this name; repeated: these tools.
    name: Option<Vec<String>>,
    /// Only tools that this caller may call: `human` or `code_execution`.
    #[param(pattern = "^(human|code_execution)$")]
    caller: Option<String>,
    /// Anthropic, Bedrock: `5m` or `1h` puts a cache mark on the last tool that may carry one.
    #[param(pattern = "^(5m|1h)$")]
    cache: Option<String>,
    /// Which tool search goes with deferred tools: `none`, `bm25` or `regex`.
    #[param(pattern = "^(none|bm25|regex)$")]
    search: Option<String>,
    /// Anthropic: the version of the code execution tool that the agent runs: `20250825`, `20260120` or `20260521`.
    #[param(pattern = "^(20250825|20260120|20260521)$")]
    code_execution: Option<String>,
    /// `OpenAI` Responses: the agent runs programmatic tool calling.
    programmatic: Option<bool>,
}

/// Finds a format by the name in a path.
pub(super) fn named(name: &str) -> Result<FormatName, Problem> {
    FormatName::parse(name).ok_or_else(|| Problem::not_found("format"))
}

/// Lists the formats with what each can express.
#[utoipa::path(get, path = "/v1/formats", operation_id = "list_formats", tag = "formats", responses((status = 200, body = FormatsView)))]
async fn list(_: Viewer, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let data = FormatName::ALL.into_iter().map(|format| {
        let options = format.expresses().into_iter().collect();
        FormatView { name: format.as_str(), about: format.format().about, options }
    });
    tagged(StatusCode::OK, &FormatsView { data: data.collect(), next_cursor: None })
}

/// Answers the tenant's tools as the format's provider wants them in its request.
///
/// Ordered by name, byte for byte the same until something changes: providers' prompt caches depend on it. While the
/// database is away, lists are answered from memory for a time, and `Toolhook-Stale` says so.
#[utoipa::path(get, path = "/v1/formats/{format}/tools", operation_id = "list_tools_in_format", tag = "formats",
    params(("format" = String, Path, example = "anthropic"), ListParameters, ("If-None-Match" = Option<String>, Header, description = "The list that is known already"), ("Toolhook-Registry-Version" = Option<i64>, Header, minimum = 0, description = "The version that the asker has seen, from a list or from the answer to a write: nothing older is answered")),
    responses(
        (status = 200, body = ToolListView, headers(("Toolhook-Stale" = Option<u64>, description = "The database is away, and the list is as it was this many seconds ago"))),
        (status = 304, description = "The list is as the asker knows it", headers(("Toolhook-Stale" = Option<u64>, description = "As with 200")))))]
async fn tools(
    Agent(access): Agent,
    State(state): State<AppState>,
    PathPart(format): PathPart<String>,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Problem> {
    let format = named(&format)?;
    let request = read(&mut query);
    query.finish()?;
    let seen = registry_version::seen(&headers)?;
    let registry = state.registries.get_at_least(access.tenant.id, seen).await?;
    let registry = registry.ok_or_else(|| Problem::not_found("tenant"))?;
    let list = list_of(&registry, format, request).await?;
    let compressed = if coding::takes_gzip(&headers) { list.gzipped() } else { None };
    // What is compressed is another representation of the same list; whoever knows either knows the list.
    let (plain, coded) = (etag::quoted(list.fingerprint()), etag::quoted(&format!("{}-gzip", list.fingerprint())));
    let tag = if compressed.is_some() { &coded } else { &plain };
    let mut response = if etag::is_known(&headers, &plain) || etag::is_known(&headers, &coded) {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().insert(header::ETAG, etag::header_value(tag));
        response
    } else if let Some(compressed) = compressed {
        let mut response = json(StatusCode::OK, compressed, Some(tag));
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        json(StatusCode::OK, list.body(), Some(tag))
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    registry_version::mark(&mut response, registry.version());
    // A tenant's own, and only good while it is unchanged.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    mark_stale(&state, &mut response);
    Ok(response)
}

/// The list from memory; one that is large and has to be made is made beside the threads that serve.
async fn list_of(registry: &Arc<Registry>, format: FormatName, request: ListRequest) -> Result<RenderedList, Problem> {
    if let Some(list) = registry.made_list(format, &request) {
        return Ok(list);
    }
    if registry.entries().count() < LARGE {
        return Ok(registry.list(format, &request));
    }
    let registry = Arc::clone(registry);
    let rendering = tokio::task::spawn_blocking(move || registry.list(format, &request));
    rendering.await.map_err(|why| Problem::internal(&why))
}

/// Says of a list, if the database is away, that it is from memory.
pub(super) fn mark_stale(state: &AppState, response: &mut Response) {
    if let Some(silence) = state.store.away_for() {
        response.headers_mut().insert(STALE, HeaderValue::from(silence.as_secs()));
        state.metrics.stale_list();
    }
}

fn read(query: &mut Query) -> ListRequest {
    let mut request = ListRequest { tags: query.all("tag"), names: query.all("name"), options: ListOptions::default() };
    for parameter in ListOptions::PARAMETERS {
        let Some(value) = query.one(parameter) else { continue };
        if let Err(expected) = request.options.set(parameter, &value) {
            query.fault(parameter, expected);
        }
    }
    request
}
