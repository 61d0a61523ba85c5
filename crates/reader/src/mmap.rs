//! A pack in a mapped file, and what a mapping cannot guarantee.
//!
//! A mapping shows the current contents of the file. Therefore safe code cannot guarantee two things:
//!
//! - Another process that writes to the file changes bytes behind a shared reference. packds itself never opens a pack
//!   for writing. It writes a new file and renames it, which does not affect existing mappings. Code that reads a
//!   mapping never relies on earlier checks for memory safety. A changed byte causes a wrong value or an error, but not
//!   an access out of bounds.
//! - If another process truncates the file, the pages after its new end become unreadable. The same happens if a disk
//!   fails to deliver a page. Touching such a page raises SIGBUS, which ends the process by default. Here the page
//!   reads as zeros instead (see `sigbus`), and [`Pack::still_good`] reports it to the reader.
//!
//! [`Pack::still_good`]: crate::Pack::still_good

use packds_system::{open_regular, to_u64, to_usize};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use memmap2::{Advice, Mmap, MmapOptions};
use rustix::fs::{Mode, OFlags, fcntl_setfl};

use crate::sigbus::{self, Guard};
use crate::storage::{Storage, Version};

/// The default read-ahead of disks.
const READ_AHEAD_BYTES: usize = 128 << 10;

/// An open file that is mapped completely. It stays the same file if another one is renamed to its path.
#[derive(Debug)]
pub(crate) struct MappedFile {
    /// The mapping. `None` for an empty file, which cannot be mapped.
    map: Option<Guarded>,
    file: File,
}

/// Fields are dropped in this order, so the guard is dropped before the memory.
#[derive(Debug)]
struct Guarded {
    guard: Guard,
    map: Mmap,
}

impl MappedFile {
    /// Opens and maps a regular file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let len = file.metadata()?.len();
        Self::new(file, len)
    }

    /// Maps `file`, whose length is `len`.
    pub(crate) fn new(file: File, len: u64) -> io::Result<Self> {
        if len == 0 {
            return Ok(Self { map: None, file });
        }
        let mut options = MmapOptions::new();
        options.len(to_usize(len));
        // SAFETY: `MmapOptions::map` requires that the file is not modified while it is mapped, by this process or
        // another. This process never writes to a pack. The top of this module describes what we rely on for other
        // processes, and what happens otherwise. Nothing enforces this, so it is an assumption.
        let map = unsafe { options.map(&file) }?;
        // SAFETY: the mapping consists of whole pages that belong to nothing else. Its users check whether they saw
        // zeros, and `Guarded` drops the guard before the mapping.
        let guard = unsafe { Guard::new(&map) };
        Ok(Self { map: Some(Guarded { guard, map }), file })
    }
}

impl Storage for MappedFile {
    fn bytes(&self) -> &[u8] {
        self.map.as_ref().map_or(&[], |guarded| &guarded.map)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(out, offset)
    }

    /// The change time is not used, because it also changes when another pack is renamed to this path. That is the
    /// normal way to replace a pack.
    fn version(&self) -> io::Result<Version> {
        let metadata = self.file.metadata()?;
        Ok(Version { len: metadata.len(), modified: metadata.modified().ok() })
    }

    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }

    fn protect(&self) -> io::Result<()> {
        sigbus::protect()
    }

    fn first_lost(&self) -> Option<u64> {
        let lost = self.map.as_ref()?.guard.first_lost()?;
        Some(to_u64(lost))
    }

    fn is_resident(&self, offset: u64) -> Option<bool> {
        let page = to_u64(rustix::param::page_size());
        let start = to_usize(offset / page * page);
        let byte = self.bytes().get(start)?;
        let mut resident = 0_u8;
        let address = std::ptr::from_ref(byte).cast_mut().cast();
        // SAFETY: the address is the start of a page, because the mapping and `start` are multiples of the page size.
        // The page is mapped. One byte of length means one page, and `resident` has space for one. The page itself is
        // not accessed.
        let result = unsafe { libc::mincore(address, 1, &raw mut resident) };
        (result == 0).then_some(resident & 1 == 1)
    }

    fn will_load(&self) -> io::Result<()> {
        let map = self.map.as_ref();
        map.map_or(Ok(()), |guarded| guarded.map.advise(Advice::HugePage))
    }

    fn load(&self, offset: u64, len: u64) -> io::Result<()> {
        let offset = to_usize(offset);
        let len = to_usize(len).min(self.bytes().len().saturating_sub(offset));
        let Some(guarded) = self.map.as_ref().filter(|_| len > 0) else { return Ok(()) };
        match guarded.map.advise_range(Advice::PopulateRead, offset, len) {
            // Linux before 5.14 does not have this advice. `WillNeed` only starts reading, at most the disk's
            // read-ahead per call.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let pieces = (offset..offset + len).step_by(READ_AHEAD_BYTES);
                pieces.into_iter().try_for_each(|start| {
                    let len = READ_AHEAD_BYTES.min(offset + len - start);
                    guarded.map.advise_range(Advice::WillNeed, start, len)
                })
            }
            result => result,
        }
    }
}

/// Opens the same file again for reads that bypass the page cache. `None` if the file system does not support that.
pub(crate) fn open_past_cache(file: &File, path: &Path) -> Option<File> {
    // The path may be a pipe by now, and opening a pipe would block.
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // Opening by descriptor finds the same file even if the path was replaced.
    let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    let again = rustix::fs::open(by_descriptor, flags, Mode::empty())
        .or_else(|_| rustix::fs::open(path, flags, Mode::empty()))
        .ok()
        .map(File::from)?;
    let (ours, its) = (file.metadata().ok()?, again.metadata().ok()?);
    let is_same = (ours.dev(), ours.ino()) == (its.dev(), its.ino());
    // With NONBLOCK set, io_uring fails requests that would block.
    let waits = || fcntl_setfl(&again, OFlags::DIRECT).is_ok();
    (is_same && waits()).then_some(again)
}
