//! A buffer for bytes of the file, with the result of their verification and their decompressed blocks.

use packds_system::{lock, to_usize};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use packds_format::{BlockItems, FormatError};

use super::DirectFetch;
use super::memory::{Block, Memory, Pin, Ring};
use crate::ReadError;
use crate::arena::SlotRef;
use crate::fetch::checks::Checksums;

/// Why bytes are missing. Every step that needs them gets this error.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    Read {
        offset: u64,
        len: u64,
        error: Arc<io::Error>,
    },
    Changed {
        path: PathBuf,
        expected: u64,
        found: u64,
    },
    /// The memory limit is too small for one step.
    Memory {
        needed: u64,
    },
}

impl Failure {
    pub(super) fn read(offset: u64, len: u64, error: io::Error) -> Self {
        let error = Arc::new(error);
        Self::Read { offset, len, error }
    }

    pub(super) fn error(&self, fetch: &DirectFetch) -> ReadError {
        let path = fetch.pack.file_path().to_owned();
        match self {
            Self::Read { offset, len, error } => {
                let source = match error.raw_os_error() {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => io::Error::new(error.kind(), error.to_string()),
                };
                fetch.pack.unreadable(*offset, *len, source)
            }
            Self::Changed { path, expected, found } => {
                ReadError::Changed { path: path.clone(), expected: *expected, found: *found }
            }
            Self::Memory { needed } => ReadError::Memory { path, given: fetch.memory_bytes, needed: *needed },
        }
    }
}

/// Bytes of the file in a slot of the arena.
#[derive(Debug)]
pub(super) struct Buffer {
    /// The chunk that it holds. `None` if it holds single samples.
    chunk: Option<u64>,
    /// Offset of the chunk in the slot, and its length.
    pub(super) start: usize,
    len: usize,
    bytes: OnceLock<Result<SlotRef, Failure>>,
    /// Whether a thread has begun to verify it. Other threads verify other buffers first.
    claimed: AtomicBool,
    /// Whether the chunk matched its checksum, if buffers are verified.
    verdict: OnceLock<bool>,
    /// Decompressed blocks, by field and number.
    blocks: OnceLock<Vec<Vec<OnceLock<Option<Block>>>>>,
    /// Set while the user holds the buffer.
    pin: Mutex<Weak<Pin>>,
    /// Declared after `bytes`, so that their memory is already free when dropping this wakes the waiting threads.
    _ring: Ring,
}

impl Buffer {
    /// A buffer for a chunk, or for samples.
    pub(super) fn new(chunk: Option<u64>, start: usize, len: usize, ring: Ring) -> Arc<Self> {
        Arc::new(Self {
            chunk,
            start,
            len,
            bytes: OnceLock::new(),
            claimed: AtomicBool::new(false),
            verdict: OnceLock::new(),
            blocks: OnceLock::new(),
            pin: Mutex::default(),
            _ring: ring,
        })
    }

    /// Stores the bytes read. Called once.
    pub(super) fn fill(&self, bytes: Result<SlotRef, Failure>) {
        let first = self.bytes.set(bytes).is_ok();
        debug_assert!(first, "a buffer is filled only once");
    }

    pub(super) fn is_filled(&self) -> bool {
        self.bytes.get().is_some()
    }

    pub(super) fn failure(&self) -> Option<&Failure> {
        self.bytes.get().and_then(|bytes| bytes.as_ref().err())
    }

    /// A range of the buffer's slot. `None` if the buffer is not filled or the range exceeds the slot.
    #[inline]
    pub(super) fn slot(&self, start: usize, len: usize) -> Option<&[u8]> {
        let slot: &[u8] = self.bytes.get()?.as_ref().ok()?;
        slot.get(start..start.checked_add(len)?)
    }

    pub(super) fn chunk_bytes(&self) -> &[u8] {
        self.slot(self.start, self.len).unwrap_or(&[])
    }

    /// Verifies the buffer now, unless another thread has already begun.
    pub(super) fn check_if_unclaimed(&self, fetch: &DirectFetch) {
        if self.chunk.is_some_and(|chunk| !fetch.checks.is_chunk_done(chunk))
            && !self.claimed.swap(true, Ordering::Relaxed)
        {
            // A failure is reported when an item is requested.
            let _ = self.check(fetch);
        }
    }

    /// Verifies the chunk according to the policy. Other threads wait for the result.
    #[inline]
    pub(super) fn check(&self, fetch: &DirectFetch) -> Result<(), ReadError> {
        match self.chunk {
            Some(chunk) if !fetch.checks.is_chunk_done(chunk) => self.check_chunk(fetch, chunk),
            _ => Ok(()),
        }
    }

    #[cold]
    fn check_chunk(&self, fetch: &DirectFetch, chunk: u64) -> Result<(), ReadError> {
        debug_assert!(fetch.checks.policy() != Checksums::Off);
        let mut error = None;
        let whole = self.verdict.get_or_init(|| {
            error = fetch.checks.check_chunk(&fetch.pack, chunk, self.chunk_bytes()).err();
            error.is_none()
        });
        if *whole {
            return Ok(());
        }
        // Later callers compute the checksum again, because their error reports it.
        error.map_or_else(|| fetch.checks.check_chunk(&fetch.pack, chunk, self.chunk_bytes()), Err)
    }

    /// Borrows the buffer for the user, without a copy. `None` if too many buffers are borrowed.
    pub(super) fn pin(self: &Arc<Self>, memory: &Arc<Memory>) -> Option<Arc<Pin>> {
        let mut pin = lock(&self.pin);
        if let Some(pin) = pin.upgrade() {
            return Some(pin);
        }
        let new = Pin::new(self, memory)?;
        *pin = Arc::downgrade(&new);
        Some(new)
    }

    /// Item `index` of the chunk, for the body field at `position`. The item is located with the chunk's tables, or
    /// decompressed. If there is memory to keep a decompressed block, it is decompressed only once. Otherwise it is
    /// decompressed each time, and the item is copied into `scratch`.
    pub(super) fn looked_up_item<'a>(
        &'a self,
        fetch: &DirectFetch,
        memory: &Arc<Memory>,
        (position, index): (usize, u32),
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], FormatError> {
        let pack = &*fetch.pack;
        let chunk = self.chunk.unwrap_or(u64::MAX);
        let view = pack.view_chunk(chunk, self.chunk_bytes())?;
        let Some((number, within)) = view.block_of(position, index) else {
            let place = view.item_place(position, index)?;
            return Ok(self.chunk_bytes().get(to_usize(place.start)..to_usize(place.end)).unwrap_or(&[]));
        };
        let n_blocks = view.parts().iter().map(|part| part.n_blocks);
        let place = |n| (0..n).map(|_| OnceLock::new()).collect();
        let blocks = self.blocks.get_or_init(|| n_blocks.map(place).collect());
        let decode = || {
            let mut items = memory.place();
            pack.block_items(position, chunk, self.chunk_bytes(), number, &mut items).ok()?;
            memory.keep(items)
        };
        let block = blocks.get(position).and_then(|blocks| blocks.get(to_usize(number))?.get_or_init(decode).as_ref());
        if let Some(item) = block.and_then(|block| block.items.item(within)) {
            return Ok(item);
        }
        let mut items = BlockItems::default();
        pack.block_items(position, chunk, self.chunk_bytes(), number, &mut items)?;
        scratch.clear();
        scratch.extend_from_slice(items.item(within).unwrap_or(&[]));
        Ok(scratch)
    }
}
