//! `toolhook dev`: what it makes, keeps, shares and says.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::process::{Credentials, Scratch, Server, finish, postgres_is_gone, postgres_of, tool, toolhook};

const NOWHERE: &str = "http://127.0.0.1:9/";

#[test]
fn a_start_makes_everything_and_the_next_one_finds_it() {
    let scratch = Scratch::new();
    let data_dir = scratch.data_dir();
    let first = Server::dev(&scratch);
    let made = Credentials::read(&data_dir);
    assert_eq!(made.base_url, first.base_url);
    for file in ["credentials.json", "master_key"] {
        let meta = fs::metadata(data_dir.join(file)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{file}");
    }
    let welcome = first.printed();
    for part in [&made.operator_key, &made.demo_key, "loopback", data_dir.to_str().unwrap()] {
        assert!(welcome.contains(part), "{part} is missing from:\n{welcome}");
    }
    first.expect(201, &made.demo_key, ("POST", "/v1/tools"), Some(&tool("kept", NOWHERE)));
    first.expect(200, &made.operator_key, ("GET", "/v1/tenants"), None);
    first.stop(Signal::SIGTERM);
    assert_eq!(postgres_of(&data_dir), [""; 0], "it stops what it started");

    let began = Instant::now();
    let second = Server::dev(&scratch);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let kept = Credentials::read(&data_dir);
    assert_eq!((&kept.operator_key, &kept.demo_key), (&made.operator_key, &made.demo_key));
    assert_eq!(kept.base_url, second.base_url);
    second.expect(200, &kept.demo_key, ("GET", "/v1/tools/kept"), None);

    // Keys that the database does not take any more are made anew; the others stay.
    second.expect(204, &kept.operator_key, ("DELETE", "/v1/tenants/demo"), None);
    second.stop(Signal::SIGINT);
    let third = Server::dev(&scratch);
    let renewed = Credentials::read(&data_dir);
    assert_eq!(renewed.operator_key, kept.operator_key);
    assert_ne!(renewed.demo_key, kept.demo_key);
    third.expect(404, &renewed.demo_key, ("GET", "/v1/tools/kept"), None);
}

#[test]
fn the_three_commands_of_the_welcome_work_as_they_stand() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let scratch = Scratch::new();
    let server = Server::dev(&scratch);
    let welcome = server.printed();
    let commands: Vec<&str> = welcome.lines().map(str::trim).filter(|line| line.starts_with("curl ")).collect();
    let expected = [r#""name":"calculate""#, "3899.7", r#""name":"get_weather""#];
    assert_eq!(commands.len(), expected.len(), "{welcome}");
    for (command, expected) in commands.into_iter().zip(expected) {
        for _ in 0..2 {
            let answer = finish(Command::new("sh").args(["-c", command]));
            assert!(answer.out.contains(expected), "{command}\n{}{}", answer.out, answer.err);
        }
    }
}

#[test]
fn a_taken_port_is_told_before_anything_is_touched() {
    let scratch = Scratch::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data_dir = scratch.data_dir();
    let ended = finish(toolhook(&["dev", "--listen", &address]).arg("--data-dir").arg(&data_dir));
    ended.complains(1, &[&address, "another process has the port", "--listen"]);
    assert!(!data_dir.exists());
}

#[test]
fn a_second_process_shares_the_database_and_outlives_the_first() {
    let scratch = Scratch::new();
    let data_dir = scratch.data_dir();
    let first = Server::dev(&scratch);
    let second = Server::dev(&scratch);
    let keys = Credentials::read(&data_dir);
    assert_eq!(keys.base_url, second.base_url, "the file names the process that started last");
    assert!(second.printed().contains("run by another process"), "{}", second.printed());
    first.expect(201, &keys.demo_key, ("POST", "/v1/tools"), Some(&tool("shared", NOWHERE)));

    first.stop(Signal::SIGTERM);
    let began = Instant::now();
    while second.get(&keys.demo_key, "/v1/tools/shared").is_none_or(|answer| answer.status != 200) {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", second.logged());
        std::thread::sleep(Duration::from_millis(100));
    }
    let log = second.logged();
    assert!(log.contains("taking it over"), "{log}");
    second.expect(201, &keys.demo_key, ("POST", "/v1/tools"), Some(&tool("after", NOWHERE)));
    second.stop(Signal::SIGTERM);
    postgres_is_gone(&data_dir);
}

#[test]
fn a_given_database_is_used_and_none_is_started() {
    let scratch = Scratch::new();
    let postgres = scratch.postgres();
    let data_dir = scratch.data_dir();
    let mut command = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
    let command = command.env("DATABASE_URL", postgres.url("postgres")).env("TOOLHOOK_DATA_DIR", &data_dir);
    let server = Server::start(&scratch, command);
    let keys = Credentials::read(&data_dir);
    server.expect(200, &keys.demo_key, ("GET", "/v1/tools"), None);
    assert!(!data_dir.join("pg").exists());
    server.stop(Signal::SIGTERM);
}
