//! `/v1/tenants`: the operator's view of tenants and their limits.

use super::auth::Operator;
use super::extract::{JsonObject, NoQuery, PathPart, Query};
use super::page::{ListView, PageParameters, page_request};
use super::problem::{Code, Problem};
use super::respond::{created, rfc3339, tagged};
use super::{AppState, etag};
use crate::domain::tenant::TenantDraft;
use crate::domain::{Faults, Fields, Pointer, TenantLimits, TenantName};
use crate::store::tenants::{self, TenantRow};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, patch, delete))
}

/// A tenant as it is written.
#[derive(Debug, utoipa::ToSchema)]
#[schema(example = json!({"display_name": "Acme Inc.", "limits": {"tools": 200, "max_timeout_ms": 60000}}))]
#[expect(dead_code, reason = "the reference's words for a body that is read field by field")]
pub(super) struct TenantBody {
    /// What people call it.
    #[schema(nullable, min_length = 1, max_length = 200)]
    pub display_name: Option<String>,
    /// What is absent takes the server's default.
    #[schema(nullable)]
    pub limits: Option<TenantLimits>,
}

/// A tenant.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"name": "acme", "display_name": "Acme Inc.", "limits": {"tools": 200},
    "created_at": "2026-11-30T09:00:00Z", "updated_at": "2026-11-30T09:00:00Z"}))]
pub(super) struct TenantView {
    /// Lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// What people call it.
    #[schema(required)]
    pub display_name: Option<String>,
    /// What the operator set; the server's defaults apply to the rest.
    pub limits: TenantLimits,
    /// RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

impl TenantView {
    fn of(row: TenantRow) -> Self {
        Self {
            name: row.name,
            display_name: row.display_name,
            limits: row.limits.0,
            created_at: rfc3339(row.created_at),
            updated_at: rfc3339(row.updated_at),
        }
    }
}

fn parse(name: &str) -> Option<TenantName> {
    TenantName::parse(name).ok()
}

async fn present(state: &AppState, name: &str) -> Result<TenantRow, Problem> {
    let found = match parse(name) {
        Some(name) => tenants::get(&state.store, &name).await?,
        None => None,
    };
    found.ok_or_else(|| Problem::not_found("tenant"))
}

/// Lists tenants, by name.
#[utoipa::path(get, path = "/v1/tenants", operation_id = "list_tenants", tag = "tenants", params(PageParameters),
    responses((status = 200, body = ListView<TenantView>)))]
async fn list(_: Operator, State(state): State<AppState>, mut query: Query) -> Result<Response, Problem> {
    let page = page_request(&mut query, |key| Some(key.to_owned()));
    query.finish()?;
    let rows = tenants::list(&state.store, &page).await?;
    tagged(StatusCode::OK, &ListView::of(rows, |row| row.name.clone(), TenantView::of))
}

/// Answers a tenant.
#[utoipa::path(get, path = "/v1/tenants/{tenant}", operation_id = "get_tenant", tag = "tenants", params(("tenant" = String, Path, example = "acme")),
    responses((status = 200, body = TenantView)))]
async fn get(
    _: Operator,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
) -> Result<Response, Problem> {
    tagged(StatusCode::OK, &TenantView::of(present(&state, &name).await?))
}

/// Makes a tenant, or replaces what one has.
#[utoipa::path(put, path = "/v1/tenants/{tenant}", operation_id = "put_tenant", tag = "tenants", request_body = TenantBody,
    params(("tenant" = String, Path, example = "acme"), ("If-Match" = Option<String>, Header, description = "The state that is to be replaced")),
    responses((status = 200, description = "It was replaced", body = TenantView), (status = 201, description = "It was made", body = TenantView)))]
async fn put(
    operator: Operator,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
    JsonObject(fields): JsonObject,
) -> Result<Response, Problem> {
    let fault = |detail: String| Problem::invalid(Faults::one(Pointer::root(), detail));
    let name = TenantName::parse(&name).map_err(fault)?;
    let draft = TenantDraft::read(&fields)?;
    etag::contended(|| async {
        let Some(row) = tenants::get(&state.store, &name).await? else {
            etag::check_match(&headers, None)?;
            let made = tenants::insert(&state.store, &name, &draft, operator.change()).await?;
            return created(&format!("/v1/tenants/{name}"), &TenantView::of(made));
        };
        etag::check_absent(&headers)?;
        replace(&state, &operator, row, &headers, &draft).await
    })
    .await
}

/// Changes a tenant by a JSON merge patch (RFC 7396).
#[utoipa::path(patch, path = "/v1/tenants/{tenant}", operation_id = "patch_tenant", tag = "tenants",
    request_body(content((TenantBody = "application/merge-patch+json"), (TenantBody = "application/json"))),
    params(("tenant" = String, Path, example = "acme"), ("If-Match" = Option<String>, Header, description = "The state that is to be changed")),
    responses((status = 200, body = TenantView)))]
async fn patch(
    operator: Operator,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
    JsonObject(changes): JsonObject,
) -> Result<Response, Problem> {
    let malformed = |detail| Problem::new(Code::MalformedBody, detail);
    etag::contended(|| async {
        let row = present(&state, &name).await?;
        let now = json!({"display_name": row.display_name, "limits": row.limits.0}).to_string();
        let mut fields = Fields::parse(now.as_bytes()).map_err(malformed)?;
        fields.merge(&changes, &[]).map_err(malformed)?;
        replace(&state, &operator, row, &headers, &TenantDraft::read(&fields)?).await
    })
    .await
}

async fn replace(
    state: &AppState,
    operator: &Operator,
    row: TenantRow,
    headers: &HeaderMap,
    draft: &TenantDraft,
) -> Result<Response, Problem> {
    let (id, seen) = (row.id, row.updated_at);
    etag::check_match(headers, Some(&super::respond::tag(&TenantView::of(row))?))?;
    let changed = tenants::update(&state.store, id, seen, draft, operator.change()).await?;
    state.forget_tenants(id).await;
    tagged(StatusCode::OK, &TenantView::of(changed))
}

/// Removes a tenant with all that it owns: keys, handlers, tools, the call log.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}", operation_id = "delete_tenant", tag = "tenants",
    params(("tenant" = String, Path, example = "acme"), ("If-Match" = Option<String>, Header, description = "The state that is to be removed")),
    responses((status = 204, description = "It is gone")))]
async fn delete(
    operator: Operator,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let id = etag::contended(|| async {
        let row = present(&state, &name).await?;
        let (id, seen) = (row.id, row.updated_at);
        etag::check_match(&headers, Some(&super::respond::tag(&TenantView::of(row))?))?;
        tenants::delete(&state.store, id, seen, operator.change()).await?;
        Ok(id)
    })
    .await?;
    state.forget_tenants(id).await;
    Ok(StatusCode::NO_CONTENT)
}
