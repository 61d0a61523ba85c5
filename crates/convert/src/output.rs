//! The output file: written beside its final name, and given that name only once it is whole and on disk.

mod place;
mod working;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{RenameFlags, renameat_with};

use self::place::{check_folder, parent, resolved};
pub use self::place::{check_output, place_output};
use self::working::{Kind, lock_working};
use crate::ConvertError;

/// A file that is being written under a working name; dropped before [`Output::commit`] it leaves nothing behind.
///
/// Its lock is held as long as the working name exists, so the name leads to nothing else meanwhile.
pub(crate) struct Output {
    file: File,
    /// As the user gave it.
    target: PathBuf,
    /// The target, or what it links to.
    place: PathBuf,
    working: PathBuf,
    force: bool,
    is_folder: bool,
    committed: bool,
}

impl Output {
    /// Opens the working file `.NAME.packing` beside `target`, or beside the file that it links to.
    ///
    /// A working file that a killed conversion left is used again; one that is being written is not.
    pub(crate) fn create(target: &Path, force: bool) -> Result<Self, ConvertError> {
        Self::create_kind(target, force, false)
    }

    /// As [`create`](Self::create), a file or a folder. A folder takes the place of an empty one only.
    pub(crate) fn create_kind(
        target: &Path,
        force: bool,
        is_folder: bool,
    ) -> Result<Self, ConvertError> {
        let place = if is_folder {
            check_folder(target)?;
            resolved(target)?
        } else {
            place_output(target, force)?
        };
        let working = working_path(&place);
        let kind = match is_folder {
            true => Kind::Folder,
            false => Kind::File,
        };
        let file = lock_working(&working, kind, target)?;
        // What a killed conversion left.
        let emptied = match kind {
            Kind::Folder => empty_folder(&working),
            Kind::File => file.set_len(0),
        };
        emptied.map_err(ConvertError::io(&working))?;
        Ok(Self {
            file,
            target: target.to_owned(),
            place,
            working,
            force,
            is_folder,
            committed: false,
        })
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The working file or folder.
    pub(crate) fn working(&self) -> &Path {
        &self.working
    }

    /// Bytes of the file, or of all files in the folder.
    pub(crate) fn bytes(&self) -> Result<u64, ConvertError> {
        bytes_below(&self.working).map_err(ConvertError::io(&self.target))
    }

    /// The name the user gave: errors of writing are about this one.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Brings the bytes to disk.
    pub(crate) fn sync(&self) -> Result<(), ConvertError> {
        let synced = if self.is_folder {
            // One call, however many files there are.
            rustix::fs::syncfs(&self.file).map_err(io::Error::from)
        } else {
            self.file.sync_all()
        };
        synced.map_err(ConvertError::io(&self.target))
    }

    /// Gives the file its name, without ever replacing one unless that was asked for.
    pub(crate) fn commit(mut self) -> Result<(), ConvertError> {
        let result = if self.force || self.is_folder {
            std::fs::rename(&self.working, &self.place)
        } else {
            self.rename_new()
        };
        match result {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(ConvertError::OutputExists {
                    path: self.target.clone(),
                });
            }
            Err(source) => {
                return Err(ConvertError::Io {
                    path: self.target.clone(),
                    source,
                });
            }
        }
        self.committed = true;
        // The name is in the folder, and the folder too must reach the disk.
        let folder = parent(&self.place);
        File::open(&folder)
            .and_then(|f| f.sync_all())
            .map_err(|source| ConvertError::Io {
                path: folder,
                source,
            })
    }

    fn rename_new(&self) -> io::Result<()> {
        let here = rustix::fs::CWD;
        match renameat_with(
            here,
            &self.working,
            here,
            &self.place,
            RenameFlags::NOREPLACE,
        ) {
            // Some network file systems cannot do this in one step, but a hard link never replaces either.
            Err(
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP,
            ) => {
                std::fs::hard_link(&self.working, &self.place)?;
                std::fs::remove_file(&self.working)
            }
            other => other.map_err(io::Error::from),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing more can be done about a file that cannot be removed.
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
