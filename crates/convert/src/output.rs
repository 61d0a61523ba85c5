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
    committed: bool,
}

impl Output {
    /// Opens the working file `.NAME.packing` beside `target`.
    ///
    /// A working file that a killed conversion left is used again; one that is being written is not.
    pub(crate) fn create(target: &Path, force: bool) -> Result<Self, ConvertError> {
        let io_error = |path: &Path| {
            let path = path.to_owned();
            move |source| ConvertError::Io { path, source }
        };
        check_output(target, force)?;
        let name = target.file_name().unwrap_or_default();
        let mut working_name = std::ffi::OsString::from(".");
        working_name.push(name);
        working_name.push(".packing");
        let working = target.with_file_name(working_name);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .read(true)
            .open(&working);
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
        file.set_len(0).map_err(io_error(&working))?;
        Ok(Self {
            file,
            target: target.to_owned(),
            working,
            force,
            committed: false,
        })
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The name the user gave: errors of writing are about this one.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Brings the bytes to disk.
    pub(crate) fn sync(&self) -> Result<(), ConvertError> {
        self.file.sync_all().map_err(|source| ConvertError::Io {
            path: self.target.clone(),
            source,
        })
    }

    /// Gives the file its name, without ever replacing one unless that was asked for.
    pub(crate) fn commit(mut self) -> Result<(), ConvertError> {
        let result = if self.force {
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
            let _ = std::fs::remove_file(&self.working);
        }
    }
}

/// Refuses a target that cannot become the output, before any work is done.
///
/// # Errors
/// [`ConvertError::OutputFolderMissing`], [`ConvertError::OutputIsFolder`], or [`ConvertError::OutputExists`] unless
/// `force` says that it may be replaced.
pub fn check_output(target: &Path, force: bool) -> Result<(), ConvertError> {
    let folder = parent(target);
    if target.file_name().is_none() || !folder.is_dir() {
        return Err(ConvertError::OutputFolderMissing {
            path: target.to_owned(),
            folder,
        });
    }
    match std::fs::symlink_metadata(target) {
        Ok(found) if found.is_dir() => Err(ConvertError::OutputIsFolder {
            path: target.to_owned(),
        }),
        Ok(_) if !force => Err(ConvertError::OutputExists {
            path: target.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn parent(target: &Path) -> PathBuf {
    match target.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
