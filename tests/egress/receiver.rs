//! A receiver that speaks bytes over TCP.

use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A receiver on loopback: counts connections, keeps what it read, and runs a script on each connection.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    /// `script` gets each connection before anything is read from it, in a thread that ends with the test process at the latest.
    pub(crate) fn new(script: impl Fn(&Self, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let seen = Self {
            address: SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port())),
            connections: Arc::default(),
            closed: Arc::default(),
            requests: Arc::default(),
        };
        let (all, script) = (seen.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                all.connections.fetch_add(1, Ordering::SeqCst);
                let (this, script) = (all.clone(), Arc::clone(&script));
                std::thread::spawn(move || {
                    // A client that hangs up in the middle is what many of these tests are about.
                    let _ = script(&this, &mut connection);
                    drop(connection);
                    this.closed.fetch_add(1, Ordering::SeqCst);
                });
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

    pub(crate) fn read_request(&self, connection: &mut impl Read) -> io::Result<()> {
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
                self.note(&text);
                return Ok(());
            }
        }
    }

    /// Keeps a request that was read in another way.
    pub(crate) fn note(&self, request: &str) {
        self.requests.lock().unwrap().push(request.to_owned());
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
