//! Every version that a tool has had.

use super::handlers::Sealed;
use super::json::{Json, JsonText};
use super::session::Session;
use super::tool_row::{Content, handler_ref};
use super::{Page, PageRequest, Store, StoreError};
use crate::domain::{HandlerName, HandlerRef, Tool, ToolName};
use time::OffsetDateTime;
use uuid::Uuid;

/// A version of a tool.
#[derive(Clone, Debug)]
pub struct VersionRow {
    /// The tool as it was.
    pub tool: Tool,
    /// Its number, from 1.
    pub version: i32,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

struct Row {
    version: i32,
    name: String,
    description: String,
    input_schema: Json<Box<serde_json::value::RawValue>>,
    output_schema: Option<Json<Box<serde_json::value::RawValue>>>,
    options: JsonText,
    limits: JsonText,
    tags: Vec<String>,
    enabled: bool,
    handler_name: Option<String>,
    created_at: OffsetDateTime,
    /// The handler written in place, from the same statement: a tool that is removed meanwhile takes it along.
    owned_id: Option<Uuid>,
    settings: Option<JsonText>,
    headers: Option<Vec<u8>>,
    signing_secret: Option<Vec<u8>>,
    previous_signing_secret: Option<Vec<u8>>,
    previous_until: Option<OffsetDateTime>,
}

const TABLE: &str = "tool_versions";

impl Row {
    fn open(self, store: &Store, tenant: Uuid) -> Result<VersionRow, StoreError> {
        let refuse = |reason: &str| StoreError::inconsistent(TABLE, &self.name, reason);
        let handler = if let Some(name) = &self.handler_name {
            HandlerRef::Named(HandlerName::parse(name).ok_or_else(|| refuse(HandlerName::EXPECTED))?)
        } else {
            let (Some(id), Some(settings)) = (self.owned_id, self.settings) else {
                return Err(refuse("its handler is gone"));
            };
            let sealed = Sealed {
                id,
                name: None,
                version: 0, // of no interest here
                settings,
                headers: self.headers,
                signing_secret: self.signing_secret,
                previous_signing_secret: self.previous_signing_secret,
                previous_until: self.previous_until,
                created_at: self.created_at,
                updated_at: self.created_at,
            };
            handler_ref(sealed.open(&store.vault, tenant)?)?
        };
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
        Ok(VersionRow {
            tool: content.into_tool(handler, &store.schemas)?,
            version: self.version,
            created_at: self.created_at,
        })
    }
}

/// Lists a tool's versions, the newest first. `page.after` is the last number that was seen.
pub async fn list(
    store: &Store,
    tenant: Uuid,
    tool: &ToolName,
    page: &PageRequest<i32>,
) -> Result<Page<VersionRow>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select v.version, tool as name, description, input_schema as "input_schema: _",
             output_schema as "output_schema: _", options as "options: _", limits as "limits: _", tags, enabled,
             handler_name, v.created_at, h.id as "owned_id?", h.settings as "settings?: _", h.headers, h.signing_secret,
             h.previous_signing_secret, h.previous_until
           from tool_versions v
           left join handlers h on v.handler_name is null and h.tenant_id = v.tenant_id and h.id = v.handler_id
           where v.tenant_id = $1 and tool = $2 and ($3::integer is null or v.version < $3)
           order by v.version desc limit $4"#,
        tenant,
        tool.as_str(),
        page.after,
        page.limit + 1
    );
    let mut reading = store.scoped(tenant).await?;
    let page = Page::of(rows.fetch_all(&mut *reading).await?, page.limit);
    reading.commit().await?;
    let rows: Result<Vec<_>, _> = page.rows.into_iter().map(|row| row.open(store, tenant)).collect();
    Ok(Page { rows: rows?, more: page.more })
}

/// Finds one version of a tool.
pub async fn get(store: &Store, tenant: Uuid, tool: &ToolName, version: i32) -> Result<Option<VersionRow>, StoreError> {
    let found = sqlx::query_as!(
        Row,
        r#"select v.version, tool as name, description, input_schema as "input_schema: _",
             output_schema as "output_schema: _", options as "options: _", limits as "limits: _", tags, enabled,
             handler_name, v.created_at, h.id as "owned_id?", h.settings as "settings?: _", h.headers, h.signing_secret,
             h.previous_signing_secret, h.previous_until
           from tool_versions v
           left join handlers h on v.handler_name is null and h.tenant_id = v.tenant_id and h.id = v.handler_id
           where v.tenant_id = $1 and tool = $2 and v.version = $3"#,
        tenant,
        tool.as_str(),
        version
    );
    let mut reading = store.scoped(tenant).await?;
    let found = found.fetch_optional(&mut *reading).await?;
    reading.commit().await?;
    found.map(|row| row.open(store, tenant)).transpose()
}

/// Keeps a version, inside the transaction that made it.
pub(super) async fn keep(
    connection: &mut Session,
    tenant: Uuid,
    content: &Content,
    version: i32,
    handler_id: Uuid,
    handler_name: Option<&str>,
) -> Result<(), StoreError> {
    let kept = sqlx::query!(
        "insert into tool_versions (tenant_id, tool, version, description, input_schema, output_schema, options, limits,
           tags, enabled, handler_id, handler_name)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
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
        handler_id,
        handler_name
    );
    kept.execute(connection).await?;
    Ok(())
}
