//! From a path to a checked, mapped pack.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use packds_format::{FormatError, Limits, Pack};
use packds_system::{open_regular, to_u64};
use rustix::fs::{Mode, OFlags, fcntl_setfl};

use crate::{Mapping, ReadError, sigbus};

/// An opened pack with the file it lies in.
///
/// It dereferences to [`Pack`]. Its bytes come from a memory map: [`Mapping`] says what that cannot promise.
#[derive(Debug)]
pub struct MappedPack {
    pack: Pack<Mapping>,
    file: File,
    path: PathBuf,
    /// When the file was last written to before it was opened.
    modified: Option<SystemTime>,
}

impl MappedPack {
    /// The path it was opened by.
    #[must_use]
    pub fn file_path(&self) -> &Path {
        &self.path
    }

    /// The open file: it stays the same one even where another is renamed over the path.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The same file once more, for reads past the page cache; none where its file system refuses.
    #[must_use]
    pub fn open_past_cache(&self) -> Option<File> {
        // What stands at the path may be a pipe by now, and opening that would wait.
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::CLOEXEC;
        // By its descriptor it is the same file whatever stands at its path now.
        let by_descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = rustix::fs::open(by_descriptor, flags, Mode::empty())
            .or_else(|_| rustix::fs::open(&self.path, flags, Mode::empty()))
            .ok()
            .map(File::from)?;
        let (ours, its) = (self.file.metadata().ok()?, file.metadata().ok()?);
        let is_same = (ours.dev(), ours.ino()) == (its.dev(), its.ino());
        // io_uring gives up where it should wait if NONBLOCK stays.
        let waits = || fcntl_setfl(&file, OFlags::DIRECT).is_ok();
        (is_same && waits()).then_some(file)
    }

    /// Sees to it that a page which the file loses shows zeros when it is read, and does not end the process: other code may
    /// have installed a handler of SIGBUS since. Where the system refuses, the file's length is compared. Ask before reading;
    /// one system call.
    ///
    /// # Errors
    /// As for [`check_len`](Self::check_len).
    pub fn protect(&self) -> Result<(), ReadError> {
        sigbus::protect().or_else(|_| self.check_len())
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
    pub fn check_len(&self) -> Result<(), ReadError> {
        check_len(&self.file, &self.path, self.file_len()).map(drop)
    }

    /// Checks that the file has the length that it was opened with and was not written to since, by its time of
    /// modification. The time of change is no help: it changes too where another pack is renamed over this one, which is how
    /// packs are replaced. One system call.
    ///
    /// # Errors
    /// [`ReadError::Changed`], [`ReadError::Modified`], or [`ReadError::Open`] where the system does not say.
    pub fn check_unchanged(&self) -> Result<(), ReadError> {
        let metadata = check_len(&self.file, &self.path, self.file_len())?;
        if metadata.modified().ok() != self.modified {
            return Err(ReadError::Modified {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    /// Whether all that was read through the map until now were the bytes that the file had when it was opened: nobody wrote to
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
        let Some(offset) = self.pack.data().first_lost() else {
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

    /// Reads bytes of the file, not through the map.
    pub(crate) fn read_at(&self, out: &mut [u8], offset: u64) -> Result<(), ReadError> {
        self.file.read_exact_at(out, offset).map_err(|source| {
            // The end of the file came too early: say how early, not that.
            let changed = self.check_len().err();
            changed.unwrap_or_else(|| ReadError::Read {
                path: self.path.clone(),
                offset,
                len: to_u64(out.len()),
                source,
            })
        })
    }

    /// What was read through the map, if its pages were [there](Self::still_good): damage that the zeros of lost pages
    /// look like is told as what it is.
    ///
    /// # Errors
    /// As for [`still_good`](Self::still_good), else [`ReadError::Format`].
    pub fn whole<T>(&self, read: Result<T, FormatError>) -> Result<T, ReadError> {
        self.still_good()?;
        self.told(read)
    }

    /// Bytes of the file that are in the page cache, asked of every 16th page; none where the system does not say.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        let (starts, step) = self.looked_at()?;
        let mut bytes = 0;
        for start in starts {
            if self.pack.data().is_resident(start)? {
                bytes += step.min(self.file_len() - start);
            }
        }
        Some(bytes)
    }

    /// Whether all of the file is in the page cache, asked of every 16th page; none where the system does not say. It says so to who
    /// owns a file or may write it.
    #[must_use]
    pub fn is_resident(&self) -> Option<bool> {
        use rustix::fs::{Access, access, fstat};
        let owner = fstat(&self.file).ok()?.st_uid;
        let is_told = owner == rustix::process::geteuid().as_raw()
            || access(&self.path, Access::WRITE_OK).is_ok();
        if !is_told {
            return None;
        }
        let (mut starts, _) = self.looked_at()?;
        let lacks = starts.find_map(|start| match self.pack.data().is_resident(start) {
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

impl Deref for MappedPack {
    type Target = Pack<Mapping>;

    fn deref(&self) -> &Self::Target {
        &self.pack
    }
}

/// Opens a pack with the default [`Limits`]: milliseconds, and no chunk is touched.
///
/// # Errors
/// [`ReadError::Open`] where there is no such file, [`ReadError::Format`] where it is not a pack or not a whole one.
pub fn open(path: impl AsRef<Path>) -> Result<MappedPack, ReadError> {
    open_with(path, Limits::default())
}

/// Opens a pack.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: impl AsRef<Path>, limits: Limits) -> Result<MappedPack, ReadError> {
    let path = path.as_ref();
    let failed = |source| ReadError::Open {
        path: path.to_owned(),
        source,
    };
    let file = open_regular(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let len = metadata.len();
    let mapping = Mapping::new(&file, len).map_err(failed)?;
    check_len(&file, path, len)?;
    let pack = Pack::open_with(mapping, limits).map_err(|source| {
        // What is no longer there looks damaged: say that it has gone.
        let changed = check_len(&file, path, len).err();
        changed.unwrap_or_else(|| ReadError::Format {
            path: path.to_owned(),
            source,
        })
    })?;
    let pack = MappedPack {
        pack,
        file,
        path: path.to_owned(),
        modified: metadata.modified().ok(),
    };
    pack.no_page_lost()?;
    Ok(pack)
}

fn check_len(file: &File, path: &Path, expected: u64) -> Result<Metadata, ReadError> {
    let metadata = file.metadata().map_err(|source| ReadError::Open {
        path: path.to_owned(),
        source,
    })?;
    let found = metadata.len();
    if found != expected {
        return Err(ReadError::Changed {
            path: path.to_owned(),
            expected,
            found,
        });
    }
    Ok(metadata)
}
