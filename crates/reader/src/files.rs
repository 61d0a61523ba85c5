//! The files of an open pack: one, or the shards of a set. Shards are opened when they are first used.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use packds_format::{FormatError, ShardEntry};

use crate::ReadError;
use crate::mmap::MappedFile;
use crate::storage::{PackBytes, Storage, Version};

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) path: PathBuf,
    /// The version of the bytes when the file was opened.
    opened: Version,
}

/// The files of a pack.
#[derive(Debug)]
pub(crate) enum Files {
    One(OpenFile),
    Set(Arc<Shards>),
}

/// The files of a set.
#[derive(Debug)]
pub(crate) struct Shards {
    folder: PathBuf,
    /// The path of each shard in the folder.
    names: Vec<String>,
    /// Each shard, once it was used.
    open: Box<[OnceLock<OpenFile>]>,
    /// Whether much data will be loaded.
    will_load: AtomicBool,
}

impl OpenFile {
    /// # Errors
    /// [`ReadError::Changed`] if the length is not `len`, [`ReadError::Open`] if it cannot be determined.
    pub(crate) fn new(storage: Arc<dyn Storage>, path: &Path, len: u64) -> Result<Self, ReadError> {
        let opened = version_of(&*storage, path, len)?;
        Ok(Self { storage, path: path.to_owned(), opened })
    }

    /// Checks the length. This costs one system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`] if it differs, [`ReadError::Open`] if it cannot be determined.
    pub(crate) fn check_len(&self) -> Result<(), ReadError> {
        version_of(&*self.storage, &self.path, self.opened.len).map(drop)
    }

    /// Checks the length and the modification time. This costs one system call.
    ///
    /// # Errors
    /// As for [`check_len`](Self::check_len), and [`ReadError::Modified`].
    pub(crate) fn check_unchanged(&self) -> Result<(), ReadError> {
        if version_of(&*self.storage, &self.path, self.opened.len)? != self.opened {
            return Err(ReadError::Modified { path: self.path.clone() });
        }
        Ok(())
    }

    /// # Errors
    /// [`ReadError::Read`] if a page could not be read.
    pub(crate) fn check_pages(&self) -> Result<(), ReadError> {
        let Some(offset) = self.storage.first_lost() else { return Ok(()) };
        let reason = "the file was temporarily shorter, or the disk failed";
        Err(ReadError::Read { path: self.path.clone(), offset, len: 1, source: io::Error::other(reason) })
    }
}

fn version_of(storage: &dyn Storage, path: &Path, expected: u64) -> Result<Version, ReadError> {
    let version = storage.version().map_err(|source| ReadError::Open { path: path.to_owned(), source })?;
    if version.len != expected {
        return Err(ReadError::Changed { path: path.to_owned(), expected, found: version.len });
    }
    Ok(version)
}

impl Files {
    /// The paths of all files.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::One(file) => vec![file.path.clone()],
            Self::Set(shards) => shards.names.iter().map(|name| shards.folder.join(name)).collect(),
        }
    }

    /// The file, unless the pack is a set.
    pub(crate) fn one(&self) -> Option<&OpenFile> {
        match self {
            Self::One(file) => Some(file),
            Self::Set(_) => None,
        }
    }

    /// A file by its number, if it is open.
    pub(crate) fn get(&self, number: usize) -> Option<&OpenFile> {
        match self {
            Self::One(file) => (number == 0).then_some(file),
            Self::Set(shards) => shards.open.get(number)?.get(),
        }
    }

    /// All open files.
    pub(crate) fn open(&self) -> impl Iterator<Item = &OpenFile> {
        let (one, shards) = match self {
            Self::One(file) => (Some(file), &[][..]),
            Self::Set(shards) => (None, &*shards.open),
        };
        one.into_iter().chain(shards.iter().filter_map(OnceLock::get))
    }

    /// Announces that much data will be loaded.
    pub(crate) fn will_load(&self) {
        if let Self::Set(shards) = self {
            shards.will_load.store(true, Ordering::Relaxed);
        }
        for file in self.open() {
            // This fails if the kernel has no huge pages. In that case, pages are small.
            let _ = file.storage.will_load();
        }
    }
}

/// Allows this process as many open files as the system lets it. Every used shard of a set stays open, and the usual
/// limit is 1024.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this fails, opening the next file fails too, and says why.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

impl Shards {
    pub(crate) fn new(folder: &Path, shards: &[ShardEntry]) -> Self {
        let open = shards.iter().map(|_| OnceLock::new()).collect();
        let names = shards.iter().map(|shard| shard.path.clone()).collect();
        Self { folder: folder.to_owned(), names, open, will_load: AtomicBool::new(false) }
    }

    /// The bytes of a shard. Opens it if it was not used before.
    ///
    /// # Errors
    /// [`FormatError::Open`] if it cannot be opened.
    pub(crate) fn bytes(&self, number: usize, entry: &ShardEntry) -> Result<PackBytes, FormatError> {
        let missing = || FormatError::Open(io::ErrorKind::NotFound.into());
        let slot = self.open.get(number).ok_or_else(missing)?;
        let file = match slot.get() {
            Some(file) => file,
            None => {
                let opened = self.opened(entry).map_err(FormatError::Open)?;
                slot.get_or_init(|| opened)
            }
        };
        Ok(PackBytes::of(&file.storage))
    }

    fn opened(&self, entry: &ShardEntry) -> io::Result<OpenFile> {
        let path = self.folder.join(&entry.path);
        let file = match MappedFile::open(&path) {
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                raise_file_limit();
                MappedFile::open(&path).map_err(|error| match error.raw_os_error() {
                    Some(libc::EMFILE) => io::Error::other(format!("{error}: allow more of them (`ulimit -n`)")),
                    _ => error,
                })?
            }
            opened => opened?,
        };
        if self.will_load.load(Ordering::Relaxed) {
            let _ = file.will_load();
        }
        // The format crate compares the length with the manifest.
        let opened = file.version()?;
        Ok(OpenFile { storage: Arc::new(file), path, opened })
    }
}
