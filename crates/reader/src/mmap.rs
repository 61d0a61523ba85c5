//! The memory map of a file, and what it cannot promise.
//!
//! A map shows the file as it is, so two things lie outside what safe code can guarantee:
//!
//! - Another process that writes to the file changes bytes behind a shared reference. packds itself never opens a pack
//!   for writing: it writes a new file and renames it, which leaves existing maps alone. Nothing is ever read from a map
//!   on the assumption that it is still what was checked: a changed byte gives a wrong value or an error, not an access
//!   out of bounds.
//! - Another process that shortens the file makes the pages behind its new end unreadable, and so does a disk that fails
//!   to deliver one. Touching such a page raises SIGBUS, which by default ends the process; here the page then shows
//!   zeros (see `sigbus`), and whoever read it learns that by [`MappedPack::still_good`].
//!
//! [`MappedPack::still_good`]: crate::MappedPack::still_good

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

use crate::sigbus::Guard;

/// A read-only shared map of a whole file.
#[derive(Debug)]
pub struct Mapping {
    /// None for an empty file, which cannot be mapped.
    map: Option<Guarded>,
}

/// The fields are dropped in this order: the guard goes before the memory.
#[derive(Debug)]
struct Guarded {
    guard: Guard,
    map: Mmap,
}

impl Mapping {
    /// Maps the first `len` bytes of `file`, its length.
    pub(crate) fn new(file: &File, len: u64) -> io::Result<Self> {
        if len == 0 {
            return Ok(Self { map: None });
        }
        let len = usize::try_from(len).map_err(|_| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                "file is larger than the address space",
            )
        })?;
        let mut options = MmapOptions::new();
        options.len(len);
        // SAFETY: the contract of `MmapOptions::map` is that the file is not modified, in this process or another, while
        // it is mapped. This process never writes to a pack. Of other processes the module's head says what we rely on
        // and what happens otherwise: this reasoning should be treated as suspect.
        let map = unsafe { options.map(file) }?;
        // SAFETY: the map is whole pages of a mapping of its own, whose users ask whether they saw zeros, and `Guarded`
        // drops the guard before the map.
        let guard = unsafe { Guard::new(&map) }?;
        Ok(Self {
            map: Some(Guarded { guard, map }),
        })
    }

    /// The first byte that could not be read when it was asked for and shows as zero since; none where all bytes read
    /// until now were the file's.
    pub(crate) fn first_lost(&self) -> Option<u64> {
        let lost = self.map.as_ref()?.guard.first_lost()?;
        Some(u64::try_from(lost).unwrap_or(u64::MAX))
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        self.map.as_ref().map_or(&[], |guarded| &guarded.map)
    }
}
