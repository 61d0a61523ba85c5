//! Opens only regular files. Opening or reading a pipe, socket or device may block forever.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, openat};

/// Opens a regular file for reading. Follows links. Never blocks, whatever the path leads to.
///
/// # Errors
/// The system's error. For a folder it is [`io::ErrorKind::IsADirectory`]. For anything else that is not a regular file
/// it is [`io::ErrorKind::InvalidInput`] with the message `not a regular file`.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_checked(path, OFlags::RDONLY)
}

/// Reads all bytes of a regular file.
///
/// # Errors
/// As for [`open_regular`].
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the path is a regular file. False if nothing is there. Follows links and opens nothing.
///
/// # Errors
/// As for [`open_regular`] if something else is there, or if the path is a link to nothing.
pub fn is_regular(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(found) => check(&found).map(|()| true),
        Err(error) => match error.kind() {
            // The name is invalid, so no such file exists.
            io::ErrorKind::InvalidFilename => Ok(false),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if !path.is_symlink() => Ok(false),
            io::ErrorKind::NotFound => {
                Err(io::Error::new(error.kind(), "the link points to a file that does not exist"))
            }
            _ => Err(error),
        },
    }
}

/// Creates a file for writing. With `force`, an existing regular file is truncated instead. It never blocks.
///
/// # Errors
/// As for [`open_regular`], and [`io::ErrorKind::AlreadyExists`] if the file exists and `force` is false.
pub fn create_regular(path: &Path, force: bool) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | if force { OFlags::empty() } else { OFlags::EXCL };
    let file = open_checked(path, flags)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opens the path, which must be a regular file.
fn open_checked(path: &Path, flags: OFlags) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe waits for its other end.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = match rustix::io::retry_on_intr(|| openat(CWD, path, flags, mode)) {
        Ok(file) => File::from(file),
        // The system returns this error for a socket, and for a pipe without a reader.
        Err(rustix::io::Errno::NXIO) => return Err(not_regular()),
        Err(error) => return Err(error.into()),
    };
    check(&file.metadata()?)?;
    // NONBLOCK is no longer needed, and it makes io_uring return early instead of waiting.
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// Rejects anything that is not a regular file.
fn check(found: &Metadata) -> io::Result<()> {
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    found.is_file().then_some(()).ok_or_else(not_regular)
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::{fs::symlink, net::UnixListener};

    use rustix::fs::{fcntl_getfl, mkfifoat};

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "bytes").unwrap();
        symlink("file", path("link")).unwrap();
        mkfifoat(CWD, path("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        symlink("pipe", path("link_to_pipe")).unwrap();
        let _listens = UnixListener::bind(path("socket")).unwrap();
        for name in ["file", "link"] {
            assert_eq!(read_regular(&path(name)).unwrap(), b"bytes");
            let file = open_regular(&path(name)).unwrap();
            let flags = fcntl_getfl(&file).unwrap();
            assert!(!flags.contains(OFlags::NONBLOCK), "{name}");
        }
        for name in ["pipe", "link_to_pipe", "socket"] {
            let error = open_regular(&path(name)).unwrap_err();
            assert_eq!(error.to_string(), "not a regular file", "{name}");
        }
        let error = open_regular(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
        for name in ["pipe", "socket"] {
            let error = create_regular(&path(name), true).unwrap_err();
            assert_eq!(error.to_string(), "not a regular file", "{name}");
        }
        create_regular(&path("file"), true).unwrap();
        assert_eq!(fs::read(path("file")).unwrap(), b"");
        let error = create_regular(&path("file"), false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        create_regular(&path("new"), false).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        symlink("circle", path("circle")).unwrap();
        for name in ["dangling", "circle", "pipe", "socket", "."] {
            assert!(is_regular(&path(name)).is_err(), "{name}");
        }
        let long = "x".repeat(300);
        for (name, is) in [("link", true), ("nothing", false), ("file/a", false), (&long, false)] {
            assert_eq!(is_regular(&path(name)).unwrap(), is, "{name}");
        }
        let kind = |path: &Path| open_regular(path).unwrap_err().kind();
        assert_eq!(kind(dir.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&path("nothing")), io::ErrorKind::NotFound);
    }
}
