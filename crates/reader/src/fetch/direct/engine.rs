//! The I/O engine takes requests and returns them with the system's result. The module `loads` groups requests into
//! loads and retries them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

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

/// What requests read from: a pack, and a second descriptor of its file for reads that bypass the page cache.
#[derive(Debug)]
pub(super) struct Source {
    pack: Arc<Pack>,
    /// `None` if the file system does not support such a descriptor, or if the pack is in memory.
    direct: Option<File>,
    /// Whether data read through the page cache should stay in it.
    keep: bool,
}

impl Source {
    /// `past_cache` says whether to bypass the page cache if possible.
    pub(super) fn new(pack: Arc<Pack>, past_cache: bool) -> Self {
        Self { direct: past_cache.then(|| pack.open_past_cache()).flatten(), pack, keep: !past_cache }
    }

    pub(super) fn pack(&self) -> &Pack {
        &self.pack
    }

    /// Whether a request bypasses the page cache. If so, all positions must be multiples of 4096.
    pub(super) fn is_direct(&self, request: &Request) -> bool {
        self.direct(request).is_some()
    }

    pub(super) fn describe(&self) -> &'static str {
        match (&self.direct, self.pack.storage().file()) {
            (Some(_), _) => "bypassing the page cache",
            (None, Some(_)) => "through the page cache",
            (None, None) => "from memory",
        }
    }

    /// The descriptor that bypasses the page cache, if the request should use it.
    fn direct(&self, request: &Request) -> Option<&File> {
        self.direct.as_ref().filter(|_| !request.buffered)
    }

    /// The file for a request. `None` if the pack is in memory.
    pub(super) fn file(&self, request: &Request) -> Option<&File> {
        self.direct(request).or_else(|| self.pack.storage().file())
    }

    pub(super) fn read(&self, request: &mut Request) -> io::Result<usize> {
        let offset = request.offset + to_u64(request.filled);
        let direct = self.direct(request);
        let rest = request.piece.get_mut(request.filled..).unwrap_or_default();
        match direct {
            Some(file) => file.read_at(rest, offset),
            None => self.pack.storage().read_at(rest, offset),
        }
    }

    /// Evicts data that only went through the page cache because there was no alternative, so that it does not displace
    /// other data.
    pub(super) fn forget(&self, request: &Request) {
        if self.keep || self.is_direct(request) {
            return;
        }
        if let Some(file) = self.pack.storage().file() {
            let len = std::num::NonZeroU64::new(to_u64(request.piece.len()));
            // This is only a hint. If it fails, the data stays in the page cache.
            let _ = fadvise(file, request.offset, len, Advice::DontNeed);
        }
    }
}
