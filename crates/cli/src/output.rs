//! Output files other than packs, written atomically. The caller decides whether an existing file may be replaced.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use packds_convert::{check_output, place_output};

use packds_report::{Figure, PlotFile};

use crate::failure::Failure;

/// Fails early if the file exists and `force` is not set, or if it cannot be replaced.
pub(crate) fn check_new(path: &Path, force: bool) -> Result<(), Failure> {
    if force {
        return Ok(check_output(path, true)?);
    }
    match path.symlink_metadata() {
        Ok(_) => Err(exists(path)),
        Err(_) => Ok(()),
    }
}

/// Writes a plot. An existing file is replaced only with `force`.
pub(crate) fn write_plot(file: &PlotFile, figure: &Figure, force: bool) -> Result<(), Failure> {
    write_file(file.path(), &file.bytes(figure)?, force)
}

/// Writes the whole file, or nothing. With `force` it replaces an existing file, which survives a failed write.
pub(crate) fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    if force {
        return replace_file(path, bytes);
    }
    write_new(path, bytes).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Failure::write(path, &error),
    })
}

/// Replaces a file atomically: readers see the old or the new content. If writing fails, the old file is kept.
///
/// A symbolic link is followed, not replaced.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let path = &place_output(path, true)?;
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".writing");
    let working = path.with_file_name(name);
    // A killed run may have left its temporary file behind.
    let _ = fs::remove_file(&working);
    let written = write_new(&working, bytes).and_then(|()| fs::rename(&working, path));
    written.map_err(|error| {
        // If removing it fails too, the write error is reported.
        let _ = fs::remove_file(&working);
        Failure::write(path, &error)
    })
}

/// A folder for results. If the command created it and leaves it empty, it is removed on drop.
pub(crate) struct ResultFolder {
    /// The folders that the command created, the innermost first.
    created: Vec<PathBuf>,
}

impl ResultFolder {
    /// Creates the folder and its parents, if they do not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let missing = path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        // If creating fails midway, the folders created so far are removed.
        let folder = Self { created: missing.map(Path::to_owned).collect() };
        fs::create_dir_all(path).map_err(|error| Failure::write(path, &error))?;
        Ok(folder)
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        // A folder that is not empty is not removed, and neither are its parents.
        let _ = self.created.iter().try_for_each(fs::remove_dir);
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        // Leave no partial file. If removing it fails too, the write error is reported.
        let _ = fs::remove_file(path);
    })
}

fn exists(path: &Path) -> Failure {
    Failure::not_run("already exists").at(path).hint("choose another name, or pass --force to replace it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_replaced_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.svg");
        write_file(&path, b"old", false).unwrap();
        assert!(write_file(&path, b"new", false).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        // A file left by a killed run is replaced. A folder of that name makes the write fail.
        let working = dir.path().join(".a.svg.writing");
        fs::write(&working, "half").unwrap();
        write_file(&path, b"new", true).unwrap();
        assert!(!working.exists());
        fs::create_dir(&working).unwrap();
        assert!(write_file(&path, b"newer", true).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn only_empty_folders_that_the_command_created_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (outer, inner) = (dir.path().join("a"), dir.path().join("a/b"));
        drop(ResultFolder::create(&inner).unwrap());
        assert!(!outer.exists() && dir.path().exists());
        fs::create_dir(&outer).unwrap();
        drop(ResultFolder::create(&inner).unwrap());
        assert!(outer.exists() && !inner.exists());
        let folder = ResultFolder::create(&inner).unwrap();
        fs::write(inner.join("c"), "").unwrap();
        drop(folder);
        assert!(inner.join("c").exists());
    }

    #[test]
    fn a_link_stays_and_a_socket_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a.svg"), dir.path().join("link.svg"));
        write_file(&path, b"old", false).unwrap();
        std::os::unix::fs::symlink("a.svg", &link).unwrap();
        assert!(check_new(&link, false).is_err());
        write_file(&link, b"new", true).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let socket = dir.path().join("socket.svg");
        let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(check_new(&socket, true).is_err());
        assert!(write_file(&socket, b"new", true).is_err());
        assert!(!socket.is_file());
    }
}
