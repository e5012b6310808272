//! `/v1/tools/{name}/versions`: every version that a tool has had.

use super::auth::{Editor, Viewer};
use super::extract::{NoQuery, PathPart, Query};
use super::handler_view::SecretShown;
use super::page::{ListView, PageParameters, page_request};
use super::problem::{Code, Problem};
use super::respond::{rfc3339, tagged};
use super::tool_view::{ToolContent, ToolView};
use super::{AppState, etag, tools};
use crate::domain::{AuditAction, HandlerRef};
use crate::store::tool_versions::{self, VersionRow};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(restore))
}

/// A version of a tool.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct VersionView {
    /// The tool as it was.
    #[serde(flatten)]
    pub content: ToolContent,
    /// Its number, from 1.
    pub version: i32,
    /// When it was made: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl VersionView {
    fn of(row: &VersionRow) -> Self {
        Self {
            content: ToolContent::of(&row.tool, SecretShown::Masked),
            version: row.version,
            created_at: rfc3339(row.created_at),
        }
    }
}

async fn present(state: &AppState, tenant: uuid::Uuid, name: &str, version: &str) -> Result<VersionRow, Problem> {
    let tool = tools::present(state, tenant, name).await?.tool.name;
    let found = match version.parse() {
        Ok(version) => tool_versions::get(&state.store, tenant, &tool, version).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| Problem::not_found("version"))
}

/// Lists a tool's versions, the newest first.
#[utoipa::path(get, path = "/v1/tools/{name}/versions", operation_id = "list_tool_versions", tag = "tools",
    params(("name" = String, Path, example = "get_weather"), PageParameters),
    responses((status = 200, body = ListView<VersionView>)))]
async fn list(
    Viewer(access): Viewer,
    State(state): State<AppState>,
    PathPart(name): PathPart<String>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = page_request(&mut query, |key| key.parse().ok());
    query.finish()?;
    let tool = tools::present(&state, access.tenant.id, &name).await?.tool.name;
    let rows = tool_versions::list(&state.store, access.tenant.id, &tool, &page).await?;
    tagged(StatusCode::OK, &ListView::of(rows, |row| row.version.to_string(), |row| VersionView::of(&row)))
}

/// Answers one version of a tool.
#[utoipa::path(get, path = "/v1/tools/{name}/versions/{n}", operation_id = "get_tool_version", tag = "tools",
    params(("name" = String, Path, example = "get_weather"), ("n" = i32, Path, minimum = 1, example = 1)),
    responses((status = 200, body = VersionView)))]
async fn get(
    Viewer(access): Viewer,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart((name, version)): PathPart<(String, String)>,
) -> Result<Response, Problem> {
    tagged(StatusCode::OK, &VersionView::of(&present(&state, access.tenant.id, &name, &version).await?))
}

/// Makes a new version with the content of an old one. If the tool says just that already, nothing changes.
#[utoipa::path(post, path = "/v1/tools/{name}/versions/{n}/restore", operation_id = "restore_tool_version", tag = "tools",
    params(("name" = String, Path, example = "get_weather"), ("n" = i32, Path, minimum = 1, example = 1), ("If-Match" = Option<String>, Header, description = "The present state of the tool")),
    responses((status = 200, body = ToolView), (status = 409, description = "It was changed at the same time")))]
async fn restore(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart((name, version)): PathPart<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let access = access.doing(AuditAction::Restored);
    etag::contended(|| async {
        let old = present(&state, access.tenant.id, &name, &version).await?;
        let now = tools::present(&state, access.tenant.id, &name).await?;
        let restored = tools::replace(&state, &access, &now, &headers, &old.tool, SecretShown::Masked).await;
        restored.map_err(|problem| match (problem.code(), &old.tool.handler) {
            // There is no body that could be at fault.
            (Code::InvalidBody, HandlerRef::Named(handler)) => {
                Problem::new(Code::HandlerGone, format!("this version runs by the handler {handler}, which is gone"))
            }
            _ => problem,
        })
    })
    .await
}
