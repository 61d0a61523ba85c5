//! What reads: requests go in, the same requests come back with what the system said. Not for what a request is part
//! of, and not for trying again: that is `loads`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use packds_system::to_u64;
use rustix::fs::{Advice, fadvise};

use super::memory::Ring;
use crate::Pack;
use crate::arena::PieceMut;

/// Bytes of the file that go to a piece of memory.
#[derive(Debug)]
pub(super) struct Request {
    /// What the request is part of.
    pub(super) load: u64,
    /// Where the piece's first byte stands in the file: a multiple of 4096.
    pub(super) offset: u64,
    /// Where they go: exclusively the request's until it comes back.
    pub(super) piece: PieceMut,
    /// Bytes that are there already: a multiple of 4096 where it goes past the page cache.
    pub(super) filled: usize,
    /// Bytes that the file has for it: fewer than the piece's at the end of the file.
    pub(super) wanted: usize,
    /// How often it came back without anything new.
    pub(super) attempts: u32,
    /// Whether it goes through the page cache.
    pub(super) buffered: bool,
    /// Tells whoever waits for memory that the piece is given up; behind the piece, so that it is then.
    pub(super) _ring: Ring,
}

/// A request that came back, with the bytes read.
pub(super) type Done = (Request, io::Result<usize>);

/// Carries out requests, several at a time.
pub(super) trait Engine {
    /// How many requests may be under way.
    fn depth(&self) -> usize;

    /// Starts a request. At most [`depth`](Self::depth) are under way.
    fn submit(&mut self, request: Request);

    /// Takes back what came back, waiting until there is something; there must be a request under way.
    ///
    /// # Errors
    /// The engine failed, not a request: nothing more can be expected from it.
    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()>;
}

/// What requests are read from: a pack, and its file once more for reads past the page cache.
#[derive(Debug)]
pub(super) struct Source {
    pack: Arc<Pack>,
    /// None where the file system cannot do that, or the pack lies in memory.
    direct: Option<File>,
    /// Whether what is read through the page cache is to stay there.
    keep: bool,
}

impl Source {
    /// `past_cache`: whether to read past the page cache, where that is possible.
    pub(super) fn new(pack: Arc<Pack>, past_cache: bool) -> Self {
        Self {
            direct: past_cache.then(|| pack.open_past_cache()).flatten(),
            pack,
            keep: !past_cache,
        }
    }

    pub(super) fn pack(&self) -> &Pack {
        &self.pack
    }

    /// Whether a request goes past the page cache, where all places are multiples of 4096.
    pub(super) fn is_direct(&self, request: &Request) -> bool {
        self.direct(request).is_some()
    }

    /// Where requests are read from, in words.
    pub(super) fn describe(&self) -> &'static str {
        match (&self.direct, self.pack.storage().file()) {
            (Some(_), _) => "past the page cache",
            (None, Some(_)) => "through the page cache",
            (None, None) => "from memory",
        }
    }

    /// The file past the page cache, where a request is to be read from it.
    fn direct(&self, request: &Request) -> Option<&File> {
        self.direct.as_ref().filter(|_| !request.buffered)
    }

    /// The file that a request is to be read from; none where the pack lies in memory.
    pub(super) fn file(&self, request: &Request) -> Option<&File> {
        self.direct(request).or_else(|| self.pack.storage().file())
    }

    /// Reads once.
    pub(super) fn read(&self, request: &mut Request) -> io::Result<usize> {
        let offset = request.offset + to_u64(request.filled);
        let direct = self.direct(request);
        let rest = request.piece.get_mut(request.filled..).unwrap_or_default();
        match direct {
            Some(file) => file.read_at(rest, offset),
            None => self.pack.storage().read_at(rest, offset),
        }
    }

    /// What was read through the page cache only because there is no other way leaves it again, so that it pushes out
    /// nothing that is needed.
    pub(super) fn forget(&self, request: &Request) {
        if self.keep || self.is_direct(request) {
            return;
        }
        if let Some(file) = self.pack.storage().file() {
            let len = u64::try_from(request.piece.len()).ok();
            let len = len.and_then(std::num::NonZeroU64::new);
            let _ = fadvise(file, request.offset, len, Advice::DontNeed);
        }
    }
}
