//! A tenant's tools with their handlers and its version, all from one statement, so that the label fits the content.

use super::handlers::Sealed;
use super::json::{Json, JsonText};
use super::tool_row::{BrokenRow, Content, handler_ref};
use super::{Store, StoreError};
use crate::domain::{Handler, TenantFacts, TenantLimits, TenantName, Tool};
use time::OffsetDateTime;
use uuid::Uuid;

/// One tenant's tools at one version.
#[derive(Debug)]
pub struct Loaded {
    /// Whose they are.
    pub tenant: TenantFacts,
    /// The version.
    pub version: i64,
    /// Each tool, or why its row cannot be read.
    pub tools: Vec<Result<LoadedTool, BrokenRow>>,
}

/// A tool with its handler.
#[derive(Debug)]
pub struct LoadedTool {
    /// The tool.
    pub tool: Tool,
    /// Which of its versions this is.
    pub version: i32,
    /// The id of what runs it.
    pub handler_id: Uuid,
    /// What runs it, opened.
    pub handler: Handler,
}

const TABLE: &str = "tools";

struct Row {
    tenant_name: String,
    tenant_limits: Json<TenantLimits>,
    registry_version: i64,
    name: Option<String>,
    version: Option<i32>,
    description: Option<String>,
    input_schema: Option<Json<Box<serde_json::value::RawValue>>>,
    output_schema: Option<Json<Box<serde_json::value::RawValue>>>,
    options: Option<JsonText>,
    limits: Option<JsonText>,
    tags: Option<Vec<String>>,
    enabled: Option<bool>,
    handler_id: Option<Uuid>,
    handler_name: Option<String>,
    handler_settings: Option<JsonText>,
    headers: Option<Vec<u8>>,
    signing_secret: Option<Vec<u8>>,
    previous_signing_secret: Option<Vec<u8>>,
    previous_until: Option<OffsetDateTime>,
}

impl Row {
    /// The tool in this row; `None` in the one row of a tenant without tools.
    fn tool(self, store: &Store, tenant: Uuid) -> Option<Result<LoadedTool, BrokenRow>> {
        let name = self.name.clone()?;
        Some(self.read(store, tenant).map_err(|error| BrokenRow { name, error }))
    }

    fn read(self, store: &Store, tenant: Uuid) -> Result<LoadedTool, StoreError> {
        let name = self.name.unwrap_or_default();
        let absent = |column: &str| StoreError::inconsistent(TABLE, &name, format!("{column} is absent"));
        let sealed = Sealed {
            id: self.handler_id.ok_or_else(|| absent("handler_id"))?,
            name: self.handler_name,
            version: 0, // of no interest here
            settings: self.handler_settings.ok_or_else(|| absent("handler"))?,
            headers: self.headers,
            signing_secret: self.signing_secret,
            previous_signing_secret: self.previous_signing_secret,
            previous_until: self.previous_until,
            created_at: OffsetDateTime::UNIX_EPOCH,
            updated_at: OffsetDateTime::UNIX_EPOCH,
        };
        let handler_id = sealed.id;
        let handler = sealed.open(&store.vault, tenant)?;
        let content = Content {
            description: self.description.ok_or_else(|| absent("description"))?,
            input_schema: self.input_schema.ok_or_else(|| absent("input_schema"))?,
            output_schema: self.output_schema,
            options: self.options.ok_or_else(|| absent("options"))?.read(TABLE, &name, "options")?,
            limits: self.limits.ok_or_else(|| absent("limits"))?.read(TABLE, &name, "limits")?,
            tags: self.tags.ok_or_else(|| absent("tags"))?,
            enabled: self.enabled.ok_or_else(|| absent("enabled"))?,
            name: name.clone(),
        };
        let version = self.version.ok_or_else(|| absent("version"))?;
        let runs = handler.handler.clone();
        Ok(LoadedTool {
            tool: content.into_tool(handler_ref(handler)?, &store.schemas)?,
            version,
            handler_id,
            handler: runs,
        })
    }
}

/// Loads a tenant's tools; `None` if there is no such tenant. Compiles schemas that are not known, which takes its time for many.
pub async fn load(store: &Store, tenant: Uuid) -> Result<Option<Loaded>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select n.name as tenant_name, n.limits as "tenant_limits: _", n.registry_version,
             t.name as "name?", t.version as "version?", t.description as "description?",
             t.input_schema as "input_schema?: _", t.output_schema as "output_schema?: _",
             t.options as "options?: _", t.limits as "limits?: _", t.tags as "tags?", t.enabled as "enabled?",
             h.id as "handler_id?", h.name as handler_name, h.settings as "handler_settings?: _", h.headers,
             h.signing_secret, h.previous_signing_secret, h.previous_until
           from tenants n
           left join tools t on t.tenant_id = n.id
           left join handlers h on h.tenant_id = t.tenant_id and h.id = t.handler_id
           where n.id = $1 order by t.name"#,
        tenant
    );
    let rows = store.noticing(async {
        let mut reading = store.scoped(tenant).await?;
        let rows = rows.fetch_all(&mut *reading).await?;
        reading.commit().await?;
        Ok(rows)
    });
    let rows = rows.await?;
    let store = store.clone();
    let built = tokio::task::spawn_blocking(move || assemble(&store, tenant, rows));
    built.await.map_err(|e| StoreError::inconsistent("tenants", tenant, e))?
}

fn assemble(store: &Store, tenant: Uuid, rows: Vec<Row>) -> Result<Option<Loaded>, StoreError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let name = TenantName::parse(&first.tenant_name).map_err(|e| StoreError::inconsistent("tenants", tenant, e))?;
    let facts = TenantFacts { id: tenant, name, limits: first.tenant_limits.0.clone() };
    let version = first.registry_version;
    let tools = rows.into_iter().filter_map(|row| row.tool(store, tenant)).collect();
    Ok(Some(Loaded { tenant: facts, version, tools }))
}
