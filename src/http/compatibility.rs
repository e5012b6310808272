//! `/v1/tools/{name}/compatibility`: how well a tool fits each format.

use super::auth::Viewer;
use super::extract::{PathPart, Query};
use super::problem::Problem;
use super::respond::tagged;
use super::{AppState, tools};
use crate::domain::Pointer;
use crate::format::{Effect, FormatName, Note, Report, Verdict};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(report))
}

/// How well a tool fits each format.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"formats": {"anthropic": {"verdict": "exact", "declaration": {"name": "get_weather",
    "description": "Current weather for a city", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}, "notes": []}}}))]
pub(super) struct CompatibilityView {
    /// By the format's name.
    pub formats: BTreeMap<&'static str, ReportView>,
}

/// How well a tool fits one format.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ReportView {
    /// `exact`: declared as it is written. `adapted`: said in another way with the same meaning, or without hints that the
    /// format has no place for (annotations, the output schema, examples inside the schema). `lossy`: the model is not told
    /// a rule of the input schema, which calls are held to all the same, or an option that was asked for is left out.
    /// `omitted`: not in the format's list.
    pub verdict: Verdict,
    /// The tool's entry in a list that is asked for without options.
    #[schema(value_type = Object, nullable, required)]
    pub declaration: Option<Value>,
    /// What was adapted or lost; or, of a tool that is omitted, why.
    pub notes: Vec<NoteView>,
}

/// One difference between a tool and its declaration.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct NoteView {
    /// The place in the tool.
    pub pointer: Pointer,
    /// What happened to what stands there.
    pub effect: Effect,
    /// The difference, for the tool's author.
    pub detail: String,
}

impl ReportView {
    fn of(report: Report) -> Self {
        let note = |Note { pointer, effect, detail, .. }: Note| NoteView { pointer, effect, detail };
        let notes = report.notes.into_iter().map(note).collect();
        Self { verdict: report.verdict, declaration: report.declaration, notes }
    }
}

/// Answers how well a tool fits each format: what is declared, what gets adapted, what is lost, or why it is left out.
///
/// Found out by rendering the tool, so it says what the lists say.
#[utoipa::path(get, path = "/v1/tools/{name}/compatibility", tag = "tools",
    params(("name" = String, Path, example = "get_weather")), responses((status = 200, body = CompatibilityView)))]
async fn report(
    Viewer(access): Viewer,
    State(state): State<AppState>,
    PathPart(name): PathPart<String>,
    query: Query,
) -> Result<Response, Problem> {
    query.finish()?;
    let tool = tools::present(&state, access.tenant.id, &name).await?.tool;
    let formats = FormatName::ALL.into_iter().map(|format| (format.as_str(), ReportView::of(format.report(&tool))));
    tagged(StatusCode::OK, &CompatibilityView { formats: formats.collect() })
}
