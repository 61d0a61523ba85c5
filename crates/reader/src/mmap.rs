//! The memory map of a file: all `unsafe` of this crate, and what it cannot promise.
//!
//! A map shows the file as it is, so two things lie outside what safe code can guarantee:
//!
//! - Another process that writes to the file changes bytes behind a shared reference. packds itself never opens a pack
//!   for writing: it writes a new file and renames it, which leaves existing maps alone. Nothing is ever read from a map
//!   on the assumption that it is still what was checked: a changed byte gives a wrong value or an error, not an access
//!   out of bounds.
//! - Another process that shortens the file makes the pages behind its new end unreadable: touching them raises SIGBUS,
//!   which ends the process; so does a disk that fails to deliver a page. [`MappedPack::check_len`] before use narrows
//!   the time in which this can happen, it cannot close it. Whoever must survive it reads with `pread`, as
//!   [`verify`](crate::verify) reads the chunks.
//!
//! [`MappedPack::check_len`]: crate::MappedPack::check_len

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

/// A read-only shared map of a whole file.
#[derive(Debug)]
pub struct Mapping {
    /// None for an empty file, which cannot be mapped.
    map: Option<Mmap>,
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
        Ok(Self { map: Some(map) })
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
}
