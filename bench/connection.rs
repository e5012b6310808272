//! One connection that is kept, and what a load makes with many of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// A request as its bytes.
#[derive(Clone)]
pub(crate) struct Wire(Arc<Vec<u8>>);

impl Wire {
    /// A GET by the holder of a key.
    pub(crate) fn get(path: &str, key: &str, headers: &[(&str, &str)]) -> Self {
        let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        Self(Arc::new(
            format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n{headers}\r\n").into_bytes(),
        ))
    }

    /// A POST of JSON by the holder of a key.
    pub(crate) fn post(path: &str, key: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let length = body.len();
        let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        let text = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
             {headers}content-length: {length}\r\n\r\n{body}"
        );
        Self(Arc::new(text.into_bytes()))
    }
}

/// What a load sends.
#[derive(Clone)]
pub(crate) enum Load {
    /// The same again and again.
    Same(Wire),
    /// The same, each time with a new `Idempotency-Key`.
    Keyed { path: String, key: String, body: String },
}

impl Load {
    fn next(&self) -> Wire {
        match self {
            Self::Same(wire) => wire.clone(),
            Self::Keyed { path, key, body } => {
                let once = format!("{:032x}", fastrand::u128(..));
                Wire::post(path, key, &[("idempotency-key", &once)], body)
            }
        }
    }
}

/// A connection that is kept from one request to the next.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    head: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, read: Vec::with_capacity(16 * 1024), head: Vec::new() }
    }

    /// Sends a request and reads its answer; says the status. The body is what [`Connection::body`] shows until the next.
    pub(crate) async fn send(&mut self, request: &Wire) -> std::io::Result<u16> {
        self.stream.write_all(&request.0).await?;
        self.read.clear();
        let (head, length) = loop {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(head) = head_length(&self.read) {
                break (head, content_length(&self.read[..head]));
            }
        };
        while self.read.len() < head + length {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = self.read.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        self.head.clear();
        self.head.extend(self.read.drain(..head));
        status.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    }

    /// A header of the last answer.
    pub(crate) fn header(&self, name: &str) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let value = head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then(|| value.to_owned())
        });
        value.unwrap_or_default()
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.read
    }
}

fn head_length(read: &[u8]) -> Option<usize> {
    read.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok()).unwrap_or_default()
}

/// Connections that wait for work.
#[derive(Clone)]
pub(crate) struct Pool {
    address: Arc<str>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Pool {
    pub(crate) fn new(address: &str) -> Self {
        Self { address: address.into(), idle: Arc::default() }
    }

    /// Sends a request over any connection; the answer has to be one that `good` takes.
    pub(crate) async fn send(&self, request: &Wire, good: impl Fn(u16, &[u8]) -> bool) -> bool {
        let idle = self.idle.lock().await.pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(&self.address).await,
        };
        match connection.send(request).await {
            Ok(status) => {
                let good = good(status, connection.body());
                self.idle.lock().await.push(connection);
                good
            }
            Err(_) => false,
        }
    }
}

/// What a load met.
#[derive(Default)]
pub(crate) struct Met {
    /// From the moment when each request was due, in microseconds.
    pub(crate) micros: Vec<u64>,
    /// Answers that were not what they should be.
    pub(crate) bad: usize,
    /// Whether the warming up is over.
    pub(crate) warm: bool,
}

impl Met {
    pub(crate) fn add(&mut self, met: Self) {
        self.micros.extend(met.micros);
        self.bad += met.bad;
    }
}

/// Sends over so many connections, each the next request as soon as it has its answer.
pub(crate) async fn as_fast_as_it_goes(address: &str, load: &Load, connections: usize, time: Duration) -> Met {
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        let (address, load) = (address.to_owned(), load.clone());
        workers.spawn(async move {
            let (mut connection, mut met) = (Connection::open(&address).await, Met::default());
            let began = Instant::now();
            while began.elapsed() < time {
                let (request, sent) = (load.next(), Instant::now());
                match connection.send(&request).await {
                    Ok(200 | 304) => {}
                    Ok(_) => met.bad += 1,
                    Err(_) => {
                        met.bad += 1;
                        connection = Connection::open(&address).await;
                    }
                }
                met.micros.push(u64::try_from(sent.elapsed().as_micros()).unwrap());
            }
            met
        });
    }
    let mut all = Met::default();
    while let Some(met) = workers.join_next().await {
        all.add(met.unwrap());
    }
    all
}

/// Sends a request so often in a second, whether or not the others are answered: what waits in a queue is seen.
pub(crate) async fn at_a_rate(pool: &Pool, request: &Wire, rate: u32, time: Duration) -> Met {
    let mut due = interval_at(Instant::now(), Duration::from_secs(1) / rate);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (began, mut under_way, mut met) = (Instant::now(), JoinSet::new(), Met::default());
    while began.elapsed() < time {
        let at = due.tick().await;
        let (pool, request) = (pool.clone(), request.clone());
        under_way.spawn(async move {
            let good = pool.send(&request, |status, body| status == 200 && contains(body, b"\"succeeded\"")).await;
            (at.elapsed(), good)
        });
    }
    while let Some(done) = under_way.join_next().await {
        let (time, good) = done.unwrap();
        met.micros.push(u64::try_from(time.as_micros()).unwrap());
        met.bad += usize::from(!good);
    }
    met
}

pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
