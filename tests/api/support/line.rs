//! The line between a service and its database, which a test can cut.

use std::path::Path;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

/// Hands bytes between a socket of its own and the server's.
pub(crate) struct Line {
    url: Url,
    cut: CancellationToken,
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
        let (cut, tasks, server) = (CancellationToken::new(), TaskTracker::new(), socket(Path::new(&server)));
        let (ended, lines) = (cut.clone(), tasks.clone());
        tasks.spawn(cut.clone().run_until_cancelled_owned(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far = UnixStream::connect(&server).await.unwrap();
                lines.spawn(ended.clone().run_until_cancelled_owned(async move {
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }));
            }
        }));
        Self { url, cut, _folder: folder }
    }

    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Ends every connection, and takes no more.
    pub(crate) fn cut(&self) {
        self.cut.cancel();
    }
}
