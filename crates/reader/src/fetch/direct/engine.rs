//! What reads: requests go in, the same requests come back with what the system said. Not for what a request is part
//! of, and not for trying again: that is `loads`.

use std::fs::File;
use std::io;

use rustix::fs::{Advice, fadvise};

use super::memory::Ring;
use crate::MappedPack;
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
    /// Bytes that are there already: a multiple of 4096.
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

/// The file, opened for both ways of reading.
#[derive(Debug)]
pub(super) struct Files {
    /// Past the page cache; none where the file system cannot do that.
    direct: Option<File>,
    buffered: File,
    /// Whether what is read through the page cache is to stay there.
    keep: bool,
}

impl Files {
    /// `past_cache`: whether to read past the page cache, where that is possible.
    pub(super) fn open(pack: &MappedPack, past_cache: bool) -> io::Result<Self> {
        Ok(Self {
            direct: past_cache.then(|| pack.open_past_cache()).flatten(),
            buffered: pack.file().try_clone()?,
            keep: !past_cache,
        })
    }

    /// Whether reads go past the page cache.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// The file through which a request is to be read.
    pub(super) fn of(&self, request: &Request) -> &File {
        match &self.direct {
            Some(direct) if !request.buffered => direct,
            _ => &self.buffered,
        }
    }

    /// What was read through the page cache only because there is no other way leaves it again, so that it pushes out
    /// nothing that is needed.
    pub(super) fn forget(&self, request: &Request) {
        if !self.keep && (request.buffered || self.direct.is_none()) {
            let len = u64::try_from(request.piece.len()).ok();
            let len = len.and_then(std::num::NonZeroU64::new);
            let _ = fadvise(&self.buffered, request.offset, len, Advice::DontNeed);
        }
    }
}
