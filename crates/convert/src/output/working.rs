//! The working file or folder of an output. It is created, or taken over from a killed conversion, and then locked.
//!
//! Its name is predictable, so anything else may already have that name. Such a file or folder is rejected and left
//! untouched.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::ConvertError;

/// Maximum number of attempts. An attempt fails if another conversion has just renamed or removed its file.
const MAX_TRIES: usize = 100;

/// What is written under the working name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
}

/// A working file or folder that is open but not yet locked.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    /// Whether this process has just created it.
    is_new: bool,
}

/// Creates or opens the working file or folder of `target` and locks it.
pub(super) fn lock_working(working: &Path, kind: Kind, target: &Path) -> Result<File, ConvertError> {
    for _ in 0..MAX_TRIES {
        if let Some(opened) = open(working, kind, target)?
            && let Some(file) = claim(opened, working, kind, target)?
        {
            return Ok(file);
        }
    }
    Err(busy(target))
}

/// Opens the working file or folder without following a link or waiting for a pipe. `None` if it was removed in the
/// meantime.
pub(super) fn open(working: &Path, kind: Kind, target: &Path) -> Result<Option<Opened>, ConvertError> {
    let opened = match kind {
        Kind::File => open_file(working),
        Kind::Folder => open_folder(working),
    };
    opened.map_err(|error| {
        let there = std::fs::symlink_metadata(working).ok();
        let found = there.and_then(|there| occupant(&there, kind, false));
        match found {
            Some(found) => occupied(working, found),
            None => ConvertError::OutputNotWritable { path: target.to_owned(), source: error.into() },
        }
    })
}

/// Locks the opened file. `None` if the working name now refers to something else, because then the opened file has
/// become another conversion's output.
pub(super) fn claim(opened: Opened, working: &Path, kind: Kind, target: &Path) -> Result<Option<File>, ConvertError> {
    let Opened { file, is_new } = opened;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        // If the file system lacks file locks, users must avoid running two conversions to the same output at the same
        // time.
        Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => {}
        Err(_) => return Err(busy(target)),
    }
    let held = file.metadata().map_err(ConvertError::io(working))?;
    let named = match std::fs::symlink_metadata(working) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        named => named.map_err(ConvertError::io(working))?,
    };
    if (held.dev(), held.ino()) != (named.dev(), named.ino()) {
        return Ok(None);
    }
    match occupant(&held, kind, is_new) {
        Some(found) => Err(occupied(working, found)),
        None => Ok(Some(file)),
    }
}

fn open_file(path: &Path) -> Result<Option<Opened>, Errno> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let new = flags | OFlags::CREATE | OFlags::EXCL;
    match openat(CWD, path, new, Mode::from_raw_mode(0o666)) {
        Err(Errno::EXIST) => unless_gone(openat(CWD, path, flags, Mode::empty()), false),
        made => unless_gone(Ok(made?), true),
    }
}

fn open_folder(path: &Path) -> Result<Option<Opened>, Errno> {
    let is_new = match mkdirat(CWD, path, Mode::from_raw_mode(0o777)) {
        Err(Errno::EXIST) => false,
        made => made.map(|()| true)?,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    unless_gone(openat(CWD, path, flags, Mode::empty()), is_new)
}

/// The opened file. `None` if it has just disappeared.
fn unless_gone(opened: Result<OwnedFd, Errno>, is_new: bool) -> Result<Option<Opened>, Errno> {
    match opened {
        Err(Errno::NOENT) => Ok(None),
        opened => Ok(Some(Opened { file: opened?.into(), is_new })),
    }
}

/// Describes what prevents the use of this file or folder, if anything does. Files with several names or another owner
/// are rejected, because somebody could change the pack after its checksums are computed.
fn occupant(there: &Metadata, kind: Kind, is_new: bool) -> Option<&'static str> {
    let form = there.file_type();
    match kind {
        _ if form.is_symlink() => Some("a symbolic link"),
        Kind::File if form.is_dir() => Some("a folder"),
        Kind::File if !form.is_file() => Some("a pipe, socket or device"),
        Kind::File if there.nlink() > 1 => Some("a file with other names (hard links)"),
        Kind::Folder if !form.is_dir() => Some("a file"),
        // Some network file systems assign new files to another user.
        _ if is_new || there.uid() == geteuid().as_raw() => None,
        Kind::File => Some("a file owned by another user"),
        Kind::Folder => Some("a folder owned by another user"),
    }
}

fn occupied(working: &Path, found: &'static str) -> ConvertError {
    ConvertError::WorkingOccupied { path: working.to_owned(), found }
}

fn busy(target: &Path) -> ConvertError {
    ConvertError::OutputBusy { path: target.to_owned() }
}
