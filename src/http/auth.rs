//! Who asks: extractors whose type is an authority. A handler that takes an [`Editor`] cannot be reached by less.

use super::AppState;
use super::listener::Peer;
use super::problem::{Code, Problem};
use super::request_id::RequestId;
use crate::domain::{AuditAction, KeyToken, Role, TenantFacts, TenantName};
use crate::store::{self, Change, keys::StoredKey};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use std::net::IpAddr;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use time::OffsetDateTime;
use uuid::Uuid;

/// Names the tenant that an operator acts for.
pub(super) const TENANT_HEADER: &str = "toolhook-tenant";
/// A value in a query that begins as a key does and is longer than this is one.
const LONGER_THAN_WORDS: usize = 40;

/// A request's authority over one tenant.
#[derive(Clone, Debug)]
pub struct Access {
    /// The tenant that the request is about.
    pub tenant: Arc<TenantFacts>,
    /// The key's public id.
    pub key_id: String,
    /// The key's role.
    pub role: Role,
    /// What the request does to things, for the audit trail.
    change: Change,
}

impl Access {
    /// Who changes something, and by which request.
    pub(super) const fn change(&self) -> &Change {
        &self.change
    }

    /// The same, where an update is more than that.
    #[must_use]
    pub(super) fn doing(&self, action: AuditAction) -> Self {
        Self { change: self.change.clone().doing(action), ..self.clone() }
    }
}

/// What a valid key says.
struct Holder {
    id: String,
    role: Role,
    tenant: Option<Arc<TenantFacts>>,
}

macro_rules! authority {
    ($($(#[doc = $doc:literal])+ $name:ident = $role:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub(super) struct $name(pub(super) Access);

        impl FromRequestParts<AppState> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
                access(parts, state, $role).await.map(Self)
            }
        }
    )+};
}

authority! {
    /// May read a tenant's tools and its call log.
    Viewer = Role::Viewer;
    /// May fetch a tenant's tool lists and run calls.
    Agent = Role::Agent;
    /// May write a tenant's handlers and tools.
    Editor = Role::Editor;
    /// May manage a tenant's keys.
    Admin = Role::Admin;
}

/// May manage tenants.
#[derive(Clone, Debug)]
pub(super) struct Operator(Change);

impl Operator {
    /// Who changes something, and by which request.
    pub(super) const fn change(&self) -> &Change {
        &self.0
    }
}

impl FromRequestParts<AppState> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let holder = authenticate(parts, state).await?;
        require(holder.role, Role::Operator)?;
        Ok(Self(change(parts, &holder)))
    }
}

/// May read an audit trail.
#[derive(Clone, Copy, Debug)]
pub(super) enum Auditor {
    /// That of one tenant.
    Tenant(Uuid),
    /// Any, as an operator who names no tenant.
    Operators,
}

impl FromRequestParts<AppState> for Auditor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let holder = authenticate(parts, state).await?;
        require(holder.role, Role::Admin)?;
        if holder.role == Role::Operator && named_tenant(&parts.headers)?.is_none() {
            return Ok(Self::Operators);
        }
        Ok(Self::Tenant(held(parts, state, holder).await?.tenant.id))
    }
}

fn change(parts: &Parts, holder: &Holder) -> Change {
    let request = parts.extensions.get::<RequestId>().map(|id| id.0.as_str());
    Change::by_key(&holder.id, holder.role, request.unwrap_or_default())
}

async fn access(parts: &Parts, state: &AppState, needed: Role) -> Result<Access, Problem> {
    let holder = authenticate(parts, state).await?;
    require(holder.role, needed)?;
    held(parts, state, holder).await
}

/// What the holder of a key has a say over.
async fn held(parts: &Parts, state: &AppState, holder: Holder) -> Result<Access, Problem> {
    let change = change(parts, &holder);
    let named = named_tenant(&parts.headers)?;
    let tenant = match (holder.tenant, named) {
        (Some(own), None) => own,
        (Some(own), Some(named)) if own.name == named => own,
        (Some(_), Some(_)) => return Err(Problem::not_found("tenant")),
        (None, Some(named)) => operated(state, &named).await?,
        (None, None) => {
            return Err(Problem::new(
                Code::TenantRequired,
                "an operator's key names the tenant in the header Toolhook-Tenant",
            ));
        }
    };
    tracing::Span::current().record("tenant.name", tenant.name.as_str());
    Ok(Access { tenant, key_id: holder.id, role: holder.role, change })
}

fn require(role: Role, needed: Role) -> Result<(), Problem> {
    if role >= needed {
        return Ok(());
    }
    let detail = format!("this needs the role {}, the key has the role {}", needed.as_str(), role.as_str());
    Err(Problem::new(Code::Forbidden, detail))
}

fn named_tenant(headers: &HeaderMap) -> Result<Option<TenantName>, Problem> {
    let Some(value) = headers.get(TENANT_HEADER) else { return Ok(None) };
    let name = value.to_str().ok().and_then(|text| TenantName::parse(text).ok());
    name.map(Some).ok_or_else(|| Problem::not_found("tenant"))
}

async fn operated(state: &AppState, name: &TenantName) -> Result<Arc<TenantFacts>, Problem> {
    let ask = async {
        let row = store::tenants::get(&state.store, name).await?;
        Ok(row.map(|row| Arc::new(TenantFacts { id: row.id, name: name.clone(), limits: row.limits.0 })))
    };
    state.tenants.get(name, ask).await?.ok_or_else(|| Problem::not_found("tenant"))
}

async fn authenticate(parts: &Parts, state: &AppState) -> Result<Holder, Problem> {
    refuse_key_in_query(parts.uri.query().unwrap_or_default())?;
    let given = presented(&parts.headers)?;
    let from = parts.extensions.get().map(|Peer(address)| address.ip());
    // A key that cannot be one is refused without asking the database.
    let Some(token) = KeyToken::parse(given) else {
        return Err(refused(state, from, "this is no key of this service: it was mistyped or cut").await);
    };
    // Nor is it asked for an address that only guesses; whose key worked not long ago may share that address.
    if state.bad_keys.are_too_many(from).await && !worked(state, &token).await {
        return Err(refused(state, from, "").await);
    }
    let candidates = candidates(state, token.id()).await?;
    let Some(stored) = fitting(&candidates, &token) else {
        return Err(refused(state, from, "the key is not known; it may have been revoked").await);
    };
    if stored.expires_at.is_some_and(|end| end <= OffsetDateTime::now_utc()) {
        return Err(refused(state, from, "the key has expired").await);
    }
    Ok(Holder { id: token.id().to_owned(), role: stored.role, tenant: stored.tenant.clone() })
}

/// The key that a request brings, whatever it is.
fn presented(headers: &HeaderMap) -> Result<&str, Problem> {
    let refuse = |detail: &str| Problem::new(Code::Unauthenticated, detail);
    if headers.get_all(header::AUTHORIZATION).iter().nth(1).is_some() {
        return Err(refuse("the header Authorization stands twice; which one is meant is not guessed"));
    }
    let given =
        headers.get(header::AUTHORIZATION).ok_or_else(|| refuse("send the header Authorization: Bearer thk_…"))?;
    let token = given.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    token.ok_or_else(|| refuse("expected Authorization: Bearer thk_…"))
}

/// Refuses a key in the query, which is logged wherever it comes by.
fn refuse_key_in_query(query: &str) -> Result<(), Problem> {
    let is_key = |value: &str| {
        let value = value.trim();
        value.strip_prefix("Bearer ").unwrap_or(value).starts_with(KeyToken::PREFIX) && value.len() > LONGER_THAN_WORDS
    };
    if url::form_urlencoded::parse(query.as_bytes()).any(|(_, value)| is_key(&value)) {
        let detail =
            "send the key in the header Authorization: Bearer thk_…; the one in the query is in logs by now: revoke it";
        return Err(Problem::new(Code::KeyInQuery, detail));
    }
    Ok(())
}

/// Refuses a bad key, and counts it.
async fn refused(state: &AppState, from: Option<IpAddr>, detail: &str) -> Problem {
    if state.bad_keys.are_too_many(from).await {
        return Problem::new(Code::BadKeys, "too many bad keys came from this address; try again in a minute");
    }
    state.bad_keys.count(from).await;
    Problem::new(Code::Unauthenticated, detail)
}

fn fitting<'a>(candidates: &'a [StoredKey], token: &KeyToken) -> Option<&'a StoredKey> {
    let hash = token.hash();
    candidates.iter().find(|stored| bool::from(stored.hash.as_slice().ct_eq(&hash)))
}

/// Whether a key has worked here not long ago.
async fn worked(state: &AppState, token: &KeyToken) -> bool {
    let known = state.keys.recall(&token.id().to_owned()).await;
    known.is_some_and(|candidates| fitting(&candidates, token).is_some())
}

async fn candidates(state: &AppState, id: &str) -> Result<Arc<Vec<StoredKey>>, Problem> {
    let ask = async { store::keys::candidates(&state.store, id).await.map(|found| Some(Arc::new(found))) };
    Ok(state.keys.get(&id.to_owned(), ask).await?.unwrap_or_default())
}
