//! The I/O engine takes requests and returns them with the system's result. The module `loads` groups requests into
//! loads and retries them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use packds_system::to_u64;
use rustix::fs::{Advice, fadvise};

use super::memory::Ring;
use crate::Pack;
use crate::arena::PieceMut;

/// A request to read a range of the file into memory.
#[derive(Debug)]
pub(super) struct Request {
    /// The load that it belongs to.
    pub(super) load: u64,
    /// Offset of the piece's first byte in the file. It is a multiple of 4096.
    pub(super) offset: u64,
    /// The destination. The request owns it exclusively until it completes.
    pub(super) piece: PieceMut,
    /// Number of bytes read so far. It is a multiple of 4096 if the request bypasses the page cache.
    pub(super) filled: usize,
    /// Number of bytes available in the file. At the end of the file, this is less than the size of the piece.
    pub(super) wanted: usize,
    /// How many times the request completed without progress.
    pub(super) attempts: u32,
    /// Whether the request goes through the page cache.
    pub(super) buffered: bool,
    /// When dropped, notifies threads that wait for memory. Declared after `piece`, so that the piece is released
    /// first.
    pub(super) _ring: Ring,
}

/// A completed request, with the number of bytes read or the error.
pub(super) type Done = (Request, io::Result<usize>);

/// Performs several requests at a time.
pub(super) trait Engine {
    /// Maximum number of requests in progress.
    fn depth(&self) -> usize;

    /// Starts a request. At most [`depth`](Self::depth) may be in progress.
    fn submit(&mut self, request: Request);

    /// Collects completed requests, and waits for at least one. At least one request must be in progress.
    ///
    /// # Errors
    /// An error means that the engine itself failed and cannot continue. Failures of single requests are returned in
    /// `done`.
    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()>;
}

/// What requests read from: a pack, and a second descriptor of each of its files for reads that bypass the page cache.
#[derive(Debug)]
pub(super) struct Source {
    pack: Arc<Pack>,
    /// By file, opened when the file is first read. `None` if the file system does not support such a descriptor, or if
    /// the pack is in memory.
    direct: Box<[OnceLock<Option<File>>]>,
    /// Whether data read through the page cache should stay in it.
    keep: bool,
}

impl Source {
    /// `past_cache` says whether to bypass the page cache if possible.
    pub(super) fn new(pack: Arc<Pack>, past_cache: bool) -> Self {
        let n_files = if past_cache { pack.n_files() } else { 0 };
        Self { direct: (0..n_files).map(|_| OnceLock::new()).collect(), pack, keep: !past_cache }
    }

    pub(super) fn pack(&self) -> &Pack {
        &self.pack
    }

    /// Whether a request bypasses the page cache. If so, all positions must be multiples of 4096.
    pub(super) fn is_direct(&self, request: &Request) -> bool {
        self.direct(request).is_some()
    }

    pub(super) fn describe(&self) -> &'static str {
        let is_direct = self.pack.part(0).is_ok() && self.past_cache(0).is_some();
        match (is_direct, self.pack.is_in_memory()) {
            (true, _) => "bypassing the page cache",
            (false, false) => "through the page cache",
            (false, true) => "from memory",
        }
    }

    /// Number of bytes from `offset` to the end of its file.
    pub(super) fn left_at(&self, offset: u64) -> u64 {
        self.pack.file_at(offset).map_or(0, |(_, all)| all.end.saturating_sub(offset))
    }

    /// The descriptor of a file that bypasses the page cache.
    fn past_cache(&self, number: usize) -> Option<&File> {
        let direct = self.direct.get(number)?;
        direct.get_or_init(|| self.pack.open_file_past_cache(number)).as_ref()
    }

    /// The descriptor that bypasses the page cache, if the request should use it.
    fn direct(&self, request: &Request) -> Option<&File> {
        let (number, _) = self.pack.file_at(request.offset).filter(|_| !request.buffered)?;
        self.past_cache(number)
    }

    /// The file for a request, and where the request starts in it. `None` if the pack is in memory, or if a shard cannot
    /// be opened.
    pub(super) fn file(&self, request: &Request) -> Option<(&File, u64)> {
        let (file, _, start) = self.pack.file_of(request.offset).ok().flatten()?;
        Some((self.direct(request).or_else(|| file.storage.file())?, start))
    }

    pub(super) fn read(&self, request: &mut Request) -> io::Result<usize> {
        let place = self.pack.file_of(request.offset).map_err(io::Error::other)?;
        let Some((file, _, start)) = place else { return Ok(0) };
        let offset = start + to_u64(request.filled);
        let direct = self.direct(request);
        let rest = request.piece.get_mut(request.filled..).unwrap_or_default();
        match direct {
            Some(file) => file.read_at(rest, offset),
            None => file.storage.read_at(rest, offset),
        }
    }

    /// Evicts data that only went through the page cache because there was no alternative, so that it does not displace
    /// other data.
    pub(super) fn forget(&self, request: &Request) {
        if self.keep || self.is_direct(request) {
            return;
        }
        if let Some((file, start)) = self.file(request) {
            let len = std::num::NonZeroU64::new(to_u64(request.piece.len()));
            // This is only a hint. If it fails, the data stays in the page cache.
            let _ = fadvise(file, start, len, Advice::DontNeed);
        }
    }
}
