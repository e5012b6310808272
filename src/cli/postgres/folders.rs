//! The folders of a private Postgres: which, whose, and with which modes.
//!
//! ```text
//! data_dir/            ours; passable for the account that Postgres runs under
//!   postgres.lock      held by the process that owns the server
//!   postgres.log       what the server wrote since its last start (postgres.log.1: the start before)
//!   pg/                the cluster; the account's
//!   pg.new-*/          a cluster in the making, renamed to `pg` once it is whole; the account's
//!   socket/            the account's; in /tmp where the path here would be too long for a socket
//! ```

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use nix::unistd::geteuid;
use sha2::{Digest, Sha256};

use super::{account::Account, error::StartError};

/// Where root keeps its data: below `/root` the account that Postgres runs under could not reach it.
pub(super) const ROOT_DATA_DIR: &str = "/var/lib/toolhook";

/// Sockets have short paths: 107 bytes on Linux, 103 on macOS.
const LONGEST_SOCKET: usize = 99;

/// The name that Postgres gives its socket, by its port; the port is only a name here, nothing listens on TCP.
pub(super) const SOCKET: &str = ".s.PGSQL.5432";

/// Where the data goes when nobody says: `/var/lib/toolhook` for root, else `toolhook` in the folder for data (`XDG_DATA_HOME`,
/// or `.local/share` in the home folder). The caller passes both, since only the configuration reads the environment. With
/// neither, `.toolhook` in the current folder.
pub fn default_data_dir(data_home: Option<&Path>, home: Option<&Path>) -> PathBuf {
    data_dir(geteuid().is_root(), data_home, home)
}

fn data_dir(root: bool, data_home: Option<&Path>, home: Option<&Path>) -> PathBuf {
    if root {
        return ROOT_DATA_DIR.into();
    }
    let absolute = |path: &&Path| path.is_absolute(); // the XDG specification: relative paths are to be ignored
    data_home
        .filter(absolute)
        .map(Path::to_owned)
        .or_else(|| Some(home.filter(absolute)?.join(".local/share")))
        .map_or_else(|| ".toolhook".into(), |parent| parent.join("toolhook"))
}

/// Makes a data folder unless it is there, with the mode that a server in it needs: a folder that is first used without one may
/// get one later.
pub fn make_data_dir(data_dir: &Path) -> Result<(), StartError> {
    let mode = if geteuid().is_root() { 0o755 } else { 0o700 };
    create_all(data_dir, mode).map_err(StartError::io("make the data folder", data_dir))
}

/// The folders of one data folder, made and checked.
#[derive(Debug)]
pub(super) struct Folders {
    pub(super) data_dir: PathBuf,
    pub(super) cluster: PathBuf,
    pub(super) log: PathBuf,
    pub(super) account: Option<Account>,
}

impl Folders {
    pub(super) fn prepare(data_dir: &Path) -> Result<Self, StartError> {
        make_data_dir(data_dir)?;
        let data_dir = fs::canonicalize(data_dir).map_err(StartError::io("resolve the data folder", data_dir))?;
        let cluster = data_dir.join("pg");
        let account = Account::for_cluster(&cluster);
        if let Some(account) = account {
            let_through(&data_dir).map_err(StartError::io("open the data folder", &data_dir))?;
            if let Some(closed) = account.first_closed(&data_dir) {
                return Err(StartError::Unreachable { closed, data_dir, account: account.name() });
            }
        }
        Ok(Self { cluster, log: data_dir.join("postgres.log"), data_dir, account })
    }

    /// The file whose lock says who owns the server.
    pub(super) fn lock_file(&self) -> Result<File, StartError> {
        let path = self.data_dir.join(LOCK);
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(StartError::io("open", path))
    }

    /// A new log. The one before is kept, as it may tell why a server ended.
    pub(super) fn new_log(&self) -> Result<File, StartError> {
        let _ = fs::rename(&self.log, self.data_dir.join("postgres.log.1"));
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.log)
            .map_err(StartError::io("make", &self.log))
    }

    /// Where the server puts its socket; the same each time, so that leftovers do not pile up.
    pub(super) fn socket_dir(&self) -> PathBuf {
        let here = self.data_dir.join("socket");
        let fits = here.as_os_str().len() + 1 + SOCKET.len() <= LONGEST_SOCKET;
        if fits && here.to_str().is_some() {
            return here;
        }
        let digest = Sha256::digest(self.data_dir.as_os_str().as_encoded_bytes());
        let mut key = [0; 8];
        key.copy_from_slice(&digest[..8]);
        PathBuf::from(format!("/tmp/toolhook-{:016x}", u64::from_be_bytes(key)))
    }

    /// Makes the folder for the socket. Whoever can enter it is let into the database without a password.
    pub(super) fn make_socket_dir(&self) -> Result<PathBuf, StartError> {
        let dir = self.socket_dir();
        make_private(&dir).map_err(StartError::io("make the socket's folder", &dir))?;
        // /tmp is everybody's: somebody else may have been there first, with a folder or with a link to one.
        let found = fs::symlink_metadata(&dir).map_err(StartError::io("look at", &dir))?;
        let me = geteuid().as_raw();
        let trusted = found.uid() == me || self.account.is_some_and(|account| account.is(&found));
        if !found.is_dir() || !trusted {
            return Err(StartError::SocketFolder(dir));
        }
        close_to_others(&dir, self.account).map_err(StartError::io("close", &dir))?;
        Ok(dir)
    }
}

const LOCK: &str = "postgres.lock";

/// Makes a folder that only we enter, unless there is one of that name.
fn make_private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Lets nobody but the account of the server into a folder (nobody but us, where that is the same).
fn close_to_others(dir: &Path, account: Option<Account>) -> io::Result<()> {
    fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    account.map_or(Ok(()), |account| account.give(dir))
}

/// Makes a folder in our own data folder for the server alone.
pub(super) fn make_for_server(dir: &Path, account: Option<Account>) -> io::Result<()> {
    make_private(dir)?;
    close_to_others(dir, account)
}

/// Like `create_dir_all`, with the mode of every folder that was missing, whatever the umask.
fn create_all(dir: &Path, mode: u32) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        match fs::create_dir(dir) {
            Ok(()) => fs::set_permissions(dir, Permissions::from_mode(mode))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {} // another process starts at this moment
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Lets other accounts pass through root's data folder (not list it), so that a folder from `mktemp -d` works. Only if it is
/// empty or was ours before: a `--data-dir /root` must not open what lies there.
fn let_through(data_dir: &Path) -> io::Result<()> {
    const PASS: u32 = 0o011;
    let meta = fs::metadata(data_dir)?;
    let ours = data_dir.join(LOCK).exists() || fs::read_dir(data_dir)?.next().is_none();
    if meta.uid() == 0 && meta.mode() & PASS != PASS && ours {
        fs::set_permissions(data_dir, Permissions::from_mode(meta.mode() | PASS))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_goes_where_each_kind_of_user_keeps_it() {
        let (xdg, home) = (Path::new("/xdg"), Path::new("/home/ada"));
        for (root, data_home, home, expected) in [
            (true, Some(xdg), Some(home), "/var/lib/toolhook"),
            (false, Some(xdg), Some(home), "/xdg/toolhook"),
            (false, None, Some(home), "/home/ada/.local/share/toolhook"),
            (false, Some(Path::new("relative")), Some(home), "/home/ada/.local/share/toolhook"),
            (false, None, None, ".toolhook"),
        ] {
            assert_eq!(data_dir(root, data_home, home), Path::new(expected));
        }
    }

    #[test]
    fn a_socket_path_is_short_and_follows_from_the_data_folder() {
        let folders = |data_dir: &str| Folders {
            data_dir: data_dir.into(),
            cluster: PathBuf::new(),
            log: PathBuf::new(),
            account: None,
        };
        assert_eq!(folders("/d").socket_dir(), Path::new("/d/socket"));
        let long = format!("/{}", "x".repeat(120));
        let dir = folders(&long).socket_dir();
        assert!(dir.join(SOCKET).as_os_str().len() <= LONGEST_SOCKET);
        assert_eq!(dir, folders(&long).socket_dir());
        assert_ne!(dir, folders(&format!("{long}y")).socket_dir());
    }

    #[test]
    fn a_folder_with_foreign_files_is_not_opened() {
        if !geteuid().is_root() {
            return; // only root drops to another account
        }
        let top = tempfile::tempdir().unwrap();
        let mode = || fs::metadata(top.path()).unwrap().mode() & 0o777;
        fs::set_permissions(top.path(), Permissions::from_mode(0o700)).unwrap();
        fs::write(top.path().join("diary"), "").unwrap();
        let_through(top.path()).unwrap();
        assert_eq!(mode(), 0o700);
        let error = Folders::prepare(top.path()).unwrap_err();
        assert!(matches!(error, StartError::Unreachable { .. }), "{error}");
        fs::remove_file(top.path().join("diary")).unwrap();
        let_through(top.path()).unwrap();
        assert_eq!(mode(), 0o711);
    }

    #[test]
    fn missing_folders_get_the_mode_whatever_the_umask() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("a/b");
        create_all(&dir, 0o755).unwrap();
        for dir in [&*dir, dir.parent().unwrap()] {
            assert_eq!(fs::metadata(dir).unwrap().mode() & 0o777, 0o755);
        }
    }
}
