//! The account that Postgres runs under, and how its processes are made.

use std::{
    fs, io,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::unistd::{Uid, User, geteuid};

/// Stands for "nobody" on systems without a list of accounts, such as minimal containers.
const NOBODY: u32 = 65534;

/// An account to drop to, because Postgres refuses to be root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// Who serves this cluster: none where we are not root, for then Postgres runs as we do. An existing cluster is served by
    /// its owner, since Postgres accepts nobody else.
    pub(super) fn for_cluster(cluster: &Path) -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let owner = fs::metadata(cluster)
            .ok()
            .filter(|meta| meta.uid() != 0)
            .map(|meta| Self { uid: meta.uid(), gid: meta.gid() });
        owner
            .or_else(|| Self::named("postgres"))
            .or_else(|| Self::named("nobody"))
            .or(Some(Self { uid: NOBODY, gid: NOBODY }))
    }

    fn named(name: &str) -> Option<Self> {
        let user = User::from_name(name).ok().flatten()?;
        Some(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw() })
    }

    pub(super) fn name(self) -> String {
        match User::from_uid(Uid::from_raw(self.uid)) {
            Ok(Some(user)) => user.name,
            _ => self.uid.to_string(),
        }
    }

    /// Whether this account owns what `meta` describes.
    pub(super) fn is(self, meta: &fs::Metadata) -> bool {
        meta.uid() == self.uid
    }

    pub(super) fn give(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// The first folder from the root down to `path` that this account cannot enter.
    pub(super) fn first_closed(self, path: &Path) -> Option<PathBuf> {
        let mut way: Vec<&Path> = path.ancestors().collect();
        way.reverse();
        way.into_iter().find(|folder| fs::metadata(folder).is_ok_and(|meta| !self.may_enter(&meta))).map(Path::to_owned)
    }

    fn may_enter(self, folder: &fs::Metadata) -> bool {
        let search = if folder.uid() == self.uid {
            0o100
        } else if folder.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        folder.mode() & search != 0
    }
}

/// A command with nothing of our environment (odd locales and `PG…` variables included), under `account` where one is given.
pub(super) fn command(program: &Path, account: Option<Account>) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/") // ours may be closed to the account
        .stdin(Stdio::null());
    if let Some(account) = account {
        // The standard library drops the supplementary groups along with the uid.
        command.uid(account.uid).gid(account.gid);
    }
    command
}

/// Has the kernel interrupt the command's process when the *thread* that spawns it ends, so also when we are killed. Spawn only
/// from a thread that lives as long as the process should.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the parent-death signal can only be asked for between fork and exec")]
pub(super) fn end_with_this_thread(command: &mut Command) {
    use nix::{
        errno::Errno,
        sys::{prctl::set_pdeathsig, signal::Signal},
        unistd::{getpid, getppid},
    };

    let parent = getpid();
    let ask = move || {
        set_pdeathsig(Signal::SIGINT)?;
        // We may have died before the request was in place; then nobody would ever end this process.
        if getppid() != parent {
            return Err(Errno::ESRCH.into());
        }
        Ok(())
    };
    // SAFETY: the closure runs after fork in a copy of a process that has threads, where only async-signal-safe calls are
    // allowed: it makes two plain system calls and allocates nothing (an errno becomes an io::Error in place).
    unsafe { command.pre_exec(ask) };
}

/// Other systems have no such signal: there the next start finds the orphan and stops it.
#[cfg(not(target_os = "linux"))]
pub(super) fn end_with_this_thread(_: &mut Command) {}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_closed_folder_on_the_way_is_named() {
        let top = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(top.path()).unwrap();
        let closed = top.join("closed");
        let below = closed.join("below");
        fs::create_dir_all(&below).unwrap();
        let open = |folder: &Path, mode| {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        };
        open(&top, 0o755);
        open(&closed, 0o700);
        let stranger = Account { uid: 54321, gid: 54321 };
        assert_eq!(stranger.first_closed(&below), Some(closed.clone()));
        open(&closed, 0o711);
        assert_eq!(stranger.first_closed(&below), None);
        open(&closed, 0o700);
        let owner = fs::metadata(&closed).unwrap();
        let owner = Account { uid: owner.uid(), gid: owner.gid() };
        assert_eq!(owner.first_closed(&below), None);
    }
}
