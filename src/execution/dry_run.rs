//! What running a call would send, without sending it.

use super::callback_url::Callback;
use super::check::{self, Unfit};
use super::job::Job;
use super::turns::NoResult;
use super::webhook::{self, Header};
use super::{Executor, run};
use crate::domain::handler::{HandlerKind, MASK};
use crate::domain::json::Object;
use crate::domain::violation::TOO_MUCH;
use crate::domain::{Failure, ToolCall, Violation};
use crate::egress::Method;
use crate::registry::{Entry, Registry};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use time::OffsetDateTime;
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

/// What running a call would do.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct DryRun {
    /// The request, secrets masked. Null where none is sent: native code, or arguments that are no object.
    pub request: Option<DryRequest>,
    /// Whether the call would be let through to its handler.
    pub validation: Validation,
    /// What was put right in the arguments.
    pub repairs: Vec<String>,
    /// Whether the request would be let out.
    pub egress: EgressVerdict,
}

/// A request that was not sent. Its ids and times are samples.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct DryRequest {
    /// The method.
    pub method: String,
    /// The target.
    pub url: String,
    /// The headers, secrets as `"***"`.
    #[schema(value_type = Object)]
    pub headers: Object,
    /// The body.
    pub body: Value,
}

/// Whether a call would be let through to its handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Validation {
    /// Whether it would.
    pub valid: bool,
    /// Why not.
    pub errors: Vec<Misfit>,
}

/// One reason why a call would not be let through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Misfit {
    /// The place in the input, as a JSON Pointer; the whole for what is not about a place.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
}

/// Whether a request would be let out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EgressVerdict {
    /// Whether it would.
    pub allowed: bool,
    /// Why not, or why there is nothing to let out.
    pub reason: Option<String>,
}

pub(super) async fn dry_run(
    executor: &Executor,
    registry: &Registry,
    call: &ToolCall,
    context: Option<&Object>,
    traceparent: Option<&str>,
) -> Result<DryRun, Failure> {
    let entry = check::find(registry, call)?;
    let mut errors: Vec<Misfit> =
        check::admit(entry, call).err().map(|refused| whole(refused.message)).into_iter().collect();
    let deadline = Instant::now() + run::allowance(entry, &registry.tenant().limits);
    let call = Arc::new(call.clone());
    let read = check::read_in(&executor.turns, registry.tenant().id, deadline, entry, &call, None).await;
    let read = read.unwrap_or_else(|why| match why {
        NoResult::TooMuch => Err(Unfit::TooMuch),
        NoResult::Waiting | NoResult::Broken => Err(Unfit::Unreadable("the input could not be checked".to_owned())),
    });
    let (input, repairs) = match read {
        Ok(input) => (Some(input.object), input.repairs),
        Err(Unfit::Invalid(object, violations)) => {
            errors.extend(violations.into_iter().map(|Violation { pointer, detail }| Misfit { pointer, detail }));
            (Some(object), Vec::new())
        }
        Err(Unfit::TooMuch) => {
            errors.push(whole(TOO_MUCH.to_owned()));
            (None, Vec::new())
        }
        Err(Unfit::Unreadable(detail)) => {
            errors.push(whole(detail));
            (None, Vec::new())
        }
    };
    let (request, egress) = match &entry.handler.kind {
        HandlerKind::Webhook { url, asynchronous, .. } => {
            let no_context = Object::new();
            let context = context.unwrap_or(&no_context);
            let request = match (&input, Url::parse(url)) {
                (Some(input), Ok(url)) => {
                    let deadline = Instant::now() + run::allowance(entry, &registry.tenant().limits);
                    let (id, tenant) = (Uuid::now_v7(), registry.tenant());
                    let callback = executor.sample_callback().filter(|_| *asynchronous);
                    let callback = callback.as_ref();
                    sample(&Job { id, entry, tenant, input, context, traceparent, deadline, callback }, url)?.into()
                }
                _ => None,
            };
            let verdict = match verdict(executor, url).await {
                allowed if allowed.allowed && *asynchronous && executor.sample_callback().is_none() => no_callback(),
                other => other,
            };
            (request, verdict)
        }
        HandlerKind::Native { function } => (None, native(executor, entry, function)),
    };
    Ok(DryRun { request, validation: Validation { valid: errors.is_empty(), errors }, repairs, egress })
}

fn whole(detail: String) -> Misfit {
    Misfit { pointer: String::new(), detail }
}

fn sample(job: &Job<'_>, url: Url) -> Result<DryRequest, Failure> {
    let written = webhook::write(job, url, 1, OffsetDateTime::now_utc())?;
    let shown = |value: Header| match value {
        Header::Plain(value) => Value::String(value),
        Header::Secret(_) => Value::String(MASK.to_owned()),
    };
    let headers = written.headers.into_iter().map(|(name, value)| (name, shown(value))).collect();
    let body = serde_json::from_slice(&written.body).unwrap_or_default();
    Ok(DryRequest { method: Method::POST.to_string(), url: written.url.into(), headers, body })
}

async fn verdict(executor: &Executor, url: &str) -> EgressVerdict {
    match executor.egress.check_url(url) {
        Ok(url) => {
            let verdict = executor.egress.verdict(&url).await;
            EgressVerdict { allowed: verdict.allowed, reason: verdict.reason }
        }
        Err(why) => EgressVerdict { allowed: false, reason: Some(format!("the URL {why}")) },
    }
}

fn no_callback() -> EgressVerdict {
    let reason = "the handler is asynchronous and TOOLHOOK_PUBLIC_URL is not set, so it cannot be told where to report";
    EgressVerdict { allowed: false, reason: Some(reason.to_owned()) }
}

impl Executor {
    fn sample_callback(&self) -> Option<Callback> {
        Some(self.underway.as_ref()?.0.urls.as_ref()?.sample())
    }
}

fn native(executor: &Executor, entry: &Entry, function: &str) -> EgressVerdict {
    if executor.natives.contains(function) {
        return EgressVerdict { allowed: true, reason: Some("runs inside this service and sends nothing".to_owned()) };
    }
    let reason = format!("no native handler named {function:?} is registered here, so {} cannot run", entry.tool.name);
    EgressVerdict { allowed: false, reason: Some(reason) }
}
