//! Chunks of a pack on the GPU, for as long as batches are made of them.
//!
//! The GPU's memory has places of a chunk each. A batch that has samples of a chunk holds its place until the batch's slot of the
//! ring is recycled. A place that nobody holds keeps its chunk until another one needs it: the one that was last taken longest
//! ago. There are as many places as all slots of the ring together can hold, so there always is one.
//!
//! # Why no chunk changes under whoever reads it
//!
//! Chunks are copied by the stream that copies the ring's slots, each before the first slot that needs it: so a stream that waits
//! for a slot's copy finds its chunks. Before a place is written again that stream waits for the reading (`emitted`) of every slot that
//! has held it. What chunks are copied from is a ring of its own, whose slots the reaper lets go of, or the registered file, which
//! nobody writes and which stays mapped until all copies are done.
//!
//! A read from the disk into a place is in no stream. It begins when every such reading has happened, which the loader's thread waits
//! for, and has ended before the slots that need it are submitted. A window of such reads has no copies of chunks.

use packds_system::to_u64;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use packds_format::Uuid;
use packds_reader::arena::{Arena, SlotMut};
use packds_reader::device::ChunkImages;

use super::direct::DirectReads;
use super::file::Copies;
use super::lock;
use crate::driver::{DevicePtr, Driver, Event};
use crate::error::CudaError;
use crate::resident::Tables;

/// Places start at multiples of this, which reads from the disk are quickest to.
const ALIGN: u64 = 4096;
/// Chunks on their way.
const STAGED: usize = 4;

/// What a window is made for.
#[derive(Debug)]
pub(crate) struct WindowPlan {
    pub(crate) pack: Uuid,
    pub(crate) chunk_bytes: u64,
    pub(crate) n_chunks: u64,
    /// Chunks that one batch may need.
    pub(crate) chunks_of_batch: u64,
    /// What areas of the images are resized by.
    pub(crate) tables: Option<Tables>,
    pub(crate) copies: Copies,
}

impl WindowPlan {
    /// Bytes from one place to the next.
    fn place_bytes(&self) -> u64 {
        let bytes = self.chunk_bytes.checked_next_multiple_of(ALIGN);
        bytes.unwrap_or(u64::MAX)
    }
}

/// Where a chunk comes from.
pub(super) enum ChunkSource<'a> {
    /// A slot, with the mark of its copy.
    Slot(SlotMut, Event),
    /// The registered file.
    File(&'a [u8]),
    /// A part of the file on the disk.
    Disk(&'a DirectReads, Range<usize>),
}

/// Chunks on the GPU.
#[derive(Debug)]
pub(crate) struct Window {
    driver: Arc<dyn Driver>,
    pub(crate) plan: Arc<WindowPlan>,
    pub(crate) memory: DevicePtr,
    /// Where chunks are copied from, unless that is the file.
    staged: Arc<Arena>,
    /// The mark of each slot's copy, and behind them that of the last copy from the file.
    copied: Vec<Event>,
    is_registered: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    places: Vec<Place>,
    of_chunk: BTreeMap<u64, usize>,
    /// For each slot of the ring the places that it holds.
    held: Vec<BTreeSet<usize>>,
    /// How often a chunk was taken.
    taken: u64,
}

/// A place for a chunk.
#[derive(Debug, Clone, Default)]
struct Place {
    chunk: Option<u64>,
    /// Slots of the ring that hold it.
    holders: usize,
    /// When it was taken last.
    last: u64,
    /// Slots of the ring that have held it since it was written: what reads them may not be done.
    readers: BTreeSet<usize>,
}

/// A place that is to be written.
pub(super) struct Vacant {
    pub(super) place: usize,
    /// Slots of the ring whose reading is waited for first.
    pub(super) readers: BTreeSet<usize>,
}

impl Window {
    /// A window for a ring of `n_slots`.
    pub(super) fn new(
        driver: Arc<dyn Driver>,
        plan: Arc<WindowPlan>,
        n_slots: usize,
    ) -> Result<Self, CudaError> {
        let slots = to_u64(n_slots);
        let n_places = plan
            .chunks_of_batch
            .saturating_mul(slots)
            .min(plan.n_chunks);
        let too_large = |_| CudaError::Use(format!("{n_places} chunks are too many for one GPU"));
        let places = usize::try_from(n_places).map_err(too_large)?;
        let chunk = usize::try_from(plan.chunk_bytes).map_err(too_large)?;
        let staged = Arena::new(STAGED, chunk)
            .map_err(|error| CudaError::Use(format!("memory for chunks: {error}")))?;
        let bytes = n_places.saturating_mul(plan.place_bytes());
        let memory = driver.allocate(bytes, "the window of chunks")?;
        let mut window = Self {
            driver,
            plan,
            memory,
            staged,
            copied: Vec::new(),
            is_registered: false,
            state: Mutex::new(State {
                places: vec![Place::default(); places],
                of_chunk: BTreeMap::new(),
                held: vec![BTreeSet::new(); n_slots],
                taken: 0,
            }),
        };
        // From here on `drop` gives back what there is.
        for _ in 0..=STAGED {
            window.copied.push(window.driver.event()?);
        }
        let (host, len) = window.staged.address();
        if let Some(node) = window.driver.numa_node() {
            // As of the ring.
            let _ = window.staged.prefer_node(node);
        }
        // SAFETY: the arena lives as long as the window, whose `drop` unregisters it.
        unsafe { window.driver.register(host, len)? };
        window.is_registered = true;
        Ok(window)
    }

    /// Where a chunk comes from; none where it could not be read.
    pub(super) fn source(
        &self,
        images: &mut dyn ChunkImages,
    ) -> Result<Option<ChunkSource<'_>>, CudaError> {
        if let Copies::Disk(reads) = &self.plan.copies {
            return Ok(images.in_file().map(|part| ChunkSource::Disk(reads, part)));
        }
        if let Some(file) = self.plan.copies.file()
            && let Some(bytes) = images.in_file().and_then(|range| file.bytes(&range))
        {
            return Ok(Some(ChunkSource::File(bytes)));
        }
        let (mut slot, copied) = self.stage()?;
        let is_there = images.write(&mut slot);
        Ok(is_there.then_some(ChunkSource::Slot(slot, copied)))
    }

    /// The mark of the last copy from the file.
    pub(super) fn copied_from_file(&self) -> Result<Event, CudaError> {
        let lost = || CudaError::Use("a window without a mark".to_owned());
        self.copied.get(STAGED).copied().ok_or_else(lost)
    }

    /// Waits for all copies from the file. Those of slots the reaper waits for.
    pub(super) fn settle(&self) {
        if let Ok(copied) = self.copied_from_file() {
            // SAFETY: it exists until `drop`. An error means that the driver has nothing queued any more.
            let _ = unsafe { self.driver.synchronize(copied) };
        }
    }

    /// A slot to copy a chunk from, and the mark of its copy; waits for one.
    fn stage(&self) -> Result<(SlotMut, Event), CudaError> {
        let lost = || CudaError::Use("a window without a slot".to_owned());
        // The reaper lets go of every slot, also after an error.
        let slot = self.staged.take(&AtomicBool::new(false)).ok_or_else(lost)?;
        let copied = self.copied.get(slot.number()).copied();
        Ok((slot, copied.ok_or_else(lost)?))
    }

    /// First byte of a place in the window.
    pub(super) fn start_of(&self, place: usize) -> u64 {
        let place = to_u64(place);
        place.saturating_mul(self.plan.place_bytes())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Lets a slot of the ring hold nothing any more.
    pub(super) fn recycle(&self, slot: usize) {
        let mut state = self.lock();
        let held = state.held.get_mut(slot).map(std::mem::take);
        for place in held.unwrap_or_default() {
            if let Some(place) = state.places.get_mut(place) {
                place.holders = place.holders.saturating_sub(1);
                place.readers.insert(slot);
            }
        }
    }
}

impl State {
    /// The place of a chunk that is there, held by a slot of the ring from now on.
    pub(super) fn find(&mut self, chunk: u64, slot: usize) -> Option<usize> {
        let place = *self.of_chunk.get(&chunk)?;
        self.hold(place, slot);
        Some(place)
    }

    /// The place that is written next: one that nobody holds. Its chunk is there no more.
    pub(super) fn vacate(&mut self) -> Option<Vacant> {
        let free = self
            .places
            .iter()
            .enumerate()
            .filter(|(_, p)| p.holders == 0);
        let (place, _) = free.min_by_key(|(_, place)| place.last)?;
        let old = std::mem::take(self.places.get_mut(place)?);
        if let Some(chunk) = old.chunk {
            self.of_chunk.remove(&chunk);
        }
        Some(Vacant {
            place,
            readers: old.readers,
        })
    }

    /// A chunk is in a place, held by a slot of the ring.
    pub(super) fn fill(&mut self, place: usize, chunk: u64, slot: usize) {
        if let Some(filled) = self.places.get_mut(place) {
            filled.chunk = Some(chunk);
        }
        self.of_chunk.insert(chunk, place);
        self.hold(place, slot);
    }

    fn hold(&mut self, place: usize, slot: usize) {
        self.taken += 1;
        let is_new = self
            .held
            .get_mut(slot)
            .is_some_and(|held| held.insert(place));
        if let Some(held) = self.places.get_mut(place) {
            held.last = self.taken;
            held.holders += usize::from(is_new);
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        for event in &self.copied {
            // SAFETY: the ring, which is gone, has waited for all that was queued.
            unsafe { self.driver.drop_event(*event) };
        }
        if self.is_registered {
            // SAFETY: as above.
            unsafe { self.driver.unregister(self.staged.address().0) };
        }
        // SAFETY: as above.
        unsafe { self.driver.free(self.memory) };
    }
}
