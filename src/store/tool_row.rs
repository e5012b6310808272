//! A tool's columns, and the checked tool that they stand for.

use super::StoreError;
use super::handlers::HandlerRow;
use super::json::Json;
use crate::domain::schema::SchemaFault;
use crate::domain::{HandlerName, HandlerRef, InputSchema, Limits, SharedSchemas, Tool, ToolName, ToolOptions};
use serde_json::value::RawValue;

/// A row that cannot be read.
#[derive(Debug)]
pub struct BrokenRow {
    /// The tool's name as stored.
    pub name: String,
    /// Why.
    pub error: StoreError,
}

/// What of a tool is stored in the same columns in `tools` and in `tool_versions`.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Json<Box<RawValue>>,
    pub(super) output_schema: Option<Json<Box<RawValue>>>,
    pub(super) options: Json<ToolOptions>,
    pub(super) limits: Json<Limits>,
    pub(super) tags: Vec<String>,
    pub(super) enabled: bool,
}

impl Content {
    /// The columns of a checked tool.
    pub(super) fn of(tool: &Tool) -> Self {
        Self {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            input_schema: Json(tool.input_schema.raw().to_owned()),
            output_schema: tool.output_schema.as_ref().map(|schema| Json(schema.raw().to_owned())),
            options: Json(tool.options.clone()),
            limits: Json(tool.limits.clone()),
            tags: tool.tags.clone(),
            enabled: tool.enabled,
        }
    }

    /// The same, if it can be read again: a row that cannot be would be there for good.
    pub(super) fn readable(tool: &Tool) -> Result<Self, StoreError> {
        let content = Self::of(tool);
        let again =
            serde_json::to_string(&content.options.0).and_then(|text| serde_json::from_str::<ToolOptions>(&text));
        match again {
            Ok(options) if options == content.options.0 => Ok(content),
            Ok(_) => Err(StoreError::inconsistent("tools", &content.name, "options: would be read as something else")),
            Err(e) => Err(StoreError::inconsistent("tools", &content.name, format!("options: {e}"))),
        }
    }

    /// The tool that these columns stand for, run by `handler`.
    pub(super) fn into_tool(self, handler: HandlerRef, schemas: &SharedSchemas) -> Result<Tool, StoreError> {
        let refuse = |reason: String| StoreError::inconsistent("tools", &self.name, reason);
        let opened = |found: Result<InputSchema, Vec<SchemaFault>>| {
            let told = |fault: SchemaFault| format!("schema {}: {}", fault.pointer, fault.detail);
            found.map_err(|faults| refuse(faults.into_iter().map(told).collect::<Vec<_>>().join("; ")))
        };
        Ok(Tool {
            name: ToolName::parse(&self.name).ok_or_else(|| refuse(ToolName::EXPECTED.to_owned()))?,
            input_schema: opened(schemas.input(&self.input_schema.0))?,
            output_schema: self.output_schema.as_ref().map(|raw| opened(schemas.output(&raw.0))).transpose()?,
            description: self.description,
            handler,
            options: self.options.0,
            limits: self.limits.0,
            tags: self.tags,
            enabled: self.enabled,
        })
    }

    /// Whether two tools say the same, so that writing one over the other changes nothing.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let raw = |schema: &Option<Json<Box<RawValue>>>| schema.as_ref().map(|schema| schema.0.get().to_owned());
        self.description == other.description
            && self.input_schema.0.get() == other.input_schema.0.get()
            && raw(&self.output_schema) == raw(&other.output_schema)
            && self.options == other.options
            && self.limits == other.limits
            && self.tags == other.tags
            && self.enabled == other.enabled
    }
}

/// How a tool refers to its handler's row.
pub(super) fn handler_ref(row: HandlerRow) -> Result<HandlerRef, StoreError> {
    match row.name {
        None => Ok(HandlerRef::Owned(Box::new(row.handler))),
        Some(name) => HandlerName::parse(&name)
            .map(HandlerRef::Named)
            .ok_or_else(|| StoreError::inconsistent("handlers", row.id, HandlerName::EXPECTED)),
    }
}
