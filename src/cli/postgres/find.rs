//! Which Postgres of this machine to run.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::error::StartError;

/// The oldest major version that Toolhook's migrations run on.
pub(super) const OLDEST_MAJOR: u32 = 14;

/// Where to look for the binaries of Postgres, besides the folders where systems usually put them.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The folder that the operator named (`PG_BINDIR`); where given, nothing else is looked at.
    pub bindir: Option<PathBuf>,
    /// The folders of `PATH`, in order.
    pub path: Vec<PathBuf>,
}

/// An installation that was found and cannot be used.
#[derive(Debug)]
pub struct PassedOver {
    /// The folder of its binaries.
    pub bindir: PathBuf,
    /// Why not, as a clause that follows the folder's name.
    pub why: String,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.bindir.display(), self.why)
    }
}

/// A Postgres that runs on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Installation {
    pub(super) bindir: PathBuf,
    pub(super) major: u32,
}

#[derive(Debug, Default)]
pub(super) struct Found {
    /// Highest major first; among equals, in the order of the search.
    usable: Vec<Installation>,
    passed_over: Vec<PassedOver>,
}

impl Found {
    /// The installation for a cluster whose `PG_VERSION` says `major`, or the newest for a cluster that is still to be made.
    pub(super) fn choose(self, cluster: &Path, major: Option<u32>) -> Result<Installation, StartError> {
        if self.usable.is_empty() {
            return Err(StartError::NoBinaries { passed_over: self.passed_over });
        }
        for passed in &self.passed_over {
            tracing::debug!(%passed, "passed over an installation of Postgres");
        }
        let fits = |found: &&Installation| major.is_none_or(|major| found.major == major);
        match (self.usable.iter().find(fits), major) {
            (Some(found), _) => Ok(found.clone()),
            (None, needed) => Err(StartError::WrongMajor {
                cluster: cluster.to_owned(),
                needed: needed.unwrap_or_default(),
                installed: self.usable.iter().map(|found| found.major).collect(),
            }),
        }
    }
}

/// Looks at every candidate. `probe` runs `postgres -V` in a folder under the account that the server will have, because a
/// binary that is there may still not run: wrong libc, missing libraries, a folder closed to that account.
pub(super) fn find(search: &Search, probe: impl Fn(&Path) -> Result<String, String>) -> Found {
    let candidates = match &search.bindir {
        Some(bindir) => vec![bindir.clone()],
        None => candidates(&search.path, Path::new("/")),
    };
    let mut found = Found::default();
    for bindir in candidates {
        match examine(&bindir, &probe) {
            Ok(major) => found.usable.push(Installation { bindir, major }),
            Err(why) => found.passed_over.push(PassedOver { bindir, why }),
        }
    }
    found.usable.sort_by_key(|installation| std::cmp::Reverse(installation.major));
    found
}

fn examine(bindir: &Path, probe: impl Fn(&Path) -> Result<String, String>) -> Result<u32, String> {
    if let Some(missing) = ["postgres", "initdb"].into_iter().find(|name| !bindir.join(name).is_file()) {
        return Err(format!("no `{missing}` there"));
    }
    let answer = probe(bindir)?;
    let (major, version) = version(&answer).ok_or_else(|| format!("`postgres -V` answered {:?}", answer.trim()))?;
    if major < OLDEST_MAJOR {
        return Err(format!("version {version} is older than {OLDEST_MAJOR}"));
    }
    Ok(major)
}

/// Reads `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, `… 18beta1`, `… 16devel`.
fn version(answer: &str) -> Option<(u32, &str)> {
    let version = answer.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    Some((leading_number(version)?, version))
}

/// The major version in a cluster's `PG_VERSION`; none where there is no cluster yet.
pub(super) fn major_of(cluster: &Path) -> Option<u32> {
    leading_number(&fs::read_to_string(cluster.join("PG_VERSION")).ok()?)
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The folders to look at, each once. Those of the usual places count only where they exist; `root` is `/` outside of tests.
fn candidates(path: &[PathBuf], root: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = path
        .iter()
        .filter_map(|dir| fs::canonicalize(dir.join("postgres")).ok())
        .filter_map(|binary| binary.parent().map(Path::to_owned))
        .collect();
    all.extend(told_by_pg_config(path));
    all.extend(usual_folders(root));
    let mut seen = std::collections::HashSet::new();
    all.retain(|dir| seen.insert(dir.clone()));
    all
}

fn told_by_pg_config(path: &[PathBuf]) -> Option<PathBuf> {
    let pg_config = path.iter().map(|dir| dir.join("pg_config")).find(|file| file.is_file())?;
    let answer = Command::new(pg_config).arg("--bindir").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    // Client packages bring pg_config without the server, so the folder need not hold one: that is no fault to report.
    fs::canonicalize(text.trim()).ok().filter(|dir| dir.join("postgres").is_file())
}

/// (parent, start of the folder's name, binaries below it): Debian, Red Hat's PGDG packages, Alpine and Arch, Homebrew on both
/// kinds of Mac, Postgres.app, `MacPorts`.
const USUAL_FOLDERS: [(&str, &str, &str); 8] = [
    ("usr/lib/postgresql", "", "bin"),
    ("usr", "pgsql-", "bin"),
    ("usr/libexec", "postgresql", ""),
    ("opt/homebrew/opt", "postgresql", "bin"),
    ("usr/local/opt", "postgresql", "bin"),
    ("Applications/Postgres.app/Contents/Versions", "", "bin"),
    ("opt/local/lib", "postgresql", "bin"),
    ("usr/local", "pgsql", "bin"),
];

fn usual_folders(root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for (parent, start, below) in USUAL_FOLDERS {
        let entries = fs::read_dir(root.join(parent));
        let mut here: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
            .filter_map(|entry| fs::canonicalize(entry.path().join(below)).ok())
            .filter(|dir| dir.join("postgres").is_file())
            .collect();
        here.sort(); // the system lists a folder in no order; which of two equals wins should not change between runs
        folders.extend(here);
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(bindir: &Path) -> PathBuf {
        fs::create_dir_all(bindir).unwrap();
        for name in ["postgres", "initdb"] {
            fs::write(bindir.join(name), "").unwrap();
        }
        fs::canonicalize(bindir).unwrap()
    }

    fn usable(search: &Search, answers: &[(&Path, &str)]) -> Found {
        find(search, |bindir| {
            answers
                .iter()
                .find(|(dir, _)| *dir == bindir)
                .map(|(_, version)| format!("postgres (PostgreSQL) {version}\n"))
                .ok_or_else(|| "it does not run".to_owned())
        })
    }

    #[test]
    fn versions_are_read_in_every_form_that_packages_print() {
        for (answer, expected) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("postgres (PostgreSQL) 19devel", Some(19)),
            ("postgres (EnterpriseDB) 16.4.0", Some(16)),
            ("postgres (PostgreSQL) 9.6.24", Some(9)),
            ("error while loading shared libraries", None),
            ("", None),
        ] {
            assert_eq!(version(answer).map(|(major, _)| major), expected, "{answer}");
        }
    }

    #[test]
    fn the_newest_wins_and_an_existing_cluster_keeps_its_own() {
        let root = tempfile::tempdir().unwrap();
        let old = install(&root.path().join("15/bin"));
        let new = install(&root.path().join("17/bin"));
        let search = Search { bindir: None, path: vec![old.clone(), new.clone()] };
        let answers = [(&*old, "15.18"), (&*new, "17.2")];
        let cluster = Path::new("/data/pg");
        let choose = |major| usable(&search, &answers).choose(cluster, major);
        assert_eq!(choose(None).unwrap().bindir, new);
        assert_eq!(choose(Some(15)).unwrap().bindir, old);
        // A machine may have others in the usual places, but none that has the major version 1.
        let error = choose(Some(1)).unwrap_err();
        assert!(matches!(error, StartError::WrongMajor { needed: 1, .. }), "{error}");
    }

    #[test]
    fn a_named_folder_is_the_only_one_looked_at() {
        let root = tempfile::tempdir().unwrap();
        let named = install(&root.path().join("named"));
        let other = install(&root.path().join("other"));
        let search = Search { bindir: Some(named.clone()), path: vec![other.clone()] };
        let found = usable(&search, &[(&*named, "14.1"), (&*other, "17.2")]);
        assert_eq!(found.usable, [Installation { bindir: named, major: 14 }]);
    }

    #[test]
    fn old_broken_and_partial_installations_are_passed_over_with_a_word() {
        let root = tempfile::tempdir().unwrap();
        let reasons = |bindir: &Path, version: &str| {
            let search = Search { bindir: Some(bindir.to_owned()), path: vec![] };
            let error = usable(&search, &[(bindir, version)]).choose(Path::new("/data/pg"), None).unwrap_err();
            error.to_string()
        };
        let bindir = install(&root.path().join("bin"));
        assert!(reasons(&bindir, "13.4").contains("version 13.4 is older than 14"));
        assert!(reasons(&bindir, "?").contains("answered"));
        fs::remove_file(bindir.join("initdb")).unwrap();
        assert!(reasons(&bindir, "17.1").contains("no `initdb` there"));
    }

    #[test]
    fn usual_folders_are_found_and_links_are_resolved_to_one_candidate() {
        let root = tempfile::tempdir().unwrap();
        let debian = install(&root.path().join("usr/lib/postgresql/16/bin"));
        let alpine = install(&root.path().join("usr/libexec/postgresql17"));
        let path = root.path().join("usr/bin");
        fs::create_dir_all(&path).unwrap();
        std::os::unix::fs::symlink(debian.join("postgres"), path.join("postgres")).unwrap();
        assert_eq!(candidates(&[path], root.path()), [debian, alpine]);
    }
}
