//! `/v1/tools`: a tenant's tools.

use super::auth::{Editor, Viewer};
use super::extract::{JsonObject, NoQuery, PathPart, Query};
use super::handler_view::{SecretShown, check_target, give_signing_secret};
use super::page::{ListView, PageParameters, page_request};
use super::problem::{Code, Problem};
use super::respond::{json, render, set_location, tag, tagged};
use super::tool_view::{OmittedTool, ToolBody, ToolContent, ToolView, ToolsView};
use super::{Access, AppState, etag, registry_version};
use crate::domain::{Faults, Fields, HandlerRef, Pointer, TenantLimits, Tool, ToolDraft, ToolName};
use crate::execution::NoResult;
use crate::format::NAMES;
use crate::store::BrokenRow;
use crate::store::tools::{self, Filter, ToolRow};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use std::time::Duration;
use tokio::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

/// How long a tool waits for those of the same tenant that are being checked.
const COMPILING_TURN: Duration = Duration::from_secs(5);
/// How long it takes at most to check one.
const COMPILING: Duration = Duration::from_secs(5);

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, put, patch, delete))
}

/// The filters of a list of tools, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by hand, so that every fault is told; documented here")]
struct Filters {
    /// Only tools with this tag.
    tag: Option<String>,
    /// Only tools of the handler of this name.
    handler: Option<String>,
    /// Only tools that are enabled, or that are not.
    enabled: Option<bool>,
    /// Only tools with this text in their name or description, in any case.
    q: Option<String>,
}

/// Finds a tool by the name in a path.
pub(super) async fn present(state: &AppState, tenant: Uuid, name: &str) -> Result<ToolRow, Problem> {
    let found = match ToolName::parse(name) {
        Some(name) => tools::get(&state.store, tenant, &name).await?,
        None => None,
    };
    found.ok_or_else(|| Problem::not_found("tool"))
}

/// Lists tools, by name.
#[utoipa::path(get, path = "/v1/tools", operation_id = "list_tools", tag = "tools", params(PageParameters, Filters),
    responses((status = 200, body = ToolsView)))]
async fn list(Viewer(access): Viewer, State(state): State<AppState>, mut query: Query) -> Result<Response, Problem> {
    let page = page_request(&mut query, |key| Some(key.to_owned()));
    let mut text =
        |name: &str| query.read(name, "a text without NUL", |text| (!text.contains('\0')).then(|| text.to_owned()));
    let filter = Filter { tag: text("tag"), handler: text("handler"), q: text("q"), enabled: query.flag("enabled") };
    query.finish()?;
    let rows = tools::list(&state.store, access.tenant.id, &filter, &page).await?;
    let list = ListView::of(rows, |row| named(row).to_owned(), |row| row);
    let mut view = ToolsView { data: Vec::new(), next_cursor: list.next_cursor, omitted: Vec::new() };
    for row in list.data {
        match row {
            Ok(row) => view.data.push(ToolView::of(&row, SecretShown::Masked)),
            Err(BrokenRow { name, error }) => view.omitted.push(OmittedTool { name, reason: error.to_string() }),
        }
    }
    tagged(StatusCode::OK, &view)
}

fn named(row: &Result<ToolRow, BrokenRow>) -> &str {
    match row {
        Ok(row) => row.tool.name.as_str(),
        Err(broken) => &broken.name,
    }
}

/// Makes a tool.
#[utoipa::path(post, path = "/v1/tools", operation_id = "create_tool", tag = "tools", request_body = ToolBody,
    responses((status = 201, body = ToolView), (status = 409, description = "The name is taken, or the tenant has all the tools that it may have")))]
async fn create(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    JsonObject(fields): JsonObject,
) -> Result<Response, Problem> {
    let tool = checked(&state, &access, fields, None, None).await?;
    make(&state, &access, &tool).await
}

/// Answers a tool.
#[utoipa::path(get, path = "/v1/tools/{name}", operation_id = "get_tool", tag = "tools", params(("name" = String, Path, example = "get_weather")),
    responses((status = 200, body = ToolView)))]
async fn get(
    Viewer(access): Viewer,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
) -> Result<Response, Problem> {
    let row = present(&state, access.tenant.id, &name).await?;
    tagged(StatusCode::OK, &ToolView::of(&row, SecretShown::Masked))
}

/// Makes a tool, or replaces one. A PUT of what is there already changes nothing, not even the version.
#[utoipa::path(put, path = "/v1/tools/{name}", operation_id = "put_tool", tag = "tools", request_body = ToolBody,
    params(("name" = String, Path, example = "get_weather"), ("If-Match" = Option<String>, Header, description = "The state that is to be replaced")),
    responses((status = 200, description = "It was replaced", body = ToolView), (status = 201, description = "It was made", body = ToolView), (status = 409, description = "Another tool has this name in other letters, or the tenant has all the tools that it may have")))]
async fn put(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
    JsonObject(fields): JsonObject,
) -> Result<Response, Problem> {
    let fault = || Problem::invalid(Faults::one(Pointer::root().key("name"), ToolName::EXPECTED));
    let name = ToolName::parse(&name).ok_or_else(fault)?;
    etag::contended(|| async {
        let row = tools::get(&state.store, access.tenant.id, &name).await?;
        let tool = checked(&state, &access, fields.clone(), Some(&name), row.as_ref()).await?;
        if let Some(row) = &row {
            etag::check_absent(&headers)?;
            replace(&state, &access, row, &headers, &tool, shown(row, &tool)).await
        } else {
            etag::check_match(&headers, None)?;
            make(&state, &access, &tool).await
        }
    })
    .await
}

/// Changes a tool by a JSON merge patch (RFC 7396). Schemas, examples and `provider_options` are replaced whole.
#[utoipa::path(patch, path = "/v1/tools/{name}", operation_id = "patch_tool", tag = "tools",
    request_body(content((ToolBody = "application/merge-patch+json"), (ToolBody = "application/json"))),
    params(("name" = String, Path, example = "get_weather"), ("If-Match" = Option<String>, Header, description = "The state that is to be changed")),
    responses((status = 200, body = ToolView)))]
async fn patch(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
    JsonObject(changes): JsonObject,
) -> Result<Response, Problem> {
    let malformed = |detail: String| Problem::new(Code::MalformedBody, detail);
    etag::contended(|| async {
        let row = present(&state, access.tenant.id, &name).await?;
        let now = render(&ToolContent::of(&row.tool, SecretShown::Masked))?;
        let mut fields = Fields::parse(&now).map_err(malformed)?;
        fields.merge(&changes, &ToolDraft::REPLACED_WHOLE).map_err(malformed)?;
        let tool = checked(&state, &access, fields, Some(&row.tool.name), Some(&row)).await?;
        replace(&state, &access, &row, &headers, &tool, shown(&row, &tool)).await
    })
    .await
}

/// Removes a tool, its versions, and the handler that was written inside it.
#[utoipa::path(delete, path = "/v1/tools/{name}", operation_id = "delete_tool", tag = "tools",
    params(("name" = String, Path, example = "get_weather"), ("If-Match" = Option<String>, Header, description = "The state that is to be removed")),
    responses((status = 204, description = "It is gone")))]
async fn delete(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    etag::contended(|| async {
        let tenant = access.tenant.id;
        let name = ToolName::parse(&name).ok_or_else(|| Problem::not_found("tool"))?;
        let version = if headers.contains_key(header::IF_MATCH) {
            let row = present(&state, tenant, name.as_str()).await?;
            etag::check_match(&headers, Some(&tag(&ToolView::of(&row, SecretShown::Masked))?))?;
            row.version
        } else {
            // With nothing to compare, the row need not be read: one that cannot be has to go too.
            let version = tools::version(&state.store, tenant, &name).await?;
            version.ok_or_else(|| Problem::not_found("tool"))?
        };
        Ok(tools::delete(&state.store, tenant, &name, version, access.change()).await?)
    })
    .await?;
    Ok(registry_version::written(&state, access.tenant.id, StatusCode::NO_CONTENT).await)
}

/// Reads a tool. Its schemas are compiled and its examples checked when it is the tenant's turn: a schema may take its time.
async fn checked(
    state: &AppState,
    access: &Access,
    fields: Fields,
    name: Option<&ToolName>,
    stored: Option<&ToolRow>,
) -> Result<Tool, Problem> {
    let (name, owned) = (
        name.cloned(),
        stored.and_then(|row| match &row.tool.handler {
            HandlerRef::Owned(handler) => Some(handler.clone()),
            HandlerRef::Named(_) => None,
        }),
    );
    let turn = Instant::now() + COMPILING_TURN;
    let compile = move |_| ToolDraft::new(fields).check(name.as_ref(), &NAMES, owned.as_deref());
    let checked = state.compiling.run(access.tenant.id, turn, COMPILING, compile).await;
    let mut tool = checked.map_err(|why| match why {
        NoResult::Waiting => Problem::new(Code::Busy, "other tools of this tenant are being checked; nothing was done"),
        NoResult::TooMuch => {
            Problem::new(Code::SchemaTooExpensive, "the tool takes too long to check; simplify its schemas")
        }
        NoResult::Broken => Problem::new(Code::Internal, "the tool could not be checked"),
    })??;
    let mut faults = Faults::none();
    if state.registries.native().iter().any(|entry| entry.tool.name.as_str().eq_ignore_ascii_case(tool.name.as_str())) {
        return Err(Problem::new(Code::NameTaken, "a tool that is built into this service has this name"));
    }
    if let HandlerRef::Owned(handler) = &mut tool.handler {
        check_target(state, handler, &Pointer::root().key("handler"), &mut faults);
        **handler = give_signing_secret((**handler).clone())?;
    }
    if faults.is_empty() { Ok(tool) } else { Err(Problem::invalid(faults)) }
}

async fn make(state: &AppState, access: &Access, tool: &Tool) -> Result<Response, Problem> {
    let most = access.tenant.limits.tools.unwrap_or(TenantLimits::DEFAULT_TOOLS);
    tools::insert(&state.store, access.tenant.id, tool, most, access.change()).await?;
    let response = written(state, access, &tool.name, StatusCode::CREATED, SecretShown::Once).await;
    let mut response = registry_version::written(state, access.tenant.id, response?).await;
    set_location(&mut response, &format!("/v1/tools/{}", tool.name));
    Ok(response)
}

/// A webhook that is newly written inside a tool has a secret that nobody has seen yet.
fn shown(row: &ToolRow, tool: &Tool) -> SecretShown {
    let signed = row.owned_secrets.as_ref().is_some_and(|secrets| secrets.signing_secret.is_some());
    let new = !signed && matches!(tool.handler, HandlerRef::Owned(_));
    if new { SecretShown::Once } else { SecretShown::Masked }
}

/// Writes `tool` over what is there, and answers what is there then.
pub(super) async fn replace(
    state: &AppState,
    access: &Access,
    row: &ToolRow,
    headers: &HeaderMap,
    tool: &Tool,
    secret: SecretShown,
) -> Result<Response, Problem> {
    etag::check_match(headers, Some(&tag(&ToolView::of(row, SecretShown::Masked))?))?;
    tools::update(&state.store, access.tenant.id, row.version, tool, access.change()).await?;
    let response = written(state, access, &tool.name, StatusCode::OK, secret).await;
    Ok(registry_version::written(state, access.tenant.id, response?).await)
}

/// The answer to a write: the tool as it is now, with warnings, under the tag that a GET answers.
async fn written(
    state: &AppState,
    access: &Access,
    name: &ToolName,
    status: StatusCode,
    secret: SecretShown,
) -> Result<Response, Problem> {
    let row = present(state, access.tenant.id, name.as_str()).await?;
    let tag = tag(&ToolView::of(&row, SecretShown::Masked))?;
    // Every format is rendered for the warnings, which takes a while for a large schema.
    let view = tokio::task::spawn_blocking(move || ToolView::of(&row, secret).with_warnings(&row.tool));
    let view = view.await.map_err(|why| Problem::internal(&why))?;
    Ok(json(status, render(&view)?, Some(&tag)))
}
