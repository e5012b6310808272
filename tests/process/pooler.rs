//! Behind PgBouncer in transaction mode: whoever asks gets whichever connection to Postgres is free, for one transaction.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row as _};

use crate::http::{Answer, send_with};
use crate::process::{Ended, Scratch, Server, finish, tool, toolhook};
use crate::webhook::Webhook;

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const TENANTS: [&str; 3] = ["acme", "bolt", "cask"];
/// How many threads call for each tenant, and how often each.
const CALLERS: usize = 3;
const CALLS: usize = 24;
/// Fewer than there are threads, so that they share them.
const SERVER_CONNECTIONS: usize = 3;
/// The bound for when notifications are lost.
const BOUND: Duration = Duration::from_secs(5);

/// A PgBouncer in front of a Postgres on a socket. It is killed when this is dropped.
struct Bouncer {
    child: Child,
    folder: PathBuf,
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bouncer {
    fn program() -> Option<PathBuf> {
        let found =
            ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"];
        let found = found.map(PathBuf::from).into_iter().find(|program| program.exists());
        if found.is_none() {
            eprintln!("skipped: pgbouncer is not installed");
        }
        found
    }

    /// Starts it as the owner of Postgres' socket: it refuses to be root, and nobody else may connect.
    fn start(scratch: &Scratch, program: &Path, url: &str) -> Self {
        let (_, socket) = url.split_once("host=").unwrap();
        let socket = socket.split('&').next().unwrap().replace("%2F", "/");
        let owner = fs::metadata(&socket).unwrap();
        let folder = scratch.path().join("bouncer");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        chown(&folder, Some(owner.uid()), Some(owner.gid())).unwrap();
        let (here, config) = (folder.display(), folder.join("pgbouncer.ini"));
        let lines = format!(
            "[databases]\n* = host={socket} port=5432 user=postgres\n[pgbouncer]\npool_mode = transaction\nauth_type = any\n\
             listen_addr =\nlisten_port = 6432\nunix_socket_dir = {here}\nlogfile = {here}/log\n\
             default_pool_size = {SERVER_CONNECTIONS}\nserver_reset_query =\nquery_wait_timeout = 20\n"
        );
        fs::write(&config, lines).unwrap();
        let mut command = Command::new(program);
        command.arg("-q").arg(&config).env_clear().current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if nix::unistd::geteuid().is_root() {
            command.uid(owner.uid()).gid(owner.gid());
        }
        let bouncer = Self { child: command.spawn().unwrap(), folder };
        let began = Instant::now();
        while !bouncer.folder.join(".s.PGSQL.6432").exists() {
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", fs::read_to_string(bouncer.folder.join("log")));
            thread::sleep(Duration::from_millis(10));
        }
        bouncer
    }

    fn url(&self) -> String {
        format!("postgres://postgres@localhost:6432/postgres?host={}", self.folder.display())
    }
}

fn through(arguments: &[&str], url: &str) -> Command {
    let mut command = toolhook(arguments);
    command.env("DATABASE_URL", url).env("TOOLHOOK_PREPARED_STATEMENTS", "false");
    command
}

fn well(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    ended.out
}

fn serve(url: &str, past: &str) -> Command {
    let mut command = through(&["serve", "--listen", "127.0.0.1:0"], url);
    command.env("TOOLHOOK_MASTER_KEY", MASTER_KEY).env("TOOLHOOK_LISTEN_DATABASE_URL", past);
    command.env("TOOLHOOK_EGRESS_ALLOW", "127.0.0.0/8").env("TOOLHOOK_EGRESS_PLAIN_HTTP", "true");
    command.env("TOOLHOOK_EGRESS_PORTS", "any").env("TOOLHOOK_MIGRATE", "false");
    command
}

fn call(server: &Server, key: &str, idempotency: Option<&str>) -> Answer {
    let authorization = format!("Bearer {key}");
    let mut headers = vec![("authorization", authorization.as_str())];
    headers.extend(idempotency.map(|key| ("idempotency-key", key)));
    let answer = send_with(&server.base_url, &headers, "POST", "/v1/tools/seen/calls", Some(&json!({"input": {}})));
    let answer = answer.unwrap();
    assert_eq!(
        (answer.status, &answer.body["status"]),
        (200, &json!("succeeded")),
        "{}\n{}",
        answer.text,
        server.logged()
    );
    answer
}

/// Calls on both replicas, every other time with a key, which is then repeated on the other replica. Answers the calls' ids.
fn call_often(replicas: &[Server; 2], key: &str, caller: usize) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for number in 0..CALLS {
        let idempotency = format!("{caller}-{number}");
        let idempotency = (number % 2 == 0).then_some(idempotency.as_str());
        let first = call(&replicas[number / 2 % 2], key, idempotency);
        ids.insert(first.body["id"].as_str().unwrap().to_owned());
        if number % 4 == 0 {
            let again = call(&replicas[1 - number / 2 % 2], key, idempotency);
            assert_eq!(again.body["id"], first.body["id"]);
            assert_eq!(again.body["replayed"], json!(true), "{}", again.text);
        }
    }
    assert_eq!(ids.len(), CALLS);
    ids
}

/// The ids of all calls in a tenant's log, page by page.
fn logged(server: &Server, key: &str) -> BTreeSet<String> {
    let (mut ids, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = server.expect(200, key, ("GET", &format!("/v1/calls?limit=20{cursor}")), None);
        for call in page["data"].as_array().unwrap() {
            assert!(ids.insert(call["id"].as_str().unwrap().to_owned()), "{call} is there twice");
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

#[test]
fn two_replicas_behind_pgbouncer_work_as_without_it_and_tenants_stay_apart() {
    let Some(program) = Bouncer::program() else { return };
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let past = postgres.url("postgres");
    let bouncer = Bouncer::start(&scratch, &program, &past);
    let url = bouncer.url();
    finish(&mut through(&["migrate"], &url)).complains(1, &["leads to Postgres itself", "--prepared-statements=true"]);
    well(finish(toolhook(&["migrate"]).env("DATABASE_URL", &past)));
    let webhook = Webhook::start("ok");
    let keys = TENANTS.map(|tenant| {
        well(finish(&mut through(&["tenants", "create", tenant], &url)));
        let create = ["keys", "create", "--role", "editor", "--tenant", tenant];
        well(finish(&mut through(&create, &url))).trim().to_owned()
    });
    let replicas = [(); 2].map(|()| Server::start(&scratch, &mut serve(&url, &past)));
    for (tenant, key) in TENANTS.iter().zip(&keys) {
        for name in ["seen", tenant] {
            replicas[0].expect(201, key, ("POST", "/v1/tools"), Some(&tool(name, &webhook.url)));
        }
    }
    let answered: Vec<BTreeSet<String>> = thread::scope(|scope| {
        let replicas = &replicas;
        let places = (0..keys.len()).flat_map(|place| (0..CALLERS).map(move |caller| (place, caller)));
        let start = |(place, caller): (usize, usize)| {
            let key = &keys[place];
            (place, scope.spawn(move || call_often(replicas, key, caller)))
        };
        let callers: Vec<_> = places.map(start).collect();
        let mut ids = vec![BTreeSet::new(); keys.len()];
        for (place, caller) in callers {
            ids[place].extend(caller.join().unwrap());
        }
        ids
    });
    assert_eq!(webhook.posted(<[_]>::len), TENANTS.len() * CALLERS * CALLS, "each call was made once");
    for (place, key) in keys.iter().enumerate() {
        assert_eq!(logged(&replicas[place % 2], key), answered[place], "{}", TENANTS[place]);
        let list = replicas[1].expect(200, key, ("GET", "/v1/tools"), None);
        let names: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, [TENANTS[place], "seen"]);
    }
    seen_on_the_other(&replicas, &keys[0]);
    nothing_is_left_on_the_connections(&url);
    for replica in replicas {
        let log = replica.logged();
        assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
        replica.stop(Signal::SIGTERM);
    }
    drop(bouncer);
    postgres.stop();
}

/// What is written on one replica is soon listed by the other, which had something older in memory.
fn seen_on_the_other(replicas: &[Server; 2], key: &str) {
    const LIST: &str = "/v1/formats/toolhook/tools";
    replicas[1].expect(200, key, ("GET", LIST), None);
    let change = json!({"description": "changed on the first"});
    replicas[0].expect(200, key, ("PATCH", "/v1/tools/seen"), Some(&change));
    let began = Instant::now();
    while !replicas[1].expect(200, key, ("GET", LIST), None).to_string().contains("changed on the first") {
        assert!(began.elapsed() < BOUND, "{}", replicas[1].logged());
        thread::sleep(Duration::from_millis(20));
    }
    let metrics = replicas[1].get("", "/metrics").unwrap().text;
    assert!(metrics.contains("toolhook_registry_listening 1"), "{metrics}");
}

/// Looks at every connection that the pooler has, by holding them all at one time: neither a tenant nor a role is left there.
fn nothing_is_left_on_the_connections(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = url.parse::<sqlx::postgres::PgConnectOptions>().unwrap().extra_float_digits(None);
        let (mut held, mut servers) = (Vec::new(), BTreeSet::new());
        for _ in 0..SERVER_CONNECTIONS {
            let mut connection = PgConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql("begin").execute(&mut connection).await.unwrap();
            let left = "select pg_backend_pid()::text, current_user::text, coalesce(current_setting('toolhook.tenant', true), ''),
                          (select count(*)::text from pg_prepared_statements)";
            let left = sqlx::raw_sql(left).fetch_one(&mut connection).await.unwrap();
            servers.insert(left.get::<String, _>(0));
            assert_eq!((1..4).map(|column| left.get(column)).collect::<Vec<String>>(), ["postgres", "", "0"]);
            held.push(connection);
        }
        assert_eq!(servers.len(), SERVER_CONNECTIONS);
    });
}

#[test]
fn a_pooler_that_keeps_no_connection_is_told_from_postgres() {
    let Some(program) = Bouncer::program() else { return };
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let past = postgres.url("postgres");
    well(finish(toolhook(&["migrate"]).env("DATABASE_URL", &past)));
    let bouncer = Bouncer::start(&scratch, &program, &past);
    let url = bouncer.url();
    let told = ["TOOLHOOK_PREPARED_STATEMENTS=false", "TOOLHOOK_LISTEN_DATABASE_URL"];
    finish(serve(&url, &past).env_remove("TOOLHOOK_PREPARED_STATEMENTS")).complains(1, &told);
    let doctor = |past: Option<&str>| {
        let mut doctor = through(&["doctor", "--listen", "127.0.0.1:0"], &url);
        doctor.env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
        doctor.envs(past.map(|past| ("TOOLHOOK_LISTEN_DATABASE_URL", past)));
        well(finish(&mut doctor))
    };
    let line = |level: &str, out: &str| out.lines().any(|line| line.starts_with(level) && line.contains("pooler"));
    let (with, without) = (doctor(Some(&past)), doctor(None));
    assert!(line("ok", &with), "{with}");
    assert!(line("warn", &without) && without.contains("-> set TOOLHOOK_LISTEN_DATABASE_URL"), "{without}");

    let alone = Server::start(&scratch, serve(&url, &past).env_remove("TOOLHOOK_LISTEN_DATABASE_URL"));
    let metrics = alone.get("", "/metrics").unwrap().text;
    assert!(metrics.contains("toolhook_registry_listening 0"), "{metrics}");
    assert!(!alone.logged().contains("WARN"), "{}", alone.logged());
    alone.stop(Signal::SIGTERM);
    drop(bouncer);
    postgres.stop();
}
