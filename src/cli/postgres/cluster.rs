//! Makes a cluster: by `initdb`, or as a copy of one that `initdb` made before.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    account::{Account, command, end_with_this_thread},
    error::StartError,
    folders::{Folders, make_for_server},
};

/// How the names of clusters in the making start.
const IN_THE_MAKING: &str = "pg.new-";

/// Makes the cluster unless it is there. It appears whole or not at all: `initdb` writes `PG_VERSION` early, so a cluster that
/// a kill left half made would be taken for a good one.
pub(super) fn ensure(
    folders: &Folders,
    bindir: &Path,
    template: Option<&Path>,
    durable: bool,
) -> Result<(), StartError> {
    if folders.cluster.join("PG_VERSION").exists() {
        return Ok(());
    }
    remove_unfinished(&folders.data_dir);
    let making = folders.data_dir.join(format!("{IN_THE_MAKING}{}", std::process::id()));
    match template {
        Some(template) => copy(template, &making, folders.account)
            .map_err(StartError::io("copy the template of a cluster to", &making))?,
        None => initdb(bindir, &making, folders.account, durable)?,
    }
    fs::rename(&making, &folders.cluster).map_err(StartError::io("put the new cluster at", &folders.cluster))
}

/// What earlier starts left that were killed in between. Best effort: they are only in the way of disk space.
fn remove_unfinished(data_dir: &Path) {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(IN_THE_MAKING) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn initdb(bindir: &Path, making: &PathBuf, account: Option<Account>, durable: bool) -> Result<(), StartError> {
    make_for_server(making, account).map_err(StartError::io("make", making))?;
    let program = bindir.join("initdb");
    let mut initdb = command(&program, account);
    initdb
        .arg("-D")
        .arg(making)
        // Byte order everywhere: a cluster must sort the same wherever its folder is taken.
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8"])
        .args(["--locale=C", "--no-instructions"]);
    if !durable {
        initdb.arg("--no-sync");
    }
    end_with_this_thread(&mut initdb);
    let output = initdb.output().map_err(StartError::io("run", &program))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(StartError::Initdb { cluster: making.clone(), output: String::from_utf8_lossy(&text).trim().to_owned() })
}

/// Copies folders and plain files; what else is in a cluster (a socket) belongs to a running server.
fn copy(from: &Path, to: &Path, account: Option<Account>) -> io::Result<()> {
    make_for_server(to, account)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target, account)?;
        } else if kind.is_file() && entry.file_name() != "postmaster.pid" {
            fs::copy(entry.path(), &target)?;
            if let Some(account) = account {
                account.give(&target)?;
            }
        }
    }
    Ok(())
}
