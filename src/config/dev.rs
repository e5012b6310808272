//! `toolhook dev`.

use std::path::PathBuf;

use clap::Args;

use super::problems::{Problems, database_url};
use super::{Database, Serving, settings, variable};

const DEV: &str = "\
With DATABASE_URL set, that database is used and none is started. Otherwise a private Postgres runs from the
binaries on this machine (PG_BINDIR names their folder, else PATH and the usual places are searched).

DIR/credentials.json holds {\"base_url\", \"operator_key\", \"demo_key\"} of the process that started last.
A second `toolhook dev` on the same DIR (with another --listen) uses the Postgres of the first, and takes it
over when the first ends.";

/// `toolhook dev`.
#[derive(Debug, Args)]
#[command(after_help = DEV)]
pub struct Dev {
    /// Where to keep the data: /var/lib/toolhook for root, else ~/.local/share/toolhook (`XDG_DATA_HOME` is heeded)
    #[arg(long, env = "TOOLHOOK_DATA_DIR", value_name = "DIR")]
    data_dir: Option<String>,
    #[command(flatten)]
    pub(super) database: Database,
    #[command(flatten)]
    pub(super) serving: Serving,
}

impl Dev {
    /// Checks it.
    pub fn check(self, problems: &mut Problems) -> Option<settings::Dev> {
        let url = problems.optional_secret(self.database.place.handed(), database_url);
        let connections = self.database.connections(problems);
        let statements = self.database.place.statements(problems);
        let serving = self.serving.check(problems);
        Some(settings::Dev {
            database_url: url?,
            connections: connections?,
            statements: statements?,
            data_dir: self.data_dir.filter(|dir| !dir.is_empty()).map(PathBuf::from),
            places: settings::Places {
                postgres: folder("PG_BINDIR"),
                path: std::env::split_paths(&variable("PATH").unwrap_or_default()).collect(),
                data_home: folder("XDG_DATA_HOME"),
                home: folder("HOME"),
            },
            serving: serving?,
        })
    }
}

fn folder(name: &str) -> Option<PathBuf> {
    variable(name).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}
