//! `/v1/handlers`: what runs tools, made by itself and shared by several.

use super::auth::{Access, Editor};
use super::extract::{JsonObject, NoQuery, PathPart, Query};
use super::handler_view::{HandlerBody, HandlerContent, SecretShown, check_target, give_signing_secret};
use super::page::{ListView, PageParameters, page_request};
use super::problem::{Code, Problem};
use super::respond::{created, json, render, rfc3339, tag, tagged};
use super::{AppState, etag, registry_version};
use crate::domain::{AuditAction, Faults, Fields, Handler, HandlerDraft, HandlerName, Pointer};
use crate::egress::SigningSecret;
use crate::store::handlers::{self, HandlerRow};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use time::{Duration, OffsetDateTime};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How long the old signing secret signs beside a new one.
const ROTATION_GRACE: Duration = Duration::hours(24);

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, put, patch, delete))
        .routes(routes!(rotate_secret))
}

/// A handler.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"name": "weather-backend", "kind": "webhook", "url": "https://hooks.example.com/weather",
    "headers": {"authorization": "***"}, "signing_secret": "***", "timeout_ms": 30000,
    "max_attempts": 3, "version": 1, "created_at": "2026-11-30T09:00:00Z", "updated_at": "2026-11-30T09:00:00Z"}))]
pub(super) struct HandlerView {
    /// Letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// What it does.
    #[serde(flatten)]
    pub content: HandlerContent,
    /// Goes up with every change.
    pub version: i32,
    /// RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

impl HandlerView {
    fn of(row: &HandlerRow, secret: SecretShown) -> Self {
        Self {
            name: row.name.clone().unwrap_or_default(),
            content: HandlerContent::of(&row.handler, secret),
            version: row.version,
            created_at: rfc3339(row.created_at),
            updated_at: rfc3339(row.updated_at),
        }
    }
}

async fn present(state: &AppState, tenant: uuid::Uuid, name: &str) -> Result<HandlerRow, Problem> {
    let found = match HandlerName::parse(name) {
        Some(name) => handlers::get(&state.store, tenant, &name).await?,
        None => None,
    };
    found.ok_or_else(|| Problem::not_found("handler"))
}

fn checked(state: &AppState, fields: &Fields, stored: Option<&HandlerRow>) -> Result<Handler, Problem> {
    let mut faults = Faults::none();
    let draft = HandlerDraft::new(fields, Pointer::root());
    let handler = draft.check(stored.map(|row| &row.handler), true, &mut faults);
    if let Some(handler) = &handler {
        check_target(state, handler, &Pointer::root(), &mut faults);
    }
    match handler {
        Some(handler) if faults.is_empty() => give_signing_secret(handler),
        _ => Err(Problem::invalid(faults)),
    }
}

/// Lists the handlers that have a name, by name.
#[utoipa::path(get, path = "/v1/handlers", operation_id = "list_handlers", tag = "handlers", params(PageParameters),
    responses((status = 200, body = ListView<HandlerView>)))]
async fn list(Editor(access): Editor, State(state): State<AppState>, mut query: Query) -> Result<Response, Problem> {
    let page = page_request(&mut query, |key| Some(key.to_owned()));
    query.finish()?;
    let rows = handlers::list(&state.store, access.tenant.id, &page).await?;
    let view = |row: HandlerRow| HandlerView::of(&row, SecretShown::Masked);
    tagged(StatusCode::OK, &ListView::of(rows, |row| row.name.clone().unwrap_or_default(), view))
}

/// Makes a handler. The answer shows a webhook's signing secret, once.
#[utoipa::path(post, path = "/v1/handlers", operation_id = "create_handler", tag = "handlers", request_body = HandlerBody,
    responses((status = 201, body = HandlerView), (status = 409, description = "The name is taken")))]
async fn create(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    JsonObject(fields): JsonObject,
) -> Result<Response, Problem> {
    let name = read_name(&fields);
    let handler = checked(&state, &fields, None);
    match (name, handler) {
        (Ok(name), Ok(handler)) => make(&state, &access, &name, &handler).await,
        (Ok(_), Err(problem)) => Err(problem),
        (Err(fault), Ok(_)) => Err(Problem::invalid(fault)),
        (Err(fault), Err(problem)) => Err(problem.and(fault)),
    }
}

fn read_name(fields: &Fields) -> Result<HandlerName, Faults> {
    let written: Option<String> = fields.get("name").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let detail = if fields.get("name").is_some() { HandlerName::EXPECTED } else { "is required: a string" };
    let name = written.as_deref().and_then(HandlerName::parse);
    name.ok_or_else(|| Faults::one(Pointer::root().key("name"), detail))
}

/// Refuses a body that says another name than the path.
fn check_name(fields: &Fields, name: &str) -> Result<(), Problem> {
    let same =
        |raw: &serde_json::value::RawValue| serde_json::from_str::<String>(raw.get()).is_ok_and(|said| said == name);
    if fields.get("name").is_none_or(same) {
        return Ok(());
    }
    let detail = "a handler's name is fixed; the body may leave it out";
    Err(Problem::invalid(Faults::one(Pointer::root().key("name"), detail)))
}

async fn make(state: &AppState, access: &Access, name: &HandlerName, handler: &Handler) -> Result<Response, Problem> {
    let row = handlers::insert(&state.store, access.tenant.id, name, handler, access.change()).await?;
    let mut response = created(&format!("/v1/handlers/{name}"), &HandlerView::of(&row, SecretShown::Once))?;
    let tag = tag(&HandlerView::of(&row, SecretShown::Masked))?;
    response.headers_mut().insert(axum::http::header::ETAG, etag::header_value(&tag));
    Ok(registry_version::written(state, access.tenant.id, response).await)
}

/// Answers a handler, secrets masked.
#[utoipa::path(get, path = "/v1/handlers/{name}", operation_id = "get_handler", tag = "handlers", params(("name" = String, Path, example = "weather-backend")),
    responses((status = 200, body = HandlerView)))]
async fn get(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
) -> Result<Response, Problem> {
    let row = present(&state, access.tenant.id, &name).await?;
    tagged(StatusCode::OK, &HandlerView::of(&row, SecretShown::Masked))
}

/// Makes a handler, or replaces one. Headers and signing secrets given as `"***"` keep what is stored; headers, only while the
/// URL goes to the same scheme, host and port.
#[utoipa::path(put, path = "/v1/handlers/{name}", operation_id = "put_handler", tag = "handlers", request_body = HandlerBody,
    params(("name" = String, Path, example = "weather-backend"), ("If-Match" = Option<String>, Header, description = "The state that is to be replaced")),
    responses((status = 200, description = "It was replaced; the answer shows the signing secret of one that did not sign before", body = HandlerView), (status = 201, description = "It was made; the answer shows the signing secret, once", body = HandlerView)))]
async fn put(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
    JsonObject(fields): JsonObject,
) -> Result<Response, Problem> {
    let fault = |detail| Problem::invalid(Faults::one(Pointer::root().key("name"), detail));
    let name = HandlerName::parse(&name).ok_or_else(|| fault(HandlerName::EXPECTED))?;
    check_name(&fields, name.as_str())?;
    etag::contended(|| async {
        let Some(row) = handlers::get(&state.store, access.tenant.id, &name).await? else {
            etag::check_match(&headers, None)?;
            return make(&state, &access, &name, &checked(&state, &fields, None)?).await;
        };
        etag::check_absent(&headers)?;
        etag::check_match(&headers, Some(&tag(&HandlerView::of(&row, SecretShown::Masked))?))?;
        replace(&state, &access, &row, &checked(&state, &fields, Some(&row))?).await
    })
    .await
}

/// Changes a handler by a JSON merge patch (RFC 7396).
#[utoipa::path(patch, path = "/v1/handlers/{name}", operation_id = "patch_handler", tag = "handlers",
    request_body(content((HandlerBody = "application/merge-patch+json"), (HandlerBody = "application/json"))),
    params(("name" = String, Path, example = "weather-backend"), ("If-Match" = Option<String>, Header, description = "The state that is to be changed")),
    responses((status = 200, body = HandlerView)))]
async fn patch(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
    JsonObject(changes): JsonObject,
) -> Result<Response, Problem> {
    let malformed = |detail: String| Problem::new(Code::MalformedBody, detail);
    check_name(&changes, &name)?;
    etag::contended(|| async {
        let row = present(&state, access.tenant.id, &name).await?;
        etag::check_match(&headers, Some(&tag(&HandlerView::of(&row, SecretShown::Masked))?))?;
        let now = render(&HandlerContent::of(&row.handler, SecretShown::Masked))?;
        let mut fields = Fields::parse(&now).map_err(malformed)?;
        fields.merge(&changes, &[]).map_err(malformed)?;
        replace(&state, &access, &row, &checked(&state, &fields, Some(&row))?).await
    })
    .await
}

async fn replace(state: &AppState, access: &Access, row: &HandlerRow, handler: &Handler) -> Result<Response, Problem> {
    let changed =
        handlers::update(&state.store, access.tenant.id, row.id, row.version, handler, access.change()).await?;
    // One that did not sign until now has a secret that nobody has seen yet.
    let secret = if row.handler.secrets.signing_secret.is_none() { SecretShown::Once } else { SecretShown::Masked };
    Ok(registry_version::written(state, access.tenant.id, answer(&changed, secret)).await)
}

/// A handler, under the tag that a GET answers.
fn answer(row: &HandlerRow, secret: SecretShown) -> Result<Response, Problem> {
    let tag = tag(&HandlerView::of(row, SecretShown::Masked))?;
    Ok(json(StatusCode::OK, render(&HandlerView::of(row, secret))?, Some(&tag)))
}

/// Removes a handler that no tool uses.
#[utoipa::path(delete, path = "/v1/handlers/{name}", operation_id = "delete_handler", tag = "handlers",
    params(("name" = String, Path, example = "weather-backend"), ("If-Match" = Option<String>, Header, description = "The state that is to be removed")),
    responses((status = 204, description = "It is gone"), (status = 409, description = "Tools use it")))]
async fn delete(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    etag::contended(|| async {
        let row = present(&state, access.tenant.id, &name).await?;
        etag::check_match(&headers, Some(&tag(&HandlerView::of(&row, SecretShown::Masked))?))?;
        Ok(handlers::delete(&state.store, access.tenant.id, row.id, row.version, access.change()).await?)
    })
    .await?;
    Ok(registry_version::written(&state, access.tenant.id, StatusCode::NO_CONTENT).await)
}

/// Makes a new signing secret and shows it, once. The old one signs too for 24 hours.
#[utoipa::path(post, path = "/v1/handlers/{name}/rotate-secret", operation_id = "rotate_handler_secret", tag = "handlers",
    params(("name" = String, Path, example = "weather-backend")),
    responses((status = 200, body = HandlerView), (status = 409, description = "It was changed at the same time, or is no webhook")))]
async fn rotate_secret(
    Editor(access): Editor,
    State(state): State<AppState>,
    _: NoQuery,
    PathPart(name): PathPart<String>,
) -> Result<Response, Problem> {
    let access = access.doing(AuditAction::SecretRotated);
    etag::contended(|| async {
        let row = present(&state, access.tenant.id, &name).await?;
        let mut handler = row.handler.clone();
        let Some(old) = handler.secrets.signing_secret.take() else {
            return Err(Problem::new(Code::NotSigned, "only webhooks sign their requests"));
        };
        let fresh = SigningSecret::generate().map_err(|why| Problem::internal(&why))?;
        handler.secrets.signing_secret = Some(fresh.to_text());
        handler.secrets.previous_signing_secret = Some((old, OffsetDateTime::now_utc() + ROTATION_GRACE));
        let changed =
            handlers::update(&state.store, access.tenant.id, row.id, row.version, &handler, access.change()).await?;
        Ok(registry_version::written(&state, access.tenant.id, answer(&changed, SecretShown::Once)).await)
    })
    .await
}
