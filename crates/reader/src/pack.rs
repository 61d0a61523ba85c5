//! An opened pack: its bytes, its name, and whether both still belong together.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_format::{FormatError, Limits};
use packds_system::to_u64;

use crate::ReadError;
use crate::storage::{self, PackBytes, Storage, Version};

/// An opened pack.
///
/// It dereferences to [`packds_format::Pack`]. Its bytes are read where they lie, in a mapped file or in memory. A file can
/// change or lose pages meanwhile: [`still_good`](Self::still_good) says whether it did.
#[derive(Debug)]
pub struct Pack {
    pack: packds_format::Pack<PackBytes>,
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// What the bytes were when they were opened.
    opened: Version,
}

impl Pack {
    /// # Errors
    /// [`ReadError::Format`], [`ReadError::Changed`] where the storage changed meanwhile, [`ReadError::Open`] and
    /// [`ReadError::Read`] where the system refuses something.
    pub(crate) fn new(
        storage: impl Storage + 'static,
        path: &Path,
        limits: Limits,
    ) -> Result<Self, ReadError> {
        let storage: Arc<dyn Storage> = Arc::new(storage);
        let bytes = PackBytes::of(&storage);
        let len = to_u64(bytes.as_ref().len());
        let opened = check_len(&*storage, path, len)?;
        let pack = packds_format::Pack::open_with(bytes, limits).map_err(|source| {
            // What is no longer there looks damaged: say that it has gone.
            let changed = check_len(&*storage, path, len).err();
            changed.unwrap_or_else(|| ReadError::Format {
                path: path.to_owned(),
                source,
            })
        })?;
        let pack = Self {
            pack,
            storage,
            path: path.to_owned(),
            opened,
        };
        pack.no_page_lost()?;
        Ok(pack)
    }

    /// The path it was opened by, or the name that bytes in memory were given.
    #[must_use]
    pub fn file_path(&self) -> &Path {
        &self.path
    }

    /// The open file: it stays the same one even where another is renamed over the path.
    ///
    /// # Errors
    /// The pack lies in memory.
    pub fn file(&self) -> io::Result<&File> {
        let in_memory = || io::Error::other("the pack does not lie in a file");
        self.storage.file().ok_or_else(in_memory)
    }

    /// The same file once more, for reads past the page cache; none where there is none, or its file system refuses.
    #[doc(hidden)]
    #[must_use]
    pub fn open_past_cache(&self) -> Option<File> {
        storage::open_past_cache(self.storage.file()?, &self.path)
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Sees to it that a page which the file loses shows zeros when it is read, and does not end the process: other code may
    /// have installed a handler of SIGBUS since. Where the system refuses, the file's length is compared. Ask before reading;
    /// one system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`], or [`ReadError::Open`] where the system does not say.
    pub fn protect(&self) -> Result<(), ReadError> {
        self.storage.protect().or_else(|_| self.check_len())
    }

    /// The file's length.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.pack.trailer().file_len
    }

    /// Checks that the file still has the length it was opened with. Cheap: one system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`], or [`ReadError::Open`] where the system does not say.
    pub(crate) fn check_len(&self) -> Result<(), ReadError> {
        check_len(self.storage(), &self.path, self.file_len()).map(drop)
    }

    /// Checks that the file has the length that it was opened with and was not written to since, by its time of
    /// modification. One system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`], [`ReadError::Modified`], or [`ReadError::Open`] where the system does not say.
    pub(crate) fn check_unchanged(&self) -> Result<(), ReadError> {
        if check_len(self.storage(), &self.path, self.file_len())? != self.opened {
            return Err(ReadError::Modified {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    /// Whether all that was read in place until now were the bytes that the file had when it was opened: nobody wrote to
    /// it, and no page shows zeros because the file no longer has it or the disk does not deliver it. Ask after reading: what
    /// was compared with a checksum once is not compared again. One system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`] where the file is shorter or longer now, [`ReadError::Modified`] where it was written to,
    /// [`ReadError::Read`] where a page could not be read.
    pub fn still_good(&self) -> Result<(), ReadError> {
        self.check_unchanged()?;
        self.check_pages()
    }

    /// As [`still_good`](Self::still_good), of a file that may be written to meanwhile.
    pub(crate) fn no_page_lost(&self) -> Result<(), ReadError> {
        self.check_len()?;
        self.check_pages()
    }

    fn check_pages(&self) -> Result<(), ReadError> {
        let Some(offset) = self.storage.first_lost() else {
            return Ok(());
        };
        let reason = "the file was shorter for a time, or the disk failed";
        Err(ReadError::Read {
            path: self.path.clone(),
            offset,
            len: 1,
            source: io::Error::other(reason),
        })
    }

    /// Reads bytes into a buffer.
    pub(crate) fn read_at(&self, out: &mut [u8], offset: u64) -> Result<(), ReadError> {
        let mut filled = 0;
        while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(to_u64(filled));
            let source = match self.storage.read_at(rest, at) {
                Ok(0) => io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends early"),
                Ok(n) => {
                    filled += n;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            // The end of the file came too early: say how early, not that.
            self.check_len()?;
            return Err(ReadError::Read {
                path: self.path.clone(),
                offset,
                len: to_u64(out.len()),
                source,
            });
        }
        Ok(())
    }

    /// What was read in place, if its pages were [there](Self::still_good): damage that the zeros of lost pages
    /// look like is told as what it is.
    ///
    /// # Errors
    /// As for [`still_good`](Self::still_good), else [`ReadError::Format`].
    pub fn whole<T>(&self, read: Result<T, FormatError>) -> Result<T, ReadError> {
        self.still_good()?;
        self.told(read)
    }

    /// Bytes of the file that are in the page cache, asked of every 16th page; none where the system does not say.
    #[doc(hidden)]
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        let (starts, step) = self.looked_at()?;
        let mut bytes = 0;
        for start in starts {
            if self.storage.is_resident(start)? {
                bytes += step.min(self.file_len() - start);
            }
        }
        Some(bytes)
    }

    /// Whether all of the file is in the page cache, asked of every 16th page; none where the system does not say. It says so to who
    /// owns a file or may write it.
    pub(crate) fn is_resident(&self) -> Option<bool> {
        use rustix::fs::{Access, access, fstat};
        if let Some(file) = self.storage.file() {
            let owner = fstat(file).ok()?.st_uid;
            let is_told = owner == rustix::process::geteuid().as_raw()
                || access(&self.path, Access::WRITE_OK).is_ok();
            if !is_told {
                return None;
            }
        }
        let (mut starts, _) = self.looked_at()?;
        let lacks = starts.find_map(|start| match self.storage.is_resident(start) {
            Some(true) => None,
            other => Some(other),
        });
        lacks.unwrap_or(Some(true))
    }

    /// Where pages begin that stand for all, and the bytes that each stands for.
    fn looked_at(&self) -> Option<(impl Iterator<Item = u64>, u64)> {
        let step = 16 * rustix::param::page_size();
        let starts = (0..self.file_len()).step_by(step);
        Some((starts, u64::try_from(step).ok()?))
    }

    /// Puts the path to an error of the format, if there is one.
    ///
    /// # Errors
    /// [`ReadError::Format`].
    pub fn told<T>(&self, result: Result<T, FormatError>) -> Result<T, ReadError> {
        result.map_err(|error| self.error(error))
    }

    /// Puts the path to an error of the format.
    #[must_use]
    pub fn error(&self, source: FormatError) -> ReadError {
        ReadError::Format {
            path: self.path.clone(),
            source,
        }
    }
}

impl Deref for Pack {
    type Target = packds_format::Pack<PackBytes>;

    fn deref(&self) -> &Self::Target {
        &self.pack
    }
}

fn check_len(storage: &dyn Storage, path: &Path, expected: u64) -> Result<Version, ReadError> {
    let version = storage.version().map_err(|source| ReadError::Open {
        path: path.to_owned(),
        source,
    })?;
    if version.len != expected {
        return Err(ReadError::Changed {
            path: path.to_owned(),
            expected,
            found: version.len,
        });
    }
    Ok(version)
}
