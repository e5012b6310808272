//! `toolhook audit`.

use clap::{Args, Subcommand};
use uuid::Uuid;

use super::{DATABASE_SECRET, Place, Problems, settings};
use crate::domain::TenantName;

/// `toolhook audit`.
#[derive(Debug, Args)]
#[command(after_help = DATABASE_SECRET)]
pub struct Audit {
    /// What to do with the audit trail.
    #[command(subcommand)]
    pub action: Action,
    #[command(flatten)]
    place: Place,
}

/// What can be done with the audit trail.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Walk every chain of the audit trail, and name the first row of each that is missing or altered; exit code 1 if there is
    /// one. Keep the last hashes that it prints somewhere else: they show later that nothing before them was rewritten
    Verify {
        /// Only this tenant's chain
        #[arg(long, value_parser = TenantName::parse, conflicts_with = "chain")]
        tenant: Option<TenantName>,
        /// Only the chain of this id: a removed tenant's, or the operators' (all zeros)
        #[arg(long, value_name = "UUID")]
        chain: Option<Uuid>,
    },
}

impl Audit {
    /// Checks it.
    pub fn check(&self, problems: &mut Problems) -> Option<settings::Database> {
        self.place.check(problems)
    }
}
