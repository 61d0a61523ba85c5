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
//!   zeros (see `sigbus`), and whoever read it learns that by [`Pack::still_good`].
//!
//! [`Pack::still_good`]: crate::Pack::still_good

use packds_system::to_u64;
use std::fs::File;
use std::io;

use memmap2::{Advice, Mmap, MmapOptions};

use crate::sigbus::Guard;

/// A read-only shared map of a whole file.
#[derive(Debug)]
pub(crate) struct Mapping {
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
        let guard = unsafe { Guard::new(&map) };
        Ok(Self {
            map: Some(Guarded { guard, map }),
        })
    }

    /// The first byte that could not be read when it was asked for and shows as zero since; none where all bytes read
    /// until now were the file's.
    pub(crate) fn first_lost(&self) -> Option<u64> {
        let lost = self.map.as_ref()?.guard.first_lost()?;
        Some(to_u64(lost))
    }

    /// Whether the page that holds byte `offset` is in memory; none where the system does not say.
    pub(crate) fn is_resident(&self, offset: u64) -> Option<bool> {
        let page = u64::try_from(rustix::param::page_size()).ok()?;
        let start = usize::try_from(offset / page * page).ok()?;
        let byte = self.as_ref().get(start)?;
        let mut resident = 0_u8;
        let address = std::ptr::from_ref(byte).cast_mut().cast();
        // SAFETY: the address is that of a page, because the map and `start` are multiples of its size; it is mapped; one
        // byte of length means one page, for which `resident` has room. The page itself is not accessed.
        let result = unsafe { libc::mincore(address, 1, &raw mut resident) };
        (result == 0).then_some(resident & 1 == 1)
    }

    /// Asks for huge pages where the file is read from now on.
    pub(crate) fn advise_huge(&self) -> io::Result<()> {
        let map = self.map.as_ref();
        map.map_or(Ok(()), |guarded| guarded.map.advise(Advice::HugePage))
    }

    /// Reads bytes of the file into memory and the page table, as far as the file goes; returns when they are there.
    pub(crate) fn load(&self, offset: u64, len: u64) -> io::Result<()> {
        let all = to_u64(self.as_ref().len());
        let len = len.min(all.saturating_sub(offset));
        let (Some(guarded), Ok(offset), Ok(len)) = (
            self.map.as_ref().filter(|_| len > 0),
            usize::try_from(offset),
            usize::try_from(len),
        ) else {
            return Ok(());
        };
        match guarded.map.advise_range(Advice::PopulateRead, offset, len) {
            // Before Linux 5.14: at least begins to read. More than the read-ahead of the disk is not begun by one call.
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

/// The read-ahead that disks have where nobody has set it.
const READ_AHEAD_BYTES: usize = 128 << 10;

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        self.map.as_ref().map_or(&[], |guarded| &guarded.map)
    }
}
