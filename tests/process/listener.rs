//! The listener of a real process, when somebody takes all its connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::http::send;
use crate::process::{Scratch, Server, toolhook};

#[test]
fn j05_probes_are_answered_on_the_metrics_port_while_somebody_takes_every_connection() {
    let scratch = Scratch::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut dev = toolhook(&["dev", "--listen", "127.0.0.1:0"]);
    dev.env("TOOLHOOK_DATA_DIR", scratch.data_dir()).env("TOOLHOOK_METRICS_LISTEN", free.to_string());
    let server = Server::start(&scratch, dev.env("TOOLHOOK_CONNECTIONS", "2"));
    let address = server.base_url.strip_prefix("http://").unwrap();
    let mut taken: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
    for connection in &mut taken {
        connection.write_all(b"GET /livez HTTP/1.1\r\n").unwrap();
    }
    let mut third = TcpStream::connect(address).unwrap();
    third.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let probes = format!("http://{free}");
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(send(&probes, "", "GET", path, None).unwrap().status, 200, "{path}");
    }
    third.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(third.read(&mut [0; 16]).is_err(), "served beyond the bound");
    drop(taken);
    third.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = String::new();
    third.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.stop(Signal::SIGTERM);
}
