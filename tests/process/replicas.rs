//! Several replicas on one database: what is written through one is soon so on all.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::process::{Scratch, Server, finish, tool, toolhook};

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const LIST: &str = "/v1/formats/toolhook/tools";
/// The bound for when notifications are lost.
const BOUND: Duration = Duration::from_secs(5);

/// Replicas on one database, and an editor's key.
struct Fleet {
    replicas: Vec<Server>,
    key: String,
    url: String,
}

impl Fleet {
    fn start(scratch: &Scratch, url: &str, replicas: usize, setting: impl Fn(&mut Command)) -> Self {
        let run = |arguments: &[&str]| {
            let ended = finish(toolhook(arguments).env("DATABASE_URL", url));
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            ended.out.trim().to_owned()
        };
        run(&["migrate"]);
        run(&["tenants", "create", "acme"]);
        let key = run(&["keys", "create", "--role", "editor", "--tenant", "acme"]);
        let serve = |_| {
            let mut command = toolhook(&["serve", "--listen", "127.0.0.1:0"]);
            command.env("DATABASE_URL", url).env("TOOLHOOK_MASTER_KEY", MASTER_KEY);
            setting(&mut command);
            Server::start(scratch, &mut command)
        };
        Self { replicas: (0..replicas).map(serve).collect(), key, url: url.to_owned() }
    }

    fn list(&self, replica: usize) -> Value {
        self.replicas[replica].expect(200, &self.key, ("GET", LIST), None)["tools"].clone()
    }

    fn write(&self, replica: usize, name: &str, description: &str) {
        let mut body = tool(name, "https://hooks.example.com/x");
        body["description"] = json!(description);
        let path = format!("/v1/tools/{name}");
        self.replicas[replica].expect(200, &self.key, ("PUT", &path), Some(&body));
    }

    /// Waits until all replicas list the same as this one.
    fn agrees_with(&self, replica: usize) {
        let (began, expected) = (Instant::now(), self.list(replica));
        for other in 0..self.replicas.len() {
            loop {
                let list = self.list(other);
                if list == expected {
                    break;
                }
                assert!(began.elapsed() < BOUND, "replica {other} still lists {list} and not {expected}");
                sleep(Duration::from_millis(20));
            }
        }
    }

    fn stop(self) {
        for replica in self.replicas {
            replica.stop(Signal::SIGTERM);
        }
    }
}

/// Makes a tool and has it in the memory of every replica, so that each has something that can be old.
fn warmed(fleet: &Fleet) {
    let body = tool("shared", "https://hooks.example.com/x");
    fleet.replicas[0].expect(201, &fleet.key, ("POST", "/v1/tools"), Some(&body));
    fleet.agrees_with(0);
}

#[test]
fn g01_what_is_written_on_one_replica_is_seen_on_the_others() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let fleet = Fleet::start(&scratch, &postgres.url("postgres"), 3, |_| {});
    warmed(&fleet);
    for (replica, description) in [(0, "by the first"), (1, "by the second"), (2, "by the third")] {
        fleet.write(replica, "shared", description);
        assert_eq!(fleet.list(replica)[0]["description"], description, "whoever wrote it sees it at once");
        fleet.agrees_with(replica);
    }
    fleet.replicas[1].expect(204, &fleet.key, ("DELETE", "/v1/tools/shared"), None);
    fleet.agrees_with(1);
    fleet.stop();
}

#[test]
fn g02_replicas_agree_although_their_listeners_are_cut_while_a_hundred_writes_come() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let fleet = Fleet::start(&scratch, &postgres.url("postgres"), 3, |_| {});
    warmed(&fleet);
    let mut cut = 0;
    for write in 0..100 {
        if write % 10 == 5 {
            cut += cut_listeners(&fleet.url);
        }
        fleet.write(write % 3, "shared", &format!("version {write}"));
    }
    assert!(cut >= 3, "{cut} listeners were cut");
    assert_eq!(fleet.list(0)[0]["description"], "version 99");
    fleet.agrees_with(0);
    fleet.stop();
}

#[test]
fn g03_replicas_agree_without_any_notification() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let nowhere = "postgres://nobody@127.0.0.1:1/nothing";
    let fleet = Fleet::start(&scratch, &postgres.url("postgres"), 2, |command| {
        command.env("TOOLHOOK_LISTEN_DATABASE_URL", nowhere);
    });
    warmed(&fleet);
    fleet.write(1, "shared", "by the second");
    fleet.agrees_with(1);
    let metrics = fleet.replicas[0].get("", "/metrics").unwrap().text;
    assert!(metrics.contains("toolhook_registry_listening 0"), "{metrics}");
    fleet.stop();
}

/// Ends every listener's session; says how many.
fn cut_listeners(url: &str) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let cut = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'toolhook listener'";
        connection.fetch_all(cut).await.unwrap().len()
    })
}
