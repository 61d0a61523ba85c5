//! An open pack: its bytes and its path, with checks that the file has not changed.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_format::{FormatError, Limits};
use packds_system::to_u64;

use crate::ReadError;
use crate::mmap::open_past_cache;
use crate::storage::{PackBytes, Storage, Version};

/// An open pack.
///
/// It dereferences to [`packds_format::Pack`]. Its bytes are read in place, from a mapped file or from memory. The file
/// can change or lose pages after it was opened. [`still_good`](Self::still_good) detects this.
#[derive(Debug)]
pub struct Pack {
    pack: packds_format::Pack<PackBytes>,
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// The version of the bytes when the pack was opened.
    opened: Version,
}

impl Pack {
    /// # Errors
    /// [`ReadError::Format`] if the bytes are not a valid pack, [`ReadError::Changed`] if the storage changed
    /// meanwhile, [`ReadError::Open`] and [`ReadError::Read`] if a system call failed.
    pub(crate) fn new(storage: impl Storage + 'static, path: &Path, limits: Limits) -> Result<Self, ReadError> {
        let storage: Arc<dyn Storage> = Arc::new(storage);
        let bytes = PackBytes::of(&storage);
        let len = to_u64(bytes.as_ref().len());
        let opened = check_len(&*storage, path, len)?;
        let pack = packds_format::Pack::open_with(bytes, limits).map_err(|source| {
            // A file that was truncated meanwhile looks damaged. Report the truncation instead.
            let changed = check_len(&*storage, path, len).err();
            changed.unwrap_or_else(|| ReadError::Format { path: path.to_owned(), source })
        })?;
        let pack = Self { pack, storage, path: path.to_owned(), opened };
        pack.no_page_lost()?;
        Ok(pack)
    }

    /// The path of the file, or the name given to bytes in memory.
    pub fn file_path(&self) -> &Path {
        &self.path
    }

    /// The open file. It stays the same even if another file is renamed to the path.
    ///
    /// # Errors
    /// An error if the pack is in memory.
    pub fn file(&self) -> io::Result<&File> {
        let in_memory = || io::Error::other("the pack is not in a file");
        self.storage.file().ok_or_else(in_memory)
    }

    /// Opens the same file again for reads that bypass the page cache. `None` if there is no file or the file system
    /// does not support that.
    #[doc(hidden)]
    pub fn open_past_cache(&self) -> Option<File> {
        open_past_cache(self.storage.file()?, &self.path)
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Makes lost pages of the file read as zeros instead of ending the process. Call it again before each read,
    /// because other code may have replaced the SIGBUS handler. If the handler cannot be installed, the file's length
    /// is compared instead. This costs one system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`] if the length differs, [`ReadError::Open`] if it cannot be determined.
    pub fn protect(&self) -> Result<(), ReadError> {
        self.storage.protect().or_else(|_| self.check_len())
    }

    /// Length of the file in bytes.
    pub fn file_len(&self) -> u64 {
        self.pack.trailer().file_len
    }

    /// Checks that the file still has the length that it had when it was opened. This costs one system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`] if the length differs, [`ReadError::Open`] if it cannot be determined.
    pub(crate) fn check_len(&self) -> Result<(), ReadError> {
        check_len(self.storage(), &self.path, self.file_len()).map(drop)
    }

    /// Checks that the length and the modification time of the file have not changed since it was opened. This costs
    /// one system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`], [`ReadError::Modified`], or [`ReadError::Open`] if they cannot be determined.
    pub(crate) fn check_unchanged(&self) -> Result<(), ReadError> {
        if check_len(self.storage(), &self.path, self.file_len())? != self.opened {
            return Err(ReadError::Modified { path: self.path.clone() });
        }
        Ok(())
    }

    /// Checks that everything read in place so far was valid: the file was not written to, and no page was replaced
    /// with zeros after a truncation or a disk failure. Call it after reading, because checksums that were verified are
    /// not compared again. It costs one system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`] if the length differs, [`ReadError::Modified`] if the file was written to,
    /// [`ReadError::Read`] if a page could not be read.
    pub fn still_good(&self) -> Result<(), ReadError> {
        self.check_unchanged()?;
        self.check_pages()
    }

    /// Like [`still_good`](Self::still_good), but does not check whether the file was written to.
    pub(crate) fn no_page_lost(&self) -> Result<(), ReadError> {
        self.check_len()?;
        self.check_pages()
    }

    fn check_pages(&self) -> Result<(), ReadError> {
        let Some(offset) = self.storage.first_lost() else { return Ok(()) };
        let reason = "the file was temporarily shorter, or the disk failed";
        Err(ReadError::Read { path: self.path.clone(), offset, len: 1, source: io::Error::other(reason) })
    }

    /// Reads bytes at an offset into a buffer.
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
            // The file ended early. Report its length instead of a short read.
            self.check_len()?;
            return Err(ReadError::Read { path: self.path.clone(), offset, len: to_u64(out.len()), source });
        }
        Ok(())
    }

    /// Returns the result of a read in place, if its pages were [valid](Self::still_good). Zeros from lost pages look
    /// like damage. In that case, this reports the lost page instead.
    ///
    /// # Errors
    /// As for [`still_good`](Self::still_good), otherwise [`ReadError::Format`].
    pub fn whole<T>(&self, read: Result<T, FormatError>) -> Result<T, ReadError> {
        self.still_good()?;
        self.located(read)
    }

    /// Estimates how many bytes of the file are in the page cache. Checks every 16th page. `None` if unknown.
    #[doc(hidden)]
    pub fn resident_bytes(&self) -> Option<u64> {
        let (starts, step) = self.looked_at();
        let mut bytes = 0;
        for start in starts {
            if self.storage.is_resident(start)? {
                bytes += step.min(self.file_len() - start);
            }
        }
        Some(bytes)
    }

    /// Whether the whole file is in the page cache. Checks every 16th page. `None` if this is unknown, because the
    /// system answers only the owner of a file and users who may write to it.
    #[doc(hidden)]
    pub fn is_resident(&self) -> Option<bool> {
        use rustix::fs::{Access, access, fstat};
        if let Some(file) = self.storage.file() {
            let owner = fstat(file).ok()?.st_uid;
            let is_told = owner == rustix::process::geteuid().as_raw() || access(&self.path, Access::WRITE_OK).is_ok();
            if !is_told {
                return None;
            }
        }
        let (mut starts, _) = self.looked_at();
        let lacks = starts.find_map(|start| match self.storage.is_resident(start) {
            Some(true) => None,
            other => Some(other),
        });
        lacks.unwrap_or(Some(true))
    }

    /// The offsets of the sampled pages, and the number of bytes that each page represents.
    fn looked_at(&self) -> (impl Iterator<Item = u64>, u64) {
        let step = 16 * rustix::param::page_size();
        ((0..self.file_len()).step_by(step), to_u64(step))
    }

    /// Adds the path to a format error.
    ///
    /// # Errors
    /// [`ReadError::Format`].
    pub fn located<T>(&self, result: Result<T, FormatError>) -> Result<T, ReadError> {
        result.map_err(|error| self.error(error))
    }

    /// Adds the path to a format error.
    pub fn error(&self, source: FormatError) -> ReadError {
        ReadError::Format { path: self.path.clone(), source }
    }
}

impl Deref for Pack {
    type Target = packds_format::Pack<PackBytes>;

    fn deref(&self) -> &Self::Target {
        &self.pack
    }
}

fn check_len(storage: &dyn Storage, path: &Path, expected: u64) -> Result<Version, ReadError> {
    let version = storage.version().map_err(|source| ReadError::Open { path: path.to_owned(), source })?;
    if version.len != expected {
        return Err(ReadError::Changed { path: path.to_owned(), expected, found: version.len });
    }
    Ok(version)
}
