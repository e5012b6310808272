//! Tools as they are now.

use super::audit::{self, Altered, Change};
use super::handlers::{self, Sealed};
use super::json::{Json, JsonText};
use super::session::Session;
use super::tool_row::{BrokenRow, Content, handler_ref};
use super::{Conflict, Page, PageRequest, Store, StoreError, tenants, tool_versions};
use crate::domain::handler::HandlerSecrets;
use crate::domain::{AuditAction, AuditKind, Handler, HandlerRef, Shown, Tool, ToolName};
use secrecy::ExposeSecret;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use uuid::Uuid;

/// A tool as it is stored.
#[derive(Clone, Debug)]
pub struct ToolRow {
    /// The tool.
    pub tool: Tool,
    /// Which of its versions this is, from 1.
    pub version: i32,
    /// Its handler's row.
    handler_id: Uuid,
    /// The secrets of the handler that it owns, if it owns one.
    pub owned_secrets: Option<HandlerSecrets>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

/// Which tools are listed.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Those with this tag.
    pub tag: Option<String>,
    /// Those of the handler of this name.
    pub handler: Option<String>,
    /// Those that are enabled, or those that are not.
    pub enabled: Option<bool>,
    /// Those with this text in their name or description, in any case.
    pub q: Option<String>,
}

/// A tool's columns joined with its handler's.
struct Joined {
    name: String,
    version: i32,
    description: String,
    input_schema: Json<Box<RawValue>>,
    output_schema: Option<Json<Box<RawValue>>>,
    options: JsonText,
    limits: JsonText,
    tags: Vec<String>,
    enabled: bool,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    handler_id: Uuid,
    handler_name: Option<String>,
    settings: JsonText,
    headers: Option<Vec<u8>>,
    signing_secret: Option<Vec<u8>>,
    previous_signing_secret: Option<Vec<u8>>,
    previous_until: Option<OffsetDateTime>,
}

const TABLE: &str = "tools";

impl Joined {
    fn open(self, store: &Store, tenant: Uuid) -> Result<ToolRow, StoreError> {
        let sealed = Sealed {
            id: self.handler_id,
            name: self.handler_name,
            version: 0, // of no interest here
            settings: self.settings,
            headers: self.headers,
            signing_secret: self.signing_secret,
            previous_signing_secret: self.previous_signing_secret,
            previous_until: self.previous_until,
            created_at: self.created_at,
            updated_at: self.updated_at,
        };
        let handler = sealed.open(&store.vault, tenant)?;
        let name = self.name;
        let content = Content {
            description: self.description,
            input_schema: self.input_schema,
            output_schema: self.output_schema,
            options: self.options.read(TABLE, &name, "options")?,
            limits: self.limits.read(TABLE, &name, "limits")?,
            tags: self.tags,
            enabled: self.enabled,
            name,
        };
        Ok(ToolRow {
            version: self.version,
            handler_id: handler.id,
            owned_secrets: handler.name.is_none().then(|| handler.handler.secrets.clone()),
            tool: content.into_tool(handler_ref(handler)?, &store.schemas)?,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// Finds a tool.
pub async fn get(store: &Store, tenant: Uuid, name: &ToolName) -> Result<Option<ToolRow>, StoreError> {
    let mut reading = store.scoped(tenant).await?;
    let found = find(&mut reading, tenant, name).await?;
    reading.commit().await?;
    opened(store, tenant, found).await?.into_iter().next().transpose()
}

/// Which version a tool is at, whether or not the rest of its row can be read.
pub async fn version(store: &Store, tenant: Uuid, name: &ToolName) -> Result<Option<i32>, StoreError> {
    let found =
        sqlx::query_scalar!("select version from tools where tenant_id = $1 and name = $2", tenant, name.as_str());
    let mut reading = store.scoped(tenant).await?;
    let found = found.fetch_optional(&mut *reading).await?;
    reading.commit().await?;
    Ok(found)
}

/// Opens rows, each by itself. Compiles schemas that are not known, which takes its time for many.
async fn opened(
    store: &Store,
    tenant: Uuid,
    rows: impl IntoIterator<Item = Joined> + Send + 'static,
) -> Result<Vec<Result<ToolRow, StoreError>>, StoreError> {
    let store = store.clone();
    let work = move || rows.into_iter().map(|row| row.open(&store, tenant)).collect();
    tokio::task::spawn_blocking(work).await.map_err(|e| StoreError::inconsistent(TABLE, tenant, e))
}

async fn find(connection: &mut Session, tenant: Uuid, name: &ToolName) -> Result<Option<Joined>, sqlx::Error> {
    let found = sqlx::query_as!(
        Joined,
        r#"select t.name, t.version, description, input_schema as "input_schema: _",
             output_schema as "output_schema: _", options as "options: _", limits as "limits: _", tags, enabled,
             t.created_at, t.updated_at, handler_id, h.name as handler_name, h.settings as "settings: _", h.headers,
             h.signing_secret, h.previous_signing_secret, h.previous_until
           from tools t join handlers h on h.tenant_id = t.tenant_id and h.id = t.handler_id
           where t.tenant_id = $1 and t.name = $2"#,
        tenant,
        name.as_str()
    );
    found.fetch_optional(connection).await
}

/// Lists tools by name. A row that cannot be read stands in its place among the others.
pub async fn list(
    store: &Store,
    tenant: Uuid,
    filter: &Filter,
    page: &PageRequest<String>,
) -> Result<Page<Result<ToolRow, BrokenRow>>, StoreError> {
    let escaped = |text: &String| text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    let pattern = filter.q.as_ref().map(|text| format!("%{}%", escaped(text)));
    let rows = sqlx::query_as!(
        Joined,
        r#"select t.name, t.version, description, input_schema as "input_schema: _",
             output_schema as "output_schema: _", options as "options: _", limits as "limits: _", tags, enabled,
             t.created_at, t.updated_at, handler_id, h.name as handler_name, h.settings as "settings: _", h.headers,
             h.signing_secret, h.previous_signing_secret, h.previous_until
           from tools t join handlers h on h.tenant_id = t.tenant_id and h.id = t.handler_id
           where t.tenant_id = $1 and ($2::text is null or t.name > $2)
             and ($4::text is null or $4 = any(tags)) and ($5::text is null or h.name = $5)
             and ($6::boolean is null or enabled = $6)
             and ($7::text is null or t.name ilike $7 or description ilike $7)
           order by t.name limit $3"#,
        tenant,
        page.after,
        page.limit + 1,
        filter.tag,
        filter.handler,
        filter.enabled,
        pattern
    );
    let mut reading = store.scoped(tenant).await?;
    let Page { rows, more } = Page::of(rows.fetch_all(&mut *reading).await?, page.limit);
    reading.commit().await?;
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let each = names.into_iter().zip(opened(store, tenant, rows).await?);
    Ok(Page { rows: each.map(|(name, row)| row.map_err(|error| BrokenRow { name, error })).collect(), more })
}

/// Makes a tool. `most` is how many the tenant may have.
pub async fn insert(store: &Store, tenant: Uuid, tool: &Tool, most: u32, change: &Change) -> Result<(), StoreError> {
    let content = Content::readable(tool)?;
    let mut tx = store.scoped(tenant).await?;
    tenants::bump(&mut tx, tenant).await?;
    let count =
        sqlx::query_scalar!("select count(*) from tools where tenant_id = $1 and name <> $2", tenant, content.name);
    if count.fetch_one(&mut *tx).await?.unwrap_or_default() >= i64::from(most) {
        return Err(StoreError::Conflict(Conflict::ToolLimit(most)));
    }
    refuse_a_double(&mut tx, tenant, &content.name).await?;
    let (handler_id, handler_name) = place_handler(store, &mut tx, tenant, tool, None).await?;
    let made = sqlx::query!(
        "insert into tools (tenant_id, name, version, description, input_schema, output_schema, options, limits, tags,
           enabled, handler_id)
         values ($1, $2, 1, $3, $4, $5, $6, $7, $8, $9, $10)",
        tenant,
        content.name,
        content.description,
        content.input_schema as _,
        content.output_schema.clone() as _,
        content.options.clone() as _,
        content.limits.clone() as _,
        &content.tags,
        content.enabled,
        handler_id
    );
    made.execute(&mut *tx).await?;
    tool_versions::keep(&mut tx, tenant, &content, 1, handler_id, handler_name.as_deref()).await?;
    let what = altered(&tool.name, AuditAction::Created, 1, None, Some(tool))?;
    audit::append(&mut tx, tenant, change, &what).await?;
    tx.commit().await?;
    store.schemas.learn(tool);
    Ok(())
}

/// Refuses a name that only letter case tells from another tool's: a model that mixes them up would run the wrong one. The
/// tenant's writers take turns, so nobody makes the other meanwhile.
async fn refuse_a_double(connection: &mut Session, tenant: Uuid, name: &str) -> Result<(), StoreError> {
    let double = sqlx::query_scalar!(
        "select name from tools where tenant_id = $1 and lower(name) = lower($2) and name <> $2 limit 1",
        tenant,
        name
    );
    match double.fetch_optional(connection).await? {
        None => Ok(()),
        Some(other) => Err(StoreError::Conflict(Conflict::NameTooLike(other))),
    }
}

/// Replaces a tool, if it is still at the version that the writer saw. Nothing happens, and the version stays, if the
/// tool already says just that.
pub async fn update(store: &Store, tenant: Uuid, seen: i32, tool: &Tool, change: &Change) -> Result<(), StoreError> {
    let content = Content::readable(tool)?;
    let mut tx = store.scoped(tenant).await?;
    tenants::bump(&mut tx, tenant).await?;
    let now = find(&mut tx, tenant, &tool.name).await?.filter(|now| now.version == seen);
    let now = opened(store, tenant, now).await?.into_iter().next().transpose()?;
    let now = now.ok_or(StoreError::Conflict(Conflict::Changed))?;
    let (handler_id, handler_name) = place_handler(store, &mut tx, tenant, tool, Some(&now)).await?;
    if handler_id == now.handler_id && content.says_the_same(&Content::of(&now.tool)) {
        return Ok(()); // the bump is rolled back with the rest
    }
    let version = now.version + 1;
    sqlx::query!(
        "update tools set version = $3, description = $4, input_schema = $5, output_schema = $6, options = $7,
           limits = $8, tags = $9, enabled = $10, handler_id = $11, updated_at = now()
         where tenant_id = $1 and name = $2",
        tenant,
        content.name,
        version,
        content.description,
        content.input_schema.clone() as _,
        content.output_schema.clone() as _,
        content.options.clone() as _,
        content.limits.clone() as _,
        &content.tags,
        content.enabled,
        handler_id
    )
    .execute(&mut *tx)
    .await?;
    tool_versions::keep(&mut tx, tenant, &content, version, handler_id, handler_name.as_deref()).await?;
    let what = altered(&tool.name, AuditAction::Updated, version, Some(&now.tool), Some(tool))?;
    audit::append(&mut tx, tenant, change, &what).await?;
    tx.commit().await?;
    store.schemas.learn(tool);
    Ok(())
}

/// Removes a tool with its versions and the handlers that it owned, if it is still at the version that the writer saw.
pub async fn delete(
    store: &Store,
    tenant: Uuid,
    name: &ToolName,
    seen: i32,
    change: &Change,
) -> Result<(), StoreError> {
    let mut tx = store.scoped(tenant).await?;
    tenants::bump(&mut tx, tenant).await?;
    let now = find(&mut tx, tenant, name).await?;
    // One that cannot be read has to go too.
    let now = opened(store, tenant, now).await?.into_iter().next().and_then(Result::ok);
    let gone = sqlx::query!(
        "delete from tools where tenant_id = $1 and name = $2 and version = $3",
        tenant,
        name.as_str(),
        seen
    );
    if gone.execute(&mut *tx).await?.rows_affected() == 0 {
        return Err(StoreError::Conflict(Conflict::Changed));
    }
    sqlx::query!("delete from handlers where tenant_id = $1 and owner = $2", tenant, name.as_str())
        .execute(&mut *tx)
        .await?;
    let what = altered(name, AuditAction::Deleted, seen, now.as_ref().map(|now| &now.tool), None)?;
    audit::append(&mut tx, tenant, change, &what).await?;
    tx.commit().await?;
    Ok(())
}

/// A change of a tool for the audit trail. A handler that is written inside it is part of it.
fn altered<'a>(
    name: &'a ToolName,
    action: AuditAction,
    version: i32,
    before: Option<&Tool>,
    after: Option<&Tool>,
) -> Result<Altered<'a>, StoreError> {
    fn secrets(tool: Option<&Tool>) -> Option<&HandlerSecrets> {
        match &tool?.handler {
            HandlerRef::Owned(handler) => Some(&handler.secrets),
            HandlerRef::Named(_) => None,
        }
    }
    let shown = |tool| audit::shown(Shown::tool(tool));
    Ok(Altered {
        kind: AuditKind::Tool,
        name: name.as_str(),
        action,
        version: Some(version),
        before: before.map(shown).transpose()?,
        after: after.map(shown).transpose()?,
        secrets_changed: audit::secrets_differ(secrets(before), secrets(after)),
        tenant_chain: None,
    })
}

/// The row of the tool's handler: the one of its name; or the one that the tool owned before, if it still says the
/// same; or a new one.
async fn place_handler(
    store: &Store,
    connection: &mut Session,
    tenant: Uuid,
    tool: &Tool,
    before: Option<&ToolRow>,
) -> Result<(Uuid, Option<String>), StoreError> {
    let owned = match &tool.handler {
        HandlerRef::Named(name) => {
            let found = sqlx::query_scalar!(
                "select id from handlers where tenant_id = $1 and name = $2",
                tenant,
                name.as_str()
            );
            let id = found.fetch_optional(connection).await?;
            let id = id.ok_or_else(|| StoreError::Conflict(Conflict::NoSuchHandler(name.to_string())))?;
            return Ok((id, Some(name.to_string())));
        }
        HandlerRef::Owned(handler) => handler,
    };
    if let Some(ToolRow { tool: Tool { handler: HandlerRef::Owned(was), .. }, handler_id, .. }) = before
        && same_handler(was, owned)
    {
        return Ok((*handler_id, None));
    }
    let made = handlers::insert_row(&store.vault, connection, tenant, None, Some(tool.name.as_str()), owned).await?;
    Ok((made.id, None))
}

fn same_handler(one: &Handler, other: &Handler) -> bool {
    let key = |of: &Handler| of.secrets.signing_secret.as_ref().map(|key| key.expose_secret().to_owned());
    let headers = |of: &Handler| -> Vec<(String, String)> {
        of.secrets.headers.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect()
    };
    one.kind == other.kind
        && one.timeout_ms == other.timeout_ms
        && one.max_attempts == other.max_attempts
        && key(one) == key(other)
        && headers(one) == headers(other)
}
