//! A tool as it is written and as it is answered.

use super::handler_view::{HandlerBody, HandlerContent, SecretShown};
use super::respond::rfc3339;
use crate::domain::{HandlerRef, Limits, Tool, ToolOptions};
use crate::format::{Effect, FormatName, Verdict};
use crate::store::tools::ToolRow;
use serde::Serialize;
use serde_json::value::RawValue;

/// A tool as it is written. (`Serialize` is for the reference alone: it is what knows of flattened members.)
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({
    "name": "get_weather",
    "description": "Current weather for a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "handler": {"kind": "webhook", "url": "https://hooks.example.com/weather"},
    "annotations": {"read_only": true},
    "tags": ["weather"]
}))]
pub(super) struct ToolBody {
    /// What every provider accepts. Required in a POST; in a PUT or PATCH it stands in the path. It is fixed: a rename is a
    /// new tool.
    #[schema(pattern = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$", nullable = false)]
    pub name: Option<String>,
    /// Text for the model.
    #[schema(min_length = 1, max_length = 4096)]
    pub description: String,
    /// A JSON Schema of an object; draft 2020-12 unless `$schema` says 2019-09, 7, 6 or 4. At most 64 KiB and 32 levels
    /// (128 along references, which stay inside the document), and no invisible characters. It comes back byte for byte.
    #[schema(value_type = Object)]
    pub input_schema: Box<RawValue>,
    /// The name of a handler, or a handler written in place, which then belongs to this tool alone.
    pub handler: HandlerChoice,
    /// How we run it.
    #[serde(flatten)]
    pub limits: Limits,
    /// What we tell a provider about it.
    #[serde(flatten)]
    pub options: ToolOptions,
    /// If set, structured results are validated against it.
    #[schema(value_type = Object, nullable, required = false)]
    pub output_schema: Option<Box<RawValue>>,
    /// Words to filter by: at most 20 of at most 64 characters.
    #[schema(nullable, max_items = 20)]
    pub tags: Option<Vec<String>>,
    /// Whether it is listed and may be called.
    #[schema(nullable, default = true)]
    pub enabled: Option<bool>,
}

/// A handler's name, or a handler.
#[expect(dead_code, reason = "the reference's words for a body that is read field by field")]
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub(super) enum HandlerChoice {
    /// The name of a handler.
    #[schema(title = "HandlerName")]
    Name(String),
    /// A handler written in place.
    #[schema(title = "OwnedHandler")]
    Owned(HandlerBody),
}

/// What of a tool is written, as it is answered.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ToolContent {
    /// Unique in the tenant.
    pub name: String,
    /// Text for the model.
    pub description: String,
    /// As it was written.
    #[schema(value_type = Object)]
    pub input_schema: Box<RawValue>,
    /// The name of a handler, or the handler that belongs to this tool.
    pub handler: HandlerShown,
    /// How we run it.
    #[serde(flatten)]
    pub limits: Limits,
    /// What we tell a provider about it.
    #[serde(flatten)]
    pub options: ToolOptions,
    /// As it was written.
    #[schema(value_type = Object, nullable, required)]
    pub output_schema: Option<Box<RawValue>>,
    /// Words to filter by.
    pub tags: Vec<String>,
    /// Whether it is listed and may be called.
    pub enabled: bool,
}

/// A handler's name, or the handler that belongs to the tool.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub(super) enum HandlerShown {
    /// The name of a handler.
    Name(String),
    /// The handler that belongs to the tool.
    Owned(HandlerContent),
}

/// A tool.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({
    "name": "get_weather", "description": "Current weather for a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "handler": "weather-backend", "concurrent": true, "max_result_chars": null, "timeout_ms": null,
    "allowed_callers": null, "result_type": null, "strict": false, "input_examples": [], "defer_loading": false,
    "provider_options": {},
    "annotations": {"title": null, "read_only": null, "destructive": null, "idempotent": null, "open_world": null},
    "output_schema": null, "tags": [], "enabled": true, "version": 1,
    "created_at": "2026-11-30T09:00:00Z", "updated_at": "2026-11-30T09:00:00Z"
}))]
pub(super) struct ToolView {
    /// What was written.
    #[serde(flatten)]
    pub content: ToolContent,
    /// Which of its versions this is, from 1.
    pub version: i32,
    /// RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// In the answer to a write: what some provider will get adapted, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub warnings: Option<Vec<String>>,
}

/// A page of tools.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ToolsView {
    /// The tools, by name.
    pub data: Vec<ToolView>,
    /// Give it as `cursor` to get the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// Tools of this page that are stored in a form that cannot be read. They are in no list and cannot be called; a DELETE
    /// removes them.
    pub omitted: Vec<OmittedTool>,
}

/// A tool that cannot be read.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct OmittedTool {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ToolContent {
    /// What of a tool is written.
    pub(super) fn of(tool: &Tool, secret: SecretShown) -> Self {
        Self {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.raw().to_owned(),
            handler: match &tool.handler {
                HandlerRef::Named(name) => HandlerShown::Name(name.to_string()),
                HandlerRef::Owned(handler) => HandlerShown::Owned(HandlerContent::of(handler, secret)),
            },
            limits: tool.limits.clone(),
            options: tool.options.clone(),
            output_schema: tool.output_schema.as_ref().map(|schema| schema.raw().to_owned()),
            tags: tool.tags.clone(),
            enabled: tool.enabled,
        }
    }
}

impl ToolView {
    /// A tool as it is stored.
    pub(super) fn of(row: &ToolRow, secret: SecretShown) -> Self {
        Self {
            content: ToolContent::of(&row.tool, secret),
            version: row.version,
            created_at: rfc3339(row.created_at),
            updated_at: rfc3339(row.updated_at),
            warnings: None,
        }
    }

    /// The same with what its author should know.
    #[must_use]
    pub(super) fn with_warnings(self, tool: &Tool) -> Self {
        Self { warnings: Some(warnings(tool)), ..self }
    }
}

/// What some provider will get adapted or not at all, one text per difference, with the formats that it is about.
fn warnings(tool: &Tool) -> Vec<String> {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for format in FormatName::ALL {
        let report = format.report(tool);
        for note in report.notes {
            // A hint that a provider has no place for is no news to its author; an option without effect is.
            if note.effect == Effect::Dropped && note.verdict() == Verdict::Adapted {
                continue;
            }
            let place = if report.verdict == Verdict::Omitted { "left out:" } else { note.pointer.as_str() };
            let text = format!("{place} {}", note.detail);
            match told.iter_mut().find(|(known, _)| *known == text) {
                Some((_, formats)) => formats.push(format.as_str()),
                None => told.push((text, vec![format.as_str()])),
            }
        }
    }
    told.into_iter().map(|(text, formats)| format!("{}: {text}", formats.join(", "))).collect()
}
