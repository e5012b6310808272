//! Calls that run by a signed POST to the tenant's server.

use super::job::{Job, Ran};
use super::limiting::{Limiter, Pass};
use super::retry::{self, Brought};
use super::{answer, unanswered};
use crate::domain::Failure;
use crate::domain::handler::{ErrorBody, HandlerSecrets};
use crate::domain::json::Object;
use crate::egress::{Egress, Method, Outbound, SigningSecret, sign};
use bytes::Bytes;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;
use url::Url;

/// How large an answer may be, in bytes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// The status by which an asynchronous handler says that it has taken the call and reports later.
const ACCEPTED: u16 = 202;

/// A request, written and signed.
pub(super) struct Written {
    pub(super) url: Url,
    pub(super) headers: Vec<(String, Header)>,
    /// The very bytes that were signed.
    pub(super) body: Bytes,
}

/// A header's value.
pub(super) enum Header {
    /// One that may be seen.
    Plain(String),
    /// One that may not.
    Secret(SecretString),
}

/// Runs a call by its webhook, whose turn it is.
pub(super) async fn call(
    (egress, limiter): (&Egress, &Limiter),
    job: &Job<'_>,
    pass: Pass,
    url: &str,
    error_body: Option<ErrorBody>,
) -> Ran {
    let url = match egress.check_url(url) {
        Ok(url) => url,
        // It was accepted when it was written; the policy has become stricter since.
        Err(why) => {
            return Ran { result: Err(unanswered::unreachable().because(format!("the URL {why}"))), attempts: 0 };
        }
    };
    let send = |number| attempt(egress, job, url.clone(), number);
    let (brought, attempts) = retry::attempts(limiter, job, pass, send).await;
    let result = match brought {
        Ok(Ok(inbound)) if inbound.status == ACCEPTED && job.callback.is_some() => Err(unanswered::taken()),
        Ok(Ok(inbound)) => answer::read(&inbound, error_body),
        Ok(Err(error)) => Err(unanswered::failure(&error)),
        Err(failure) => Err(failure),
    };
    Ran { result, attempts }
}

async fn attempt(egress: &Egress, job: &Job<'_>, url: Url, number: u32) -> Brought {
    let Written { url, headers, body } = write(job, url, number, OffsetDateTime::now_utc())?;
    let headers = headers.into_iter().map(|(name, value)| (name, value.exposed())).collect();
    let (deadline, max_body_bytes) = (job.deadline, MAX_ANSWER_BYTES);
    Ok(egress.send(Outbound { method: Method::POST, url, headers, body, deadline, max_body_bytes }).await)
}

/// Writes and signs one attempt. What is signed is what is sent: the body is serialized once.
pub(super) fn write(job: &Job<'_>, url: Url, attempt: u32, now: OffsetDateTime) -> Result<Written, Failure> {
    let id = job.id.to_string();
    let body = serde_json::to_vec(&Event::of(job, &id, attempt, now)).map_err(|error| unwritable(&error))?;
    let secrets = signing_secrets(&job.entry.handler.secrets, now)?;
    let signed = sign(&secrets.iter().collect::<Vec<_>>(), &id, now.unix_timestamp(), &body)
        .map_err(|error| unwritable(&error))?;

    let mut headers = vec![("content-type".to_owned(), Header::Plain("application/json".to_owned()))];
    for (name, value) in signed {
        // A signature is good for some minutes, so it is not for every eye.
        let value = if name == "webhook-signature" { Header::Secret(value.into()) } else { Header::Plain(value) };
        headers.push((name.to_owned(), value));
    }
    headers.push(("idempotency-key".to_owned(), Header::Plain(id)));
    if let Some(trace) = job.traceparent.filter(|trace| trace.bytes().all(|byte| byte.is_ascii_graphic())) {
        headers.push(("traceparent".to_owned(), Header::Plain(trace.to_owned())));
    }
    let ours = headers.len();
    for (name, value) in &job.entry.handler.secrets.headers {
        // Refused when the handler is written; a stored one may be older than the rule.
        if !headers[..ours].iter().any(|(taken, _)| taken == name) {
            headers.push((name.clone(), Header::Secret(value.clone())));
        }
    }
    Ok(Written { url, headers, body: body.into() })
}

/// The secrets that sign now, the newest first: after a rotation the one before signs too, until its grace time is over.
fn signing_secrets(secrets: &HandlerSecrets, now: OffsetDateTime) -> Result<Vec<SigningSecret>, Failure> {
    let newest = secrets.signing_secret.as_ref();
    let newest = newest.ok_or_else(|| unwritable(&"the handler has no signing secret"))?;
    let before = secrets.previous_signing_secret.as_ref().filter(|(_, until)| now < *until).map(|(secret, _)| secret);
    let read = |text: &SecretString| SigningSecret::from_text(text.expose_secret()).map_err(|error| unwritable(&error));
    std::iter::once(newest).chain(before).map(read).collect()
}

impl Header {
    fn exposed(self) -> String {
        match self {
            Self::Plain(value) => value,
            Self::Secret(value) => value.expose_secret().to_owned(),
        }
    }
}

/// What a webhook gets, its members in the order of the contract.
#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: String,
    data: CallData<'a>,
}

#[derive(Serialize)]
struct CallData<'a> {
    id: &'a str,
    tool: &'a str,
    tool_version: i32,
    tenant: &'a str,
    input: &'a Object,
    context: &'a Object,
    attempt: u32,
    deadline: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback_expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback_url: Option<&'a str>,
}

impl<'a> Event<'a> {
    fn of(job: &Job<'a>, id: &'a str, attempt: u32, now: OffsetDateTime) -> Self {
        let left = job.deadline.saturating_duration_since(Instant::now());
        Self {
            kind: "tool.call",
            timestamp: rfc_3339(now),
            data: CallData {
                id,
                tool: job.entry.tool.name.as_str(),
                tool_version: job.entry.version,
                tenant: job.tenant.name.as_str(),
                input: job.input,
                context: job.context,
                attempt,
                deadline: rfc_3339(now + left.min(LONGEST)),
                callback_expires_at: job.callback.map(|callback| rfc_3339(callback.expires_at)),
                callback_url: job.callback.map(|callback| callback.url.as_str()),
            },
        }
    }
}

/// Longer than any call may take, and short enough to be added to a date.
const LONGEST: Duration = Duration::from_hours(24);

/// In milliseconds: what every language's dates can hold.
fn rfc_3339(time: OffsetDateTime) -> String {
    let time = time.replace_millisecond(time.millisecond()).unwrap_or(time);
    // Years from 0 to 9999 can be written, so a clock that cannot be is a broken one.
    time.format(&Rfc3339).unwrap_or_default()
}

pub(super) fn unwritable(why: &impl ToString) -> Failure {
    Failure::failed(
        "handler_misconfigured",
        "The tool's handler is not set up completely, so the tool has not run. Its author has to mend it; calling it again \
         will not help.",
    )
    .because(why.to_string())
}
