//! The tools' server: it answers at once, or never.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";

/// Where it is, and how many requests hang in it.
pub(crate) struct Webhooks {
    pub(crate) url: String,
    hung: Arc<AtomicUsize>,
}

impl Webhooks {
    /// Starts one. POSTs below `/never` are read and not answered.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tasks, hung) = (TaskTracker::new(), Arc::new(AtomicUsize::new(0)));
        let shared = Arc::clone(&hung);
        tasks.clone().spawn(async move {
            loop {
                let Ok((connection, _)) = listener.accept().await else { continue };
                tasks.spawn(serve(connection, Arc::clone(&shared)));
            }
        });
        Self { url, hung }
    }

    /// How many requests hang.
    pub(crate) fn hung(&self) -> usize {
        self.hung.load(Ordering::SeqCst)
    }
}

async fn serve(mut connection: TcpStream, hung: Arc<AtomicUsize>) -> Option<()> {
    let _ = connection.set_nodelay(true);
    let mut read = Vec::with_capacity(8 * 1024);
    loop {
        while let Some(length) = request_length(&read) {
            if read.starts_with(b"POST /never") {
                hung.fetch_add(1, Ordering::SeqCst);
                let _ = connection.read_to_end(&mut read).await;
                hung.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
            read.drain(..length);
            connection.write_all(ANSWER).await.ok()?;
        }
        (connection.read_buf(&mut read).await.ok()? > 0).then_some(())?;
    }
}

/// The length of the first request, once it is here as a whole.
fn request_length(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&read[..head]).ok()?.to_ascii_lowercase();
    let body: usize = text.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().ok()?;
    (read.len() >= head + body).then_some(head + body)
}
