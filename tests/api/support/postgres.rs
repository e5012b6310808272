//! One private Postgres for the whole run, and a database of its own for every test.

use sqlx::{AssertSqlSafe, Connection, Executor as _, PgConnection};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::{Mutex, OnceCell};
use toolhook::cli::postgres::{EmbeddedPostgres, Options, Search};
use toolhook::store::{MasterKey, Store, Vault};

const TEMPLATE: &str = "toolhook_template";

struct Cluster {
    server: EmbeddedPostgres,
    template: OnceCell<()>,
    /// Makers of databases take turns: a template must not be in use while it is copied.
    turn: Mutex<()>,
}

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let data_dir = scratch();
        let server = EmbeddedPostgres::start(&options(&data_dir)).unwrap();
        leave_nothing(server.pid(), &data_dir);
        Cluster { server, template: OnceCell::new(), turn: Mutex::new(()) }
    })
}

/// A folder in memory where there is such a thing.
fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("toolhook-api-").tempdir_in(parent).unwrap().keep()
}

#[expect(
    clippy::disallowed_methods,
    reason = "stands in for the configuration, which is what reads PATH for the service"
)]
fn options(data_dir: &Path) -> Options {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bindir = std::env::var_os("PG_BINDIR").map(PathBuf::from);
    Options {
        search: Search { bindir, path: std::env::split_paths(&path).collect() },
        data_dir: data_dir.to_owned(),
        durable: false,
        template: None,
        log_statements: true,
    }
}

/// Nothing in this process runs after the last test, so a process that outlives it stops the server and removes its folder.
fn leave_nothing(server: u32, data_dir: &Path) {
    let script = r#"cat; kill -INT "$1"; while kill -0 "$1"; do sleep 0.1; done; rm -rf "$2""#;
    let mut janitor = Command::new("sh");
    janitor.args(["-c", script, "sh", &server.to_string()]).arg(data_dir).process_group(0);
    let janitor = janitor.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Its input ends when this process does, however that comes about.
    std::mem::forget(janitor);
}

/// A test's own database, gone when this value is.
pub(crate) struct Database {
    name: String,
}

impl Database {
    /// A copy of the migrated template.
    pub(crate) async fn create() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let cluster = tokio::task::spawn_blocking(cluster).await.unwrap();
        cluster.template.get_or_init(|| make_template(cluster)).await;
        let name = format!("t{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let _turn = cluster.turn.lock().await;
        let mut connection = PgConnection::connect(&cluster.server.url("postgres")).await.unwrap();
        let strategy = if connection.server_version_num().unwrap() >= 150_000 { "strategy file_copy" } else { "" };
        execute(&mut connection, format!("create database {name} template {TEMPLATE} {strategy}")).await;
        connection.close().await.unwrap();
        Self { name }
    }

    pub(crate) fn url(&self) -> String {
        cluster().server.url(&self.name)
    }

    /// How many statements the service has had executed in this database, from the server's own log. The beginnings and ends of
    /// transactions, which every statement has around it, are not counted.
    pub(crate) fn statements(&self) -> usize {
        let log = std::fs::read(cluster().server.log_file()).unwrap();
        let log = String::from_utf8_lossy(&log);
        let ours = format!(" {}/toolhook LOG:  ", self.name);
        let said = log.lines().filter_map(|line| line.split_once(&ours).map(|(_, said)| said));
        let frame = |said: &str| ["begin;", "commit", "rollback"].iter().any(|word| said.starts_with(word));
        let statement = |said: &&str| {
            let simple = said.strip_prefix("statement: ");
            said.starts_with("execute ") || simple.is_some_and(|said| !frame(said))
        };
        said.filter(statement).count()
    }

    /// Every row of every table, as text.
    pub(crate) async fn dump(&self) -> String {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        let tables = "select tablename::text from pg_tables where schemaname = 'public' order by 1";
        let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut connection).await.unwrap();
        let mut dump = Vec::new();
        for table in tables {
            let rows = format!("select t::text from \"{table}\" t");
            let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut connection).await.unwrap();
            dump.push(format!("{table}\n{}\n", rows.join("\n")));
        }
        connection.close().await.unwrap();
        dump.concat()
    }

    /// Somebody who is not the service, and may do everything.
    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.unwrap()
    }

    /// Runs statements as somebody who is not the service.
    pub(crate) async fn execute(&self, statement: &str) {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        execute(&mut connection, statement.to_owned()).await;
        connection.close().await.unwrap();
    }

    /// Runs a statement as the owner of the tables, which has to be refused; says why it was.
    pub(crate) async fn refused(&self, statement: &str) -> String {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))).await;
        done.map(|_| ()).unwrap_err().to_string()
    }
}

async fn make_template(cluster: &Cluster) {
    let mut connection = PgConnection::connect(&cluster.server.url("postgres")).await.unwrap();
    // Tells whose a statement in the log is.
    execute(&mut connection, "alter system set log_line_prefix = '%m [%p] %d/%a '".to_owned()).await;
    execute(&mut connection, "select pg_reload_conf()".to_owned()).await;
    execute(&mut connection, format!("create database {TEMPLATE}")).await;
    connection.close().await.unwrap();
    let vault = Vault::new(&MasterKey::from_random([0; 32]));
    let store = Store::connect(&cluster.server.url(TEMPLATE), 1, vault).await.unwrap();
    store.migrate().await.unwrap();
    store.close().await;
}

async fn execute(connection: &mut PgConnection, statement: String) {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await.unwrap();
}

impl Drop for Database {
    /// On a thread of its own, for the test's runtime is busy with dropping this.
    fn drop(&mut self) {
        let statement = format!("drop database {} with (force)", self.name);
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut connection = PgConnection::connect(&cluster().server.url("postgres")).await.unwrap();
                execute(&mut connection, statement).await;
            });
        });
        let _ = dropping.join();
    }
}
