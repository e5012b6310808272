//! How a process ends: with its work done, or at once, and never with a Postgres left over.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::http::send;
use crate::process::{Credentials, Scratch, Server, postgres_is_gone, tool, toolhook};

/// A webhook that has been called and does not answer yet.
struct Held(TcpStream);

impl Held {
    fn answer(mut self) {
        self.0.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nlate").unwrap();
    }
}

/// Starts a server, calls a tool of it in the background, and waits until the call is at the webhook.
fn with_a_running_call(scratch: &Scratch, grace_ms: &str) -> (Server, Held, mpsc::Receiver<Option<u16>>) {
    let webhook = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", webhook.local_addr().unwrap());
    let mut dev = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
    let dev = dev.env("TOOLHOOK_DATA_DIR", scratch.data_dir()).env("TOOLHOOK_SHUTDOWN_GRACE_MS", grace_ms);
    let server = Server::start(scratch, dev);
    let keys = Credentials::read(&scratch.data_dir());
    server.expect(201, &keys.demo_key, ("POST", "/v1/tools"), Some(&tool("slow", &url)));
    let (answered, answer) = mpsc::channel();
    let base_url = server.base_url.clone();
    std::thread::spawn(move || {
        let body = serde_json::json!({"input": {}});
        let answer = send(&base_url, &keys.demo_key, "POST", "/v1/tools/slow/calls", Some(&body));
        answered.send(answer.ok().map(|answer| answer.status))
    });
    let (mut held, _) = webhook.accept().unwrap();
    let _ = held.read(&mut [0; 4096]).unwrap();
    (server, Held(held), answer)
}

#[test]
fn a_running_call_is_finished_and_answered() {
    let scratch = Scratch::new();
    let (mut server, held, answer) = with_a_running_call(&scratch, "25000");
    server.signal(Signal::SIGTERM);
    while !server.logged().contains("stopping") {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(
        TcpStream::connect(server.base_url.strip_prefix("http://").unwrap()).is_err()
            || server.get("", "/livez").is_none()
    );
    held.answer();
    assert_eq!(answer.recv().unwrap(), Some(200));
    assert_eq!(server.ended().code(), Some(0), "{}", server.logged());
    postgres_is_gone(&scratch.data_dir());
}

/// What a load balancer needs: first it is told, then it is given time, and until then its requests are answered.
#[test]
fn readiness_goes_first_and_requests_are_served_for_the_delay() {
    let scratch = Scratch::new();
    let mut dev = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
    dev.env("TOOLHOOK_DATA_DIR", scratch.data_dir()).env("TOOLHOOK_SHUTDOWN_DELAY_MS", "1500");
    let mut server = Server::start(&scratch, &mut dev);
    let key = Credentials::read(&scratch.data_dir()).demo_key;
    server.signal(Signal::SIGTERM);
    let began = Instant::now();
    while server.get("", "/readyz").unwrap().status != 503 {
        assert!(began.elapsed() < Duration::from_secs(1), "still ready");
    }
    let body = serde_json::json!({"input": {"expression": "1"}});
    server.expect(200, &key, ("POST", "/v1/tools/calculate/calls"), Some(&body));
    assert_eq!(server.get("", "/livez").unwrap().status, 200);
    assert_eq!(server.ended().code(), Some(0), "{}", server.logged());
    assert!(began.elapsed() >= Duration::from_millis(1_400), "{:?}", began.elapsed());

    let mut server = Server::start(&scratch, dev.env("TOOLHOOK_SHUTDOWN_DELAY_MS", "60000"));
    server.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(1), "{}", server.logged());
    assert!(began.elapsed() < Duration::from_secs(5), "a second signal ends the delay: {:?}", began.elapsed());
}

#[test]
fn l02_a_second_signal_does_not_wait() {
    let scratch = Scratch::new();
    let (mut server, _held, _answer) = with_a_running_call(&scratch, "25000");
    server.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    server.signal(Signal::SIGINT);
    assert_eq!(server.ended().code(), Some(1), "{}", server.logged());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(server.logged().contains("second signal"), "{}", server.logged());
    postgres_is_gone(&scratch.data_dir());
}

#[test]
fn a_call_is_cut_off_when_the_grace_time_is_over() {
    let scratch = Scratch::new();
    let (mut server, _held, _answer) = with_a_running_call(&scratch, "100");
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(1), "{}", server.logged());
    assert!(server.logged().contains("longer than 100 ms were cut off"), "{}", server.logged());
    postgres_is_gone(&scratch.data_dir());
}

#[test]
fn a_connection_that_hangs_is_no_call() {
    let scratch = Scratch::new();
    let mut dev = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
    dev.env("TOOLHOOK_DATA_DIR", scratch.data_dir()).env("TOOLHOOK_SHUTDOWN_GRACE_MS", "100");
    let server = Server::start(&scratch, &mut dev);
    let mut open = TcpStream::connect(server.base_url.strip_prefix("http://").unwrap()).unwrap();
    open.write_all(b"GET /readyz HTTP/1.1\r\n").unwrap(); // and never the rest
    std::thread::sleep(Duration::from_millis(50));
    server.stop(Signal::SIGTERM);
}

#[test]
fn a_stop_during_the_first_start_leaves_nothing_in_the_way() {
    let scratch = Scratch::new();
    for delay in [0, 60, 300, 900] {
        let mut command = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
        let mut server = Server::spawn(&scratch, command.env("TOOLHOOK_DATA_DIR", scratch.data_dir()));
        std::thread::sleep(Duration::from_millis(delay));
        server.signal(Signal::SIGTERM);
        server.ended();
        postgres_is_gone(&scratch.data_dir());
    }
    Server::dev(&scratch).stop(Signal::SIGTERM);
}
