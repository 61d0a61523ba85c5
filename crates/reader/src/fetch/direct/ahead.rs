//! The thread that prefetches. It goes through the plan step by step and reads the data of each step, as far as buffers
//! allow.
//!
//! # Why it cannot deadlock
//!
//! Steps are planned in ascending order. Each planned step holds its buffers until it is dropped. The thread only waits
//! for a buffer while it plans a step `t`. At that point, every step before `t` has all its buffers. These steps can be
//! requested, filled and dropped. They need this thread only to process completed reads, which it does while it waits.
//! So eventually no step before `t` is left, and each buffer is in one of four states:
//!
//! - free: the wait ends;
//! - cached only because a later step needs the chunk again, according to [`ChunkUse::until`]: one such buffer is
//!   evicted, and its chunk is read again later;
//! - in use by step `t` itself: these are never all buffers, because a step that needs too many buffers is an error;
//! - borrowed by the user without a copy: these are at most half of all buffers, see [`memory`](super::memory). The
//!   user may keep them forever, so only a plan that needs more than the other half waits for the user.
//!
//! The code that reads steps must not hold a step while it waits for a later one, and it must request every step.
//!
//! [`ChunkUse::until`]: crate::plan::ChunkUse::until

use packds_system::{lock, to_u64, to_usize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::buffer::{Buffer, Failure};
use super::engine::Engine;
use super::loads::{Extent, Loads};
use super::{Held, SamplePlace, Shared, StepParts};
use crate::arena::SlotMut;
use crate::plan::{ChunkUse, OrderKind, Route};

/// Maximum number of steps that have been planned but not dropped. It limits the memory for their lists.
const MAX_STEPS: u64 = 1024;

/// Why planning ended early.
enum End {
    Stopped,
    Failed(Failure),
}

/// The prefetching thread.
pub(super) struct Ahead {
    shared: Arc<Shared>,
    plan: Arc<dyn Route>,
    engine: Box<dyn Engine + Send>,
    loads: Loads,
    /// Chunks that a later step may need.
    resident: BTreeMap<u64, Resident>,
}

struct Resident {
    buffer: Arc<Buffer>,
    until: u64,
}

impl Ahead {
    pub(super) fn new(shared: Arc<Shared>, plan: Arc<dyn Route>, engine: Box<dyn Engine + Send>) -> Self {
        let fetch = &shared.fetch;
        let loads = Loads::new(Arc::clone(&fetch.source), Arc::clone(&shared.counts));
        Self { shared, plan, engine, loads, resident: BTreeMap::new() }
    }

    /// Reads everything from `first_step` on. Ends when everything is read, the epoch is stopped, or reading failed.
    pub(super) fn run(mut self, first_step: u64) {
        let _ended = Ended(Arc::clone(&self.shared));
        let mut result = Ok(());
        for step in first_step..self.plan.steps() {
            result = self.plan_step(step);
            if result.is_err() {
                break;
            }
        }
        while result.is_ok() && !self.loads.is_idle() {
            result = self.turn(None);
        }
        if let Err(End::Failed(failure)) = result {
            // Complete the reads in progress, because steps before the failed one are intact.
            while !self.loads.is_idle() && self.turn(None).is_ok() {}
            lock(&self.shared.state).failure = Some(failure);
        }
    }

    fn plan_step(&mut self, step: u64) -> Result<(), End> {
        let shared = Arc::clone(&self.shared);
        loop {
            let seen = shared.memory.bell.rings();
            if shared.outstanding.load(Ordering::Acquire) < MAX_STEPS {
                break;
            }
            self.turn(Some(seen))?;
        }
        let held = if shared.by_sample { self.plan_samples(step)? } else { self.plan_chunks(step)? };
        // Without this check, planning steps that need no reads would never notice a stop.
        if shared.is_stopped() {
            return Err(End::Stopped);
        }
        shared.add_step(step, StepParts::new(&shared, held));
        self.loads.submit(&mut *self.engine);
        Ok(())
    }

    fn plan_chunks(&mut self, step: u64) -> Result<Held, End> {
        let uses = self.plan.chunk_uses(step);
        let (fetch, slots) = (&self.shared.fetch, self.shared.memory.arena.n_slots());
        if uses.len() > slots {
            let needed = fetch.bytes_for(uses.len());
            return Err(End::Failed(Failure::Memory { needed }));
        }
        self.resident.retain(|_, resident| resident.until >= step);
        // In random order, later needs are unknown. Therefore chunks are kept only if everything fits.
        let keep = self.plan.order() != OrderKind::Random || fetch.fits_whole(slots);
        let mut held = Vec::with_capacity(uses.len());
        for chunk_use in &uses {
            let until = if keep { chunk_use.until } else { step };
            if let Some(resident) = self.resident.get_mut(&chunk_use.chunk) {
                resident.until = resident.until.max(until);
                held.push((chunk_use.chunk, Arc::clone(&resident.buffer)));
            } else if let Some(buffer) = self.read_chunk(chunk_use.chunk, &uses)? {
                held.push((chunk_use.chunk, Arc::clone(&buffer)));
                let resident = Resident { buffer, until };
                self.resident.insert(chunk_use.chunk, resident);
            }
        }
        held.sort_unstable_by_key(|(chunk, _)| *chunk);
        Ok(Held::Chunks(held))
    }

    /// Starts reading a chunk if it is not in a buffer. `None` if the chunk does not exist: the error is reported when
    /// its items are requested.
    fn read_chunk(&mut self, chunk: u64, uses: &[ChunkUse]) -> Result<Option<Arc<Buffer>>, End> {
        let shared = Arc::clone(&self.shared);
        let Ok(entry) = shared.fetch.pack.chunk_entry(chunk) else {
            return Ok(None);
        };
        let Some(extent) = Extent::around(entry.offset, entry.stored_len) else {
            return Ok(None);
        };
        let slot = self.acquire(uses)?;
        let start = to_usize(entry.offset - extent.offset);
        let len = to_usize(entry.stored_len);
        let buffer = Buffer::new(Some(chunk), start, len, shared.memory.ring());
        self.loads.start(&buffer, slot, &[extent], &shared.memory);
        self.loads.submit(&mut *self.engine);
        Ok(Some(buffer))
    }

    /// Places the byte ranges of a step's samples into slots, in file order and with as few requests as possible.
    fn plan_samples(&mut self, step: u64) -> Result<Held, End> {
        let shared = Arc::clone(&self.shared);
        let mut samples = self.plan.samples_at(step);
        samples.sort_unstable();
        samples.dedup();
        let mut slots = Slots::new(shared.memory.arena.slot_bytes());
        for sample in samples {
            // Damage in a chunk's table is reported when the item is requested.
            let ranges = shared.fetch.pack.sample_places(sample).unwrap_or_default();
            for (position, range) in ranges.into_iter().enumerate() {
                if shared.fetch.reads_position(position) {
                    slots.add(sample, position, &range);
                }
            }
        }
        let (slots, places) = (slots.slots, slots.places);
        if slots.len() > shared.memory.arena.n_slots() {
            let needed = shared.fetch.bytes_for_samples(slots.len());
            return Err(End::Failed(Failure::Memory { needed }));
        }
        let mut buffers = Vec::with_capacity(slots.len());
        for extents in slots {
            let slot = self.acquire(&[])?;
            let buffer = Buffer::new(None, 0, 0, shared.memory.ring());
            self.loads.start(&buffer, slot, &extents, &shared.memory);
            self.loads.submit(&mut *self.engine);
            buffers.push(buffer);
        }
        Ok(Held::Samples { buffers, places })
    }

    /// Waits for a free slot. The chunks in `uses` must not be evicted to free one.
    fn acquire(&mut self, uses: &[ChunkUse]) -> Result<SlotMut, End> {
        let shared = Arc::clone(&self.shared);
        loop {
            let seen = shared.memory.bell.rings();
            if shared.is_stopped() {
                return Err(End::Stopped);
            }
            if let Some(slot) = shared.memory.arena.try_take() {
                return Ok(slot);
            }
            if shared.outstanding.load(Ordering::Acquire) == 0 && self.evict(uses) {
                shared.counts.evicted.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            self.turn(Some(seen))?;
        }
    }

    /// Evicts the unused chunk that would otherwise be kept longest.
    fn evict(&mut self, uses: &[ChunkUse]) -> bool {
        let unused = |chunk: &u64, resident: &Resident| {
            Arc::strong_count(&resident.buffer) == 1 && uses.iter().all(|chunk_use| chunk_use.chunk != *chunk)
        };
        let candidates = self.resident.iter().filter(|(chunk, r)| unused(chunk, r));
        let longest = candidates.max_by_key(|(_, resident)| resident.until);
        let chunk = longest.map(|(chunk, _)| *chunk);
        chunk.and_then(|chunk| self.resident.remove(&chunk)).is_some()
    }

    /// Processes completed reads. If no reads are in progress, waits until the bell has rung more than `seen` times.
    fn turn(&mut self, seen: Option<u64>) -> Result<(), End> {
        if self.shared.is_stopped() {
            return Err(End::Stopped);
        }
        self.loads.submit(&mut *self.engine);
        match self.loads.wait(&mut *self.engine) {
            Ok(true) => self.shared.notify(),
            Ok(false) => {
                if let Some(seen) = seen {
                    self.shared.memory.bell.wait(seen);
                }
            }
            Err(error) => {
                let failure = Failure::read(0, self.shared.fetch.pack.end_offset(), error);
                self.loads.abandon(&failure);
                return Err(End::Failed(failure));
            }
        }
        self.loads.submit(&mut *self.engine);
        Ok(())
    }
}

/// Tells all waiting threads that reading has ended, even after a panic.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Places ranges of the file into slots, one after another.
struct Slots {
    slot_bytes: usize,
    slots: Vec<Vec<Extent>>,
    places: Vec<SamplePlace>,
    /// Number of bytes used in the last slot.
    taken: usize,
}

impl Slots {
    fn new(slot_bytes: usize) -> Self {
        Self { slot_bytes, slots: Vec::new(), places: Vec::new(), taken: slot_bytes }
    }

    fn add(&mut self, sample: u64, position: usize, range: &Range<u64>) {
        let len = range.end.saturating_sub(range.start);
        let Some(extent) = Extent::around(range.start, len) else {
            return;
        };
        let extent = self.place(extent);
        let within = to_usize(range.start - extent.offset);
        self.places.push(SamplePlace {
            sample,
            position,
            buffer: self.slots.len() - 1,
            start: (self.taken - extent.len).saturating_add(within),
            len: to_usize(len),
        });
    }

    /// Adds an extent. It is merged with the last one if they touch or overlap and the slot has enough space. Returns
    /// the last extent, which ends at `taken`.
    fn place(&mut self, extent: Extent) -> Extent {
        let last = self.slots.last_mut().and_then(|extents| extents.last_mut());
        if let Some(last) = last {
            let last_end = last.offset + to_u64(last.len);
            let end = extent.offset + to_u64(extent.len);
            let more = to_usize(end.saturating_sub(last_end));
            let touches = last.offset <= extent.offset && extent.offset <= last_end;
            if touches && more <= self.slot_bytes - self.taken {
                last.len += more;
                self.taken += more;
                return *last;
            }
        }
        if extent.len > self.slot_bytes - self.taken || self.slots.is_empty() {
            self.slots.push(Vec::new());
            self.taken = 0;
        }
        self.taken += extent.len;
        if let Some(extents) = self.slots.last_mut() {
            extents.push(extent);
        }
        extent
    }
}
