//! `toolhook audit`.

use uuid::Uuid;

use super::{Failure, answer, database, tenants};
use crate::config::{audit::Action, settings::Database};
use crate::domain::TenantName;
use crate::store::Store;
use crate::store::audit::{self, Broken, Chain, Whole};

/// Does it.
pub async fn run(settings: Database, action: Action) -> Result<(), Failure> {
    let store = database::open(&settings).await?;
    let done = act(&store, action).await;
    store.close().await;
    done
}

async fn act(store: &Store, action: Action) -> Result<(), Failure> {
    database::require_schema(store).await?;
    let Action::Verify { tenant, chain } = action;
    verify(store, asked(store, tenant, chain).await?).await
}

async fn asked(store: &Store, tenant: Option<TenantName>, chain: Option<Uuid>) -> Result<Vec<Chain>, Failure> {
    Ok(match (tenant, chain) {
        (Some(name), _) => vec![Chain { id: tenants::id(store, &name).await?, tenant: Some(name.to_string()) }],
        (None, Some(id)) => vec![Chain { id, tenant: None }],
        (None, None) => audit::chains(store).await?,
    })
}

/// Walks the chains, and fails if one of them is broken.
async fn verify(store: &Store, chains: Vec<Chain>) -> Result<(), Failure> {
    let (mut rows, mut broken) = (Vec::new(), Vec::new());
    for chain in chains {
        let whose = match &chain.tenant {
            Some(name) => name.clone(),
            None if chain.id == audit::OPERATORS => "(operators)".to_owned(),
            None => "(removed)".to_owned(),
        };
        let (count, last) = match audit::verify(store, chain.id).await? {
            Ok(Whole { rows, hash }) => (rows.to_string(), hash),
            Err(Broken { sequence, reason }) => {
                broken.push(format!("row {sequence} of {} {whose} {reason}", chain.id));
                ("broken".to_owned(), format!("row {sequence} {reason}"))
            }
        };
        rows.push([chain.id.to_string(), whose, count, last]);
    }
    answer::print_table(["CHAIN", "TENANT", "ROWS", "LAST HASH"], &rows)?;
    if broken.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("the audit trail is not as it was written: {}", broken.join("; "))))
}
