//! `toolhook keys`: the way to the first key, and to those that no API makes.

use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::{Failure, answer, database, tenants};
use crate::config::{keys::Action, settings::Database};
use crate::domain::{KeyToken, TenantName};
use crate::store::{
    Change, PageRequest, Store, keys,
    keys::{KeyDraft, KeyRow},
};

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
        Action::Create { role, tenant, name, expires_in_days } => {
            let expires_at = expires_in_days.map(|days| OffsetDateTime::now_utc() + Duration::days(days.into()));
            let key = create(store, tenant.as_ref(), KeyDraft { role, name, expires_at }).await?;
            let owner = tenant.map_or_else(|| "every tenant".to_owned(), |tenant| format!("the tenant {tenant}"));
            eprintln!("Key {} ({} of {owner}); it is shown this once:", key.id(), role.as_str());
            answer::print(&key.reveal())
        }
        Action::List { tenant } => list(store, tenant.as_ref()).await,
        Action::Revoke { id, tenant } => {
            let by = Change::by_command();
            let revoked = match &tenant {
                Some(tenant) => keys::delete(store, tenants::id(store, tenant).await?, &id, &by).await?,
                None => keys::delete_operator(store, &id, &by).await?,
            };
            if !revoked {
                let whose = tenant.map_or_else(|| "the operators have".to_owned(), |tenant| format!("{tenant} has"));
                return Err(Failure::Failed(format!("{whose} no key with the id {id}")));
            }
            answer::print(&format!("Revoked {id}."))
        }
    }
}

/// Makes and stores a key: of a tenant, or of an operator where there is none.
async fn create(store: &Store, tenant: Option<&TenantName>, draft: KeyDraft) -> Result<KeyToken, Failure> {
    let (key, by) = (keys::generate()?, Change::by_command());
    match tenant {
        Some(tenant) => {
            let tenant = tenants::id(store, tenant).await?;
            keys::insert(store, tenant, &key, &draft, &by).await?;
        }
        None => keys::insert_operator(store, &key, draft.name.as_deref(), draft.expires_at, &by).await?,
    }
    Ok(key)
}

async fn list(store: &Store, tenant: Option<&TenantName>) -> Result<(), Failure> {
    let tenant = match tenant {
        Some(tenant) => Some(tenants::id(store, tenant).await?),
        None => None,
    };
    let mut rows = Vec::new();
    let mut page = PageRequest { after: None, limit: 200 };
    loop {
        let next = page_of(store, tenant, &page).await?;
        page.after = next.rows.last().map(|row| row.id.clone());
        rows.extend(next.rows.into_iter().map(cells));
        if !next.more {
            break;
        }
    }
    answer::print_table(["ID", "ROLE", "NAME", "CREATED", "EXPIRES"], &rows)
}

async fn page_of(
    store: &Store,
    tenant: Option<Uuid>,
    page: &PageRequest<String>,
) -> Result<crate::store::Page<KeyRow>, Failure> {
    Ok(match tenant {
        Some(tenant) => keys::list(store, tenant, page).await?,
        None => keys::list_operators(store, page).await?,
    })
}

fn cells(row: KeyRow) -> [String; 5] {
    let expires = row.expires_at.map_or_else(|| "never".to_owned(), moment);
    [row.id, row.role, row.name.unwrap_or_default(), moment(row.created_at), expires]
}

/// A time as the API writes it, to the second.
pub(super) fn moment(time: OffsetDateTime) -> String {
    time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_default()
}
