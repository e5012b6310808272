//! A handler's members, as they are written and as they are answered: the same for one that has a name and for one that
//! is written inside a tool.

use super::AppState;
use super::problem::Problem;
use crate::domain::handler::{ErrorBody, MASK};
use crate::domain::{Faults, Handler, HandlerKind, Pointer};
use crate::egress::SigningSecret;
use secrecy::ExposeSecret;
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether an answer shows the signing secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretShown {
    /// As `"***"`.
    Masked,
    /// In the clear: in the answer to the request that made it.
    Once,
}

/// The kinds of handler.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A signed POST to the tenant's server.
    Webhook,
    /// Rust code that was registered with the library.
    Native,
}

/// A handler as it is written.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(example = json!({"name": "weather-backend", "kind": "webhook", "url": "https://hooks.example.com/weather",
    "headers": {"authorization": "Bearer s3cret"}, "timeout_ms": 30000, "max_attempts": 3}))]
pub(super) struct HandlerBody {
    /// Letters, digits, `_`, `-` and `.`, first a letter or digit. Required in a POST; in a PUT or PATCH it stands in the
    /// path; a handler written inside a tool has none.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", nullable = false)]
    pub name: Option<String>,
    /// What it does.
    pub kind: Kind,
    /// Of a webhook, required: where the signed POST goes. https, a public address, port 443 or 8443, unless the operator
    /// allows more.
    #[schema(max_length = 2048, nullable = false)]
    pub url: Option<String>,
    /// Of a webhook: headers to send with each request, at most 20 of 4 KiB together. Write-only: answered as `"***"`;
    /// a written `"***"` keeps what is stored, as long as the URL goes to the same scheme, host and port.
    #[schema(nullable)]
    pub headers: Option<BTreeMap<String, String>>,
    /// Of a webhook: `whsec_` and 24 to 64 bytes in base 64, to use a secret of your own. Absent or `"***"`: the stored one
    /// stays, or one is made.
    #[schema(nullable)]
    pub signing_secret: Option<String>,
    /// Of a webhook: whether the body of an error answer reaches the model. Absent: of a 4xx it does, of a 5xx it does not.
    #[schema(nullable)]
    pub error_body: Option<ErrorBody>,
    /// Of a webhook: whether it may answer 202 and report later, to the `callback_url` that it gets. Taken where the operator has said
    /// how webhooks reach this service.
    #[schema(nullable, default = false)]
    pub r#async: Option<bool>,
    /// Of native code, required: the name under which it was registered.
    #[schema(min_length = 1, max_length = 64, nullable = false)]
    pub function: Option<String>,
    /// Bounds a whole call, retries too, in milliseconds.
    #[schema(nullable, minimum = 1, maximum = 300_000, default = 30_000)]
    pub timeout_ms: Option<u32>,
    /// How often a request is sent at most. A second time only if it certainly did not arrive, or if the tool is `idempotent` or
    /// `read_only`: then also after 429, 502, 503, 504 and a lost answer.
    #[schema(nullable, minimum = 1, maximum = 10, default = 3)]
    pub max_attempts: Option<u32>,
}

/// A handler's members as they are answered.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct HandlerContent {
    /// What it does.
    pub kind: Kind,
    /// Of a webhook: where the signed POST goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub url: Option<String>,
    /// Of a webhook: the names of the headers that are sent along, each with the value `"***"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub headers: Option<BTreeMap<String, &'static str>>,
    /// Of a webhook: `"***"`, or the secret in the answer to the request that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub signing_secret: Option<String>,
    /// Of a webhook: whether the body of an error answer reaches the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error_body: Option<ErrorBody>,
    /// Of a webhook: whether it may answer 202 and report later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub r#async: Option<bool>,
    /// Of native code: the name under which it was registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub function: Option<String>,
    /// Bounds a whole call, in milliseconds.
    pub timeout_ms: u32,
    /// How often a request is sent at most.
    pub max_attempts: u32,
}

impl HandlerContent {
    /// A handler's members.
    pub(super) fn of(handler: &Handler, secret: SecretShown) -> Self {
        let secrets = &handler.secrets;
        let shown = |stored: &secrecy::SecretString| match secret {
            SecretShown::Masked => MASK.to_owned(),
            SecretShown::Once => stored.expose_secret().to_owned(),
        };
        let mut content = Self {
            kind: match handler.kind {
                HandlerKind::Webhook { .. } => Kind::Webhook,
                HandlerKind::Native { .. } => Kind::Native,
            },
            url: None,
            headers: None,
            signing_secret: secrets.signing_secret.as_ref().map(shown),
            error_body: None,
            r#async: None,
            function: None,
            timeout_ms: handler.timeout_ms,
            max_attempts: handler.max_attempts,
        };
        match &handler.kind {
            HandlerKind::Webhook { url, error_body, asynchronous } => {
                content.r#async = Some(*asynchronous);
                content.url = Some(url.clone());
                content.headers = Some(secrets.headers.keys().map(|name| (name.clone(), MASK)).collect());
                content.error_body = *error_body;
            }
            HandlerKind::Native { function } => content.function = Some(function.clone()),
        }
        content
    }
}

/// Notes where a handler would reach what it may not: an address behind the guard, or code that is not there.
pub(super) fn check_target(state: &AppState, handler: &Handler, at: &Pointer, faults: &mut Faults) {
    match &handler.kind {
        HandlerKind::Webhook { url, asynchronous, .. } => {
            if *asynchronous && !state.underway.has_public_url() {
                let detail = "an asynchronous handler needs to know where to report, and this service was not told how webhooks reach \
                              it: its operator has to set TOOLHOOK_PUBLIC_URL";
                faults.add(at.key("async"), detail);
            }
            if let Err(why) = state.egress.check_url(url) {
                faults.add(at.key("url"), format!("the URL {why}"));
            }
        }
        HandlerKind::Native { function } => {
            if !state.executor.natives().contains(function) {
                faults.add(at.key("function"), "no native handler is registered under this name");
            }
        }
    }
}

/// Gives a webhook a signing secret, if it has none yet.
pub(super) fn give_signing_secret(mut handler: Handler) -> Result<Handler, Problem> {
    if matches!(handler.kind, HandlerKind::Webhook { .. }) && handler.secrets.signing_secret.is_none() {
        let fresh = SigningSecret::generate().map_err(|why| Problem::internal(&why))?;
        handler.secrets.signing_secret = Some(fresh.to_text());
    }
    Ok(handler)
}
