//! API keys: hashes, found by their public ids.

use super::audit::{self, Altered, Change};
use super::json::Json;
use super::scope::Scope;
use super::session::Session;
use super::{Page, PageRequest, Store, StoreError};
use crate::domain::{AuditAction, AuditKind, KeyToken, Role, Shown, TenantFacts, TenantLimits, TenantName, key};
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

/// A key as it is listed.
#[derive(Clone, Debug)]
pub struct KeyRow {
    /// The public id.
    pub id: String,
    /// What it may do.
    pub role: String,
    /// What people call it.
    pub name: Option<String>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it stops working.
    pub expires_at: Option<OffsetDateTime>,
}

/// A key as it is checked.
#[derive(Clone, Debug)]
pub struct StoredKey {
    /// Whose it is; `None` for an operator's.
    pub tenant: Option<Arc<TenantFacts>>,
    /// What it may do.
    pub role: Role,
    /// What the database has of its secret.
    pub hash: Vec<u8>,
    /// When it stops working.
    pub expires_at: Option<OffsetDateTime>,
}

/// What is said of a new key.
#[derive(Clone, Debug)]
pub struct KeyDraft {
    /// What it may do.
    pub role: Role,
    /// What people call it.
    pub name: Option<String>,
    /// When it stops working.
    pub expires_at: Option<OffsetDateTime>,
}

/// Stores a tenant's key.
pub async fn insert(
    store: &Store,
    tenant: Uuid,
    key: &KeyToken,
    draft: &KeyDraft,
    change: &Change,
) -> Result<KeyRow, StoreError> {
    let mut tx = store.scoped(tenant).await?;
    let made = sqlx::query_as!(
        KeyRow,
        "insert into keys (tenant_id, id, hash, role, name, expires_at) values ($1, $2, $3, $4, $5, $6)
         returning id, role, name, created_at, expires_at",
        tenant,
        key.id(),
        &key.hash(),
        draft.role.as_str(),
        draft.name,
        draft.expires_at
    );
    let made = made.fetch_one(&mut *tx).await?;
    record(&mut tx, tenant, change, AuditAction::Created, &made).await?;
    tx.commit().await?;
    Ok(made)
}

/// Stores an operator's key.
pub async fn insert_operator(
    store: &Store,
    key: &KeyToken,
    name: Option<&str>,
    expires_at: Option<OffsetDateTime>,
    change: &Change,
) -> Result<(), StoreError> {
    let mut tx = store.system().await?;
    let made = sqlx::query_as!(
        KeyRow,
        r#"insert into operator_keys (id, hash, name, expires_at) values ($1, $2, $3, $4)
           returning id, 'operator' as "role!", name, created_at, expires_at"#,
        key.id(),
        &key.hash(),
        name,
        expires_at
    );
    let made = made.fetch_one(&mut *tx).await?;
    record(&mut tx, audit::OPERATORS, change, AuditAction::Created, &made).await?;
    tx.commit().await?;
    Ok(())
}

/// Adds the making or the end of a key to a chain of the audit trail, inside its transaction.
async fn record(
    connection: &mut Session,
    chain: Uuid,
    change: &Change,
    action: AuditAction,
    row: &KeyRow,
) -> Result<(), StoreError> {
    let shown = audit::shown(Shown::key(&row.id, &row.role, row.name.as_deref(), row.expires_at))?;
    let (before, after) = if action == AuditAction::Created { (None, Some(shown)) } else { (Some(shown), None) };
    let what = Altered {
        kind: AuditKind::Key,
        name: &row.id,
        action,
        version: None,
        before,
        after,
        secrets_changed: true, // a key is its secret
        tenant_chain: None,
    };
    audit::append(connection, chain, change, &what).await
}

/// Adds the end of a key, if there was one, and ends the transaction; says whether there was.
async fn revoked(mut tx: Scope, chain: Uuid, change: &Change, gone: Option<&KeyRow>) -> Result<bool, StoreError> {
    let Some(gone) = gone else { return Ok(false) };
    record(&mut tx, chain, change, AuditAction::Revoked, gone).await?;
    tx.commit().await?;
    Ok(true)
}

/// Lists the operators' keys by id.
pub async fn list_operators(store: &Store, page: &PageRequest<String>) -> Result<Page<KeyRow>, StoreError> {
    let rows = sqlx::query_as!(
        KeyRow,
        r#"select id, 'operator' as "role!", name, created_at, expires_at from operator_keys
           where $1::text is null or id collate "C" > $1 order by id collate "C" limit $2"#,
        page.after,
        page.limit + 1
    );
    let mut reading = store.system().await?;
    let page = Page::of(rows.fetch_all(&mut *reading).await?, page.limit);
    reading.commit().await?;
    Ok(page)
}

/// Revokes an operator's key; `false` if there is none of this id.
pub async fn delete_operator(store: &Store, id: &str, change: &Change) -> Result<bool, StoreError> {
    let mut tx = store.system().await?;
    let gone = sqlx::query_as!(
        KeyRow,
        r#"delete from operator_keys where id = $1
           returning id, 'operator' as "role!", name, created_at, expires_at"#,
        id
    );
    let gone = gone.fetch_optional(&mut *tx).await?;
    revoked(tx, audit::OPERATORS, change, gone.as_ref()).await
}

/// Lists a tenant's keys by id.
pub async fn list(store: &Store, tenant: Uuid, page: &PageRequest<String>) -> Result<Page<KeyRow>, StoreError> {
    let rows = sqlx::query_as!(
        KeyRow,
        "select id, role, name, created_at, expires_at from keys
         where tenant_id = $1 and ($2::text is null or id > $2) order by id limit $3",
        tenant,
        page.after,
        page.limit + 1
    );
    let mut reading = store.scoped(tenant).await?;
    let page = Page::of(rows.fetch_all(&mut *reading).await?, page.limit);
    reading.commit().await?;
    Ok(page)
}

/// Revokes a tenant's key; `false` if it has none of this id.
pub async fn delete(store: &Store, tenant: Uuid, id: &str, change: &Change) -> Result<bool, StoreError> {
    let mut tx = store.scoped(tenant).await?;
    let gone = sqlx::query_as!(
        KeyRow,
        "delete from keys where tenant_id = $1 and id = $2 returning id, role, name, created_at, expires_at",
        tenant,
        id
    );
    let gone = gone.fetch_optional(&mut *tx).await?;
    revoked(tx, tenant, change, gone.as_ref()).await
}

/// What may be the key of this public id. The caller compares hashes.
pub async fn candidates(store: &Store, id: &str) -> Result<Vec<StoredKey>, StoreError> {
    let rows = sqlx::query!(
        r#"select t.id as "tenant_id?", t.name as "tenant?", t.limits as "limits?: Json<TenantLimits>",
             k.role as "role!", k.hash as "hash!", k.expires_at
           from keys k join tenants t on t.id = k.tenant_id where k.id = $1
           union all
           select null, null, null, 'operator', hash, expires_at from operator_keys where id = $1"#,
        id
    );
    let mut reading = store.system().await?;
    let rows = rows.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    let mut found = Vec::new();
    for row in rows {
        let refuse = |reason: String| StoreError::inconsistent("keys", id, reason);
        let role = Role::parse(&row.role).ok_or_else(|| refuse(format!("unknown role {}", row.role)))?;
        let tenant = match (row.tenant_id, row.tenant, row.limits) {
            (Some(id), Some(name), limits) => Some(Arc::new(TenantFacts {
                id,
                name: TenantName::parse(&name).map_err(refuse)?,
                limits: limits.map(|limits| limits.0).unwrap_or_default(),
            })),
            _ => None,
        };
        found.push(StoredKey { tenant, role, hash: row.hash, expires_at: row.expires_at });
    }
    Ok(found)
}

/// Makes a new key from the system's random source. It is nowhere yet.
pub fn generate() -> Result<KeyToken, StoreError> {
    let (mut id, mut secret) = ([0; key::ID_BYTES], [0; key::SECRET_BYTES]);
    getrandom::fill(&mut id)
        .and_then(|()| getrandom::fill(&mut secret))
        .map_err(|why| StoreError::inconsistent("keys", "new", why))?;
    Ok(KeyToken::from_random(id, secret))
}
