//! A pack in a mapped file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use packds_system::open_regular;
use rustix::fs::{Mode, OFlags, fcntl_setfl};

use super::{Storage, Version};
use crate::mmap::Mapping;
use crate::sigbus;

/// An open file, mapped whole. It stays the same file if another one is renamed over its path.
#[derive(Debug)]
pub(crate) struct MappedFile {
    map: Mapping,
    file: File,
}

impl MappedFile {
    /// Opens and maps a regular file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let map = Mapping::new(&file, file.metadata()?.len())?;
        Ok(Self { map, file })
    }
}

impl Storage for MappedFile {
    fn bytes(&self) -> &[u8] {
        self.map.as_ref()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(out, offset)
    }

    /// The change time is not usable. It also changes when another pack is renamed over this one, which is the normal way to
    /// replace a pack.
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
        self.map.first_lost()
    }

    fn is_resident(&self, offset: u64) -> Option<bool> {
        self.map.is_resident(offset)
    }

    fn will_load(&self) -> io::Result<()> {
        self.map.advise_huge()
    }

    fn load(&self, offset: u64, len: u64) -> io::Result<()> {
        self.map.load(offset, len)
    }
}

/// Opens the same file again for reads that bypass the page cache. `None` if the file system refuses.
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
