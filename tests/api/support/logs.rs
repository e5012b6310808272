//! Everything that the process writes to its own log, kept so that tests can look for what must not be in it.

use std::io::Write;
use std::sync::{Mutex, Once};
use tracing_subscriber::fmt::MakeWriter;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Keep;

impl Write for Keep {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Keep {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}

/// Starts to keep the log, at the level that tells most.
pub(crate) fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(Keep).with_ansi(false).init();
    });
}

/// The log until now, of all tests of this process.
pub(crate) fn traced() -> String {
    String::from_utf8_lossy(&LINES.lock().unwrap()).into_owned()
}
