//! `/v1/audit`: every change leaves its row, and no row is ever another.

use crate::support::{Answer, Client, Tenant, TestService, operations, tool, webhook};
use futures_util::future::{join_all, join3};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a client reads, texts as they are.
#[derive(Deserialize)]
struct List {
    data: Vec<Box<RawValue>>,
}

fn sha256(text: &str) -> String {
    let hex: Vec<String> = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    hex.concat()
}

/// The hash of what a GET shows, as the reference describes it.
fn content_hash(text: &str) -> String {
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap();
    members.retain(|name, _| !["version", "created_at", "updated_at", "warnings", "key"].contains(&name.as_str()));
    sha256(&serde_json::to_string(&members).unwrap())
}

/// A chain, the oldest row first: held against its own hashes, its numbers, and its hashes of content.
async fn chain(reader: &Client, query: &str) -> Vec<Value> {
    let answer = reader.get(&format!("/v1/audit?limit=200{query}")).await;
    answer.with(200);
    let mut list: List = serde_json::from_str(answer.text()).unwrap();
    list.data.reverse();
    let mut previous = "0".repeat(64);
    let mut known: HashMap<(String, String), Value> = HashMap::new();
    let mut rows = Vec::new();
    for (raw, number) in list.data.iter().zip(1..) {
        let row: Value = serde_json::from_str(raw.get()).unwrap();
        let hash = row["hash"].as_str().unwrap().to_owned();
        let hashed = raw.get().strip_suffix(&format!(",\"hash\":\"{hash}\"}}")).unwrap();
        assert_eq!(sha256(&format!("{hashed}}}")), hash, "{row}");
        assert_eq!((&row["sequence"], &row["previous_hash"]), (&json!(number), &json!(previous)), "{row}");
        previous = hash;
        let thing = (row["kind"].to_string(), row["name"].to_string());
        let before = known.insert(thing, row["after_hash"].clone()).unwrap_or_default();
        assert_eq!(row["before_hash"], before, "another state than the last change left: {row}");
        rows.push(row);
    }
    rows
}

/// Watches both chains while things are written.
struct Watch {
    /// Reads the tenant's chain by its id, which works when the tenant is gone too.
    operator: Client,
    chain: String,
    seen: (usize, usize),
    routes: BTreeSet<(String, String)>,
}

impl Watch {
    async fn of(service: &TestService, tenant: &str) -> Self {
        let operator = service.operator();
        let rows = chain(&operator, "").await;
        let made = rows.iter().rfind(|row| row["name"] == tenant).unwrap();
        let chain = made["tenant_chain"].as_str().unwrap().to_owned();
        let mut watch = Self { operator, chain, seen: (0, 0), routes: BTreeSet::new() };
        watch.new_rows().await;
        watch
    }

    /// The rows that came since the last time, in the tenant's chain and in the operators'.
    async fn new_rows(&mut self) -> (Vec<Value>, Vec<Value>) {
        let mut own = chain(&self.operator, &format!("&chain={}", self.chain)).await;
        let mut operators = chain(&self.operator, "").await;
        let new = (own.split_off(self.seen.0), operators.split_off(self.seen.1));
        self.seen = (self.seen.0 + new.0.len(), self.seen.1 + new.1.len());
        new
    }

    /// Holds a write of a route to one row in the tenant's chain, and as many in the operators'; answers that row.
    async fn wrote(&mut self, method: &str, path: &str, operators: usize) -> Value {
        self.routes.insert((method.to_owned(), path.to_owned()));
        let (own, theirs) = self.new_rows().await;
        assert_eq!((own.len(), theirs.len()), (1, operators), "{method} {path}: {own:#?} {theirs:#?}");
        own[0].clone()
    }

    async fn wrote_nothing(&mut self, what: &str) {
        let (own, theirs) = self.new_rows().await;
        assert!(own.is_empty() && theirs.is_empty(), "{what}: {own:#?} {theirs:#?}");
    }
}

/// Holds a row against its words and against what a GET shows after the change.
fn check(row: &Value, words: [&str; 3], version: &Value, after: Option<&Answer>) {
    assert_eq!([&row["kind"], &row["name"], &row["action"]], words.map(|word| json!(word)).each_ref(), "{row}");
    assert_eq!(row["version"], *version, "{row}");
    let after = after.map_or(Value::Null, |answer| json!(content_hash(answer.text())));
    assert_eq!(row["after_hash"], after, "{row}");
    assert!(row["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{row}");
}

#[tokio::test]
async fn every_write_route_leaves_one_row_with_what_was_and_what_is() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let mut watch = Watch::of(&service, "acme").await;
    tenant_writes(&service, &mut watch).await;
    handler_writes(&acme, &mut watch).await;
    tool_writes(&acme, &mut watch).await;
    key_writes(&acme, &mut watch).await;
    service.operator().delete("/v1/tenants/acme").await.with(204);
    let row = watch.wrote("DELETE", "/v1/tenants/{tenant}", 1).await;
    check(&row, ["tenant", "acme", "deleted"], &Value::Null, None);
    assert_eq!(row["tenant_chain"], row["chain"]);

    let runs = [
        "/v1/tools/{name}/calls",
        "/v1/formats/{format}/calls",
        "/v1/calls/{id}/cancel",
        "/v1/callbacks/{token}",
        "/mcp",
    ];
    let writes = operations().into_iter().filter(|operation| operation.method != "GET");
    let writes = writes.filter(|operation| !runs.contains(&operation.path.as_str()));
    let writes: BTreeSet<_> = writes.map(|operation| (operation.method, operation.path)).collect();
    assert_eq!(watch.routes, writes, "a route that writes is not watched here");
}

async fn tenant_writes(service: &TestService, watch: &mut Watch) {
    let operator = service.operator();
    operator.put("/v1/tenants/acme", &json!({"limits": {"tools": 9}})).await.with(200);
    let row = watch.wrote("PUT", "/v1/tenants/{tenant}", 1).await;
    let shown = operator.get("/v1/tenants/acme").await;
    check(&row, ["tenant", "acme", "updated"], &Value::Null, Some(&shown));
    assert_eq!((&row["changed"], &row["role"]), (&json!(["limits"]), &json!("operator")));
    operator.put("/v1/tenants/acme", &json!({"limits": {"tools": 9}})).await.with(200);
    watch.wrote_nothing("the same again").await;
    assert_eq!(operator.get("/v1/tenants/acme").await.body, shown.body);
    operator.patch("/v1/tenants/acme", &json!({"display_name": "Acme"})).await.with(200);
    let row = watch.wrote("PATCH", "/v1/tenants/{tenant}", 1).await;
    assert_eq!(row["changed"], json!(["display_name"]));
    // A new tenant begins a chain of its own, and is told of in the operators'.
    operator.put("/v1/tenants/other", &json!({})).await.with(201);
    let (own, operators) = watch.new_rows().await;
    assert_eq!((own.len(), operators.len()), (0, 1));
    let shown = operator.get("/v1/tenants/other").await;
    check(&operators[0], ["tenant", "other", "created"], &Value::Null, Some(&shown));
    let theirs = chain(&operator.with("toolhook-tenant", "other"), "").await;
    check(&theirs[0], ["tenant", "other", "created"], &Value::Null, Some(&shown));
}

async fn handler_writes(acme: &Tenant, watch: &mut Watch) {
    let (editor, route) = (&acme.editor, "/v1/handlers/{name}");
    let secret = json!({"kind": "webhook", "url": "https://hooks.example.com/x", "headers": {"x-key": "a"}});
    editor.put("/v1/handlers/h", &secret).await.with(201);
    let row = watch.wrote("PUT", route, 0).await;
    check(&row, ["handler", "h", "created"], &json!(1), Some(&editor.get("/v1/handlers/h").await));
    assert_eq!((&row["secrets_changed"], &row["role"]), (&json!(true), &json!("editor")));
    editor.put("/v1/handlers/h", &secret).await.with(200);
    watch.wrote_nothing("the same again").await;
    assert_eq!(editor.get("/v1/handlers/h").await.with(200)["version"], 1);
    editor.patch("/v1/handlers/h", &json!({"timeout_ms": 5000})).await.with(200);
    let row = watch.wrote("PATCH", route, 0).await;
    check(&row, ["handler", "h", "updated"], &json!(2), Some(&editor.get("/v1/handlers/h").await));
    assert_eq!((&row["changed"], &row["secrets_changed"]), (&json!(["timeout_ms"]), &json!(false)));
    editor.patch("/v1/handlers/h", &json!({"headers": {"x-key": "b"}})).await.with(200);
    let row = watch.wrote("PATCH", route, 0).await;
    assert_eq!((&row["changed"], &row["secrets_changed"]), (&json!([]), &json!(true)), "only the secret is another");
    assert_eq!(row["before_hash"], row["after_hash"], "a secret is in no hash");
    editor.send("POST", "/v1/handlers/h/rotate-secret", None).await.with(200);
    let row = watch.wrote("POST", "/v1/handlers/{name}/rotate-secret", 0).await;
    check(&row, ["handler", "h", "secret_rotated"], &json!(4), Some(&editor.get("/v1/handlers/h").await));
    assert_eq!(row["secrets_changed"], true);
    editor.delete("/v1/handlers/h").await.with(204);
    check(&watch.wrote("DELETE", route, 0).await, ["handler", "h", "deleted"], &json!(4), None);
    editor.post("/v1/handlers", &json!({"name": "g", "kind": "webhook", "url": "https://x.example/"})).await.with(201);
    let row = watch.wrote("POST", "/v1/handlers", 0).await;
    check(&row, ["handler", "g", "created"], &json!(1), Some(&editor.get("/v1/handlers/g").await));
}

async fn tool_writes(acme: &Tenant, watch: &mut Watch) {
    let (editor, route) = (&acme.editor, "/v1/tools/{name}");
    // A handler that is written inside a tool is part of it: one row tells of both.
    let more = json!({"tags": ["a"], "strict": true, "max_result_chars": "unlimited", "input_examples": [{"city": "x"}],
        "output_schema": {"type":  "object"}, "provider_options": {"gemini": {"x": 1.50}}, "allowed_callers": ["human"]});
    editor.post("/v1/tools", &tool("t", &webhook(), &more)).await.with(201);
    let row = watch.wrote("POST", "/v1/tools", 0).await;
    check(&row, ["tool", "t", "created"], &json!(1), Some(&editor.get("/v1/tools/t").await));
    assert_eq!(row["secrets_changed"], true, "it has a signing secret of its own");
    editor.put("/v1/tools/t", &tool("t", &webhook(), &more)).await.with(200);
    watch.wrote_nothing("the same again").await;
    editor.put("/v1/tools/t", &tool("t", &json!("g"), &json!({}))).await.with(200);
    let row = watch.wrote("PUT", route, 0).await;
    check(&row, ["tool", "t", "updated"], &json!(2), Some(&editor.get("/v1/tools/t").await));
    let names =
        ["allowed_callers", "handler", "input_examples", "max_result_chars", "output_schema", "provider_options"];
    assert_eq!(row["changed"], json!([&names[..], &["strict", "tags"]].concat()));
    assert_eq!(row["secrets_changed"], true, "its own handler's are gone");
    editor.patch("/v1/tools/t", &json!({"description": "Poisoned"})).await.with(200);
    let row = watch.wrote("PATCH", route, 0).await;
    check(&row, ["tool", "t", "updated"], &json!(3), Some(&editor.get("/v1/tools/t").await));
    assert_eq!((&row["changed"], &row["secrets_changed"]), (&json!(["description"]), &json!(false)));
    let past = row["before_hash"].clone();
    editor.send("POST", "/v1/tools/t/versions/2/restore", None).await.with(200);
    let row = watch.wrote("POST", "/v1/tools/{name}/versions/{n}/restore", 0).await;
    check(&row, ["tool", "t", "restored"], &json!(4), Some(&editor.get("/v1/tools/t").await));
    assert_eq!(row["after_hash"], past, "the same content has the same hash");
    editor.send("POST", "/v1/tools/t/versions/4/restore", None).await.with(200);
    watch.wrote_nothing("a restore of what is there").await;
    editor.delete("/v1/tools/t").await.with(204);
    check(&watch.wrote("DELETE", route, 0).await, ["tool", "t", "deleted"], &json!(4), None);
    editor.delete("/v1/tools/t").await.problem(404, "not_found");
    editor.post("/v1/tools", &tool("t", &json!("nobody"), &json!({}))).await.problem(422, "invalid_body");
    watch.wrote_nothing("refused writes").await;
}

async fn key_writes(acme: &Tenant, watch: &mut Watch) {
    let body = json!({"role": "viewer", "name": "a dashboard", "expires_at": "2099-01-02T03:04:05.678901234Z"});
    let made = acme.admin.post("/v1/keys", &body).await;
    let id = made.with(201)["id"].as_str().unwrap().to_owned();
    let row = watch.wrote("POST", "/v1/keys", 0).await;
    check(&row, ["key", &id, "created"], &Value::Null, Some(&made));
    assert_eq!(row["role"], "admin");
    acme.admin.delete(&format!("/v1/keys/{id}")).await.with(204);
    check(&watch.wrote("DELETE", "/v1/keys/{id}", 0).await, ["key", &id, "revoked"], &Value::Null, None);
    acme.admin.delete(&format!("/v1/keys/{id}")).await.problem(404, "not_found");
    watch.wrote_nothing("a key that is not there").await;
}

#[tokio::test]
async fn a_trail_is_read_by_its_tenants_admins_and_by_operators_in_pages_and_by_filters() {
    let service = TestService::start().await;
    let (acme, other) = (service.tenant("acme").await, service.tenant("other").await);
    let by = acme.editor.with("x-request-id", "req-7");
    by.put("/v1/handlers/secret_h", &webhook()).await.with(201);
    by.post("/v1/tools", &tool("t", &json!("secret_h"), &json!({}))).await.with(201);
    acme.editor.patch("/v1/tools/t", &json!({"enabled": false})).await.with(200);
    let rows = chain(&acme.admin, "").await;
    assert_eq!(rows.len(), 1 + 4 + 3, "the tenant, its keys, and what was written: {rows:#?}");
    assert_eq!(rows[5]["request_id"], "req-7");
    assert_eq!(chain(&acme.operator, "").await, rows);
    let theirs = chain(&other.admin, "").await;
    assert!(theirs.iter().all(|row| row["chain"] != rows[0]["chain"] && row["name"] != "secret_h"), "{theirs:#?}");
    acme.admin.with("toolhook-tenant", "other").get("/v1/audit").await.problem(404, "not_found");
    // Only who may read every chain may name one.
    let foreign = format!("/v1/audit?chain={}", theirs[0]["chain"].as_str().unwrap());
    for asker in [&acme.admin, &acme.operator] {
        asker.get(&foreign).await.problem(400, "invalid_query");
    }
    let all = chain(&service.operator(), "").await;
    assert_eq!(all[0]["actor"], "cli", "the first key was made beside the API: {}", all[0]);
    assert!(all.iter().all(|row| row["chain"] == "00000000-0000-0000-0000-000000000000"));

    let editor = rows[5]["actor"].as_str().unwrap();
    let (third, last) = (rows[2]["at"].as_str().unwrap(), rows[7]["at"].as_str().unwrap());
    for (query, numbers) in [
        ("kind=tool".to_owned(), vec![8, 7]),
        ("kind=tool&action=created".to_owned(), vec![7]),
        ("name=secret_h".to_owned(), vec![6]),
        (format!("actor={editor}"), vec![8, 7, 6]),
        ("actor=cli".to_owned(), vec![]),
        (format!("since={last}"), vec![8]),
        (format!("until={third}"), vec![2, 1]),
    ] {
        let found = acme.admin.get(&format!("/v1/audit?{query}")).await.with(200);
        let found: Vec<i64> =
            found["data"].as_array().unwrap().iter().map(|row| row["sequence"].as_i64().unwrap()).collect();
        assert_eq!(found, numbers, "{query}");
    }
    for bad in ["kind=boat", "action=done", "since=now", "cursor=MA", "name=%00"] {
        acme.admin.get(&format!("/v1/audit?{bad}")).await.problem(400, "invalid_query");
    }
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = acme.admin.get(&format!("/v1/audit?limit=3{cursor}")).await.with(200);
        paged.extend(page["data"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    paged.reverse();
    assert_eq!(paged, rows);
}

#[tokio::test]
async fn writers_at_the_same_time_make_one_chain_without_gaps() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let (operator, paths) = (service.operator(), (0..8).map(|n| format!("/v1/tools/t{n}")).collect::<Vec<_>>());
    let tools = paths.iter().map(async |path| {
        let name = path.rsplit('/').next().unwrap();
        acme.editor.put(path, &tool(name, &webhook(), &json!({}))).await.with(201);
        acme.editor.delete(path).await.with(204);
    });
    let keys = (0..8).map(async |_| {
        acme.admin.post("/v1/keys", &json!({"role": "agent"})).await.with(201);
    });
    let tenants = (0..4).map(async |n| {
        operator.patch("/v1/tenants/acme", &json!({"display_name": format!("Acme {n}")})).await.with(200);
        operator.put(&format!("/v1/tenants/n{n}"), &json!({})).await.with(201);
    });
    join3(join_all(tools), join_all(keys), join_all(tenants)).await;
    assert_eq!(chain(&acme.admin, "").await.len(), 5 + 16 + 8 + 4);
    assert_eq!(chain(&operator, "").await.len(), 2 + 4 + 4);
}

#[tokio::test]
async fn a_tool_that_cannot_be_read_leaves_its_row_too() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    service.database.execute("update tools set input_schema = '{\"type\": \"nonsense\"}'").await;
    acme.editor.delete("/v1/tools/t").await.with(204);
    let row = &acme.admin.get("/v1/audit?limit=1").await.with(200)["data"][0];
    assert_eq!(
        (&row["action"], &row["before_hash"], &row["after_hash"]),
        (&json!("deleted"), &Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn k01_nobody_updates_deletes_or_truncates_the_trail() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let before = chain(&acme.admin, "").await;
    for statement in [
        "update audit set actor = 'nobody'",
        "update audit set actor = 'nobody' where false",
        "delete from audit",
        "delete from audit where sequence > 2",
        "truncate audit",
        "truncate audit, audit_chains",
        "truncate audit_chains",
        "delete from audit_chains",
        "update audit_chains set sequence = 0, hash = repeat('0', 64)",
        "update audit_chains set hash = repeat('0', 64)",
        // Nor is a row put where it does not follow the last one.
        "insert into audit select (jsonb_populate_record(a, '{\"sequence\": 9}')).* from audit a where sequence = 1",
        "insert into audit select (jsonb_populate_record(a, '{\"sequence\": 6}')).* from audit a where sequence = 5",
    ] {
        // As the owner of the tables, whom no grant holds.
        let refused = service.database.refused(statement).await;
        assert!(refused.contains("audit trail"), "{statement}: {refused}");
    }
    assert_eq!(chain(&acme.admin, "").await, before);
}

/// One request for each way to change something.
async fn write_everything(acme: &Tenant, operator: &Client, status: Option<u16>) {
    let key = acme.admin.get("/v1/keys?limit=1").await.with(200)["data"][0]["id"].as_str().unwrap().to_owned();
    let (editor, admin) = (&acme.editor, &acme.admin);
    let new = tool("new", &webhook(), &json!({}));
    for answer in [
        operator.put("/v1/tenants/new", &json!({})).await,
        operator.patch("/v1/tenants/acme", &json!({"display_name": "Other"})).await,
        editor.put("/v1/handlers/new", &webhook()).await,
        editor.patch("/v1/handlers/h", &json!({"timeout_ms": 7})).await,
        editor.send("POST", "/v1/handlers/h/rotate-secret", None).await,
        editor.post("/v1/tools", &new).await,
        editor.patch("/v1/tools/t", &json!({"description": "Other"})).await,
        editor.send("POST", "/v1/tools/t/versions/1/restore", None).await,
        editor.delete("/v1/tools/t").await,
        editor.delete("/v1/handlers/unused").await,
        admin.post("/v1/keys", &json!({"role": "viewer"})).await,
        // A viewer's or some other key that is not needed below, if the time has come.
        if status.is_some() { admin.delete(&format!("/v1/keys/{key}")).await } else { admin.get("/v1/keys").await },
        operator.delete("/v1/tenants/acme").await,
    ] {
        match status {
            Some(status) => assert_eq!(answer.status, status, "{}", answer.text()),
            None => assert!(answer.status < 300, "{}", answer.text()),
        }
    }
}

#[tokio::test]
async fn k02_a_change_without_its_row_is_impossible() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for name in ["h", "unused"] {
        acme.editor.put(&format!("/v1/handlers/{name}"), &webhook()).await.with(201);
    }
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    acme.editor.patch("/v1/tools/t", &json!({"description": "Second"})).await.with(200);
    let before = service.database.dump().await;
    for (when, failure) in [
        ("before", "raise exception 'the disk is full' using errcode = '53100';"),
        // The row is there, and the transaction dies before its end.
        ("after", "perform pg_terminate_backend(pg_backend_pid());"),
    ] {
        let trigger = format!(
            "create or replace function fail() returns trigger language plpgsql security definer as $$ begin {failure} return new; end $$;
             create trigger a_failure {when} insert on audit for each row execute function fail()"
        );
        service.database.execute(&trigger).await;
        write_everything(&acme, &service.operator(), Some(503)).await;
        service.database.execute("drop trigger a_failure on audit").await;
        assert_eq!(service.database.dump().await, before, "{when}");
    }
    let rows = chain(&acme.admin, "").await.len();
    write_everything(&acme, &service.operator(), None).await;
    let own = chain(&service.operator(), "").await;
    let id = own.iter().find(|row| row["name"] == "acme").unwrap()["tenant_chain"].as_str().unwrap();
    assert_eq!(chain(&service.operator(), &format!("&chain={id}")).await.len(), rows + 11);
}
