//! `toolhook tenants`.

use serde_json::value::to_raw_value;
use uuid::Uuid;

use super::{Failure, answer, database, keys::moment};
use crate::config::{settings::Database, tenants::Action};
use crate::domain::{Fields, TenantName, tenant::TenantDraft};
use crate::store::{Change, Conflict, PageRequest, Store, StoreError, tenants};

/// Does it.
pub async fn run(settings: Database, action: Action) -> Result<(), Failure> {
    let store = database::open(&settings).await?;
    let done = act(&store, action).await;
    store.close().await;
    done
}

async fn act(store: &Store, action: Action) -> Result<(), Failure> {
    database::require_schema(store).await?;
    match action {
        Action::Create { name, display_name } => {
            match tenants::insert(store, &name, &draft(display_name)?, &Change::by_command()).await {
                Ok(_) => {}
                Err(StoreError::Conflict(Conflict::NameTaken)) => {
                    return Err(Failure::Failed(format!("there is a tenant {name} already")));
                }
                Err(error) => return Err(error.into()),
            }
            eprintln!("Next: toolhook keys create --role admin --tenant {name}");
            answer::print(&format!("Made the tenant {name}."))
        }
        Action::List => list(store).await,
        Action::Delete { name, .. } => {
            let found = tenants::get(store, &name).await?.ok_or_else(|| unknown(&name))?;
            tenants::delete(store, found.id, found.updated_at, &Change::by_command()).await?;
            answer::print(&format!("Removed the tenant {name} with everything that it owned."))
        }
    }
}

/// Checks the fields by the same rules as a body that comes by HTTP.
fn draft(display_name: Option<String>) -> Result<TenantDraft, Failure> {
    let mut fields = Fields::default();
    if let Some(text) = display_name {
        let text = to_raw_value(&text).map_err(Failure::because("cannot encode the display name"))?;
        fields.set("display_name", text);
    }
    TenantDraft::read(&fields).map_err(|faults| Failure::Failed(faults.summary()))
}

async fn list(store: &Store) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut page = PageRequest { after: None, limit: 200 };
    loop {
        let next = tenants::list(store, &page).await?;
        page.after = next.rows.last().map(|row| row.name.clone());
        let cells = |row: tenants::TenantRow| [row.name, row.display_name.unwrap_or_default(), moment(row.created_at)];
        rows.extend(next.rows.into_iter().map(cells));
        if !next.more {
            break;
        }
    }
    answer::print_table(["NAME", "DISPLAY NAME", "CREATED"], &rows)
}

/// The id of a tenant that has to be there.
pub(super) async fn id(store: &Store, name: &TenantName) -> Result<Uuid, Failure> {
    Ok(tenants::get(store, name).await?.ok_or_else(|| unknown(name))?.id)
}

fn unknown(name: &TenantName) -> Failure {
    Failure::Failed(format!(
        "there is no tenant {name}: `toolhook tenants list` shows all, `toolhook tenants create` makes one"
    ))
}
