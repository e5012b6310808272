//! Handlers: those with a name, and those that belong to one tool.

use super::audit::{self, Altered, Change};
use super::json::{Json, JsonText};
use super::seal::Place;
use super::session::Session;
use super::{Conflict, Page, PageRequest, Store, StoreError, Vault, tenants};
use crate::domain::handler::HandlerSecrets;
use crate::domain::{AuditAction, AuditKind, Handler, HandlerName, Shown};
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

/// A handler as it is stored, opened.
#[derive(Clone, Debug)]
pub struct HandlerRow {
    /// Its id, which no API shows.
    pub id: Uuid,
    /// Its name; none of one that belongs to a tool.
    pub name: Option<String>,
    /// Goes up with every change.
    pub version: i32,
    /// The handler, secrets in the clear.
    pub handler: Handler,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

/// The columns of a handler.
pub(super) struct Sealed {
    pub(super) id: Uuid,
    pub(super) name: Option<String>,
    pub(super) version: i32,
    pub(super) settings: JsonText,
    pub(super) headers: Option<Vec<u8>>,
    pub(super) signing_secret: Option<Vec<u8>>,
    pub(super) previous_signing_secret: Option<Vec<u8>>,
    pub(super) previous_until: Option<OffsetDateTime>,
    pub(super) created_at: OffsetDateTime,
    pub(super) updated_at: OffsetDateTime,
}

const TABLE: &str = "handlers";

impl Sealed {
    pub(super) fn open(self, vault: &Vault, tenant: Uuid) -> Result<HandlerRow, StoreError> {
        let settings: Json<Handler> = self.settings.read(TABLE, &self.id.to_string(), "settings")?;
        let place = |column| Place { table: TABLE, column, tenant, row: self.id };
        let text = |column, sealed: &[u8]| -> Result<SecretString, StoreError> {
            let opened = vault.open(place(column), sealed)?;
            let text = std::str::from_utf8(&opened).map_err(|e| StoreError::inconsistent(TABLE, self.id, e))?;
            Ok(SecretString::from(text))
        };
        let headers = match &self.headers {
            None => BTreeMap::new(),
            Some(sealed) => {
                let opened = vault.open(place("headers"), sealed)?;
                let headers: BTreeMap<String, String> =
                    serde_json::from_slice(&opened).map_err(|e| StoreError::inconsistent(TABLE, self.id, e))?;
                headers.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect()
            }
        };
        let signing_secret = self.signing_secret.as_deref().map(|sealed| text("signing_secret", sealed)).transpose()?;
        let previous = match (self.previous_signing_secret.as_deref(), self.previous_until) {
            (Some(sealed), Some(until)) => Some((text("previous_signing_secret", sealed)?, until)),
            _ => None,
        };
        let secrets = HandlerSecrets { headers, signing_secret, previous_signing_secret: previous };
        Ok(HandlerRow {
            id: self.id,
            name: self.name,
            version: self.version,
            handler: Handler { secrets, ..settings.0 },
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// A handler's secrets, sealed for its row.
struct SealedSecrets {
    headers: Option<Vec<u8>>,
    signing_secret: Option<Vec<u8>>,
    previous_signing_secret: Option<Vec<u8>>,
    previous_until: Option<OffsetDateTime>,
}

impl SealedSecrets {
    fn of(vault: &Vault, tenant: Uuid, row: Uuid, secrets: &HandlerSecrets) -> Result<Self, StoreError> {
        let seal = |column, secret: &[u8]| vault.seal(Place { table: TABLE, column, tenant, row }, secret);
        let text = |column, secret: &SecretString| seal(column, secret.expose_secret().as_bytes());
        let headers = if secrets.headers.is_empty() {
            None
        } else {
            let open: BTreeMap<&str, &str> =
                secrets.headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
            let open = Zeroizing::new(serde_json::to_vec(&open).map_err(|e| StoreError::inconsistent(TABLE, row, e))?);
            Some(seal("headers", &open)?)
        };
        let previous = secrets.previous_signing_secret.as_ref();
        Ok(Self {
            headers,
            signing_secret: secrets.signing_secret.as_ref().map(|secret| text("signing_secret", secret)).transpose()?,
            previous_signing_secret: previous.map(|(secret, _)| text("previous_signing_secret", secret)).transpose()?,
            previous_until: previous.map(|(_, until)| *until),
        })
    }
}

/// Finds a handler by its name.
pub async fn get(store: &Store, tenant: Uuid, name: &HandlerName) -> Result<Option<HandlerRow>, StoreError> {
    let found = sqlx::query_as!(
        Sealed,
        r#"select id, name, version, settings as "settings: _", headers, signing_secret, previous_signing_secret,
             previous_until, created_at, updated_at
           from handlers where tenant_id = $1 and name = $2"#,
        tenant,
        name.as_str()
    );
    let mut reading = store.scoped(tenant).await?;
    let found = found.fetch_optional(&mut *reading).await?;
    reading.commit().await?;
    found.map(|sealed| sealed.open(&store.vault, tenant)).transpose()
}

/// Lists the handlers that have a name, by name.
pub async fn list(store: &Store, tenant: Uuid, page: &PageRequest<String>) -> Result<Page<HandlerRow>, StoreError> {
    let rows = sqlx::query_as!(
        Sealed,
        r#"select id, name, version, settings as "settings: _", headers, signing_secret, previous_signing_secret,
             previous_until, created_at, updated_at
           from handlers where tenant_id = $1 and name is not null and ($2::text is null or name > $2)
           order by name limit $3"#,
        tenant,
        page.after,
        page.limit + 1
    );
    let mut reading = store.scoped(tenant).await?;
    let rows = rows.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    let opened: Result<Vec<_>, _> = rows.into_iter().map(|sealed| sealed.open(&store.vault, tenant)).collect();
    Ok(Page::of(opened?, page.limit))
}

/// Makes a handler with a name.
pub async fn insert(
    store: &Store,
    tenant: Uuid,
    name: &HandlerName,
    handler: &Handler,
    change: &Change,
) -> Result<HandlerRow, StoreError> {
    let mut tx = store.scoped(tenant).await?;
    tenants::bump(&mut tx, tenant).await?;
    let made = insert_row(&store.vault, &mut tx, tenant, Some(name.as_str()), None, handler).await?;
    let made = made.open(&store.vault, tenant)?;
    record(&mut tx, tenant, change, AuditAction::Created, (None, Some(&made))).await?;
    tx.commit().await?;
    Ok(made)
}

/// Adds a change of a handler with a name to the audit trail, inside its transaction.
async fn record(
    connection: &mut Session,
    tenant: Uuid,
    change: &Change,
    action: AuditAction,
    (before, after): (Option<&HandlerRow>, Option<&HandlerRow>),
) -> Result<(), StoreError> {
    let name = |row: &HandlerRow| row.name.clone().unwrap_or_default();
    let shown = |row: &HandlerRow| audit::shown(Shown::handler(&name(row), &row.handler));
    let secrets = |row: Option<&HandlerRow>| row.map(|row| row.handler.secrets.clone());
    let what = Altered {
        kind: AuditKind::Handler,
        name: &after.or(before).map(name).unwrap_or_default(),
        action,
        version: after.or(before).map(|row| row.version),
        before: before.map(shown).transpose()?,
        after: after.map(shown).transpose()?,
        secrets_changed: audit::secrets_differ(secrets(before).as_ref(), secrets(after).as_ref()),
        tenant_chain: None,
    };
    audit::append(connection, tenant, change, &what).await
}

/// Finds a handler as the writer saw it, inside the writer's transaction.
async fn seen_by(connection: &mut Session, tenant: Uuid, id: Uuid, seen: i32) -> Result<Option<Sealed>, StoreError> {
    let found = sqlx::query_as!(
        Sealed,
        r#"select id, name, version, settings as "settings: _", headers, signing_secret, previous_signing_secret,
             previous_until, created_at, updated_at
           from handlers where tenant_id = $1 and id = $2 and version = $3"#,
        tenant,
        id,
        seen
    );
    Ok(found.fetch_optional(connection).await?)
}

/// Inserts a handler with a name or with an owner.
pub(super) async fn insert_row(
    vault: &Vault,
    connection: &mut Session,
    tenant: Uuid,
    name: Option<&str>,
    owner: Option<&str>,
    handler: &Handler,
) -> Result<Sealed, StoreError> {
    let id = Uuid::now_v7();
    let sealed = SealedSecrets::of(vault, tenant, id, &handler.secrets)?;
    let made = sqlx::query_as!(
        Sealed,
        r#"insert into handlers (tenant_id, id, name, owner, settings, headers, signing_secret,
             previous_signing_secret, previous_until)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
           returning id, name, version, settings as "settings: _", headers, signing_secret, previous_signing_secret,
             previous_until, created_at, updated_at"#,
        tenant,
        id,
        name,
        owner,
        Json(handler) as _,
        sealed.headers,
        sealed.signing_secret,
        sealed.previous_signing_secret,
        sealed.previous_until
    );
    Ok(made.fetch_one(connection).await?)
}

/// Replaces a handler, if it is still at the version that the writer saw. Nothing happens, and the version stays, if it already
/// says just that.
pub async fn update(
    store: &Store,
    tenant: Uuid,
    id: Uuid,
    seen: i32,
    handler: &Handler,
    change: &Change,
) -> Result<HandlerRow, StoreError> {
    let sealed = SealedSecrets::of(&store.vault, tenant, id, &handler.secrets)?;
    let mut tx = store.scoped(tenant).await?;
    tenants::bump(&mut tx, tenant).await?;
    let before = seen_by(&mut tx, tenant, id, seen).await?.ok_or(StoreError::Conflict(Conflict::Changed))?;
    let before = before.open(&store.vault, tenant)?;
    if before.handler.is_same(handler) {
        return Ok(before); // the bump is rolled back
    }
    let changed = sqlx::query_as!(
        Sealed,
        r#"update handlers set settings = $4, headers = $5, signing_secret = $6, previous_signing_secret = $7,
             previous_until = $8, version = version + 1, updated_at = now()
           where tenant_id = $1 and id = $2 and version = $3
           returning id, name, version, settings as "settings: _", headers, signing_secret, previous_signing_secret,
             previous_until, created_at, updated_at"#,
        tenant,
        id,
        seen,
        Json(handler) as _,
        sealed.headers,
        sealed.signing_secret,
        sealed.previous_signing_secret,
        sealed.previous_until
    );
    let changed = changed.fetch_optional(&mut *tx).await?.ok_or(StoreError::Conflict(Conflict::Changed))?;
    let changed = changed.open(&store.vault, tenant)?;
    record(&mut tx, tenant, change, AuditAction::Updated, (Some(&before), Some(&changed))).await?;
    tx.commit().await?;
    Ok(changed)
}

/// Removes a handler, if it is still at the version that the writer saw and no tool uses it.
pub async fn delete(store: &Store, tenant: Uuid, id: Uuid, seen: i32, change: &Change) -> Result<(), StoreError> {
    let mut tx = store.scoped(tenant).await?;
    tenants::bump(&mut tx, tenant).await?;
    let before = seen_by(&mut tx, tenant, id, seen).await?.ok_or(StoreError::Conflict(Conflict::Changed))?;
    let before = before.open(&store.vault, tenant)?;
    let gone = sqlx::query!("delete from handlers where tenant_id = $1 and id = $2 and version = $3", tenant, id, seen);
    if gone.execute(&mut *tx).await?.rows_affected() == 0 {
        return Err(StoreError::Conflict(Conflict::Changed));
    }
    record(&mut tx, tenant, change, AuditAction::Deleted, (Some(&before), None)).await?;
    tx.commit().await?;
    Ok(())
}
