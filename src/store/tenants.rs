//! Tenants and their limits.

use super::audit::{self, Altered, Change};
use super::json::Json;
use super::session::Session;
use super::{Conflict, Page, PageRequest, Store, StoreError};
use crate::domain::tenant::TenantDraft;
use crate::domain::{AuditAction, AuditKind, Shown, TenantLimits, TenantName};
use time::OffsetDateTime;
use uuid::Uuid;

/// A tenant as it is stored.
#[derive(Clone, Debug)]
pub struct TenantRow {
    /// Its id, which no API shows.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// What people call it.
    pub display_name: Option<String>,
    /// Its limits.
    pub limits: Json<TenantLimits>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

/// Finds a tenant.
pub async fn get(store: &Store, name: &TenantName) -> Result<Option<TenantRow>, StoreError> {
    let found = sqlx::query_as!(
        TenantRow,
        r#"select id, name, display_name, limits as "limits: _", created_at, updated_at from tenants where name = $1"#,
        name.as_str()
    );
    let mut reading = store.system().await?;
    let found = found.fetch_optional(&mut *reading).await?;
    reading.commit().await?;
    Ok(found)
}

/// Lists tenants by name.
pub async fn list(store: &Store, page: &PageRequest<String>) -> Result<Page<TenantRow>, StoreError> {
    let rows = sqlx::query_as!(
        TenantRow,
        r#"select id, name, display_name, limits as "limits: _", created_at, updated_at from tenants
           where $1::text is null or name > $1 order by name limit $2"#,
        page.after,
        page.limit + 1
    );
    let mut reading = store.system().await?;
    let page = Page::of(rows.fetch_all(&mut *reading).await?, page.limit);
    reading.commit().await?;
    Ok(page)
}

/// Makes a tenant.
pub async fn insert(
    store: &Store,
    name: &TenantName,
    draft: &TenantDraft,
    change: &Change,
) -> Result<TenantRow, StoreError> {
    let mut tx = store.system().await?;
    let made = sqlx::query_as!(
        TenantRow,
        r#"insert into tenants (id, name, display_name, limits) values ($1, $2, $3, $4)
           returning id, name, display_name, limits as "limits: _", created_at, updated_at"#,
        Uuid::now_v7(),
        name.as_str(),
        draft.display_name,
        Json(&draft.limits) as _
    );
    let made = made.fetch_one(&mut *tx).await?;
    record(&mut tx, change, AuditAction::Created, (None, Some(&made))).await?;
    tx.commit().await?;
    Ok(made)
}

/// Replaces what a tenant has, if it is still as the writer saw it at `seen`. Nothing happens if it has just that already.
pub async fn update(
    store: &Store,
    id: Uuid,
    seen: OffsetDateTime,
    draft: &TenantDraft,
    change: &Change,
) -> Result<TenantRow, StoreError> {
    let mut tx = store.system().await?;
    let before = seen_by(&mut tx, id, seen).await?;
    if before.display_name == draft.display_name && before.limits.0 == draft.limits {
        return Ok(before);
    }
    let changed = sqlx::query_as!(
        TenantRow,
        r#"update tenants set display_name = $3, limits = $4, updated_at = clock_timestamp(),
             registry_version = registry_version + 1
           where id = $1 and updated_at = $2
           returning id, name, display_name, limits as "limits: _", created_at, updated_at"#,
        id,
        seen,
        draft.display_name,
        Json(&draft.limits) as _
    );
    let changed = changed.fetch_optional(&mut *tx).await?.ok_or(StoreError::Conflict(Conflict::Changed))?;
    record(&mut tx, change, AuditAction::Updated, (Some(&before), Some(&changed))).await?;
    tx.commit().await?;
    Ok(changed)
}

/// Finds a tenant as the writer saw it, inside the writer's transaction, and keeps it so.
async fn seen_by(connection: &mut Session, id: Uuid, seen: OffsetDateTime) -> Result<TenantRow, StoreError> {
    let found = sqlx::query_as!(
        TenantRow,
        r#"select id, name, display_name, limits as "limits: _", created_at, updated_at from tenants
           where id = $1 and updated_at = $2 for no key update"#,
        id,
        seen
    );
    found.fetch_optional(connection).await?.ok_or(StoreError::Conflict(Conflict::Changed))
}

/// Adds a change of a tenant to its own chain of the audit trail and to the operators', inside its transaction.
async fn record(
    connection: &mut Session,
    change: &Change,
    action: AuditAction,
    (before, after): (Option<&TenantRow>, Option<&TenantRow>),
) -> Result<(), StoreError> {
    let Some(tenant) = after.or(before) else { return Ok(()) };
    for chain in [tenant.id, audit::OPERATORS] {
        let shown =
            |row: &TenantRow| audit::shown(Shown::tenant(&row.name, row.display_name.as_deref(), &row.limits.0));
        let what = Altered {
            kind: AuditKind::Tenant,
            name: &tenant.name,
            action,
            version: None,
            before: before.map(shown).transpose()?,
            after: after.map(shown).transpose()?,
            secrets_changed: false,
            tenant_chain: Some(tenant.id),
        };
        audit::append(connection, chain, change, &what).await?;
    }
    Ok(())
}

/// Removes a tenant with everything that it owns, if it is still as the writer saw it. Its log cannot be read any more from then
/// on, and is removed piece by piece; its chain of the audit trail stays.
pub async fn delete(store: &Store, id: Uuid, seen: OffsetDateTime, change: &Change) -> Result<(), StoreError> {
    let mut tx = store.system().await?;
    let before = seen_by(&mut tx, id, seen).await?;
    let gone = sqlx::query!(
        "with gone as (delete from tenants where id = $1 and updated_at = $2 returning id)
         insert into departed_tenants (tenant_id) select id from gone",
        id,
        seen
    );
    if gone.execute(&mut *tx).await?.rows_affected() == 0 {
        return Err(StoreError::Conflict(Conflict::Changed));
    }
    record(&mut tx, change, AuditAction::Deleted, (Some(&before), None)).await?;
    tx.commit().await?;
    Ok(())
}

/// Raises the tenant's registry version inside a writer's transaction, and makes the tenant's writers take turns.
pub(super) async fn bump(connection: &mut Session, tenant: Uuid) -> Result<(), StoreError> {
    let raised = sqlx::query!("update tenants set registry_version = registry_version + 1 where id = $1", tenant);
    if raised.execute(connection).await?.rows_affected() == 0 {
        return Err(StoreError::Conflict(Conflict::NoSuchTenant));
    }
    Ok(())
}
