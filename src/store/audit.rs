//! The audit trail: one chain of rows for each tenant and one for the operators, only ever added to.
//!
//! A row is written in the transaction of its change, so that neither is there without the other. Each row's hash covers the
//! one before it; [`verify`] finds the first row that is missing or is not as it was written.

use super::session::Session;
use super::{Page, PageRequest, Store, StoreError};
use crate::domain::handler::HandlerSecrets;
use crate::domain::{AuditAction, AuditEntry, AuditKind, Role, Shown};
use time::OffsetDateTime;
use uuid::Uuid;

/// The operators' chain: tenants, and the operators' own keys.
pub const OPERATORS: Uuid = Uuid::nil();

/// Who is said to have done what a command did.
const COMMAND: &str = "cli";
/// How many rows are verified at a time.
const BATCH: i64 = 1_000;

/// Who changes something, and by which request.
#[derive(Clone, Debug)]
pub struct Change {
    actor: String,
    role: Role,
    request_id: Option<String>,
    action: Option<AuditAction>,
}

impl Change {
    /// The holder of a key, by a request.
    pub fn by_key(id: &str, role: Role, request_id: &str) -> Self {
        Self { actor: id.to_owned(), role, request_id: Some(request_id.to_owned()), action: None }
    }

    /// Somebody at a command line, who may do what operators may.
    pub fn by_command() -> Self {
        Self { actor: COMMAND.to_owned(), role: Role::Operator, request_id: None, action: None }
    }

    /// The same, where an update is more than that.
    #[must_use]
    pub fn doing(self, action: AuditAction) -> Self {
        Self { action: Some(action), ..self }
    }
}

/// What a change does.
pub(super) struct Altered<'a> {
    pub(super) kind: AuditKind,
    pub(super) name: &'a str,
    pub(super) action: AuditAction,
    pub(super) version: Option<i32>,
    pub(super) before: Option<Shown>,
    pub(super) after: Option<Shown>,
    pub(super) secrets_changed: bool,
    pub(super) tenant_chain: Option<Uuid>,
}

/// A thing's members; that they cannot be written down is a fault of ours.
pub(super) fn shown(members: serde_json::Result<Shown>) -> Result<Shown, StoreError> {
    members.map_err(|why| StoreError::inconsistent("audit", "new", why))
}

/// Whether the secrets of a thing differ before and after a change; what is not there has none.
pub(super) fn secrets_differ(before: Option<&HandlerSecrets>, after: Option<&HandlerSecrets>) -> bool {
    let none = HandlerSecrets::default();
    !before.unwrap_or(&none).is_same(after.unwrap_or(&none))
}

/// Adds a row to a chain, inside the transaction of the change. From here on the chain's writers wait for its end.
pub(super) async fn append(
    connection: &mut Session,
    chain: Uuid,
    change: &Change,
    what: &Altered<'_>,
) -> Result<(), StoreError> {
    let end = sqlx::query!(
        r#"insert into audit_chains (tenant_id) values ($1)
           on conflict (tenant_id) do update set sequence = audit_chains.sequence
           returning sequence, hash, clock_timestamp() as "now!""#,
        chain
    );
    let end = end.fetch_one(&mut *connection).await?;
    let entry = AuditEntry {
        chain,
        sequence: end.sequence + 1,
        at: end.now,
        actor: change.actor.clone(),
        role: change.role.as_str().to_owned(),
        request_id: change.request_id.clone(),
        kind: what.kind.as_str().to_owned(),
        name: what.name.to_owned(),
        action: change.action.unwrap_or(what.action).as_str().to_owned(),
        version: what.version,
        tenant_chain: what.tenant_chain,
        before_hash: what.before.as_ref().map(Shown::hash),
        after_hash: what.after.as_ref().map(Shown::hash),
        changed: Shown::differences(what.before.as_ref(), what.after.as_ref()),
        secrets_changed: what.secrets_changed,
        previous_hash: end.hash,
    };
    let added = sqlx::query!(
        "insert into audit (tenant_id, sequence, at, actor, role, request_id, kind, name, action, version, tenant_chain,
           before_hash, after_hash, changed, secrets_changed, previous_hash, hash)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        entry.chain,
        entry.sequence,
        entry.at,
        entry.actor,
        entry.role,
        entry.request_id,
        entry.kind,
        entry.name,
        entry.action,
        entry.version,
        entry.tenant_chain,
        entry.before_hash,
        entry.after_hash,
        &entry.changed,
        entry.secrets_changed,
        entry.previous_hash,
        entry.hash()
    );
    added.execute(connection).await?;
    Ok(())
}

/// A row of the trail.
#[derive(Clone, Debug)]
pub struct AuditRow {
    /// What it says.
    pub entry: AuditEntry,
    /// The hash that was stored with it.
    pub hash: String,
}

/// The columns of a row.
struct Row {
    tenant_id: Uuid,
    sequence: i64,
    at: OffsetDateTime,
    actor: String,
    role: String,
    request_id: Option<String>,
    kind: String,
    name: String,
    action: String,
    version: Option<i32>,
    tenant_chain: Option<Uuid>,
    before_hash: Option<String>,
    after_hash: Option<String>,
    changed: Vec<String>,
    secrets_changed: bool,
    previous_hash: String,
    hash: String,
}

impl From<Row> for AuditRow {
    fn from(row: Row) -> Self {
        let entry = AuditEntry {
            chain: row.tenant_id,
            sequence: row.sequence,
            at: row.at,
            actor: row.actor,
            role: row.role,
            request_id: row.request_id,
            kind: row.kind,
            name: row.name,
            action: row.action,
            version: row.version,
            tenant_chain: row.tenant_chain,
            before_hash: row.before_hash,
            after_hash: row.after_hash,
            changed: row.changed,
            secrets_changed: row.secrets_changed,
            previous_hash: row.previous_hash,
        };
        Self { entry, hash: row.hash }
    }
}

/// Which rows are listed.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Those about a thing of this kind.
    pub kind: Option<&'static str>,
    /// Those about a thing of this name.
    pub name: Option<String>,
    /// Those where this was done.
    pub action: Option<&'static str>,
    /// Those of this key, or of commands.
    pub actor: Option<String>,
    /// Those of this time or later.
    pub since: Option<OffsetDateTime>,
    /// Those before this time.
    pub until: Option<OffsetDateTime>,
}

/// Lists a chain's rows, the newest first. `page.after` is the last number that was seen.
pub async fn list(
    store: &Store,
    chain: Uuid,
    filter: &Filter,
    page: &PageRequest<i64>,
) -> Result<Page<AuditRow>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        "select tenant_id, sequence, at, actor, role, request_id, kind, name, action, version, tenant_chain, before_hash, after_hash,
           changed, secrets_changed, previous_hash, hash
         from audit where tenant_id = $1 and ($2::bigint is null or sequence < $2) and ($3::text is null or kind = $3)
           and ($4::text is null or name = $4) and ($5::text is null or action = $5) and ($6::text is null or actor = $6)
           and ($7::timestamptz is null or at >= $7) and ($8::timestamptz is null or at < $8)
         order by sequence desc limit $9",
        chain,
        page.after,
        filter.kind,
        filter.name,
        filter.action,
        filter.actor,
        filter.since,
        filter.until,
        page.limit + 1
    );
    let mut reading = store.scoped_anew(chain).await?;
    let rows = rows.fetch_all(&mut *reading).await?.into_iter().map(AuditRow::from).collect();
    reading.commit().await?;
    Ok(Page::of(rows, page.limit))
}

/// A chain, by name if its tenant is still there.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its id.
    pub id: Uuid,
    /// The tenant's name; none of the operators' chain, and of a tenant that was removed.
    pub tenant: Option<String>,
}

/// Lists every chain that there is any sign of: its rows, its end, or a row about its tenant.
pub async fn chains(store: &Store) -> Result<Vec<Chain>, StoreError> {
    let chains = sqlx::query_as!(
        Chain,
        r#"select id as "id!", (select name from tenants t where t.id = c.id) as tenant
           from (select tenant_id as id from audit_chains union select tenant_id from audit
             union select tenant_chain from audit where tenant_chain is not null) c
           order by id"#
    );
    let mut reading = store.system().await?;
    let chains = chains.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    Ok(chains)
}

/// A chain that is as it was written.
#[derive(Clone, Debug)]
pub struct Whole {
    /// How many rows it has.
    pub rows: i64,
    /// The hash of its last row: kept elsewhere, it shows later that nothing was rewritten since.
    pub hash: String,
}

/// The first row of a chain that is missing or altered.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Its number.
    pub sequence: i64,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Walks a chain from its first row to its end.
pub async fn verify(store: &Store, chain: Uuid) -> Result<Result<Whole, Broken>, StoreError> {
    let end = sqlx::query!("select sequence, hash from audit_chains where tenant_id = $1", chain);
    let mut reading = store.system().await?;
    let end = end.fetch_optional(&mut *reading).await?;
    let mut last = Whole { rows: 0, hash: AuditEntry::START.to_owned() };
    loop {
        let rows = sqlx::query_as!(
            Row,
            "select tenant_id, sequence, at, actor, role, request_id, kind, name, action, version, tenant_chain, before_hash, after_hash,
           changed, secrets_changed, previous_hash, hash
             from audit where tenant_id = $1 and sequence > $2 order by sequence limit $3",
            chain,
            last.rows,
            BATCH
        );
        let rows = rows.fetch_all(&mut *reading).await?;
        let read = rows.len();
        for row in rows.into_iter().map(AuditRow::from) {
            if let Some(reason) = fault(&last, &row) {
                return Ok(Err(Broken { sequence: last.rows + 1, reason }));
            }
            last = Whole { rows: row.entry.sequence, hash: row.hash };
        }
        if i64::try_from(read) != Ok(BATCH) {
            break;
        }
    }
    reading.commit().await?;
    // Rows that were added since the end was read are fine; rows before it that are gone are not.
    let broken = |sequence, reason| Ok(Err(Broken { sequence, reason }));
    match end {
        None => broken(last.rows + 1, "the chain's end is missing"),
        Some(end) if end.sequence > last.rows => broken(last.rows + 1, "is missing, and so are all after it"),
        Some(end) if end.sequence == last.rows && end.hash != last.hash => {
            broken(last.rows, "is not the one that was written last")
        }
        Some(_) => Ok(Ok(last)),
    }
}

fn fault(last: &Whole, row: &AuditRow) -> Option<&'static str> {
    if row.entry.sequence != last.rows + 1 {
        return Some("is missing");
    }
    if row.entry.previous_hash != last.hash {
        return Some("does not follow the row before it");
    }
    (row.entry.hash() != row.hash).then_some("is not as it was written")
}
