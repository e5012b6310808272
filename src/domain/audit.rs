//! The audit trail's words, and the hash that binds each of its rows to all before it.

use super::shown::hex_sha256;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// A tenant.
    Tenant,
    /// A key.
    Key,
    /// A handler that has a name.
    Handler,
    /// A tool, with the handler that is written inside it.
    Tool,
}

impl AuditKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tenant, Self::Key, Self::Handler, Self::Tool];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Key => "key",
            Self::Handler => "handler",
            Self::Tool => "tool",
        }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditAction {
    /// It was made.
    Created,
    /// It was changed.
    Updated,
    /// A tool got the content of an older version.
    Restored,
    /// A handler got a new signing secret.
    SecretRotated,
    /// A key was ended.
    Revoked,
    /// It was removed, with everything that it owned.
    Deleted,
}

impl AuditAction {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Created, Self::Updated, Self::Restored, Self::SecretRotated, Self::Revoked, Self::Deleted];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Restored => "restored",
            Self::SecretRotated => "secret_rotated",
            Self::Revoked => "revoked",
            Self::Deleted => "deleted",
        }
    }
}

/// One change. Its JSON text, members in this order and without white space, is what is hashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct AuditEntry {
    /// The chain that it stands in: a tenant has one, and so have the operators (the nil UUID).
    #[schema(value_type = String, pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    pub chain: Uuid,
    /// Its number in the chain, from 1, without gaps.
    #[schema(minimum = 1)]
    pub sequence: i64,
    /// When: RFC 3339, UTC, by the database's clock.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub at: OffsetDateTime,
    /// Who: the public id of the key that it was done with, or `cli` for a command on the operator's machine.
    pub actor: String,
    /// That key's role at the time.
    pub role: String,
    /// The request that did it; null for a command.
    #[schema(required)]
    pub request_id: Option<String>,
    /// What it is about.
    #[schema(value_type = AuditKind)]
    pub kind: String,
    /// Its name; a key's public id.
    pub name: String,
    /// What was done.
    #[schema(value_type = AuditAction)]
    pub action: String,
    /// Of a handler or a tool: the version that the change made, or that was removed.
    #[schema(required)]
    pub version: Option<i32>,
    /// Of a tenant: the chain of what it owns, which stays when the tenant is removed.
    #[schema(value_type = Option<String>, pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", required)]
    pub tenant_chain: Option<Uuid>,
    /// SHA-256 of what the API showed of it before: the members of its answer without `version`, `created_at` and `updated_at`,
    /// as one JSON object without white space, ordered by name, secrets masked. Null if it was not there or could not be read.
    #[schema(required)]
    pub before_hash: Option<String>,
    /// The same of what the API shows after the change; null if it is gone.
    #[schema(required)]
    pub after_hash: Option<String>,
    /// The members that the change made, removed or gave another value.
    pub changed: Vec<String>,
    /// Whether a header's value or a signing secret was set, changed or removed. What they are is in no hash.
    pub secrets_changed: bool,
    /// The `hash` of the row before; zeros in the first one.
    pub previous_hash: String,
}

impl AuditEntry {
    /// The hash that stands before the first row of a chain.
    pub const START: &'static str = "0000000000000000000000000000000000000000000000000000000000000000";

    /// Its hash, which covers the hash of the row before and so all rows before.
    pub fn hash(&self) -> String {
        hex_sha256(&serde_json::to_vec(self).unwrap_or_default())
    }
}
