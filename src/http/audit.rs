//! `/v1/audit`: who changed what.

use super::AppState;
use super::auth::Auditor;
use super::extract::Query;
use super::page::{ListView, PageParameters, page_request};
use super::problem::Problem;
use super::respond::{read_time, tagged};
use crate::domain::{AuditAction, AuditEntry, AuditKind};
use crate::store::audit::{self, AuditRow, Filter};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A row of the audit trail.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"chain": "01932f3e-7b1a-7c55-8a36-2f0e5b1d9c11", "sequence": 7, "at": "2026-11-30T09:00:00Z",
    "actor": "q7Qw0zXk1aBc", "role": "editor", "request_id": "req_1", "kind": "tool", "name": "get_weather", "action": "updated",
    "version": 3, "tenant_chain": null, "before_hash": "5b1f8b3a0d8c4b3c2f5b0f6d0c1f9e7a4d2b6c8e0f1a3b5c7d9e1f2a4b6c8d0e",
    "after_hash": "1c9e7a4d2b6c8e0f1a3b5c7d9e1f2a4b6c8d0e5b1f8b3a0d8c4b3c2f5b0f6d0c", "changed": ["description"],
    "secrets_changed": false, "previous_hash": "0f1a3b5c7d9e1f2a4b6c8d0e5b1f8b3a0d8c4b3c2f5b0f6d0c1c9e7a4d2b6c8e",
    "hash": "a4d2b6c8e0f1a3b5c7d9e1f2a4b6c8d0e5b1f8b3a0d8c4b3c2f5b0f6d0c1c9e7"}))]
pub(super) struct AuditView {
    /// What it says.
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// SHA-256 of this object's JSON text as it is answered, without this last member.
    pub hash: String,
}

impl AuditView {
    fn of(row: AuditRow) -> Self {
        Self { entry: row.entry, hash: row.hash }
    }
}

/// The filters of the audit trail, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by hand, so that every fault is told; documented here")]
struct Filters {
    /// Only changes of things of this kind.
    kind: Option<AuditKind>,
    /// Only changes of things of this name; a key's is its public id.
    name: Option<String>,
    /// Only changes that did this.
    action: Option<AuditAction>,
    /// Only changes by the key of this public id, or by commands: `cli`.
    actor: Option<String>,
    /// Only changes of this time or later: RFC 3339.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only changes before this time: RFC 3339.
    #[param(format = DateTime)]
    until: Option<String>,
    /// For operators who name no tenant: the `tenant_chain` of a tenant, which may be gone.
    #[param(pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    chain: Option<String>,
}

/// Lists changes, the newest first: a tenant's; or, for an operator who names none, those of tenants and operators' keys.
#[utoipa::path(get, path = "/v1/audit", operation_id = "list_audit", tag = "audit", params(PageParameters, Filters),
    responses((status = 200, body = ListView<AuditView>)))]
async fn list(auditor: Auditor, State(state): State<AppState>, mut query: Query) -> Result<Response, Problem> {
    let page = page_request(&mut query, |key| key.parse().ok().filter(|sequence: &i64| *sequence > 0));
    let kinds = |text: &str| AuditKind::ALL.into_iter().map(AuditKind::as_str).find(|known| *known == text);
    let actions = |text: &str| AuditAction::ALL.into_iter().map(AuditAction::as_str).find(|known| *known == text);
    let text = |text: &str| (!text.contains('\0')).then(|| text.to_owned());
    let filter = Filter {
        kind: query.read("kind", "one of tenant, key, handler, tool", kinds),
        name: query.read("name", "a text without NUL", text),
        action: query.read("action", "something that is done to things, such as updated", actions),
        actor: query.read("actor", "a text without NUL", text),
        since: query.read("since", "a time in RFC 3339", read_time),
        until: query.read("until", "a time in RFC 3339", read_time),
    };
    let chain = match auditor {
        Auditor::Tenant(id) => id,
        Auditor::Operators => {
            let named = query.read("chain", "a chain's UUID", |text| Uuid::parse_str(text).ok());
            named.unwrap_or(audit::OPERATORS)
        }
    };
    query.finish()?;
    let rows = audit::list(&state.store, chain, &filter, &page).await?;
    tagged(StatusCode::OK, &ListView::of(rows, |row| row.entry.sequence.to_string(), AuditView::of))
}
