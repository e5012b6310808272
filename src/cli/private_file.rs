//! Files that nobody but us may read, whole or not there at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Writes a file, in place of the one that may be there.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let new = write_beside(path, text)?;
    fs::rename(&new, path).inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Writes a file unless it is there, and gives what it then holds: of two processes that do this at once, both get what the
/// first one wrote.
pub(super) fn write_once(path: &Path, text: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
    if !path.try_exists()? {
        let new = write_beside(path, &text()?)?;
        let linked = fs::hard_link(&new, path);
        fs::remove_file(&new)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    fs::read_to_string(path)
}

/// Writes a new file in the same folder. A name for each process: two may do this at once.
fn write_beside(path: &Path, text: &str) -> io::Result<PathBuf> {
    let new = path.with_added_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&new); // left by a killed process that had our number
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_we_may_read_and_the_first_text_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        assert_eq!(write_once(&path, || Ok("first".to_owned())).unwrap(), "first");
        assert_eq!(write_once(&path, || Ok("second".to_owned())).unwrap(), "first");
        write(&path, "third").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
