//! Writes the members of an archive into a temporary folder. Nothing is written outside it, and nothing is overwritten.
//!
//! The folder contains only files and folders. A link to another member becomes a second name (a hard link) of that member's file.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use packds_system::{Unfinished, to_u64};
use tempfile::TempDir;

use super::paths::{as_path, lossy};
use super::spool::{SpoolFolder, spool_error};
use super::tally::Tally;
use super::tar::Link;
use super::warning::Warning;
use crate::error::ConvertError;

/// The block size of a file system. Each file is assumed to take at least one block, so that archive bombs of many
/// empty files are detected.
const BLOCK_BYTES: u64 = 4096;

/// A temporary folder with the members unpacked so far.
pub(super) struct Unpacker<'a> {
    archive: &'a Path,
    spool: &'a SpoolFolder,
    folder: TempDir,
    _unfinished: Unfinished,
    /// Free bytes of the file system.
    pub(super) free: u64,
    /// Bytes that the members unpacked so far occupy on the file system.
    used: u64,
    links: Vec<(PathBuf, Link)>,
    special_files: Tally,
}

/// A member being written.
pub(super) struct Writing<'u, 'a> {
    unpacker: &'u mut Unpacker<'a>,
    file: File,
}

impl<'a> Unpacker<'a> {
    /// Creates an empty folder.
    pub(super) fn create(archive: &'a Path, spool: &'a SpoolFolder) -> Result<Self, ConvertError> {
        spool.unpacking.check()?;
        let failed = |error| spool_error(&spool.path, error);
        let space = rustix::fs::statvfs(&spool.path).map_err(|errno| failed(errno.into()))?;
        let folder = tempfile::Builder::new().prefix("packds-").tempdir_in(&spool.path).map_err(failed)?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let _unfinished = Unfinished::new(folder.path());
        Ok(Self {
            archive,
            spool,
            folder,
            _unfinished,
            free,
            used: 0,
            links: Vec::new(),
            special_files: Tally::default(),
        })
    }

    /// Refuses an archive whose stated size exceeds the free space.
    pub(super) fn expect(&self, bytes: u64) -> Result<(), ConvertError> {
        if bytes <= self.free { Ok(()) } else { Err(self.full(&format!("{bytes} bytes"))) }
    }

    /// Starts a file. `None` if its name refers to the folder itself.
    pub(super) fn file(&mut self, name: &[u8]) -> Result<Option<Writing<'_, 'a>>, ConvertError> {
        let Some(path) = self.place(name)? else { return Ok(None) };
        self.take_room(BLOCK_BYTES)?;
        let parent = path.parent().unwrap_or(&path);
        self.make_folder(parent, name)?;
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = made.map_err(|error| self.not_made(name, error))?;
        Ok(Some(Writing { unpacker: self, file }))
    }

    /// Creates a folder if it does not exist.
    pub(super) fn folder(&mut self, name: &[u8]) -> Result<(), ConvertError> {
        let Some(path) = self.place(name)? else { return Ok(()) };
        self.take_room(BLOCK_BYTES)?;
        self.make_folder(&path, name)
    }

    /// Remembers a link until all members are unpacked.
    pub(super) fn link(&mut self, name: &[u8], link: Link) -> Result<(), ConvertError> {
        if let Some(path) = self.place(name)? {
            self.take_room(BLOCK_BYTES)?;
            self.links.push((path, link));
        }
        Ok(())
    }

    /// Counts a pipe or a device, which is not unpacked.
    pub(super) fn skip(&mut self, name: &[u8]) {
        self.special_files.add(name);
    }

    /// Creates the links. Returns the folder, and warnings about members that were not unpacked.
    pub(super) fn finish(mut self) -> Result<(TempDir, Vec<Warning>), ConvertError> {
        let mut lost = Tally::default();
        for (path, link) in std::mem::take(&mut self.links) {
            self.spool.unpacking.check()?;
            let name = path.strip_prefix(self.folder.path()).unwrap_or(&path).as_os_str().as_bytes().to_vec();
            let target = self.target(&path, &link).filter(|target| target.is_file());
            let Some(target) = target else {
                lost.add(&name);
                continue;
            };
            self.make_folder(path.parent().unwrap_or(&path), &name)?;
            std::fs::hard_link(target, &path).map_err(|error| self.not_made(&name, error))?;
        }
        let warnings = [
            lost.warning(|count, first| Warning::LinksLeftOut { count, first }),
            self.special_files.warning(|count, first| Warning::SpecialFiles { count, first }),
        ];
        Ok((self.folder, warnings.into_iter().flatten().collect()))
    }

    /// The path of the file that a link leads to. `None` if the file is outside the folder.
    fn target(&self, path: &Path, link: &Link) -> Option<PathBuf> {
        let root = self.folder.path();
        let (mut folder, target) = match link {
            Link::Hard(target) => (root.to_owned(), target),
            Link::Symbolic(target) => (path.parent()?.to_owned(), target),
        };
        if target.starts_with(b"/") {
            return None;
        }
        for part in target.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." if folder == root => return None,
                b".." => folder = folder.parent()?.to_owned(),
                part => folder.push(as_path(part)),
            }
        }
        Some(folder)
    }

    /// The path for a member in the folder. `None` if it is the folder itself.
    fn place(&mut self, name: &[u8]) -> Result<Option<PathBuf>, ConvertError> {
        self.spool.unpacking.check()?;
        let is_drive = matches!(name, [letter, b':', ..] if letter.is_ascii_alphabetic());
        if name.starts_with(b"/") || is_drive || name.contains(&0) {
            return Err(self.refused(name, "an absolute path"));
        }
        let mut path = self.folder.path().to_owned();
        let mut depth = 0;
        for part in name.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return Err(self.refused(name, "a path that leaves the archive")),
                part => {
                    path.push(as_path(part));
                    depth += 1;
                }
            }
        }
        Ok((depth > 0).then_some(path))
    }

    fn refused(&self, name: &[u8], what: &str) -> ConvertError {
        let hint = "unpack it with a program that you trust, check the result, and pass the folder";
        ConvertError::unsupported(self.archive, &lossy(name), format!("the name of this member is {what}"), hint)
    }

    fn make_folder(&self, path: &Path, name: &[u8]) -> Result<(), ConvertError> {
        std::fs::create_dir_all(path).map_err(|error| self.not_made(name, error))
    }

    fn not_made(&self, name: &[u8], error: std::io::Error) -> ConvertError {
        match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
                let hint = "create the archive again with unique names";
                let reason = "its name conflicts with another member of the archive";
                ConvertError::contradictory(self.archive, &lossy(name), reason, hint)
            }
            ErrorKind::InvalidFilename => {
                let hint = "create the archive again with shorter names";
                ConvertError::unsupported(self.archive, &lossy(name), "its name is too long to unpack", hint)
            }
            _ => spool_error(&self.spool.path, error),
        }
    }

    /// Counts the space for these bytes of a member. Returns an error if too little is free.
    fn take_room(&mut self, bytes: u64) -> Result<(), ConvertError> {
        let used = self.used.saturating_add(bytes);
        if used > self.free {
            return Err(self.full("more bytes"));
        }
        self.spool.unpacking.tell(self.used, used);
        self.used = used;
        Ok(())
    }

    fn full(&self, found: &str) -> ConvertError {
        let folder = self.spool.path.display();
        let reason = format!("unpacking it needs {found}, but {folder} has {} bytes of free space", self.free);
        let hint = "free some space there, or write the pack to another disk: archives are unpacked next to the pack";
        ConvertError::unsupported(self.archive, "", reason, hint)
    }
}

impl Writing<'_, '_> {
    /// Refuses a member whose stated size exceeds the free space.
    pub(super) fn expect(&self, bytes: u64) -> Result<(), ConvertError> {
        self.unpacker.expect(bytes)
    }

    /// Appends bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        let spool = self.unpacker.spool;
        spool.unpacking.check()?;
        self.unpacker.take_room(to_u64(bytes.len()))?;
        self.file.write_all(bytes).map_err(|error| spool_error(&spool.path, error))
    }
}
