//! The tenant `demo` and the keys that `toolhook dev` hands out.

use subtle::ConstantTimeEq;
use time::OffsetDateTime;

use super::{Failure, credentials::Credentials};
use crate::domain::{KeyToken, Role, TenantName, tenant::TenantDraft};
use crate::store::{
    Change, Conflict, Store, StoreError, keys,
    keys::{KeyDraft, StoredKey},
    tenants,
};

/// The tenant's name.
pub(super) const TENANT: &str = "demo";
/// What the keys are called in lists.
const KEY_NAME: &str = "toolhook dev";

/// Makes what is missing of the tenant and its keys. Keys of an earlier start are kept if this database still takes them.
pub(super) async fn prepare(
    store: &Store,
    earlier: Option<Credentials>,
    base_url: String,
) -> Result<Credentials, Failure> {
    let name = TenantName::parse(TENANT).map_err(Failure::Failed)?;
    match tenants::get(store, &name).await? {
        Some(_) => {}
        None => make_tenant(store, &name).await?,
    }
    let (operator, demo) = earlier.map(|keys| (keys.operator_key, keys.demo_key)).unzip();
    Ok(Credentials {
        base_url,
        operator_key: match still_taken(store, operator, |key| key.role == Role::Operator).await? {
            Some(key) => key,
            None => make_operator_key(store).await?,
        },
        demo_key: match still_taken(store, demo, |key| is_demo_editor(key, &name)).await? {
            Some(key) => key,
            None => make_demo_key(store, &name).await?,
        },
    })
}

async fn make_tenant(store: &Store, name: &TenantName) -> Result<(), Failure> {
    let draft = TenantDraft { display_name: Some("Demo".to_owned()), ..TenantDraft::default() };
    match tenants::insert(store, name, &draft, &Change::by_command()).await {
        // Another process did it at the same moment.
        Ok(_) | Err(StoreError::Conflict(Conflict::NameTaken)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn make_operator_key(store: &Store) -> Result<String, Failure> {
    let key = keys::generate()?;
    keys::insert_operator(store, &key, Some(KEY_NAME), None, &Change::by_command()).await?;
    Ok(key.reveal())
}

async fn make_demo_key(store: &Store, name: &TenantName) -> Result<String, Failure> {
    let key = keys::generate()?;
    let tenant = super::tenants::id(store, name).await?;
    let draft = KeyDraft { role: Role::Editor, name: Some(KEY_NAME.to_owned()), expires_at: None };
    keys::insert(store, tenant, &key, &draft, &Change::by_command()).await?;
    Ok(key.reveal())
}

fn is_demo_editor(key: &StoredKey, name: &TenantName) -> bool {
    key.role == Role::Editor && key.tenant.as_ref().is_some_and(|tenant| tenant.name == *name)
}

/// The key, if the database knows it, it has not expired, and it is what we take it for.
async fn still_taken(
    store: &Store,
    key: Option<String>,
    is_right: impl Fn(&StoredKey) -> bool,
) -> Result<Option<String>, Failure> {
    let Some(token) = key.as_deref().and_then(KeyToken::parse) else {
        return Ok(None);
    };
    let now = OffsetDateTime::now_utc();
    let stored = keys::candidates(store, token.id()).await?;
    let is_valid = stored.iter().any(|stored| {
        bool::from(stored.hash.ct_eq(&token.hash()))
            && stored.expires_at.is_none_or(|end| end > now)
            && is_right(stored)
    });
    Ok(key.filter(|_| is_valid))
}
