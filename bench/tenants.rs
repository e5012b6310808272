//! Many tenants: what each costs in memory, and whether a process that keeps only some of them stays small and quick.

use std::fmt::Write as _;

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::time::Instant;

use crate::connection::{Connection, Wire};
use crate::cost::resident_kib;
use crate::figures::{Section, millis, percentile};
use crate::process::{Scratch, Server};
use crate::service::{Database, Tenant, address};

/// How many tools each tenant has.
const TOOLS: usize = 10;
/// How many tenants come again and again, where there are more than are kept.
const ACTIVE: usize = 1_000;
/// How many of them are kept there.
const KEPT: usize = 2_000;

/// Measures a process that keeps all tenants, once with tools that all have from one catalogue and once with tools of their
/// own, and one that keeps some.
pub(crate) async fn measure(quick: bool) -> Section {
    let tenants = if quick { 1_000 } else { 5_000 };
    let (active, kept) = if quick { (ACTIVE / 10, KEPT / 10) } else { (ACTIVE, KEPT) };
    let scratch = Scratch::within("/var/tmp".into());
    let database = Database::start(&scratch);
    let operator = database.run(&["keys", "create", "--role", "operator"]);
    {
        let server = Server::start(&scratch, &mut database.serve());
        let model = Tenant::make(&database, &server, "model", &json!({}));
        model.handler("weather", "https://hooks.example.com/weather");
        for number in 0..TOOLS {
            model.tool_of(&format!("tool_{number}"), "weather");
        }
    }
    multiply(&database.url, tenants).await;

    let mut text = format!(
        "{tenants} tenants with {TOOLS} small tools each; every one's list was fetched once. Resident memory, and of that what came \
         with the tenants.\n\n| | before | after | for each tenant | target |\n| --- | --- | --- | --- | --- |\n"
    );
    for (kind, told) in [("same", "tools that are the same everywhere"), ("own", "tools of their own")] {
        let server = Server::start(&scratch, &mut database.serve());
        let caller = Caller { address: address(&server), operator: operator.clone() };
        caller.lists(["model".to_owned()].into_iter()).await;
        let before = resident_kib(server.pid());
        caller.lists((1..=tenants).map(|number| format!("{kind}-{number}"))).await;
        let after = resident_kib(server.pid());
        let each = kib(after.saturating_sub(before)) / kib(tenants as u64);
        println!("{told}: {each:.1} KiB for each tenant");
        let _ = writeln!(text, "| {told} | {} | {} | {each:.1} KiB | ≤ 40 KiB |", mib(before), mib(after));
    }
    text.push_str(&of_many(&scratch, &database, &operator, (tenants, active, kept)).await);
    Section { title: "Many tenants", text }
}

/// A process that keeps fewer tenants than there are.
async fn of_many(
    scratch: &Scratch,
    database: &Database,
    operator: &str,
    (tenants, active, kept): (usize, usize, usize),
) -> String {
    let server = Server::start(scratch, database.serve().env("TOOLHOOK_CACHED_TENANTS", kept.to_string()));
    let caller = Caller { address: address(&server), operator: operator.to_owned() };
    let all = |from: usize| (from..=tenants).map(|number| format!("own-{number}"));
    caller.lists(all(1).take(kept)).await;
    let full = resident_kib(server.pid());
    caller.lists(all(kept + 1)).await;
    caller.lists(all(1)).await;
    let walked = resident_kib(server.pid());
    // Those that come again: not in memory at first, since all the others came after them.
    let mut first = caller.lists(all(1).take(active)).await;
    let mut again = Vec::new();
    for _ in 0..5 {
        again.extend(caller.lists(all(1).take(active)).await);
    }
    let mut text = format!(
        "\nWith `TOOLHOOK_CACHED_TENANTS={kept}`, tools of their own: {} once {kept} tenants are in memory, {} after all {tenants} came \
         twice. Then {active} of them come again and again, one request at a time:\n\n| list | p50 | p99 |\n| --- | --- | --- |\n",
        mib(full),
        mib(walked)
    );
    for (told, micros) in [("the first of each", &mut first), ("the five after it", &mut again)] {
        let (p50, p99) = (percentile(micros, 50.0), percentile(micros, 99.0));
        let _ = writeln!(text, "| {told} | {} | {} |", millis(p50), millis(p99));
    }
    text
}

/// An operator who acts for one tenant after the other.
struct Caller {
    address: String,
    operator: String,
}

impl Caller {
    /// Fetches the list of each; says how long each took, in microseconds.
    async fn lists(&self, tenants: impl Iterator<Item = String>) -> Vec<u64> {
        let mut connection = Connection::open(&self.address).await;
        let mut micros = Vec::new();
        for tenant in tenants {
            let headers = [("toolhook-tenant", tenant.as_str())];
            let request = Wire::get("/v1/formats/anthropic/tools", &self.operator, &headers);
            let began = Instant::now();
            assert_eq!(connection.send(&request).await.unwrap(), 200, "{tenant}");
            micros.push(u64::try_from(began.elapsed().as_micros()).unwrap());
        }
        micros
    }
}

/// Makes tenants like the model: by rows, since this is about reading them. `same-N` have its tools word for word but for a
/// property's name that is each tool's own, `own-N` have properties that nobody else has.
async fn multiply(url: &str, tenants: usize) {
    let model = "(select id from tenants where name = 'model')";
    let statements = format!(
        "insert into tenants (id, name, limits)
           select gen_random_uuid(), kind || '-' || n, m.limits
           from tenants m, unnest(array['same', 'own']) kind, generate_series(1, {tenants}) n where m.name = 'model';
         insert into handlers (tenant_id, id, name, settings)
           select t.id, gen_random_uuid(), h.name, h.settings from tenants t, handlers h
           where t.name <> 'model' and h.tenant_id = {model};
         insert into tools (tenant_id, name, version, description, input_schema, options, limits, tags, enabled, handler_id)
           select t.id, m.name, 1, m.description,
             replace(m.input_schema::text, '\"city\"',
               '\"city_' || m.name || case when t.name like 'own-%' then '_' || t.name else '' end || '\"')::json,
             m.options, m.limits, m.tags, m.enabled, h.id
           from tenants t join handlers h on h.tenant_id = t.id, tools m
           where t.name <> 'model' and m.tenant_id = {model};
         analyze;"
    );
    let mut connection = PgConnection::connect(url).await.unwrap();
    connection.execute(sqlx::raw_sql(AssertSqlSafe(statements))).await.unwrap();
    connection.close().await.unwrap();
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn kib(count: u64) -> f64 {
    count as f64
}

fn mib(kibibytes: u64) -> String {
    format!("{:.1} MiB", kib(kibibytes) / 1024.0)
}
