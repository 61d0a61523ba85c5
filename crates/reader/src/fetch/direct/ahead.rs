//! The thread that reads ahead: it walks the plan step by step and reads what each step needs, as far as buffers go.
//!
//! # Why it never waits for ever
//!
//! Steps are planned in ascending order, and each planned step holds its buffers until it is dropped. The thread waits
//! for a buffer only while it plans step `t`. Then every step before `t` has all its buffers: those steps can be asked
//! for, filled and dropped without anything more from this thread but that it goes on taking in what was read, which it
//! does while it waits. So in the end no step before `t` is left, and all buffers are in one of four states:
//!
//! - free: then the waiting ends;
//! - kept only because a later step will need the chunk again, by [`ChunkUse::until`]: one of them is evicted, and its
//!   chunk is read again later;
//! - of step `t` itself: fewer than there are, because a step that needs more is an error;
//! - with the user, without a copy: at most half of all, see [`memory`](super::memory). The user may keep these for
//!   ever, so a plan that turns out to need more than the other half then waits for the user, and only then.
//!
//! What the reader of a step must do for it: hold no step while it waits for a later one, and ask for every step.
//!
//! [`ChunkUse::until`]: crate::plan::ChunkUse::until

use packds_system::{to_u64, to_usize};
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

/// Steps planned and not yet dropped, at most: they take memory for their lists.
const MAX_STEPS: u64 = 1024;

/// Why planning ended early.
enum End {
    /// The epoch was stopped.
    Stopped,
    /// Nothing more can be read.
    Failed(Failure),
}

/// The reading thread.
pub(super) struct Ahead {
    shared: Arc<Shared>,
    plan: Arc<dyn Route>,
    engine: Box<dyn Engine + Send>,
    loads: Loads,
    /// Chunks that a later step may still need.
    resident: BTreeMap<u64, Resident>,
}

struct Resident {
    buffer: Arc<Buffer>,
    until: u64,
}

impl Ahead {
    pub(super) fn new(
        shared: Arc<Shared>,
        plan: Arc<dyn Route>,
        engine: Box<dyn Engine + Send>,
    ) -> Self {
        let fetch = &shared.fetch;
        let loads = Loads::new(Arc::clone(&fetch.source), Arc::clone(&shared.counts));
        Self {
            shared,
            plan,
            engine,
            loads,
            resident: BTreeMap::new(),
        }
    }

    /// Reads everything from `first_step` on. Ends when all is read, when the epoch is stopped, or when it failed.
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
            // What can still come does: steps before the one that failed are whole.
            while !self.loads.is_idle() && self.turn(None).is_ok() {}
            self.shared.fail(failure);
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
        let held = if shared.by_sample {
            self.plan_samples(step)?
        } else {
            self.plan_chunks(step)?
        };
        // With nothing to wait for it would otherwise never look.
        if shared.is_stopped() {
            return Err(End::Stopped);
        }
        shared.add_step(step, StepParts::new(&shared, held));
        self.loads.submit(&mut *self.engine);
        Ok(())
    }

    fn plan_chunks(&mut self, step: u64) -> Result<Held, End> {
        let uses = self.plan.chunk_uses(step);
        let slots = self.shared.memory.arena.n_slots();
        if uses.len() > slots {
            let needed = self.shared.fetch.bytes_for(uses.len());
            return Err(End::Failed(Failure::Memory { needed }));
        }
        self.resident.retain(|_, resident| resident.until >= step);
        // What a random order needs again is only known at the end: nothing is kept where not everything fits.
        let keep = self.plan.order() != OrderKind::Random || self.shared.fits_whole();
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

    /// None for a chunk that the pack does not have: whoever asks for its items is told.
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

    /// The ranges of a step's samples, as few requests as they allow, put into slots in the order of the file.
    fn plan_samples(&mut self, step: u64) -> Result<Held, End> {
        let shared = Arc::clone(&self.shared);
        let mut samples = self.plan.samples_at(step);
        samples.sort_unstable();
        samples.dedup();
        let mut slots = Slots::new(shared.memory.arena.slot_bytes());
        for sample in samples {
            // Where a table in the chunk is damaged, whoever asks for the item is told.
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

    /// A free slot, waited for. `uses` are the chunks that must not be evicted for it.
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
                shared.evicted.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            self.turn(Some(seen))?;
        }
    }

    /// Gives up the chunk that would be kept longest, of those that nobody holds now.
    fn evict(&mut self, uses: &[ChunkUse]) -> bool {
        let unused = |chunk: &u64, resident: &Resident| {
            Arc::strong_count(&resident.buffer) == 1
                && uses.iter().all(|chunk_use| chunk_use.chunk != *chunk)
        };
        let candidates = self.resident.iter().filter(|(chunk, r)| unused(chunk, r));
        let longest = candidates.max_by_key(|(_, resident)| resident.until);
        let chunk = longest.map(|(chunk, _)| *chunk);
        chunk
            .and_then(|chunk| self.resident.remove(&chunk))
            .is_some()
    }

    /// Takes in what was read; where nothing is under way, waits for the bell to ring after `seen`.
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
                let failure = Failure::read(0, self.shared.fetch.pack.file_len(), error);
                self.loads.abandon(&failure);
                return Err(End::Failed(failure));
            }
        }
        self.loads.submit(&mut *self.engine);
        Ok(())
    }
}

/// Tells all who wait that nothing more comes, also where the thread ends by a panic.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Ranges of the file, put into slots one after the other.
struct Slots {
    slot_bytes: usize,
    slots: Vec<Vec<Extent>>,
    places: Vec<SamplePlace>,
    /// Bytes of the last slot that are taken.
    taken: usize,
}

impl Slots {
    fn new(slot_bytes: usize) -> Self {
        Self {
            slot_bytes,
            slots: Vec::new(),
            places: Vec::new(),
            taken: slot_bytes,
        }
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

    /// Adds an extent, as a part of the last one where they touch and both still fit; gives the last extent, which then
    /// ends at `taken`.
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
