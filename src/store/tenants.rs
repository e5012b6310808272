//! Tenants and their limits.

use super::json::Json;
use super::{Conflict, Page, PageRequest, Store, StoreError};
use crate::domain::tenant::TenantDraft;
use crate::domain::{TenantLimits, TenantName};
use sqlx::PgConnection;
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
pub async fn insert(store: &Store, name: &TenantName, draft: &TenantDraft) -> Result<TenantRow, StoreError> {
    let made = sqlx::query_as!(
        TenantRow,
        r#"insert into tenants (id, name, display_name, limits) values ($1, $2, $3, $4)
           returning id, name, display_name, limits as "limits: _", created_at, updated_at"#,
        Uuid::now_v7(),
        name.as_str(),
        draft.display_name,
        Json(&draft.limits) as _
    );
    let mut tx = store.system().await?;
    let made = made.fetch_one(&mut *tx).await?;
    tx.commit().await?;
    Ok(made)
}

/// Replaces what a tenant has, if it is still as the writer saw it at `seen`.
pub async fn update(
    store: &Store,
    id: Uuid,
    seen: OffsetDateTime,
    draft: &TenantDraft,
) -> Result<TenantRow, StoreError> {
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
    let mut tx = store.system().await?;
    let changed = changed.fetch_optional(&mut *tx).await?.ok_or(StoreError::Conflict(Conflict::Changed))?;
    tx.commit().await?;
    Ok(changed)
}

/// Removes a tenant with everything that it owns, if it is still as the writer saw it. Its log cannot be read any more from then
/// on, and is removed piece by piece.
pub async fn delete(store: &Store, id: Uuid, seen: OffsetDateTime) -> Result<(), StoreError> {
    let gone = sqlx::query!(
        "with gone as (delete from tenants where id = $1 and updated_at = $2 returning id)
         insert into departed_tenants (tenant_id) select id from gone",
        id,
        seen
    );
    let mut tx = store.system().await?;
    if gone.execute(&mut *tx).await?.rows_affected() == 0 {
        return Err(StoreError::Conflict(Conflict::Changed));
    }
    tx.commit().await?;
    Ok(())
}

/// Raises the tenant's registry version inside a writer's transaction, and makes the tenant's writers take turns.
pub(super) async fn bump(connection: &mut PgConnection, tenant: Uuid) -> Result<(), StoreError> {
    let raised = sqlx::query!("update tenants set registry_version = registry_version + 1 where id = $1", tenant);
    if raised.execute(connection).await?.rows_affected() == 0 {
        return Err(StoreError::Conflict(Conflict::NoSuchTenant));
    }
    Ok(())
}
