//! Why a private Postgres did not start, in words that say what to do next.

use std::{fmt, fs, io, path::PathBuf, process::ExitStatus};

use super::find::{OLDEST_MAJOR, PassedOver};

/// Why [`EmbeddedPostgres::start`](super::EmbeddedPostgres::start) gave up. The text of each is meant for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No usable Postgres was found on this machine.
    #[error("{}", no_binaries(passed_over))]
    NoBinaries {
        /// Installations that were found and cannot be used.
        passed_over: Vec<PassedOver>,
    },

    /// The data folder was written by a major version of Postgres that is not installed.
    #[error(
        "{} was made by Postgres {needed}, and only Postgres of that major version opens it; this machine has {}. \
         Install Postgres {needed}, name its folder in PG_BINDIR, or choose another --data-dir.",
        cluster.display(),
        listed(installed)
    )]
    WrongMajor {
        /// The cluster folder.
        cluster: PathBuf,
        /// The major version in its `PG_VERSION`.
        needed: u32,
        /// The major versions that are installed.
        installed: Vec<u32>,
    },

    /// We are root, Postgres refuses to be, and the account that it runs under cannot get to the data folder.
    #[error(
        "Postgres does not run as root, so it runs as the account `{account}`, and that account cannot enter {}, \
         on the way to the data folder {}. Choose a --data-dir outside of it, such as {}.",
        closed.display(),
        data_dir.display(),
        super::folders::ROOT_DATA_DIR
    )]
    Unreachable {
        /// The first folder on the way that is closed to the account.
        closed: PathBuf,
        /// The data folder that was asked for.
        data_dir: PathBuf,
        /// The account's name, or its number where it has no name.
        account: String,
    },

    /// The folder for the socket exists and belongs to somebody else.
    #[error("{} belongs to another account, so the database's socket cannot be put there. Remove it, or choose another --data-dir.", .0.display())]
    SocketFolder(PathBuf),

    /// Another process holds the data folder, and no server of it could be reached.
    #[error(
        "{} is in use by another process, and its Postgres did not become reachable within {seconds} s. \
         Stop that process, or choose another --data-dir.",
        data_dir.display()
    )]
    InUse {
        /// The data folder.
        data_dir: PathBuf,
        /// How long we waited, in seconds.
        seconds: u64,
    },

    /// `initdb` failed.
    #[error("initdb could not make a database cluster in {}:\n{output}", cluster.display())]
    Initdb {
        /// The folder that it worked in.
        cluster: PathBuf,
        /// What it printed.
        output: String,
    },

    /// The server ended while it was starting.
    #[error("Postgres ended while starting ({status}):\n{log}")]
    Exited {
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to its log during this start.
        log: String,
    },

    /// The server runs and did not become ready.
    #[error("Postgres did not become ready within {seconds} s; its log is {}", log.display())]
    TimedOut {
        /// How long we waited, in seconds.
        seconds: u64,
        /// The server's log.
        log: PathBuf,
    },

    /// The operating system refused something on the way.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What we were doing, as a verb phrase that takes the path.
        doing: &'static str,
        /// What we were doing it to.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StartError {
    /// For `map_err`: puts what was being done, and to what, in front of the system's answer.
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}

fn listed(majors: &[u32]) -> String {
    majors.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn no_binaries(passed_over: &[PassedOver]) -> String {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let sudo = if nix::unistd::geteuid().is_root() { "" } else { "sudo " };
    NoBinaries { install: install_line(cfg!(target_os = "macos"), &os_release, sudo), passed_over }.to_string()
}

struct NoBinaries<'a> {
    install: String,
    passed_over: &'a [PassedOver],
}

impl fmt::Display for NoBinaries<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "No Postgres ({OLDEST_MAJOR} or newer) was found on this machine. One of these helps:")?;
        writeln!(out, "  install it:        {}", self.install)?;
        // Both services by name: compose publishes no port of Postgres, so Postgres alone would not be reachable from here.
        writeln!(out, "  use containers:    script/compose-secrets && docker compose up -d postgres toolhook")?;
        write!(out, "  use one you have:  DATABASE_URL=postgres://user:password@host:5432/database")?;
        for passed in self.passed_over {
            write!(out, "\nPassed over: {passed}")?;
        }
        Ok(())
    }
}

/// How this system installs Postgres. `os_release` is the text of `/etc/os-release`, empty where there is none.
fn install_line(macos: bool, os_release: &str, sudo: &str) -> String {
    if macos {
        return "brew install postgresql@17".to_owned();
    }
    let names: Vec<&str> = os_release
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"))
        .flat_map(|(_, value)| value.trim_matches(['"', '\'']).split_whitespace())
        .collect();
    let is = |wanted: &[&str]| names.iter().any(|name| wanted.contains(name));
    let line = if is(&["debian", "ubuntu"]) {
        "apt-get install -y postgresql"
    } else if is(&["fedora", "rhel", "centos"]) {
        "dnf install -y postgresql-server"
    } else if is(&["alpine"]) {
        "apk add postgresql"
    } else if is(&["arch"]) {
        "pacman -S postgresql"
    } else if is(&["suse", "opensuse"]) {
        "zypper install postgresql-server"
    } else {
        return "with the system's package manager (the server package, with `postgres` and `initdb`)".to_owned();
    };
    format!("{sudo}{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_install_line_is_the_one_of_the_system() {
        for (os_release, expected) in [
            ("ID=debian\n", "sudo apt-get install -y postgresql"),
            ("NAME=Mint\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "sudo apt-get install -y postgresql"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "sudo dnf install -y postgresql-server"),
            ("ID=alpine\n", "sudo apk add postgresql"),
            ("ID=arch\n", "sudo pacman -S postgresql"),
        ] {
            assert_eq!(install_line(false, os_release, "sudo "), expected);
        }
        assert_eq!(install_line(true, "", "sudo "), "brew install postgresql@17");
        assert!(install_line(false, "", "").contains("package manager"));
    }

    #[test]
    fn a_machine_without_postgres_is_told_three_ways_out() {
        let text = NoBinaries {
            install: "apt-get install -y postgresql".to_owned(),
            passed_over: &[PassedOver {
                bindir: "/usr/lib/postgresql/13/bin".into(),
                why: "version 13.4 is older than 14".to_owned(),
            }],
        }
        .to_string();
        for part in [
            "apt-get install -y postgresql",
            "docker compose up -d postgres",
            "DATABASE_URL",
            "/usr/lib/postgresql/13/bin: version 13.4 is older than 14",
        ] {
            assert!(text.contains(part), "{part} is missing from:\n{text}");
        }
    }
}
