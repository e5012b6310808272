//! The line between a service and its database, which a test can cut.

use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

/// Hands bytes between a socket of its own and the server's.
pub(crate) struct Line {
    url: Url,
    /// Cancelled while the line is cut.
    cut: Arc<Mutex<CancellationToken>>,
    _folder: tempfile::TempDir,
}

impl Line {
    /// A line to the database of this URL.
    pub(crate) fn to(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut url = Url::parse(url).unwrap();
        let server = url.query_pairs().find(|(name, _)| name == "host").unwrap().1.into_owned();
        let socket = |folder: &Path| folder.join(".s.PGSQL.5432");
        let listener = UnixListener::bind(socket(folder.path())).unwrap();
        let ours = folder.path().to_str().unwrap().to_owned();
        url.query_pairs_mut().clear().append_pair("host", &ours).append_pair("sslmode", "disable");
        let cut = Arc::new(Mutex::new(CancellationToken::new()));
        let (tasks, server) = (TaskTracker::new(), socket(Path::new(&server)));
        let (state, lines) = (Arc::clone(&cut), tasks.clone());
        tasks.spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let ended = state.lock().unwrap().clone();
                let server = server.clone();
                lines.spawn(ended.run_until_cancelled_owned(async move {
                    let mut far = UnixStream::connect(&server).await.unwrap();
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }));
            }
        });
        Self { url, cut, _folder: folder }
    }

    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Ends every connection, and closes new ones at once.
    pub(crate) fn cut(&self) {
        self.cut.lock().unwrap().cancel();
    }

    /// Takes connections again.
    pub(crate) fn mend(&self) {
        *self.cut.lock().unwrap() = CancellationToken::new();
    }
}
