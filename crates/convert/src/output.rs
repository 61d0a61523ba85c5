//! The output file: written beside its final name, and given that name only once it is whole and on disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, RenameFlags, flock, renameat_with};

use crate::ConvertError;

/// A file that is being written under a working name; dropped before [`Output::commit`] it leaves nothing behind.
pub(crate) struct Output {
    file: File,
    target: PathBuf,
    working: PathBuf,
    force: bool,
    is_folder: bool,
    committed: bool,
}

impl Output {
    /// Opens the working file `.NAME.packing` beside `target`.
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
        let io_error = |path: &Path| {
            let path = path.to_owned();
            move |source| ConvertError::Io { path, source }
        };
        if is_folder {
            check_folder(target)?;
        } else {
            check_output(target, force)?;
        }
        let name = target.file_name().unwrap_or_default();
        let mut working_name = std::ffi::OsString::from(".");
        working_name.push(name);
        working_name.push(".packing");
        let working = target.with_file_name(working_name);
        let file = open_working(&working, is_folder);
        let file = file.map_err(|source| ConvertError::OutputNotWritable {
            path: target.to_owned(),
            source,
        })?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // A file system without locks leaves two conversions to the same name to the user's care.
            Ok(())
            | Err(
                rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOLCK,
            ) => {}
            Err(_) => {
                return Err(ConvertError::OutputBusy {
                    path: target.to_owned(),
                });
            }
        }
        if is_folder {
            // What a killed export left.
            empty_folder(&working).map_err(io_error(&working))?;
        } else {
            file.set_len(0).map_err(io_error(&working))?;
        }
        Ok(Self {
            file,
            target: target.to_owned(),
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
            // Opened again, because a library may have put a new file in the place of the one that was made here.
            File::open(&self.working).and_then(|file| file.sync_all())
        };
        synced.map_err(ConvertError::io(&self.target))
    }

    /// Gives the file its name, without ever replacing one unless that was asked for.
    pub(crate) fn commit(mut self) -> Result<(), ConvertError> {
        let result = if self.force || self.is_folder {
            std::fs::rename(&self.working, &self.target)
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
        let folder = parent(&self.target);
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
            &self.target,
            RenameFlags::NOREPLACE,
        ) {
            // Some network file systems cannot do this in one step, but a hard link never replaces either.
            Err(
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP,
            ) => {
                std::fs::hard_link(&self.working, &self.target)?;
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

fn open_working(working: &Path, is_folder: bool) -> io::Result<File> {
    if is_folder {
        std::fs::create_dir_all(working)?;
        return File::open(working);
    }
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .read(true)
        .open(working)
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

/// Refuses a target that cannot become a folder: folders with something in them are never replaced.
fn check_folder(target: &Path) -> Result<(), ConvertError> {
    let path = target.to_owned();
    let folder = parent(target);
    if target.file_name().is_none() || !folder.is_dir() {
        return Err(ConvertError::OutputFolderMissing { path, folder });
    }
    match std::fs::read_dir(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(ConvertError::OutputExists { path })
        }
        Err(error) => Err(ConvertError::io(target)(error)),
        Ok(mut entries) => match entries.next() {
            Some(_) => Err(ConvertError::OutputFolderFull { path }),
            None => Ok(()),
        },
    }
}

/// Refuses a target that cannot become the output, before any work is done.
///
/// # Errors
/// [`ConvertError::OutputFolderMissing`], [`ConvertError::OutputIsFolder`], or [`ConvertError::OutputExists`] unless
/// `force` says that it may be replaced.
pub fn check_output(target: &Path, force: bool) -> Result<(), ConvertError> {
    let there = std::fs::symlink_metadata(target);
    // Some folders have no name of their own: `.`, `..` and `/`.
    if there.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
        return Err(ConvertError::OutputIsFolder {
            path: target.to_owned(),
        });
    }
    let folder = parent(target);
    if target.file_name().is_none() || !folder.is_dir() {
        return Err(ConvertError::OutputFolderMissing {
            path: target.to_owned(),
            folder,
        });
    }
    if there.is_ok() && !force {
        return Err(ConvertError::OutputExists {
            path: target.to_owned(),
        });
    }
    Ok(())
}

fn parent(target: &Path) -> PathBuf {
    match target.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
