//! `toolhook tenants`.

use clap::{Args, Subcommand};

use super::{DATABASE_SECRET, Place, Problems, settings};
use crate::domain::TenantName;

/// `toolhook tenants`.
#[derive(Debug, Args)]
#[command(after_help = DATABASE_SECRET)]
pub struct Tenants {
    /// What to do with tenants.
    #[command(subcommand)]
    pub action: Action,
    #[command(flatten)]
    place: Place,
}

/// What can be done with tenants.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a tenant
    Create {
        /// Lower-case letters, digits, - and _, first a letter or digit, at most 63 characters
        #[arg(value_parser = TenantName::parse)]
        name: TenantName,
        /// What people call it
        #[arg(long, value_name = "TEXT")]
        display_name: Option<String>,
    },
    /// List all tenants
    List,
    /// Remove a tenant with its keys, handlers, tools and calls
    Delete {
        /// Its name
        #[arg(value_parser = TenantName::parse)]
        name: TenantName,
        /// Yes, remove everything that it owns
        #[arg(long, required = true)]
        yes: bool,
    },
}

impl Tenants {
    /// Checks it.
    pub fn check(&self, problems: &mut Problems) -> Option<settings::Database> {
        self.place.check(problems)
    }
}
