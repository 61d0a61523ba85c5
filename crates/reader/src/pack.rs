//! An open pack: its bytes and its path, with checks that the file has not changed.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use packds_format::{FormatError, Limits, Manifest, PackFile, ShardEntry};
use packds_system::{to_u64, to_usize};

use crate::ReadError;
use crate::files::{Files, OpenFile, Shards};
use crate::mmap::open_past_cache;
use crate::storage::{PackBytes, Storage};

/// An open pack: a file or a set.
///
/// It dereferences to [`packds_format::Pack`]. Its bytes are read in place, from mapped files or from memory. A file can
/// change or lose pages after it was opened. [`still_good`](Self::still_good) detects this.
#[derive(Debug)]
pub struct Pack {
    pack: packds_format::Pack<PackBytes>,
    files: Files,
    path: PathBuf,
}

impl Pack {
    /// # Errors
    /// [`ReadError::Format`] if the bytes are not a valid pack, [`ReadError::Changed`] if the storage changed
    /// meanwhile, [`ReadError::Open`] and [`ReadError::Read`] if a system call failed.
    pub(crate) fn new(storage: impl Storage + 'static, path: &Path, limits: Limits) -> Result<Self, ReadError> {
        let storage: Arc<dyn Storage> = Arc::new(storage);
        let bytes = PackBytes::of(&storage);
        let file = OpenFile::new(storage, path, to_u64(bytes.as_ref().len()))?;
        let pack = packds_format::Pack::open_with(bytes, limits).map_err(|source| {
            // A file that was truncated meanwhile looks damaged. Report the truncation instead.
            let changed = file.check_len().err();
            changed.unwrap_or_else(|| ReadError::Format { path: path.to_owned(), source })
        })?;
        let pack = Self { pack, files: Files::One(file), path: path.to_owned() };
        pack.no_page_lost()?;
        Ok(pack)
    }

    /// A version of the set in `folder`. `path` is its name in messages. No shard is opened yet.
    ///
    /// # Errors
    /// [`ReadError::Format`] if the values of the manifest contradict each other.
    pub(crate) fn of_set(manifest: Manifest, folder: &Path, path: &Path, limits: Limits) -> Result<Self, ReadError> {
        let shards = Arc::new(Shards::new(folder, &manifest.shards));
        let files = Files::Set(Arc::clone(&shards));
        let open = move |number, entry: &ShardEntry| shards.bytes(number, entry);
        let pack = packds_format::Pack::open_set(manifest, limits, open)
            .map_err(|source| ReadError::Format { path: path.to_owned(), source })?;
        Ok(Self { pack, files, path: path.to_owned() })
    }

    /// The path of the file or set, or the name given to bytes in memory.
    pub fn file_path(&self) -> &Path {
        &self.path
    }

    /// The paths of all files, each with the offset where it begins.
    #[doc(hidden)]
    pub fn file_paths(&self) -> Vec<(u64, PathBuf)> {
        self.files.paths().into_iter().zip(self.pack.file_offsets()).map(|(path, start)| (start, path)).collect()
    }

    /// The open file. It stays the same even if another file is renamed to the path.
    ///
    /// # Errors
    /// An error if the pack is in memory, or if it is a set.
    pub fn file(&self) -> io::Result<&File> {
        let Some(one) = self.files.one() else { return Err(io::Error::other("the pack is a set of several files")) };
        one.storage.file().ok_or_else(|| io::Error::other("the pack is not in a file"))
    }

    /// Opens the same file again for reads that bypass the page cache. `None` if there is no file, if there are several,
    /// or if the file system does not support that.
    #[doc(hidden)]
    pub fn open_past_cache(&self) -> Option<File> {
        self.open_file_past_cache(self.files.one().map(|_| 0)?)
    }

    /// Like [`open_past_cache`](Self::open_past_cache), for a file by its number.
    pub(crate) fn open_file_past_cache(&self, number: usize) -> Option<File> {
        let file = self.files.get(number)?;
        open_past_cache(file.storage.file()?, &file.path)
    }

    /// The bytes of the file, not verified. Empty for a set.
    #[doc(hidden)]
    pub fn whole_file(&self) -> &[u8] {
        self.pack.one().map_or(&[], PackFile::bytes_unchecked)
    }

    /// The bytes in this range of offsets, not verified. `None` if they are not all in one file.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a shard cannot be opened.
    #[doc(hidden)]
    pub fn bytes_at(&self, range: &Range<usize>) -> Result<Option<&[u8]>, ReadError> {
        if let Some(file) = self.pack.one() {
            return Ok(file.bytes_unchecked().get(range.clone()));
        }
        let place = self.located(self.pack.place_unchecked(&(to_u64(range.start)..to_u64(range.end))))?;
        Ok(place.and_then(|(bytes, place)| bytes.as_ref().get(place)))
    }

    /// Like [`bytes_at`](Self::bytes_at). The result keeps the file open.
    pub(crate) fn shared_bytes_at(&self, range: &Range<usize>) -> Result<Option<Bytes>, ReadError> {
        let place = self.located(self.pack.place_unchecked(&(to_u64(range.start)..to_u64(range.end))))?;
        Ok(place.map(|(bytes, place)| bytes.slice(place)))
    }

    /// Whether the bytes are in memory and not in files.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.files.one().is_some_and(|file| file.storage.file().is_none())
    }

    /// The open file with the byte at `offset`, the number of the file, and the offset in it. Opens a shard if it was
    /// not used before.
    pub(crate) fn file_of(&self, offset: u64) -> Result<Option<(&OpenFile, usize, u64)>, ReadError> {
        let Some((number, all)) = self.pack.file_at(offset) else { return Ok(None) };
        if self.files.get(number).is_none() {
            self.located(self.pack.part(number))?;
        }
        Ok(self.files.get(number).map(|file| (file, number, offset - all.start)))
    }

    /// Makes lost pages of the files read as zeros instead of ending the process. Call it again before each read,
    /// because other code may have replaced the SIGBUS handler. If the handler cannot be installed, the lengths of the
    /// files are compared instead. This costs one system call per open file.
    ///
    /// # Errors
    /// [`ReadError::Changed`] if a length differs, [`ReadError::Open`] if it cannot be determined.
    pub fn protect(&self) -> Result<(), ReadError> {
        let protect = |file: &OpenFile| file.storage.protect();
        self.files.open().try_for_each(protect).or_else(|_| self.check_len())
    }

    /// Checks that the open files still have the lengths that they had when they were opened. This costs one system call
    /// per open file.
    ///
    /// # Errors
    /// [`ReadError::Changed`] if a length differs, [`ReadError::Open`] if it cannot be determined.
    pub(crate) fn check_len(&self) -> Result<(), ReadError> {
        self.files.open().try_for_each(OpenFile::check_len)
    }

    /// Checks that the lengths and the modification times of the open files have not changed since they were opened.
    /// This costs one system call per open file.
    ///
    /// # Errors
    /// [`ReadError::Changed`], [`ReadError::Modified`], or [`ReadError::Open`] if they cannot be determined.
    pub(crate) fn check_unchanged(&self) -> Result<(), ReadError> {
        self.files.open().try_for_each(OpenFile::check_unchanged)
    }

    /// Checks that everything read in place so far was valid: no file was written to, and no page was replaced with
    /// zeros after a truncation or a disk failure. Call it after reading, because checksums that were verified are not
    /// compared again. It costs one system call per open file.
    ///
    /// # Errors
    /// [`ReadError::Changed`] if a length differs, [`ReadError::Modified`] if a file was written to,
    /// [`ReadError::Read`] if a page could not be read.
    pub fn still_good(&self) -> Result<(), ReadError> {
        self.check_unchanged()?;
        self.files.open().try_for_each(OpenFile::check_pages)
    }

    /// Like [`still_good`](Self::still_good), but does not check whether a file was written to.
    pub(crate) fn no_page_lost(&self) -> Result<(), ReadError> {
        self.check_len()?;
        self.files.open().try_for_each(OpenFile::check_pages)
    }

    /// Reads bytes at an offset into a buffer.
    pub(crate) fn read_at(&self, out: &mut [u8], offset: u64) -> Result<(), ReadError> {
        let mut filled = 0;
        while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(to_u64(filled));
            let place = self.file_of(at)?;
            let read = place.map_or(Ok(0), |(file, _, own)| file.storage.read_at(rest, own));
            let source = match read {
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
            return Err(self.unreadable(offset, to_u64(out.len()), source));
        }
        Ok(())
    }

    /// The error that bytes at an offset could not be read. For a set, it has the path and the offset of the shard.
    pub(crate) fn unreadable(&self, offset: u64, len: u64, source: io::Error) -> ReadError {
        let (path, offset) = match self.file_of(offset) {
            Ok(Some((file, _, own))) => (&file.path, own),
            _ => (&self.path, offset),
        };
        ReadError::Read { path: path.clone(), offset, len, source }
    }

    /// Whether the page at `offset` is in memory. `None` if unknown. Pages of a shard that was not used yet count as not
    /// in memory.
    pub(crate) fn is_page_resident(&self, offset: u64) -> Option<bool> {
        let (number, all) = self.pack.file_at(offset)?;
        let Some(file) = self.files.get(number) else { return Some(false) };
        file.storage.is_resident(offset - all.start)
    }

    /// Announces that much data will be [loaded](Self::load).
    pub(crate) fn will_load(&self) {
        self.files.will_load();
    }

    /// Loads bytes of one file into memory before they are read. Blocks until they are loaded. The range may end past
    /// the last byte of the file.
    pub(crate) fn load(&self, offset: u64, len: u64) {
        // Data that fails to load is reported when it is read.
        if let Ok(Some((file, _, own))) = self.file_of(offset) {
            let _ = file.storage.load(own, len);
        }
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

    /// Estimates how many bytes of all files are in the page cache. Checks every 16th page. `None` if unknown.
    #[doc(hidden)]
    pub fn resident_bytes(&self) -> Option<u64> {
        let step = looked_at_bytes();
        let mut bytes = 0;
        for number in 0..self.pack.n_files() {
            self.pack.part(number).ok()?;
            let (file, len) = self.files.get(number).zip(self.len_of(number))?;
            for start in (0..len).step_by(to_usize(step)) {
                if file.storage.is_resident(start)? {
                    bytes += step.min(len - start);
                }
            }
        }
        Some(bytes)
    }

    /// Whether all files are in the page cache. Checks every 16th page. `None` if this is unknown, because the system
    /// answers only the owner of a file and users who may write to it.
    #[doc(hidden)]
    pub fn is_resident(&self) -> Option<bool> {
        use rustix::fs::{Access, access, fstat};
        for number in 0..self.pack.n_files() {
            let Some(file) = self.files.get(number) else { return Some(false) };
            if let Some(opened) = file.storage.file() {
                let owner = fstat(opened).ok()?.st_uid;
                let is_owner = owner == rustix::process::geteuid().as_raw();
                if !is_owner && access(&file.path, Access::WRITE_OK).is_err() {
                    return None;
                }
            }
            let mut starts = (0..self.len_of(number)?).step_by(to_usize(looked_at_bytes()));
            let lacks = starts.find_map(|start| match file.storage.is_resident(start) {
                Some(true) => None,
                other => Some(other),
            });
            if let Some(other) = lacks {
                return other;
            }
        }
        Some(true)
    }

    /// Length of a file in bytes.
    fn len_of(&self, number: usize) -> Option<u64> {
        match self.pack.manifest() {
            None => Some(self.file_len()),
            Some(manifest) => manifest.shards.get(number).map(|shard| shard.bytes),
        }
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

/// Number of bytes that each sampled page represents.
fn looked_at_bytes() -> u64 {
    to_u64(16 * rustix::param::page_size())
}
