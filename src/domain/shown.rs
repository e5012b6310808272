//! What the API shows of a thing, member by member: what the audit trail hashes and compares.
//!
//! What the service adds is left out (versions and times), and secrets are masked, so that no hash gives one away. The tests
//! hold these members against the API's answers.

use super::handler::{ErrorBody, Handler, HandlerKind, MASK};
use super::limits::Limits;
use super::options::ToolOptions;
use super::schema::InputSchema;
use super::tenant::TenantLimits;
use super::tool::{HandlerRef, Tool};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A thing's members, each as the JSON text that the API answers.
#[derive(Clone, Debug)]
pub struct Shown(BTreeMap<String, Box<RawValue>>);

#[derive(Serialize)]
struct HandlerMembers<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<&'a str, &'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_secret: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_body: Option<ErrorBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#async: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    timeout_ms: u32,
    max_attempts: u32,
}

impl<'a> HandlerMembers<'a> {
    fn of(name: Option<&'a str>, handler: &'a Handler) -> Self {
        let (url, error_body, r#async, function) = match &handler.kind {
            HandlerKind::Webhook { url, error_body, asynchronous } => {
                (Some(url.as_str()), *error_body, Some(*asynchronous), None)
            }
            HandlerKind::Native { function } => (None, None, None, Some(function.as_str())),
        };
        let secrets = &handler.secrets;
        Self {
            name,
            kind: handler.kind.as_str(),
            url,
            headers: url.map(|_| secrets.headers.keys().map(|name| (name.as_str(), MASK)).collect()),
            signing_secret: secrets.signing_secret.as_ref().map(|_| MASK),
            error_body,
            r#async,
            function,
            timeout_ms: handler.timeout_ms,
            max_attempts: handler.max_attempts,
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum HandlerMember<'a> {
    Name(&'a str),
    Owned(HandlerMembers<'a>),
}

#[derive(Serialize)]
struct ToolMembers<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    handler: HandlerMember<'a>,
    #[serde(flatten)]
    limits: &'a Limits,
    #[serde(flatten)]
    options: &'a ToolOptions,
    output_schema: Option<&'a RawValue>,
    tags: &'a [String],
    enabled: bool,
}

#[derive(Serialize)]
struct TenantMembers<'a> {
    name: &'a str,
    display_name: Option<&'a str>,
    limits: &'a TenantLimits,
}

#[derive(Serialize)]
struct KeyMembers<'a> {
    id: &'a str,
    role: &'a str,
    name: Option<&'a str>,
    expires_at: Option<String>,
}

impl Shown {
    /// A tenant.
    pub fn tenant(name: &str, display_name: Option<&str>, limits: &TenantLimits) -> serde_json::Result<Self> {
        Self::of(&TenantMembers { name, display_name, limits })
    }

    /// A key, of which the API shows no secret.
    pub fn key(id: &str, role: &str, name: Option<&str>, end: Option<OffsetDateTime>) -> serde_json::Result<Self> {
        let expires_at = end.map(|end| end.format(&Rfc3339).unwrap_or_default());
        Self::of(&KeyMembers { id, role, name, expires_at })
    }

    /// A handler that has a name.
    pub fn handler(name: &str, handler: &Handler) -> serde_json::Result<Self> {
        Self::of(&HandlerMembers::of(Some(name), handler))
    }

    /// A tool, with the handler that is written inside it.
    pub fn tool(tool: &Tool) -> serde_json::Result<Self> {
        Self::of(&ToolMembers {
            name: tool.name.as_str(),
            description: &tool.description,
            input_schema: tool.input_schema.raw(),
            handler: match &tool.handler {
                HandlerRef::Named(name) => HandlerMember::Name(name.as_str()),
                HandlerRef::Owned(handler) => HandlerMember::Owned(HandlerMembers::of(None, handler)),
            },
            limits: &tool.limits,
            options: &tool.options,
            output_schema: tool.output_schema.as_ref().map(InputSchema::raw),
            tags: &tool.tags,
            enabled: tool.enabled,
        })
    }

    fn of(members: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::from_str(&serde_json::to_string(members)?).map(Self)
    }

    /// SHA-256, in hexadecimal digits, of the members as one JSON object without white space, ordered by name.
    pub fn hash(&self) -> String {
        hex_sha256(&serde_json::to_vec(&self.0).unwrap_or_default())
    }

    /// The names of the members in which two states differ.
    pub fn differences(before: Option<&Self>, after: Option<&Self>) -> Vec<String> {
        let text = |shown: Option<&Self>, name: &str| -> Option<String> {
            shown.and_then(|shown| shown.0.get(name)).map(|raw| raw.get().to_owned())
        };
        let names: BTreeSet<&String> = before.into_iter().chain(after).flat_map(|shown| shown.0.keys()).collect();
        let differ = |name: &&String| text(before, name) != text(after, name);
        names.into_iter().filter(differ).cloned().collect()
    }
}

/// SHA-256 in hexadecimal digits.
pub(super) fn hex_sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
