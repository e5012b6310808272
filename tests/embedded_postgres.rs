//! The launcher against the machine's own Postgres: it starts, is shared, stops, and comes back after every kind of kill.
#![expect(clippy::unwrap_used, reason = "clippy's leave for tests does not reach their helper functions")]

use std::{
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use sqlx::{Connection, PgConnection};
use toolhook::cli::postgres::{EmbeddedPostgres, Options, Search, StartError};

/// In memory where there is such a folder: these tests are about processes, not about disks.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("toolhook-embedded-").tempdir_in(parent).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "stands in for the configuration, which is what reads PATH for the service"
)]
fn options(data_dir: &Path) -> Options {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Options {
        search: Search {
            bindir: std::env::var_os("PG_BINDIR").map(PathBuf::from),
            path: std::env::split_paths(&path).collect(),
        },
        data_dir: data_dir.to_owned(),
        durable: false,
        template: None,
        log_statements: false,
    }
}

fn start(data_dir: &Path) -> EmbeddedPostgres {
    EmbeddedPostgres::start(&options(data_dir)).unwrap()
}

/// Runs one statement in a session of its own and gives its one number.
fn query(server: &EmbeddedPostgres, statement: &'static str) -> i64 {
    try_query(&server.url("postgres"), statement).unwrap()
}

fn try_query(url: &str, statement: &'static str) -> sqlx::Result<i64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = PgConnection::connect(url).await?;
        let answer = sqlx::query_scalar(statement).fetch_optional(&mut connection).await?;
        connection.close().await?;
        Ok(answer.unwrap_or_default())
    })
}

fn kill_hard(pid: u32) {
    kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL).unwrap();
}

#[test]
fn it_is_shared_while_it_runs_and_keeps_its_rows_over_a_restart() {
    let dir = scratch();
    let owner = start(dir.path());
    assert!(!owner.adopted());
    query(&owner, "CREATE TABLE note (n bigint)");
    query(&owner, "INSERT INTO note VALUES (41)");

    let second = start(dir.path());
    assert!(second.adopted());
    assert_eq!(second.pid(), owner.pid());
    assert_eq!(query(&second, "UPDATE note SET n = n + 1 RETURNING n"), 42);
    second.stop();
    assert_eq!(query(&owner, "SELECT n FROM note"), 42);

    let url = owner.url("postgres");
    owner.stop();
    assert!(try_query(&url, "SELECT 1::bigint").is_err());

    let again = start(dir.path());
    assert!(!again.adopted());
    assert_eq!(query(&again, "SELECT n FROM note"), 42);
}

#[test]
fn two_that_start_at_once_get_one_server() {
    let dir = scratch();
    let servers = std::thread::scope(|scope| {
        let starting = [(); 3].map(|()| scope.spawn(|| start(dir.path())));
        starting.map(|server| server.join().unwrap())
    });
    assert_eq!(servers.iter().filter(|server| !server.adopted()).count(), 1);
    assert!(servers.iter().all(|server| server.pid() == servers[0].pid()));
}

#[test]
fn it_starts_again_after_its_server_was_killed() {
    let dir = scratch();
    // Durable: without it, the last commits are only in the memory of the server when it is killed.
    let first = EmbeddedPostgres::start(&Options { durable: true, ..options(dir.path()) }).unwrap();
    query(&first, "CREATE TABLE note (n bigint)");
    query(&first, "INSERT INTO note VALUES (7)");
    kill_hard(first.pid());
    // Not stopped before the next start: its owner has to notice by itself, reap it and let go of the folder.
    let second = start(dir.path());
    assert!(!second.adopted());
    assert_ne!(second.pid(), first.pid());
    assert_eq!(query(&second, "SELECT n FROM note"), 7);
    first.stop();
    assert_eq!(query(&second, "SELECT n FROM note"), 7);
}

const OWNER_OF: &str = "TOOLHOOK_TEST_OWNER_OF";

/// Runs itself as a second process that owns a server, and kills that process.
#[test]
#[expect(clippy::disallowed_methods, reason = "tells the second process from the first")]
fn a_killed_owner_leaves_nothing_in_the_way() {
    if let Some(data_dir) = std::env::var_os(OWNER_OF) {
        let server = start(Path::new(&data_dir));
        eprintln!("\nserver {}", server.pid());
        std::thread::sleep(Duration::from_mins(10));
        return;
    }
    let dir = scratch();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_owner_leaves_nothing_in_the_way", "--nocapture"])
        .env(OWNER_OF, dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = BufReader::new(owner.stderr.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("server ")?.parse::<u32>().ok())
        .unwrap();
    let adopter = start(dir.path());
    assert!(adopter.adopted());
    assert_eq!(adopter.pid(), pid);
    query(&adopter, "CREATE TABLE note AS SELECT 9::bigint AS n");

    owner.kill().unwrap();
    owner.wait().unwrap(); // until then it may still hold its lock
    let began = Instant::now();
    let next = start(dir.path());
    assert!(!next.adopted());
    assert_ne!(next.pid(), pid);
    assert_eq!(query(&next, "SELECT n FROM note"), 9);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_cluster_is_copied_from_a_template_and_logs_statements_when_asked() {
    let dir = scratch();
    let template = dir.path().join("template");
    start(&template).stop();
    let server = EmbeddedPostgres::start(&Options {
        template: Some(template.join("pg")),
        log_statements: true,
        ..options(&dir.path().join("copy"))
    })
    .unwrap();
    assert_eq!(query(&server, "SELECT 271828::bigint"), 271_828);
    let log = std::fs::read_to_string(server.log_file()).unwrap();
    assert!(log.contains("SELECT 271828::bigint"), "{log}");
}

#[test]
fn odd_folder_names_are_no_obstacle() {
    let dir = scratch();
    let spaced = dir.path().join("a b&c=d%20é");
    assert_eq!(query(&start(&spaced), "SELECT 1::bigint"), 1);
    let long = dir.path().join("x".repeat(120));
    let server = start(&long);
    assert_eq!(query(&server, "SELECT 2::bigint"), 2);
}

#[test]
fn a_cluster_of_another_major_is_left_alone() {
    let dir = scratch();
    let cluster = dir.path().join("pg");
    std::fs::create_dir(&cluster).unwrap();
    std::fs::write(cluster.join("PG_VERSION"), "9\n").unwrap();
    let error = EmbeddedPostgres::start(&options(dir.path())).unwrap_err();
    assert!(matches!(error, StartError::WrongMajor { needed: 9, .. }), "{error}");
}

fn as_mktemp_makes_it(dir: &tempfile::TempDir) {
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn as_root_a_closed_parent_is_named_with_a_way_out() {
    if !nix::unistd::geteuid().is_root() {
        return; // others run Postgres as themselves
    }
    let closed = scratch();
    as_mktemp_makes_it(&closed);
    let error = EmbeddedPostgres::start(&options(&closed.path().join("data"))).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&closed.path().display().to_string()), "{text}");
    assert!(text.contains("--data-dir") && text.contains("/var/lib/toolhook"), "{text}");
    // The folder itself may be as mktemp makes it: it is opened for passing through.
    let itself = scratch();
    as_mktemp_makes_it(&itself);
    let server = start(itself.path());
    assert_eq!(query(&server, "SELECT 3::bigint"), 3);
}
