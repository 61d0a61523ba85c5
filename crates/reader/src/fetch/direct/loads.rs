//! Buffers that are being read. Each load is split into requests. Requests are retried if that can help. The last one
//! to complete fills the buffer.

use packds_system::{nanos, to_u64, to_usize};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::buffer::{Buffer, Failure};
use super::engine::{Done, Engine, Request, Source};
use super::memory::Memory;
use crate::arena::{SLOT_ALIGN, SlotMut};
use crate::fetch::Counts;

/// Maximum size of a request. It is large enough for the disk, but small enough to have several requests per chunk.
const REQUEST_BYTES: usize = 2 << 20;
/// How many times a request may complete without progress before it fails.
const MAX_ATTEMPTS: u32 = 64;

/// A range of the file whose start and end are multiples of 4096.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) len: usize,
}

impl Extent {
    /// The range `start..start + len`, extended to multiples of 4096.
    pub(super) fn around(start: u64, len: u64) -> Option<Self> {
        let align = to_u64(SLOT_ALIGN);
        let offset = start - start % align;
        let end = start.checked_add(len)?.checked_next_multiple_of(align)?;
        Some(Self { offset, len: to_usize(end - offset) })
    }
}

/// A buffer that is being read.
struct Load {
    buffer: Arc<Buffer>,
    failure: Option<Failure>,
}

pub(super) struct Loads {
    source: Arc<Source>,
    counts: Arc<Counts>,
    loads: BTreeMap<u64, Load>,
    next_load: u64,
    pending: VecDeque<Request>,
    under_way: usize,
    busy_since: Option<Instant>,
    done: Vec<Done>,
}

impl Loads {
    pub(super) fn new(source: Arc<Source>, counts: Arc<Counts>) -> Self {
        Self {
            source,
            counts,
            loads: BTreeMap::new(),
            next_load: 0,
            pending: VecDeque::new(),
            under_way: 0,
            busy_since: None,
            done: Vec::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.loads.is_empty()
    }

    /// Starts reading `extents`, one after another, into `slot`. The slot must be large enough.
    pub(super) fn start(&mut self, buffer: &Arc<Buffer>, slot: SlotMut, extents: &[Extent], memory: &Memory) {
        let mut lens = Vec::new();
        let mut places = Vec::new();
        for extent in extents {
            let mut offset = extent.offset;
            let mut left = extent.len;
            while left > 0 {
                let len = left.min(REQUEST_BYTES);
                let step = to_u64(len);
                let wanted = self.source.left_at(offset).min(step);
                lens.push(len);
                places.push((offset, to_usize(wanted)));
                offset = offset.saturating_add(step);
                left -= len;
            }
        }
        if lens.is_empty() {
            // All items are empty.
            return buffer.fill(Ok(slot.freeze()));
        }
        let Some(pieces) = slot.split(&lens) else {
            let error = io::Error::other("a buffer is too small for its data");
            let first = extents.first().map_or(0, |extent| extent.offset);
            return buffer.fill(Err(Failure::read(first, 0, error)));
        };
        let load = self.next_load;
        self.next_load += 1;
        let requests = pieces.into_iter().zip(places);
        self.pending.extend(requests.map(|(piece, (offset, wanted))| Request {
            load,
            offset,
            piece,
            filled: 0,
            wanted,
            attempts: 0,
            buffered: false,
            _ring: memory.ring(),
        }));
        let buffer = Arc::clone(buffer);
        let failure = None;
        self.loads.insert(load, Load { buffer, failure });
    }

    /// Submits as many requests as the engine accepts. Requests of a failed buffer are dropped.
    pub(super) fn submit(&mut self, engine: &mut dyn Engine) {
        while self.under_way < engine.depth() {
            let Some(request) = self.pending.pop_front() else {
                return;
            };
            let load = self.loads.get(&request.load);
            if load.is_some_and(|load| load.failure.is_some()) {
                self.finish(request);
                continue;
            }
            if self.under_way == 0 {
                self.busy_since = Some(Instant::now());
            }
            self.under_way += 1;
            engine.submit(request);
        }
    }

    /// Waits for requests in progress and processes them. Returns whether there were any.
    pub(super) fn wait(&mut self, engine: &mut dyn Engine) -> io::Result<bool> {
        if self.under_way == 0 {
            return Ok(false);
        }
        let mut done = std::mem::take(&mut self.done);
        engine.wait(&mut done)?;
        for (request, result) in done.drain(..) {
            self.under_way = self.under_way.saturating_sub(1);
            self.take_in(request, result);
        }
        self.done = done;
        if self.under_way == 0 {
            let busy = self.busy_since.take().map_or(Duration::ZERO, |at| at.elapsed());
            let busy = nanos(busy);
            self.counts.busy_ns.fetch_add(busy, Ordering::Relaxed);
        }
        Ok(true)
    }

    fn take_in(&mut self, mut request: Request, result: io::Result<usize>) {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        match result {
            Ok(n) => {
                let n = n.min(request.piece.len() - request.filled);
                let bytes = to_u64(n);
                self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
                let end = request.filled + n;
                if end >= request.wanted {
                    return self.finish(request);
                }
                let next = match self.source.is_direct(&request) {
                    // The next read must also start at a multiple of 4096. Bytes after the last multiple are read
                    // again.
                    true => end - end % SLOT_ALIGN,
                    false => end,
                };
                if next > request.filled {
                    request.filled = next;
                    request.attempts = 0;
                    return self.pending.push_front(request);
                }
                let cause = "the file ends early, or the system stopped reading";
                self.again(request, io::Error::new(io::ErrorKind::UnexpectedEof, cause));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.again(request, error),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.again(request, error),
            // The disk requires a larger alignment than the file system reported.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && self.source.is_direct(&request) => {
                request.buffered = true;
                self.again(request, error);
            }
            Err(error) => self.fail(request, error),
        }
    }

    fn again(&mut self, mut request: Request, error: io::Error) {
        request.attempts += 1;
        let ended = error.kind() == io::ErrorKind::UnexpectedEof;
        if request.attempts >= MAX_ATTEMPTS || (ended && self.source.pack().check_len().is_err()) {
            return self.fail(request, error);
        }
        self.pending.push_front(request);
    }

    fn fail(&mut self, request: Request, error: io::Error) {
        let changed = match self.source.pack().check_len() {
            Err(crate::ReadError::Changed { path, expected, found }) => {
                Some(Failure::Changed { path, expected, found })
            }
            _ => None,
        };
        let rest = request.wanted.saturating_sub(request.filled);
        let at = request.offset + to_u64(request.filled);
        let len = to_u64(rest);
        let failure = changed.unwrap_or_else(|| Failure::read(at, len, error));
        if let Some(load) = self.loads.get_mut(&request.load) {
            load.failure.get_or_insert(failure);
        }
        self.finish(request);
    }

    /// Ends a request. The last request of a buffer stores the bytes in the buffer.
    fn finish(&mut self, request: Request) {
        self.source.forget(&request);
        let Some(slot) = request.piece.join() else {
            return;
        };
        if let Some(load) = self.loads.remove(&request.load) {
            load.buffer.fill(match load.failure {
                None => Ok(slot.freeze()),
                Some(failure) => Err(failure),
            });
        }
    }

    /// Fails all reads with this error.
    pub(super) fn abandon(&mut self, error: &Failure) {
        self.pending.clear();
        for load in std::mem::take(&mut self.loads).into_values() {
            load.buffer.fill(Err(error.clone()));
        }
    }
}
