//! Running calls: `POST /v1/tools/{name}/calls` and `POST /v1/formats/{format}/calls`.

use super::auth::Agent;
use super::call_view::{BatchCallView, BatchView, CallBody, CallView, ReplyBody};
use super::extract::{JsonText, MAX_REPLY, PathPart, Query};
use super::idempotency::{self, KeyHeader};
use super::prefer::{self, PreferHeader};
use super::problem::{Code, Problem};
use super::request_id::RequestId;
use super::respond::{json, render};
use super::{Access, AppState, formats, registry_version};
use crate::domain::json::Object;
use crate::domain::limits::MAX_TIMEOUT_MS;
use crate::domain::{Answered, Caller, Faults, Fields, Outcome, Pointer, Reader, ToolCall, json as strict};
use crate::execution::{Admission, DryRun, Executed, Key, Origin, Request};
use crate::format::FormatName;
use crate::registry::Registry;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The deepest body: arguments of 64 levels, with what providers put round them.
pub(super) const MAX_LEVELS: usize = 96;

/// The most calls of one reply. No model makes nearly as many; whoever writes a reply must not choose how much memory its
/// answers take.
const MAX_CALLS: usize = 1_000;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(run_tool)).routes(routes!(run_reply))
}

/// The header that shortens a request's time, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "read by hand; documented here")]
pub(super) struct CallHeaders {
    /// When every call of the request has to be answered, in milliseconds; at most the tenant's limit.
    #[param(rename = "Toolhook-Timeout-Ms", minimum = 1, maximum = 300_000)]
    timeout_ms: Option<u32>,
    /// The version of the tools that the asker has seen, from a list or from the answer to a write: nothing older is used.
    #[param(rename = "Toolhook-Registry-Version", minimum = 0)]
    registry_version: Option<i64>,
    /// W3C trace context; sent on to webhooks.
    #[param(rename = "traceparent")]
    traceparent: Option<String>,
}

/// Runs one tool. Whatever the tool says, and whatever is wrong with the input, the answer is 200 with the call.
#[utoipa::path(post, path = "/v1/tools/{name}/calls", operation_id = "call_tool", tag = "calls", request_body = CallBody,
    params(("name" = String, Path, example = "get_weather"), ("dry_run" = Option<bool>, Query, description = "Show the request instead of sending it"), CallHeaders, KeyHeader, PreferHeader),
    responses((status = 200, description = "The call; with `dry_run`, what it would send", body = inline(CallOrDryRun), headers(("Preference-Applied" = Option<String>, description = "The preference that was heeded"))),
        (status = 202, description = "The call is `pending`, and `respond-async` was preferred", body = CallView, headers(("Preference-Applied" = Option<String>, description = "The preference that was heeded")))))]
async fn run_tool(
    Agent(access): Agent,
    State(state): State<AppState>,
    PathPart(name): PathPart<String>,
    mut about: About,
    mut query: Query,
    JsonText(text): JsonText<MAX_REPLY>,
) -> Result<Response, Problem> {
    let dry_run = query.flag("dry_run").unwrap_or_default();
    query.finish()?;
    let body = Body::parse(&text)?;
    let key = about
        .key
        .take()
        .filter(|_| !dry_run)
        .map(|key| idempotency::key(key, format!("tools/{name}"), &body.members, ""));
    let (input, context, caller) = body.call()?;
    let deadline = about.deadline(&access);
    if !dry_run {
        about.admit(&state, &access, 1).await?;
    }
    let registry = about.registry(&state, &access).await?;
    if registry.broken().iter().any(|broken| broken.name == name) {
        return Err(Problem::new(Code::Unreadable, "the tool is set aside; its author has to make it again"));
    }
    if registry.get(&name).is_none() {
        return Err(Problem::not_found("tool"));
    }
    let call = ToolCall { call_id: None, name, arguments: input, caller, echo: Object::new(), cut_off: false };
    if dry_run {
        let dry = state.executor.dry_run(&registry, &call, context.as_ref(), about.traceparent.as_deref()).await;
        let dry = dry.map_err(|failure| Problem::new(Code::NotFound, failure.message))?;
        return Ok(json(StatusCode::OK, render(&dry)?, None));
    }
    let request = about.request(registry, vec![call], context, deadline);
    let origin = Origin { key_id: access.key_id, format: None };
    answer(&state, request, origin, key, one).await
}

/// Runs a request, once if it has a key, and renders its answer.
async fn answer(
    state: &AppState,
    request: Request,
    origin: Origin,
    key: Option<Key>,
    render: impl Fn(&[Executed]) -> String + Send + Sync + 'static,
) -> Result<Response, Problem> {
    let asked = request.respond_async;
    if let Some(key) = key {
        return idempotency::respond(state.execute_once(request, origin, key, Box::new(render)).await?, asked);
    }
    let executed = state.execute(request, origin).await?;
    let pending = executed.iter().any(|call| matches!(call.outcome, Outcome::Pending(_)));
    Ok(prefer::applied(json(StatusCode::OK, render(&executed), None), asked, pending))
}

/// The answer of a request of one call.
fn one(executed: &[Executed]) -> String {
    let views: Vec<CallView> = executed.iter().map(CallView::of).collect();
    views.first().map(|view| serde_json::to_string(view).unwrap_or_default()).unwrap_or_default()
}

/// The answer of a reply.
fn reply(executed: &[Executed], format: FormatName) -> String {
    let answered: Vec<Answered<'_>> = executed.iter().map(Executed::answered).collect();
    let append = (format.format().results)(&answered);
    let view = BatchView { append, calls: executed.iter().map(BatchCallView::of).collect() };
    serde_json::to_string(&view).unwrap_or_default()
}

/// What one call answers, for the reference. (`Serialize` is what knows that the shapes stand without a name.)
#[derive(serde::Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "documents that there are two shapes")]
enum CallOrDryRun {
    /// The call.
    Call(CallView),
    /// What it would send.
    DryRun(DryRun),
}

/// Takes a model's reply as the provider's API returned it, runs its calls, and answers what to append.
///
/// An unknown tool, undecodable arguments or an invalid input is an error *result*, so that the model can put it right.
#[utoipa::path(post, path = "/v1/formats/{format}/calls", operation_id = "run_reply", tag = "calls", request_body = ReplyBody,
    params(("format" = String, Path, example = "anthropic"), ("unknown" = Option<String>, Query, description = "`skip` leaves calls to tools that are not the tenant's unanswered, `answer` (the default) answers them with an error"), CallHeaders, KeyHeader, PreferHeader),
    responses((status = 200, body = BatchView, headers(("Preference-Applied" = Option<String>, description = "The preference that was heeded"))),
        (status = 202, description = "A call is `pending`, and `respond-async` was preferred", body = BatchView, headers(("Preference-Applied" = Option<String>, description = "The preference that was heeded")))))]
async fn run_reply(
    Agent(access): Agent,
    State(state): State<AppState>,
    PathPart(format): PathPart<String>,
    mut about: About,
    mut query: Query,
    JsonText(text): JsonText<MAX_REPLY>,
) -> Result<Response, Problem> {
    let format = formats::named(&format)?;
    let skip = query.read("unknown", "skip or answer", |text| match text {
        "skip" => Some(true),
        "answer" => Some(false),
        _ => None,
    });
    query.finish()?;
    let body = Body::parse(&text)?;
    let skip = skip == Some(true);
    let key = about.key.take().map(|key| {
        let beside = if skip { "skip" } else { "" };
        idempotency::key(key, format!("formats/{}", format.as_str()), &body.members, beside)
    });
    let (said, context) = body.reply()?;
    let deadline = about.deadline(&access);
    let mut calls = format.read(&said).map_err(Problem::invalid_reply)?.calls;
    if calls.len() > MAX_CALLS {
        let detail = format!("at most {MAX_CALLS} calls are taken in one reply, this one has {}", calls.len());
        return Err(Problem::new(Code::InvalidReply, detail));
    }
    about.admit(&state, &access, calls.len()).await?;
    let registry = about.registry(&state, &access).await?;
    // With a key the first request decides what is left out, and its repeats follow it.
    if skip && key.is_none() {
        calls.retain(|call| registry.get(&call.name).is_some());
    }
    let restore = Some(format.format().restore);
    let request = Request { restore, ..about.request(registry, calls, context, deadline) };
    let origin = Origin { key_id: access.key_id, format: Some(format.as_str()) };
    answer(&state, request, origin, key, move |executed| reply(executed, format)).await
}

/// What a request says beside its body.
pub(super) struct About {
    request_id: String,
    /// W3C trace context.
    pub(super) traceparent: Option<String>,
    /// The time that it asks for, in milliseconds.
    timeout_ms: Option<u32>,
    /// Its `Idempotency-Key`.
    key: Option<String>,
    /// What its calls may use, once that was asked for.
    admission: Option<Admission>,
    /// The version of the tools that it has seen.
    seen: i64,
    /// Whether it prefers not to wait for handlers that report later.
    pub(super) respond_async: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for About {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Ok(RequestId(request_id)) = RequestId::from_request_parts(parts, state).await;
        let text = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let timeout_ms = text("toolhook-timeout-ms").map(|text| {
            let asked = text.parse().ok().filter(|ms| (1..=MAX_TIMEOUT_MS).contains(ms));
            let expected = format!("Toolhook-Timeout-Ms: expected an integer from 1 to {MAX_TIMEOUT_MS}");
            asked.ok_or_else(|| Problem::new(Code::InvalidHeader, expected))
        });
        Ok(Self {
            request_id,
            traceparent: text("traceparent").map(str::to_owned),
            timeout_ms: timeout_ms.transpose()?,
            key: idempotency::read(&parts.headers)?,
            admission: None,
            seen: registry_version::seen(&parts.headers)?,
            respond_async: prefer::responds_async(&parts.headers),
        })
    }
}

impl About {
    /// The tenant's tools as they are now.
    pub(super) async fn registry(&self, state: &AppState, access: &Access) -> Result<Arc<Registry>, Problem> {
        let found = state.registries.get_at_least(access.tenant.id, self.seen).await?;
        found.ok_or_else(|| Problem::not_found("tenant"))
    }

    /// When the request has to be answered.
    pub(super) fn deadline(&self, access: &Access) -> Instant {
        let most = access.tenant.limits.max_timeout_ms.unwrap_or(MAX_TIMEOUT_MS);
        Instant::now() + Duration::from_millis(u64::from(self.timeout_ms.unwrap_or(most).min(most)))
    }

    /// Asks whether so many calls of the tenant may be made, before anything is done for them.
    pub(super) async fn admit(&mut self, state: &AppState, access: &Access, calls: usize) -> Result<(), Problem> {
        if calls > 0 {
            self.admission = Some(state.executor.admit(&access.tenant, calls).await?);
        }
        Ok(())
    }

    /// The calls with what the request says about them.
    pub(super) fn request(
        self,
        registry: Arc<Registry>,
        calls: Vec<ToolCall>,
        context: Option<Object>,
        deadline: Instant,
    ) -> Request {
        let Self { request_id, traceparent, admission, respond_async, .. } = self;
        let admission = admission.unwrap_or(Admission::unasked());
        Request { registry, calls, context, deadline, request_id, traceparent, restore: None, admission, respond_async }
    }
}

/// A body of either route. It is read twice: strictly as a whole, and by its members.
struct Body {
    fields: Fields,
    /// An object.
    members: Value,
}

impl Body {
    fn parse(text: &[u8]) -> Result<Self, Problem> {
        let malformed = |detail: String| Problem::new(Code::MalformedBody, detail);
        let members = strict::parse(text, MAX_LEVELS).map_err(malformed)?;
        if !members.is_object() {
            return Err(malformed("expected an object".to_owned()));
        }
        Ok(Self { fields: Fields::parse(text).map_err(malformed)?, members })
    }

    fn take(&mut self, member: &str) -> Value {
        self.members.as_object_mut().and_then(|members| members.shift_remove(member)).unwrap_or_default()
    }

    fn call(mut self) -> Result<(Value, Option<Object>, Caller), Problem> {
        let mut faults = Faults::none();
        let mut reader = Reader::new(&self.fields, Pointer::root(), &mut faults);
        reader.raw("input");
        let context = context(&mut reader);
        let caller = reader.optional("caller", "\"human\" or \"code_execution\"").unwrap_or_default();
        reader.finish();
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        Ok((self.take("input"), context, caller))
    }

    fn reply(mut self) -> Result<(Value, Option<Object>), Problem> {
        let mut faults = Faults::none();
        let mut reader = Reader::new(&self.fields, Pointer::root(), &mut faults);
        if reader.raw("reply").is_none() {
            reader.fault("reply", "is required: what the provider's API returned");
        }
        let context = context(&mut reader);
        reader.finish();
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        Ok((self.take("reply"), context))
    }
}

fn context(reader: &mut Reader<'_>) -> Option<Object> {
    match reader.value("context") {
        None | Some(Value::Null) => None,
        Some(Value::Object(members)) => Some(members),
        Some(other) => {
            reader.fault("context", format!("expected an object, got {}", strict::kind(&other)));
            None
        }
    }
}
