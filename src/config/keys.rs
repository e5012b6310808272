//! `toolhook keys`.

use clap::{Args, Subcommand};

use super::{DATABASE_SECRET, Place, Problems, settings};
use crate::domain::{Role, TenantName};

/// `toolhook keys`.
#[derive(Debug, Args)]
#[command(after_help = DATABASE_SECRET)]
pub struct Keys {
    /// What to do with keys.
    #[command(subcommand)]
    pub action: Action,
    #[command(flatten)]
    place: Place,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a key and print it, this once, alone on standard output
    Create {
        /// What the key may do; each role includes the rights of those before it: viewer, agent, editor, admin, operator
        #[arg(long, value_parser = role)]
        role: Role,
        /// Whose key it is; every role but operator needs it
        #[arg(long, value_parser = TenantName::parse)]
        tenant: Option<TenantName>,
        /// What people call it
        #[arg(long)]
        name: Option<String>,
        /// After how many days it stops working; never, if not given
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
    },
    /// List keys, without their secrets: a tenant's, or the operators'
    List {
        /// Whose; the operators' if not given
        #[arg(long, value_parser = TenantName::parse)]
        tenant: Option<TenantName>,
    },
    /// Revoke a key
    Revoke {
        /// Its public id: the part of the key between `thk_` and the next `_`
        id: String,
        /// Whose it is; an operator's if not given
        #[arg(long, value_parser = TenantName::parse)]
        tenant: Option<TenantName>,
    },
}

fn role(name: &str) -> Result<Role, String> {
    Role::parse(name).ok_or_else(|| {
        let all: Vec<&str> = Role::ALL.into_iter().map(Role::as_str).collect();
        format!("expected one of: {}", all.join(", "))
    })
}

impl Action {
    /// Checks what the parts of it mean together.
    pub(super) fn check(&self, problems: &mut Problems) {
        if let Self::Create { role, tenant, .. } = self
            && (*role == Role::Operator) == tenant.is_some()
        {
            problems.add("--tenant says whose key it is: every role needs it but operator, which is nobody's");
        }
    }
}

impl Keys {
    /// Checks it.
    pub fn check(&self, problems: &mut Problems) -> Option<settings::Database> {
        self.action.check(problems);
        self.place.check(problems)
    }
}
