//! A receiver that speaks bytes over TCP.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A receiver on loopback: counts connections, keeps what it read, and runs a script on each connection.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    /// `script` gets each connection before anything is read from it. Its thread ends with the test process.
    pub(crate) fn new(script: impl Fn(&Self, &mut TcpStream) -> io::Result<()> + Send + 'static) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let seen = Self {
            address: SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port())),
            connections: Arc::default(),
            closed: Arc::default(),
            requests: Arc::default(),
        };
        let copy = Self {
            address: seen.address,
            connections: Arc::clone(&seen.connections),
            closed: Arc::clone(&seen.closed),
            requests: Arc::clone(&seen.requests),
        };
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                copy.connections.fetch_add(1, Ordering::SeqCst);
                // A client that hangs up in the middle is what many of these tests are about.
                let _ = connection.and_then(|mut c| script(&copy, &mut c));
                copy.closed.fetch_add(1, Ordering::SeqCst);
            }
        });
        seen
    }

    /// Reads one request and answers it with the same bytes each time, then closes.
    pub(crate) fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |this, connection| {
            this.read_request(connection)?;
            connection.write_all(&answer)
        })
    }

    pub(crate) fn read_request(&self, connection: &mut TcpStream) -> io::Result<()> {
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let n = connection.read(&mut buffer)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            read.extend_from_slice(&buffer[..n]);
            let text = String::from_utf8_lossy(&read);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head.split("\r\n").find_map(|l| l.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |l| l.parse().unwrap()) {
                self.requests.lock().unwrap().push(text.into_owned());
                return Ok(());
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/run", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}
