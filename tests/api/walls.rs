//! The walls between tenants that Postgres holds: what a role may see, whatever the service asks. The numbers are those of the
//! threat model's checks; D1, D2 and D6 are in `tenancy`, D7 is where real processes are started.

use crate::support::{Receiver, TestService, connect_with, eventually, tool, webhook};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use std::collections::BTreeSet;
use std::time::Duration;
use toolhook::domain::TenantName;
use toolhook::store::{PageRequest, Store, tenants, tools, walls};
use uuid::Uuid;

/// Two tenants that have something in every table; what is `acme`'s has `planted` in it.
async fn two_tenants(service: &TestService) -> [Uuid; 2] {
    let receiver = Receiver::weather().await;
    let store = connect_with(&service.database.url(), 2).await;
    let mut ids = Vec::new();
    for (name, mark) in [("acme", "planted"), ("other", "visible")] {
        let tenant = service.tenant(name).await;
        service.operator().put(&format!("/v1/tenants/{name}"), &json!({"display_name": mark})).await.with(200);
        tenant.admin.post("/v1/keys", &json!({"role": "viewer", "name": mark})).await.with(201);
        let handler = json!({"kind": "webhook", "url": format!("{}?{mark}", receiver.url()), "headers": {"x": mark}});
        tenant.editor.put(&format!("/v1/handlers/{mark}"), &handler).await.with(201);
        let made = tool(mark, &json!(mark), &json!({"description": mark}));
        tenant.editor.post("/v1/tools", &made).await.with(201);
        let keyed = tenant.agent.with("idempotency-key", mark);
        let call = json!({"input": {"city": mark}});
        keyed.post(&format!("/v1/tools/{mark}/calls"), &call).await.with(200);
        ids.push(id(&store, name).await);
    }
    store.close().await;
    ids.try_into().unwrap()
}

async fn id(store: &Store, name: &str) -> Uuid {
    tenants::get(store, &TenantName::parse(name).unwrap()).await.unwrap().unwrap().id
}

async fn rows(connection: &mut PgConnection, query: String) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(connection).await
}

async fn begin(connection: &mut PgConnection, role: &str, tenant: &str) {
    let opening = format!("begin; set local role {role}; set local toolhook.tenant = '{tenant}'");
    connection.execute(sqlx::raw_sql(AssertSqlSafe(opening))).await.unwrap();
}

async fn end(connection: &mut PgConnection) {
    connection.execute("rollback").await.unwrap();
}

/// The tables that tenants' rows are in.
async fn tenants_tables(connection: &mut PgConnection) -> Vec<String> {
    let tables =
        "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1";
    let tables = rows(connection, tables.to_owned()).await.unwrap();
    assert!(tables.len() >= 6, "{tables:?}");
    tables
}

#[tokio::test]
async fn d03_without_a_tenant_there_are_no_rows() {
    let service = TestService::start().await;
    let [acme, _] = two_tenants(&service).await;
    let mut connection = service.database.connect().await;
    let tables = tenants_tables(&mut connection).await;
    let mut tried = 0;
    // A setting that was set in a transaction is empty in the next one, and not absent.
    for tenant in [None, Some(String::new()), Some(Uuid::nil().to_string()), Some(acme.to_string())] {
        for table in tables.iter().map(String::as_str).chain(["tenants"]) {
            begin(&mut connection, "toolhook_app", tenant.as_deref().unwrap_or_default()).await;
            if tenant.is_none() {
                connection.execute("reset toolhook.tenant").await.unwrap();
            }
            let found = rows(&mut connection, format!("select t::text from {table} t")).await;
            end(&mut connection).await;
            match (found, &tenant) {
                (Err(refused), _) => assert_eq!(table, "departed_tenants", "{refused}"),
                (Ok(found), Some(tenant)) if *tenant == acme.to_string() => assert!(!found.is_empty(), "{table}"),
                // The operators' trail is that of no tenant.
                (Ok(found), Some(tenant)) if *tenant == Uuid::nil().to_string() && table.starts_with("audit") => {
                    assert!(found.iter().all(|row| row.starts_with(&format!("({tenant},"))), "{found:?}");
                }
                (Ok(found), _) => assert!(found.is_empty(), "{table}: {found:?}"),
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 4 * (tables.len() + 1));
    // And none can be made.
    begin(&mut connection, "toolhook_app", "").await;
    let made = format!("insert into keys (tenant_id, id, hash, role) values ('{acme}', 'x', '', 'admin') returning id");
    let refused = rows(&mut connection, made).await.unwrap_err().to_string();
    assert!(refused.contains("row-level security"), "{refused}");
    end(&mut connection).await;
    connection.close().await.unwrap();
}

async fn names(store: &Store, tenant: Uuid) -> Vec<String> {
    let page = PageRequest { after: None, limit: 100 };
    let page = tools::list(store, tenant, &tools::Filter::default(), &page).await.unwrap();
    page.rows.into_iter().map(|row| row.unwrap().tool.name.to_string()).collect()
}

#[tokio::test]
async fn d04_a_request_that_is_cut_off_leaves_nothing_to_the_next_on_its_connection() {
    const SESSIONS: &str = "select pid::text from pg_stat_activity
        where datname = current_database() and application_name = 'toolhook'";
    let service = TestService::start().await;
    let [acme, other] = two_tenants(&service).await;
    let mut watcher = service.database.connect().await;
    let before: BTreeSet<String> = rows(&mut watcher, SESSIONS.to_owned()).await.unwrap().into_iter().collect();
    let store = connect_with(&service.database.url(), 1).await;
    assert_eq!(names(&store, acme).await, ["planted"]);
    let during: BTreeSet<String> = rows(&mut watcher, SESSIONS.to_owned()).await.unwrap().into_iter().collect();
    let ours = &during - &before;
    assert_eq!(ours.len(), 1);
    // In the middle of a statement, which waits for a lock.
    let mut blocker = service.database.connect().await;
    blocker.execute("begin; lock table tools in access exclusive mode").await.unwrap();
    let waits = eventually(async || {
        let waiting = "select pid::text from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'";
        (!rows(&mut watcher, waiting.to_owned()).await.unwrap().is_empty()).then_some(())
    });
    tokio::select! {
        found = names(&store, acme) => panic!("not held: {found:?}"),
        () = waits => {}
    }
    end(&mut blocker).await;
    assert_eq!(names(&store, other).await, ["visible"]);
    // And wherever it happens to be.
    for step in 0..100 {
        let _ = tokio::time::timeout(Duration::from_micros(step * 40), names(&store, acme)).await;
        assert_eq!(names(&store, other).await, ["visible"], "after {step} steps");
    }
    assert_eq!(names(&store, acme).await, ["planted"]);
    let after: BTreeSet<String> = rows(&mut watcher, SESSIONS.to_owned()).await.unwrap().into_iter().collect();
    assert_eq!(&after - &before, ours, "it was one connection all the time");
    for connection in [watcher, blocker] {
        connection.close().await.unwrap();
    }
    store.close().await;
}

/// A transaction that could not begin is ended, so that the connection serves the next one.
#[tokio::test]
async fn d04_a_failed_beginning_does_not_spoil_its_connection() {
    let service = TestService::start().await;
    let [acme, _] = two_tenants(&service).await;
    // A login that may not take the role, as if it had been revoked.
    let mut owner = service.database.connect().await;
    owner.execute("create role stranger login").await.unwrap();
    let narrow = connect_with(&service.database.url().replace("postgres@", "stranger@"), 1).await;
    for _ in 0..3 {
        let page = PageRequest { after: None, limit: 1 };
        let refused = tools::list(&narrow, acme, &tools::Filter::default(), &page).await.unwrap_err().to_string();
        assert!(refused.contains("permission denied to set role"), "{refused}");
    }
    owner.execute("grant toolhook_app to stranger").await.unwrap();
    assert_eq!(names(&narrow, acme).await, ["planted"], "the same connection works once it may");
    owner.execute("revoke toolhook_app from stranger").await.unwrap();
    owner.close().await.unwrap();
    narrow.close().await;
}

#[tokio::test]
async fn d05_a_row_cannot_point_at_another_tenants() {
    let service = TestService::start().await;
    let [acme, other] = two_tenants(&service).await;
    let mut connection = service.database.connect().await;
    // Even for somebody whom no policy holds: the key itself has the tenant in it.
    let moved = format!(
        "update tools set handler_id = (select id from handlers where tenant_id = '{acme}') where tenant_id = '{other}' returning name"
    );
    let refused = rows(&mut connection, moved.clone()).await.unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().constraint(), Some("tools_handler_fkey"));
    begin(&mut connection, "toolhook_app", &other.to_string()).await;
    let unseen = rows(&mut connection, moved).await.unwrap_err().to_string();
    assert!(unseen.contains("null value"), "the other's handler is not there: {unseen}");
    end(&mut connection).await;
    begin(&mut connection, "toolhook_app", &other.to_string()).await;
    let given = format!("update tools set tenant_id = '{acme}' where tenant_id = '{other}' returning name");
    let refused = rows(&mut connection, given).await.unwrap_err().to_string();
    assert!(refused.contains("row-level security"), "{refused}");
    end(&mut connection).await;
    connection.close().await.unwrap();
}

#[tokio::test]
async fn d05_every_key_and_reference_between_tenants_tables_carries_the_tenant() {
    let service = TestService::start().await;
    let mut connection = service.database.connect().await;
    let tables = tenants_tables(&mut connection).await;
    let keyed = "select c.conrelid::regclass::text from pg_constraint c join pg_attribute a
          on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
        where c.contype = 'p' and a.attname = 'tenant_id'";
    let keyed: BTreeSet<String> = rows(&mut connection, keyed.to_owned()).await.unwrap().into_iter().collect();
    let unkeyed: Vec<&String> = tables.iter().filter(|table| !keyed.contains(*table)).collect();
    assert!(unkeyed.is_empty(), "primary keys that do not start with the tenant: {unkeyed:?}");
    // Of those between two such tables, or to the tenants themselves: the first pair of columns is the tenant's.
    let loose = "select c.conrelid::regclass || '.' || c.conname from pg_constraint c
          join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
          join pg_attribute f on f.attrelid = c.confrelid and f.attnum = c.confkey[1]
        where c.contype = 'f' and c.connamespace = 'public'::regnamespace
          and exists (select from pg_attribute t where t.attrelid = c.conrelid and t.attname = 'tenant_id')
          and (a.attname, f.attname) not in (('tenant_id', 'tenant_id'), ('tenant_id', 'id'))";
    assert_eq!(rows(&mut connection, loose.to_owned()).await.unwrap(), Vec::<String>::new());
    connection.close().await.unwrap();
}

/// Everything in the database that can be read, as the role that sees one tenant.
#[tokio::test]
async fn d08_nothing_in_the_catalogue_shows_one_tenant_to_another() {
    let service = TestService::start().await;
    let [acme, other] = two_tenants(&service).await;
    let mut connection = service.database.connect().await;
    connection.execute("analyze").await.unwrap(); // statistics hold values
    let everything = "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname !~ '^pg_t' order by 1";
    let everything = rows(&mut connection, everything.to_owned()).await.unwrap();
    let marks = ["planted".to_owned(), acme.to_string(), acme.simple().to_string()];
    let (mut read, mut shown) = (0, Vec::new());
    for relation in &everything {
        begin(&mut connection, "toolhook_app", &other.to_string()).await;
        if let Ok(found) = rows(&mut connection, format!("select t::text from {relation} t")).await {
            read += 1;
            let leaks = |row: &&String| marks.iter().any(|mark| row.contains(mark.as_str()));
            // Our own query stands in the list of what runs, and names no mark.
            shown.extend(found.iter().filter(leaks).map(|row| format!("{relation}: {row}")));
        }
        end(&mut connection).await;
    }
    assert!(read > 100, "only {read} of {} could be read", everything.len());
    assert!(shown.is_empty(), "{shown:#?}");
    // The walk finds what it looks for: it is there for its own tenant.
    begin(&mut connection, "toolhook_app", &acme.to_string()).await;
    for table in ["tenants", "keys", "handlers", "tools", "tool_versions", "calls", "idempotency_keys"] {
        let own = rows(&mut connection, format!("select t::text from {table} t")).await.unwrap();
        assert!(own.iter().any(|row| row.contains("planted")), "{table}: {own:?}");
    }
    end(&mut connection).await;
    // No function does for it what it may not do itself.
    let functions = "select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where n.nspname = 'public' and has_function_privilege('toolhook_app', p.oid, 'execute')
          and (p.prosecdef or p.proname <> 'id_at')";
    assert_eq!(rows(&mut connection, functions.to_owned()).await.unwrap(), Vec::<String>::new());
    connection.close().await.unwrap();
}

#[tokio::test]
async fn d08_what_one_tenant_writes_does_not_reach_another() {
    let service = TestService::start().await;
    let [acme, other] = two_tenants(&service).await;
    let mut connection = service.database.connect().await;
    let before = service.database.dump().await;
    for statement in [
        "update tenants set registry_version = 0 where id = '{acme}'",
        "delete from keys where tenant_id = '{acme}'",
        "update handlers set name = 'x' where name = 'planted'",
        "delete from tools where name = 'planted'",
        "update calls set status = 'unknown' where tenant_id = '{acme}'",
        "delete from calls where tool = 'planted'",
        "delete from idempotency_keys where key = 'planted'",
    ] {
        begin(&mut connection, "toolhook_app", &other.to_string()).await;
        let statement = statement.replace("{acme}", &acme.to_string());
        let changed = connection.execute(sqlx::raw_sql(AssertSqlSafe(statement.clone()))).await.unwrap();
        assert_eq!(changed.rows_affected(), 0, "{statement}");
        connection.execute("commit").await.unwrap();
    }
    for denied in [
        "truncate tools cascade",
        "delete from tenants",
        "update tenants set limits = '{}'",
        "select * from operator_keys",
        "select * from departed_tenants",
        "select * from calls_default",
        "alter table tools disable row level security",
        "select calls_drop_before(now()::date + 9)",
    ] {
        begin(&mut connection, "toolhook_app", &other.to_string()).await;
        let refused = connection.execute(denied).await.unwrap_err().to_string();
        assert!(refused.contains("permission denied") || refused.contains("must be owner"), "{denied}: {refused}");
        end(&mut connection).await;
    }
    // What serves all tenants reads no results, and no definitions.
    for denied in
        ["select result from calls", "select * from tools", "update handlers set name = 'x'", "delete from calls"]
    {
        begin(&mut connection, "toolhook_system", "").await;
        let refused = connection.execute(denied).await.unwrap_err().to_string();
        assert!(refused.contains("permission denied"), "{denied}: {refused}");
        end(&mut connection).await;
    }
    assert_eq!(service.database.dump().await, before);
    connection.close().await.unwrap();
}

#[tokio::test]
async fn d08_row_level_security_is_forced_on_every_table_and_partition() {
    let service = TestService::start().await;
    let mut connection = service.database.connect().await;
    connection.execute("select calls_add_day(current_date + 30)").await.unwrap();
    let open =
        "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
        and relname <> '_sqlx_migrations' and not (relrowsecurity and relforcerowsecurity)";
    assert_eq!(rows(&mut connection, open.to_owned()).await.unwrap(), Vec::<String>::new());
    let partitions = "select relname::text from pg_class where relispartition and relkind = 'r'";
    assert!(rows(&mut connection, partitions.to_owned()).await.unwrap().len() >= 6);
    let store = connect_with(&service.database.url(), 1).await;
    assert_eq!(walls::breaches(&store).await.unwrap(), []);
    connection.close().await.unwrap();
}

#[tokio::test]
async fn d09_the_same_call_id_and_key_in_two_tenants_are_two_calls() {
    let service = TestService::start().await;
    let receiver = Receiver::weather().await;
    let mut answers = Vec::new();
    for name in ["acme", "other"] {
        let tenant = service.tenant(name).await;
        let handler = json!({"kind": "webhook", "url": receiver.url(), "headers": {"x-whose": name}});
        tenant.editor.post("/v1/tools", &tool("t", &handler, &json!({}))).await.with(201);
        let reply = json!({"reply": [{"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"city": name}}]});
        let keyed = tenant.agent.with("idempotency-key", "one");
        let first = keyed.post("/v1/formats/anthropic/calls", &reply).await.with(200);
        assert_eq!(first["calls"][0]["replayed"], false, "{name}");
        assert_eq!(keyed.post("/v1/formats/anthropic/calls", &reply).await.with(200)["calls"][0]["replayed"], true);
        answers.push(first["calls"][0]["id"].clone());
    }
    assert_ne!(answers[0], answers[1]);
    let whose: Vec<Option<String>> =
        receiver.seen().iter().map(|seen| seen.header("x-whose").map(str::to_owned)).collect();
    assert_eq!(whose, [Some("acme".to_owned()), Some("other".to_owned())]);
}

/// A handler's name that another tenant has is free.
#[tokio::test]
async fn d06_no_name_is_taken_by_another_tenant() {
    let service = TestService::start().await;
    for name in ["acme", "other"] {
        let tenant = service.tenant(name).await;
        tenant
            .editor
            .post("/v1/handlers", &json!({"name": "h", "kind": "webhook", "url": webhook()["url"]}))
            .await
            .with(201);
        tenant.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    }
}
