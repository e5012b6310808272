//! The tools' server. It counts before it answers, and sometimes it does not answer.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// How often each effect was asked for.
pub(crate) type Counted = HashMap<String, u32>;

/// Where it is, and what it counted.
pub(crate) struct Receiver {
    pub(crate) url: String,
    counted: Arc<Mutex<Counted>>,
}

impl Receiver {
    /// Of what it is asked, some is answered late, some with 500, and some not at all; these dice decide.
    pub(crate) fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let counted: Arc<Mutex<Counted>> = Arc::default();
        let (shared, dice) = (Arc::clone(&counted), Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))));
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (shared, dice) = (Arc::clone(&shared), Arc::clone(&dice));
                thread::spawn(move || while serve(&connection, &shared, &dice).is_some() {});
            }
        });
        Self { url, counted }
    }

    pub(crate) fn counted(&self) -> Counted {
        self.counted.lock().unwrap().clone()
    }
}

fn serve(connection: &TcpStream, counted: &Mutex<Counted>, dice: &Mutex<fastrand::Rng>) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let event: Value = serde_json::from_slice(&body).ok()?;
    let effect = event["data"]["input"]["effect"].as_str()?;
    *counted.lock().unwrap().entry(effect.to_owned()).or_default() += 1;

    let (luck, pause) = {
        let mut dice = dice.lock().unwrap();
        (dice.u32(0..100), dice.u64(0..150))
    };
    if luck < 30 {
        thread::sleep(Duration::from_millis(pause));
    }
    let mut connection = connection;
    let (status, text) = match luck {
        97 => return None,
        98..=99 => ("500 Internal Server Error", "broken"),
        _ => ("200 OK", effect),
    };
    let length = text.len();
    write!(connection, "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n{text}").ok()
}
