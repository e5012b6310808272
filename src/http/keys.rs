//! `/v1/keys`: a tenant's API keys.

use super::AppState;
use super::auth::Admin;
use super::extract::{JsonObject, NoQuery, PathPart, Query};
use super::page::{ListView, PageParameters, page_request};
use super::problem::Problem;
use super::respond::{created, read_time, rfc3339, tagged};
use crate::domain::{Faults, Fields, Pointer, Reader, Role};
use crate::store::keys::{self, KeyDraft, KeyRow};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use time::OffsetDateTime;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(delete))
}

/// A key as it is asked for.
#[derive(Debug, utoipa::ToSchema)]
#[schema(example = json!({"role": "agent", "name": "production backend", "expires_at": "2027-11-30T00:00:00Z"}))]
#[expect(dead_code, reason = "the reference's words for a body that is read field by field")]
pub(super) struct KeyBody {
    /// What it may do. Operators' keys are made on the command line.
    pub role: TenantRole,
    /// What people call it.
    #[schema(nullable, min_length = 1, max_length = 200)]
    pub name: Option<String>,
    /// When it stops working: RFC 3339, in the future. Absent: never.
    #[schema(nullable, format = DateTime)]
    pub expires_at: Option<String>,
}

/// The roles that a tenant's key may have, the weakest first.
#[derive(Debug, utoipa::ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the reference's words for a body that is read field by field")]
pub(super) enum TenantRole {
    /// Reads tools and the call log.
    Viewer,
    /// Fetches tool lists and runs calls.
    Agent,
    /// Writes handlers and tools.
    Editor,
    /// Manages keys.
    Admin,
}

/// A key, without its secret.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"id": "q7Qw0zXk1aBc", "role": "agent", "name": "production backend",
    "created_at": "2026-11-30T09:00:00Z", "expires_at": null}))]
pub(super) struct KeyView {
    /// The public id: the part of the key between its first and second `_`.
    pub id: String,
    /// What it may do.
    #[schema(value_type = TenantRole)]
    pub role: String,
    /// What people call it.
    #[schema(required)]
    pub name: Option<String>,
    /// RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// RFC 3339, UTC; null: it does not expire.
    #[schema(required, format = DateTime)]
    pub expires_at: Option<String>,
    /// The key itself. Only in the answer to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub key: Option<String>,
}

impl KeyView {
    fn of(row: KeyRow) -> Self {
        Self {
            id: row.id,
            role: row.role,
            name: row.name,
            created_at: rfc3339(row.created_at),
            expires_at: row.expires_at.map(rfc3339),
            key: None,
        }
    }
}

/// Lists the tenant's keys, without their secrets.
#[utoipa::path(get, path = "/v1/keys", operation_id = "list_keys", tag = "keys", params(PageParameters),
    responses((status = 200, body = ListView<KeyView>)))]
async fn list(Admin(access): Admin, State(state): State<AppState>, mut query: Query) -> Result<Response, Problem> {
    let page = page_request(&mut query, |key| Some(key.to_owned()));
    query.finish()?;
    let rows = keys::list(&state.store, access.tenant.id, &page).await?;
    tagged(StatusCode::OK, &ListView::of(rows, |row| row.id.clone(), KeyView::of))
}

/// Makes a key. The answer shows it, once.
#[utoipa::path(post, path = "/v1/keys", operation_id = "create_key", tag = "keys", request_body = KeyBody,
    responses((status = 201, body = KeyView)))]
async fn create(
    Admin(access): Admin,
    State(state): State<AppState>,
    _: NoQuery,
    JsonObject(fields): JsonObject,
) -> Result<Response, Problem> {
    let draft = read(&fields, OffsetDateTime::now_utc())?;
    let key = keys::generate()?;
    let row = keys::insert(&state.store, access.tenant.id, &key, &draft, access.change()).await?;
    let place = format!("/v1/keys/{}", row.id);
    created(&place, &KeyView { key: Some(key.reveal()), ..KeyView::of(row) })
}

/// Revokes a key. Replicas that have just used it may take it for 5 seconds more.
#[utoipa::path(delete, path = "/v1/keys/{id}", operation_id = "delete_key", tag = "keys", params(("id" = String, Path, example = "q7Qw0zXk1aBc")),
    responses((status = 204, description = "It does not work any more")))]
async fn delete(
    Admin(access): Admin,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(id): PathPart<String>,
) -> Result<StatusCode, Problem> {
    let gone = !id.contains('\0') && keys::delete(&state.store, access.tenant.id, &id, access.change()).await?;
    state.keys.forget(&id).await;
    if gone { Ok(StatusCode::NO_CONTENT) } else { Err(Problem::not_found("key")) }
}

fn read(fields: &Fields, now: OffsetDateTime) -> Result<KeyDraft, Faults> {
    const ROLES: &str = "one of \"viewer\", \"agent\", \"editor\", \"admin\"";
    let mut faults = Faults::none();
    let mut reader = Reader::new(fields, Pointer::root(), &mut faults);
    let written: Option<String> = reader.required("role", ROLES);
    let role = written.as_deref().and_then(Role::parse).filter(|role| *role < Role::Operator);
    if written.is_some() && role.is_none() {
        reader.fault("role", format!("expected {ROLES}"));
    }
    let name = reader.text("name", 200, false);
    let written: Option<String> = reader.optional("expires_at", "a time in RFC 3339");
    let expires_at = written.as_deref().and_then(read_time);
    if written.is_some() && expires_at.is_none_or(|end| end <= now) {
        reader.fault("expires_at", "expected a time in RFC 3339, in the future");
    }
    reader.finish();
    match role {
        Some(role) if faults.is_empty() => Ok(KeyDraft { role, name, expires_at }),
        _ => Err(faults),
    }
}
