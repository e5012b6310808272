//! What a key may do.

use serde::{Deserialize, Serialize};

/// A key's role. Each includes the rights of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads tools and the call log.
    Viewer,
    /// Fetches tool lists and runs calls.
    Agent,
    /// Writes handlers and tools.
    Editor,
    /// Manages the tenant's keys.
    Admin,
    /// Manages tenants, and acts for any of them by naming it.
    Operator,
}

impl Role {
    /// Every role, the weakest first.
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Agent, Self::Editor, Self::Admin, Self::Operator];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Agent => "agent",
            Self::Editor => "editor",
            Self::Admin => "admin",
            Self::Operator => "operator",
        }
    }

    /// Reads a name from the wire.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}
