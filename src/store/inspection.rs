//! What `toolhook doctor` asks of a database: facts of the whole, which only operators get to see.

use super::seal::Place;
use super::{MIGRATIONS, Store, StoreError};
use time::OffsetDateTime;

/// How many sealed values, and how many webhooks, are looked at.
const SAMPLE: i64 = 20;

/// The server.
#[derive(Debug)]
pub struct Server {
    /// Such as 150004.
    pub version_number: i32,
    /// Such as `15.4`.
    pub version: String,
    /// Its clock.
    pub now: OffsetDateTime,
    /// Whether it only follows another, and so takes no writes.
    pub standby: bool,
    /// The most connections that it takes from everybody together.
    pub most_connections: i32,
}

/// Who we log in as.
#[derive(Debug)]
pub struct Login {
    /// Its name.
    pub name: String,
    /// Whether it may do everything, or is held by no row-level policy.
    pub unbounded: bool,
    /// Whether it owns the tables, and so can open them.
    pub owner: bool,
    /// Whether it may make tables, which migrations do.
    pub may_create: bool,
    /// The tables that it may read without taking a role.
    pub open_tables: Vec<String>,
}

/// How the schema stands to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// So many migrations are still to be made.
    Behind(usize),
    /// It fits.
    UpToDate,
    /// A newer program has been here.
    Ahead,
}

/// A key that ends soon.
#[derive(Debug)]
pub struct Expiring {
    /// Whose it is; `None` for an operator's.
    pub tenant: Option<String>,
    /// Its public id.
    pub id: String,
    /// When it ends, or ended.
    pub expires_at: OffsetDateTime,
}

/// Looks at the server.
pub async fn server(store: &Store) -> Result<Server, StoreError> {
    let facts = sqlx::query!(
        r#"select current_setting('server_version_num')::int as "version_number!",
             current_setting('server_version') as "version!", clock_timestamp() as "now!",
             pg_is_in_recovery() as "standby!", current_setting('max_connections')::int as "most_connections!""#
    );
    let mut login = store.as_login().await?;
    let facts = facts.fetch_one(&mut *login).await?;
    login.commit().await?;
    let version = facts.version.split_whitespace().next().unwrap_or_default().to_owned();
    Ok(Server {
        version_number: facts.version_number,
        version,
        now: facts.now,
        standby: facts.standby,
        most_connections: facts.most_connections,
    })
}

/// Looks at the login.
pub async fn login(store: &Store) -> Result<Login, StoreError> {
    let facts = sqlx::query_as!(
        Login,
        r#"select rolname::text as "name!", (rolsuper or rolbypassrls) as "unbounded!",
             exists (select from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
               and relowner = r.oid and relname <> '_sqlx_migrations') as "owner!",
             has_schema_privilege(current_user, 'public', 'create') as "may_create!",
             array(select relname::text from pg_class
               where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> '_sqlx_migrations'
                 and has_any_column_privilege(current_user, oid, 'select') order by 1) as "open_tables!"
           from pg_roles r where rolname = current_user"#
    );
    let mut asking = store.as_login().await?;
    let login = facts.fetch_one(&mut *asking).await?;
    asking.commit().await?;
    Ok(login)
}

/// Looks at the schema.
pub async fn schema(store: &Store) -> Result<Schema, StoreError> {
    let known = sqlx::query_scalar!(
        r#"select coalesce(has_table_privilege(to_regclass('public._sqlx_migrations'), 'select'), false) as "known!""#
    );
    let mut login = store.as_login().await?;
    let applied = if known.fetch_one(&mut *login).await? {
        let applied = sqlx::query_scalar!("select version from _sqlx_migrations where success");
        applied.fetch_all(&mut *login).await?
    } else {
        Vec::new()
    };
    login.commit().await?;
    let ours: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.version).collect();
    let missing = ours.iter().filter(|version| !applied.contains(version)).count();
    let newer = applied.iter().any(|version| ours.iter().all(|known| known < version));
    Ok(match missing {
        0 if newer => Schema::Ahead,
        0 => Schema::UpToDate,
        _ => Schema::Behind(missing),
    })
}

/// Opens some of the sealed values: how many were opened, and how many could not be.
pub async fn sealed(store: &Store) -> Result<(usize, usize), StoreError> {
    let rows = sqlx::query!(
        r#"select tenant_id, id, signing_secret as "sealed!" from handlers where signing_secret is not null
           order by updated_at desc limit $1"#,
        SAMPLE
    );
    let mut reading = store.system().await?;
    let rows = rows.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    let (mut opened, mut closed) = (0, 0);
    for row in rows {
        let place = Place { table: "handlers", column: "signing_secret", tenant: row.tenant_id, row: row.id };
        match store.vault.open(place, &row.sealed) {
            Ok(_) => opened += 1,
            Err(_) => closed += 1,
        }
    }
    Ok((opened, closed))
}

/// Lists the keys that end before this time, those that have ended in the month before now as well.
pub async fn expiring(store: &Store, before: OffsetDateTime) -> Result<Vec<Expiring>, StoreError> {
    let rows = sqlx::query_as!(
        Expiring,
        r#"select t.name as "tenant?", k.id as "id!", k.expires_at as "expires_at!"
           from keys k join tenants t on t.id = k.tenant_id
           where k.expires_at between now() - interval '30 days' and $1
           union all
           select null, id, expires_at from operator_keys where expires_at between now() - interval '30 days' and $1
           order by 3 limit 20"#,
        before
    );
    let mut reading = store.system().await?;
    let rows = rows.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    Ok(rows)
}

/// Whether some operator has a key that works.
pub async fn has_operator(store: &Store) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar!(
        r#"select exists (select from operator_keys where expires_at is null or expires_at > now()) as "found!""#
    );
    let mut reading = store.system().await?;
    let found = found.fetch_one(&mut *reading).await?;
    reading.commit().await?;
    Ok(found)
}

/// The URLs of some webhooks, each with another host.
pub async fn webhooks(store: &Store) -> Result<Vec<String>, StoreError> {
    let urls = sqlx::query_scalar!(
        r#"select min(url) as "url!" from (select settings #>> '{kind,webhook,url}' as url from handlers) w
           where url is not null group by split_part(url, '/', 3) order by 1 limit $1"#,
        SAMPLE
    );
    let mut reading = store.system().await?;
    let urls = urls.fetch_all(&mut *reading).await?;
    reading.commit().await?;
    Ok(urls)
}
