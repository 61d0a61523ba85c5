//! The output file or folder. It is written under a temporary name next to its final name, and renamed only once it is
//! complete and on disk.

mod place;
mod working;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use packds_system::Unfinished;
use rustix::fs::{RenameFlags, renameat_with};

use self::place::{check_folder, parent, resolved};
pub(crate) use self::place::{check_name, check_no_version, is_set_name};
pub use self::place::{check_output, place_output};
use self::working::{Kind, lock_working};
use crate::ConvertError;

/// A file or folder that is being written under a working name. If it is dropped before [`Output::commit`], it leaves
/// nothing behind. It stays locked while the working name exists, so no other process uses that name.
pub(crate) struct Output {
    file: File,
    /// The path as the user gave it.
    target: PathBuf,
    /// The target, or the file that it links to.
    place: PathBuf,
    working: PathBuf,
    force: bool,
    is_folder: bool,
    committed: bool,
    _unfinished: Unfinished,
}

impl Output {
    /// Opens the working file `.NAME.packing` next to `target`, or next to the file that it links to. A working file
    /// that a killed conversion left behind is reused. A file in use by another conversion is rejected.
    pub(crate) fn create(target: &Path, force: bool) -> Result<Self, ConvertError> {
        Self::create_kind(target, force, false)
    }

    /// Like [`create`](Self::create), but for a file or a folder. A folder can only replace an empty folder.
    pub(crate) fn create_kind(target: &Path, force: bool, is_folder: bool) -> Result<Self, ConvertError> {
        let (kind, place) = if is_folder {
            check_folder(target)?;
            (Kind::Folder, resolved(target)?)
        } else {
            (Kind::File, place_output(target, force)?)
        };
        let working = working_path(&place);
        let file = lock_working(&working, kind, target)?;
        // Remove anything that a killed conversion left behind.
        let emptied = if is_folder { empty_folder(&working) } else { file.set_len(0) };
        emptied.map_err(ConvertError::io(&working))?;
        let _unfinished = Unfinished::new(&working);
        Ok(Self { file, target: target.to_owned(), place, working, force, is_folder, committed: false, _unfinished })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn working(&self) -> &Path {
        &self.working
    }

    /// Size of the file, or of all files in the folder.
    pub(crate) fn bytes(&self) -> Result<u64, ConvertError> {
        bytes_below(&self.working).map_err(ConvertError::io(&self.target))
    }

    /// The path that the user gave, for error messages.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    pub(crate) fn sync(&self) -> Result<(), ConvertError> {
        let synced = if self.is_folder {
            // A single call syncs the whole file system, however many files the folder has.
            rustix::fs::syncfs(&self.file).map_err(io::Error::from)
        } else {
            self.file.sync_all()
        };
        synced.map_err(ConvertError::io(&self.target))
    }

    /// Renames the output to its final name. Replaces an existing file only with `force`.
    pub(crate) fn commit(mut self) -> Result<(), ConvertError> {
        let result =
            if self.force || self.is_folder { std::fs::rename(&self.working, &self.place) } else { self.rename_new() };
        result.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => ConvertError::OutputExists { path: self.target.clone() },
            _ => ConvertError::Io { path: self.target.clone(), source },
        })?;
        self.committed = true;
        // The new name is stored in the folder, so the folder must be synced too.
        sync_folder(&parent(&self.place))
    }

    fn rename_new(&self) -> io::Result<()> {
        let here = rustix::fs::CWD;
        match renameat_with(here, &self.working, here, &self.place, RenameFlags::NOREPLACE) {
            // Some network file systems do not support NOREPLACE. A hard link is created instead, because this never
            // replaces a file either.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
                std::fs::hard_link(&self.working, &self.place)?;
                std::fs::remove_file(&self.working)
            }
            other => other.map_err(io::Error::from),
        }
    }
}

/// Waits until the names in a folder are on disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), ConvertError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(ConvertError::io(folder))
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.committed {
            // If the file cannot be removed, nothing more can be done.
            let _ = if self.is_folder {
                std::fs::remove_dir_all(&self.working)
            } else {
                std::fs::remove_file(&self.working)
            };
        }
    }
}

fn working_path(place: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(".packing");
    place.with_file_name(name)
}

fn empty_folder(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn bytes_below(path: &Path) -> io::Result<u64> {
    let metadata = std::fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    std::fs::read_dir(path)?.try_fold(0, |sum, entry| Ok(sum + bytes_below(&entry?.path())?))
}

#[cfg(test)]
mod tests;
