//! Chunks of a pack on the GPU. They stay there as long as batches need them.
//!
//! GPU memory is divided into places for one chunk each. A batch with samples of a chunk holds the chunk's place until
//! the batch's slot in the ring is recycled. An unused place keeps its chunk until another chunk needs the place. The
//! least recently used place is reused first. There are as many places as all slots of the ring can hold together, so
//! there is always a free place.
//!
//! # Why chunks never change while they are read
//!
//! Chunks are copied on the stream that copies the ring's slots. Each chunk is copied before the first slot that needs
//! it, so a stream that waits for a slot's copy finds its chunks. Before a place is overwritten, the copy stream waits
//! for the reads (`emitted`) of every slot that held the place. Chunks are copied from a separate ring, whose slots the
//! reaper releases, or from the registered file. The file is not written to, and it stays mapped until all copies are
//! complete.
//!
//! A read from the disk into a place does not run on a stream. The loader's thread first waits until all earlier reads
//! of the place have happened. The disk read is complete before the slots that need it are submitted. A window with
//! disk reads does not copy chunks.

use packds_system::{to_u64, to_usize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use packds_format::Uuid;
use packds_reader::arena::{Arena, SlotMut};
use packds_reader::device::{ChunkImages, ChunkReceiver, DeviceError};

use super::direct::DirectReads;
use super::file::Copies;
use super::{RingWith, Sent, Staging, lock};
use crate::driver::{DevicePtr, Driver, Event};
use crate::error::CudaError;
use crate::resident::Tables;

/// Alignment of places, for fast reads from the disk.
const ALIGN: u64 = 4096;
/// Number of chunks that can be copied at the same time.
const STAGED: usize = 4;

/// The parameters of a window.
#[derive(Debug)]
pub(crate) struct WindowPlan {
    pub(crate) pack: Uuid,
    pub(crate) chunk_bytes: u64,
    pub(crate) n_chunks: u64,
    /// Maximum number of chunks that a batch needs.
    pub(crate) chunks_of_batch: u64,
    /// The taps for resizing areas of the images.
    pub(crate) tables: Option<Tables>,
    pub(crate) copies: Copies,
}

impl WindowPlan {
    /// Number of bytes from one place to the next.
    fn place_bytes(&self) -> u64 {
        self.chunk_bytes.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX)
    }
}

/// The source of a chunk.
pub(super) enum ChunkSource<'a> {
    /// A slot, and the event of its copy.
    Slot(SlotMut, Event),
    /// The registered file.
    File(&'a [u8]),
    /// A part of the file on the disk.
    Disk(&'a DirectReads, Range<usize>),
}

/// The memory on the GPU for chunks, and which chunks are in it.
#[derive(Debug)]
pub(crate) struct Window {
    driver: Arc<dyn Driver>,
    pub(crate) plan: Arc<WindowPlan>,
    pub(crate) memory: DevicePtr,
    /// The staging ring for chunks. Chunks that come from the file do not use it.
    staged: Arc<Arena>,
    /// The event of each slot's copy, followed by the event of the last copy from the file.
    copied: Vec<Event>,
    is_registered: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    places: Vec<Place>,
    of_chunk: BTreeMap<u64, usize>,
    /// The places that each slot of the ring holds.
    held: Vec<BTreeSet<usize>>,
    /// A counter that increases whenever a slot takes a place.
    taken: u64,
}

/// A place for a chunk in the window.
#[derive(Debug, Clone, Default)]
struct Place {
    chunk: Option<u64>,
    /// Number of the ring's slots that hold the place.
    holders: usize,
    /// The value of [`State::taken`] when a slot last took the place.
    last: u64,
    /// Slots of the ring that held the place since it was written. Work that reads it may be in progress.
    readers: BTreeSet<usize>,
}

impl Window {
    /// A window for a ring of `n_slots` slots.
    pub(crate) fn new(driver: Arc<dyn Driver>, plan: Arc<WindowPlan>, n_slots: usize) -> Result<Self, CudaError> {
        let n_places = plan.chunks_of_batch.saturating_mul(to_u64(n_slots)).min(plan.n_chunks);
        let too_large = |_| CudaError::Use(format!("{n_places} chunks are too many for one GPU"));
        let places = usize::try_from(n_places).map_err(too_large)?;
        let chunk = usize::try_from(plan.chunk_bytes).map_err(too_large)?;
        let staged = Arena::new(STAGED, chunk)
            .map_err(|error| CudaError::Use(format!("cannot reserve memory for chunks: {error}")))?;
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
        // From here on, `drop` releases what exists so far.
        for _ in 0..=STAGED {
            window.copied.push(window.driver.event()?);
        }
        let (host, len) = window.staged.address();
        if let Some(node) = window.driver.numa_node() {
            // If the system refuses, the memory may be on any node.
            let _ = window.staged.prefer_node(node);
        }
        // SAFETY: the arena lives as long as the window, whose `drop` unregisters it.
        unsafe { window.driver.register(host, len)? };
        window.is_registered = true;
        Ok(window)
    }

    /// The source of a chunk. `None` if it could not be read.
    pub(super) fn source(&self, images: &mut dyn ChunkImages) -> Result<Option<ChunkSource<'_>>, CudaError> {
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

    /// The event of the last copy from the file.
    pub(super) fn copied_from_file(&self) -> Result<Event, CudaError> {
        let lost = || CudaError::Use("the window has no event".to_owned());
        self.copied.get(STAGED).copied().ok_or_else(lost)
    }

    /// Waits for all copies from the file. Copies of slots are not included, because the reaper waits for them.
    pub(super) fn settle(&self) {
        if let Ok(copied) = self.copied_from_file() {
            // SAFETY: the event exists until `drop`. An error means that the driver no longer has queued work.
            let _ = unsafe { self.driver.synchronize(copied) };
        }
    }

    /// Waits for a free slot in the staging ring for chunks. Also returns the event of the slot's copy.
    fn stage(&self) -> Result<(SlotMut, Event), CudaError> {
        let lost = || CudaError::Use("the window has no slot".to_owned());
        // The reaper releases every slot, even after an error.
        let slot = self.staged.take(&AtomicBool::new(false)).ok_or_else(lost)?;
        let copied = self.copied.get(slot.number()).copied();
        Ok((slot, copied.ok_or_else(lost)?))
    }

    /// Offset of a place in the window.
    pub(super) fn start_of(&self, place: usize) -> u64 {
        to_u64(place).saturating_mul(self.plan.place_bytes())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Makes a slot of the ring release the places that it holds.
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
    /// The place of a chunk that is already there. From now on, the slot of the ring holds it.
    pub(super) fn find(&mut self, chunk: u64, slot: usize) -> Option<usize> {
        let place = *self.of_chunk.get(&chunk)?;
        self.hold(place, slot);
        Some(place)
    }

    /// Chooses an unused place to overwrite and removes its chunk. Also returns the slots of the ring whose readers
    /// must finish first.
    fn vacate(&mut self) -> Option<(usize, BTreeSet<usize>)> {
        let free = self.places.iter().enumerate().filter(|(_, p)| p.holders == 0);
        let (place, _) = free.min_by_key(|(_, place)| place.last)?;
        let old = std::mem::take(self.places.get_mut(place)?);
        if let Some(chunk) = old.chunk {
            self.of_chunk.remove(&chunk);
        }
        Some((place, old.readers))
    }

    /// Records that a chunk is in a place and held by a slot of the ring.
    pub(super) fn fill(&mut self, place: usize, chunk: u64, slot: usize) {
        if let Some(filled) = self.places.get_mut(place) {
            filled.chunk = Some(chunk);
        }
        self.of_chunk.insert(chunk, place);
        self.hold(place, slot);
    }

    fn hold(&mut self, place: usize, slot: usize) {
        self.taken += 1;
        let is_new = self.held.get_mut(slot).is_some_and(|held| held.insert(place));
        if let Some(held) = self.places.get_mut(place) {
            held.last = self.taken;
            held.holders += usize::from(is_new);
        }
    }
}

impl RingWith<Window> {
    /// Brings a chunk into the window unless it is there already. Returns its start. `None` if its images could not be
    /// read.
    fn bring(&self, (slot, chunk): (usize, u64), images: &mut dyn ChunkImages) -> Result<Option<u64>, CudaError> {
        let (window, staging) = (&*self.with, &self.ring.0);
        staging.check()?;
        // Hold the lock until the copy is queued. Another thread that finds the chunk then queues its own slot after
        // the copy.
        let mut state = window.lock();
        if let Some(place) = state.find(chunk, slot) {
            return Ok(Some(window.start_of(place)));
        }
        let Some(source) = window.source(images)? else { return Ok(None) };
        let vacant = state.vacate();
        let (place, readers) = vacant.ok_or_else(|| CudaError::Use("every place is held".to_owned()))?;
        let start = window.start_of(place);
        let emitted = readers.iter().map(|reader| Ok(staging.events_of(*reader)?.emitted));
        let emitted = emitted.collect::<Result<Vec<_>, CudaError>>()?;
        // SAFETY: the place is used only by work that these events mark, and by work for later slots, which is queued
        // after this call.
        unsafe { staging.bring_chunk(window, source, &emitted, window.memory.plus(start))? };
        state.fill(place, chunk, slot);
        Ok(Some(start))
    }
}

impl ChunkReceiver for RingWith<Window> {
    fn take_chunk(&self, slot: usize, chunk: u64, images: &mut dyn ChunkImages) -> Result<Option<u64>, DeviceError> {
        let brought = self.bring((slot, chunk), images);
        // After an error, some copies of the chunk may be queued.
        brought.map_err(|error| self.ring.0.failed(error))
    }
}

impl Staging {
    /// Brings a chunk to its place after the events in `emitted`. Either queues a copy after these events, or waits for
    /// them and reads the chunk.
    ///
    /// # Safety
    /// Only two kinds of work may use the place: work that the events mark, and work that is queued after this.
    unsafe fn bring_chunk(
        &self,
        window: &Window,
        source: ChunkSource<'_>,
        emitted: &[Event],
        to: DevicePtr,
    ) -> Result<(), CudaError> {
        let is_queued = !matches!(source, ChunkSource::Disk(..));
        for event in emitted {
            if is_queued {
                // SAFETY: the staging owns the stream and the event.
                unsafe { self.driver.wait_for(self.copies, *event)? };
            } else {
                // SAFETY: the staging owns the event.
                unsafe { self.driver.synchronize(*event)? };
            }
        }
        match source {
            // SAFETY: no queued work uses the place, because the work that read it is done, and a window that reads
            // from the disk queues no copies.
            ChunkSource::Disk(reads, part) => unsafe { reads.read(&part, to) },
            ChunkSource::File(bytes) => {
                let copied = window.copied_from_file()?;
                // SAFETY: the file is registered and never written. The window keeps it until the copy is done.
                unsafe { self.copy(bytes, to)? };
                // SAFETY: the event and the stream exist.
                unsafe { self.driver.record(copied, self.copies) }
            }
            ChunkSource::Slot(slot, copied) => {
                let slot = slot.freeze();
                let bytes = slot.get(..to_usize(window.plan.chunk_bytes)).unwrap_or(&slot);
                // SAFETY: the bytes are in the window's ring, which is registered. They do not change, because the
                // reaper keeps them until `copied` has happened.
                unsafe { self.copy(bytes, to)? };
                // SAFETY: the event and the stream exist.
                unsafe { self.driver.record(copied, self.copies)? };
                self.send(Sent { slot, uploaded: copied, arrival: Arc::default() })
            }
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        for event in &self.copied {
            // SAFETY: the ring waited for all queued work before it was dropped.
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
