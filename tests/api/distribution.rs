//! What lets the tables be distributed over several servers by their tenant: each key that has to be unique, each reference and
//! each query names the tenant, and those that do not are known by name.

use crate::support::TestService;
use sqlx::PgConnection;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The tables that are no tenant's, and would be on one server, or on all.
const OF_NO_TENANT: [&str; 3] = ["_sqlx_migrations", "operator_keys", "tenants"];

/// The queries that look at rows of several tenants, by how they begin. All are the system's: the role that serves a tenant sees
/// one tenant's rows, whatever is asked. Whoever distributes the tables has to look at these.
const ACROSS: [(&str, &str); 18] = [
    ("select t.id as \"tenant_id?\", t.name as \"tenant?\", t.limits", "a key, of which only the public id is known"),
    (
        "insert into calls (tenant_id, id, tool, tool_version, format, call_id, caller, status, input, result",
        "the log's common writing",
    ),
    (
        "insert into calls (tenant_id, id, tool, tool_version, format, call_id, caller, status, input, repairs",
        "what is noted before it is sent",
    ),
    ("with claimed as ( insert into idempotency_keys", "the claims of several requests"),
    ("with held as ( update idempotency_keys", "the ends of several requests"),
    ("update calls c set status = r.status", "the ends of several pending calls"),
    ("select c.id, c.cancel_requested", "pending calls that somebody waits for"),
    ("with due as ( select tenant_id, id from calls", "pending calls whose time is up"),
    ("with expired as ( select tenant_id, route, key", "what dead replicas left behind"),
    ("delete from idempotency_keys where (tenant_id, route, key) in", "old idempotency keys"),
    ("with gone as (delete from tenants", "a tenant that is removed"),
    ("select tenant_id from departed_tenants", "tenants whose records are left to be removed"),
    ("select tenant_id, id from handlers where (tenant_id, id) >", "a new master key"),
    ("select substring(sealed from 2 for $1)", "which master keys are in use"),
    ("select id as \"id!\", (select name from tenants t where t.id = c.id)", "which audit trails there are"),
    ("select t.name as \"tenant?\", k.id as \"id!\", k.expires_at", "doctor: keys that end soon"),
    ("select tenant_id, id, signing_secret", "doctor: whether secrets can be opened"),
    ("select min(url)", "doctor: whether webhooks' hosts are found"),
];

async fn ask(connection: &mut PgConnection, query: &'static str) -> Vec<String> {
    sqlx::query_scalar(query).fetch_all(connection).await.unwrap()
}

#[tokio::test]
async fn d05_whatever_is_unique_is_so_within_a_tenant() {
    let service = TestService::start().await;
    let mut connection = service.database.connect().await;
    let other = "select c.relname::text from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
          and not exists (select from pg_attribute a
            where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnotnull and a.atttypid = 'uuid'::regtype)
        order by 1";
    assert_eq!(ask(&mut connection, other).await, OF_NO_TENANT, "tables without a tenant_id that is always there");
    // Keys and constraints are indexes too. Those of partitions are looked at as well.
    let everywhere = "select i.indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indrelid
        where c.relnamespace = 'public'::regnamespace and i.indisunique
          and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id')
          and not exists (select from pg_attribute a
            where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnum = any(i.indkey))
        order by 1";
    assert_eq!(ask(&mut connection, everywhere).await, Vec::<String>::new(), "unique over all tenants");
    let seen = "select i.indexrelid::regclass::text from pg_index i join pg_attribute a on a.attrelid = i.indrelid
        where i.indisunique and a.attname = 'tenant_id' and a.attnum = any(i.indkey)";
    let seen: BTreeSet<String> = ask(&mut connection, seen).await.into_iter().collect();
    for known in ["calls_pkey", "calls_default_pkey", "handlers_name_key", "tools_pkey", "audit_pkey"] {
        assert!(seen.contains(known), "{known} is not among {seen:?}");
    }
    // In a reference between tenants' tables the tenant stands for the tenant on both sides.
    let loose = "select c.conrelid::regclass || '.' || c.conname from pg_constraint c
        where c.contype = 'f' and c.connamespace = 'public'::regnamespace
          and exists (select from pg_attribute t where t.attrelid = c.conrelid and t.attname = 'tenant_id')
          and not exists (
            select from unnest(c.conkey, c.confkey) as pair (own, theirs)
            join pg_attribute o on o.attrelid = c.conrelid and o.attnum = pair.own
            join pg_attribute t on t.attrelid = c.confrelid and t.attnum = pair.theirs
            where o.attname = 'tenant_id' and t.attname = case c.confrelid when 'tenants'::regclass then 'id' else 'tenant_id' end)";
    assert_eq!(ask(&mut connection, loose).await, Vec::<String>::new());
    let references =
        "select count(*)::text from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace";
    assert_ne!(ask(&mut connection, references).await, ["0"]);
}

/// Every checked query of the store, in small letters and on one line.
fn queries() -> Vec<String> {
    let folder = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx")).unwrap();
    let texts = folder.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let query = |text: String| {
        let described: serde_json::Value = serde_json::from_str(&text).unwrap();
        let words: Vec<String> =
            described["query"].as_str().unwrap().split_whitespace().map(str::to_lowercase).collect();
        words.join(" ")
    };
    let queries: Vec<String> = texts.map(query).collect();
    assert!(queries.len() > 60, "the queries were not found");
    queries
}

/// Whether it reads or writes one of these tables.
fn uses(query: &str, tables: &BTreeSet<String>) -> bool {
    let words: Vec<&str> = query.split([' ', '(', ')', ',']).filter(|word| !word.is_empty()).collect();
    words.windows(2).any(|pair| ["from", "join", "update", "into"].contains(&pair[0]) && tables.contains(pair[1]))
}

/// Whether it says by a parameter whose rows it is about.
fn names_one_tenant(query: &str) -> bool {
    let inserts = || {
        let columns = query.strip_prefix("insert into ").and_then(|rest| rest.split_once(" (tenant_id"));
        columns.is_some_and(|(_, rest)| rest.contains(") values ($1"))
    };
    // A tenant's row that its tools are joined with by their tenant.
    let joins = || query.contains("t.tenant_id = n.id") && query.contains("where n.id = $");
    query.contains("tenant_id = $") || joins() || inserts()
}

#[tokio::test]
async fn d05_the_queries_that_look_at_several_tenants_are_known_by_name() {
    let service = TestService::start().await;
    let mut connection = service.database.connect().await;
    let tables = "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attname = 'tenant_id'";
    let tables: BTreeSet<String> = ask(&mut connection, tables).await.into_iter().collect();
    let queries: Vec<String> = queries().into_iter().filter(|query| uses(query, &tables)).collect();
    assert!(queries.len() > 50, "only {} queries", queries.len());
    let across: Vec<&String> = queries.iter().filter(|query| !names_one_tenant(query)).collect();
    let known = |query: &&&String| ACROSS.iter().any(|(start, _)| query.starts_with(start));
    let unknown: Vec<_> = across.iter().filter(|query| !known(query)).collect();
    assert!(unknown.is_empty(), "these look at several tenants, and are not in the list: {unknown:#?}");
    for (start, what) in ACROSS {
        assert!(across.iter().any(|query| query.starts_with(start)), "nothing does this any more: {what} ({start})");
    }
}
