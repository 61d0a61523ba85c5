//! Reads chunks into our own buffers. Used for packs that are larger than memory, whose reads bypass the page cache if
//! possible, and for compressed packs.
//!
//! Each epoch has a thread that prefetches as far as buffers allow (`ahead`). It uses io_uring if this is permitted
//! (`uring`), otherwise a few threads (`pread`). The threads that use a chunk verify and decompress it.
//!
//! Each open epoch uses the full memory limit. The next epoch reuses the memory of the previous one.

mod ahead;
mod buffer;
mod engine;
mod layout;
mod loads;
mod memory;
mod pread;
#[cfg(test)]
mod tests;
mod uring;

use packds_system::{lock, nanos, to_u64, to_usize, wait};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use packds_format::FormatError;

use self::ahead::Ahead;
use self::buffer::{Buffer, Failure};
use self::engine::{Engine, Source};
use self::layout::Layout;
pub(super) use self::layout::{Place, places};
use self::memory::{Memory, Pin, Ring};
use self::pread::Pread;
use self::uring::Uring;
use super::checks::{Checks, Checksums};
use super::{Counts, EpochFetch, FetchOptions, FetchStats, ItemRun, Step, StepItems};
use crate::plan::{OrderKind, Route};
use crate::{Pack, ReadError};

#[derive(Debug, Clone)]
enum EngineKind {
    Uring,
    Pread,
    #[cfg(test)]
    Faulty(Arc<tests::faulty::Faults>),
}

impl EngineKind {
    fn start(&self, source: &Arc<Source>) -> io::Result<Box<dyn Engine + Send>> {
        Ok(match self {
            Self::Uring => match Uring::new(Arc::clone(source)) {
                Ok(uring) => Box::new(uring),
                // io_uring was available when the loader was made, but not for this many loaders at the same time.
                Err(_) => Box::new(Pread::start(source)?),
            },
            Self::Pread => Box::new(Pread::start(source)?),
            #[cfg(test)]
            Self::Faulty(faults) => Box::new(tests::faulty::Faulty::new(source, faults)),
        })
    }
}

/// Memory for a chunk that is read directly, including its decompressed data.
pub(crate) fn chunk_memory(pack: &Pack, positions: &[usize]) -> Result<u64, ReadError> {
    let layout = pack.located(Layout::new(pack, positions))?;
    let bytes = layout.chunk_slot.saturating_add(layout.decoded);
    Ok(to_u64(bytes))
}

/// The pack of one loader, read directly.
#[derive(Debug)]
pub(super) struct DirectFetch {
    pack: Arc<Pack>,
    checks: Arc<Checks>,
    layout: Layout,
    positions: Vec<usize>,
    source: Arc<Source>,
    engine: EngineKind,
    /// Why this pack is not read with io_uring. `None` if it is.
    no_uring: Option<String>,
    memory_bytes: u64,
    /// Memory of finished epochs, for reuse.
    idle: Mutex<Vec<Arc<Memory>>>,
}

impl DirectFetch {
    /// `past_cache` says whether to bypass the page cache if the file system supports this. Otherwise data stays in the
    /// page cache, which is good for packs that fit in memory.
    ///
    /// # Errors
    /// [`ReadError::Memory`] if `options.memory_bytes` is too small for one chunk, [`ReadError::Format`] if a position
    /// is not a body field, [`ReadError::Open`].
    pub(super) fn new(
        pack: Arc<Pack>,
        checks: impl Into<Arc<Checks>>,
        options: &FetchOptions,
        past_cache: bool,
    ) -> Result<Arc<Self>, ReadError> {
        let (engine, no_uring) = match Uring::probe() {
            _ if pack.is_in_memory() => (EngineKind::Pread, None),
            Ok(()) => (EngineKind::Uring, None),
            Err(error) => (EngineKind::Pread, Some(error.to_string())),
        };
        let mut fetch = Self::with_engine(pack, checks, options, past_cache, engine)?;
        fetch.no_uring = no_uring;
        Ok(Arc::new(fetch))
    }

    fn with_engine(
        pack: Arc<Pack>,
        checks: impl Into<Arc<Checks>>,
        options: &FetchOptions,
        past_cache: bool,
        engine: EngineKind,
    ) -> Result<Self, ReadError> {
        let layout = pack.located(Layout::new(&pack, &options.positions))?;
        let source = Source::new(Arc::clone(&pack), past_cache);
        let fetch = Self {
            pack,
            checks: checks.into(),
            layout,
            positions: options.positions.clone(),
            source: Arc::new(source),
            engine,
            no_uring: None,
            memory_bytes: options.memory_bytes,
            idle: Mutex::default(),
        };
        let needed = fetch.bytes_for(1);
        if needed > fetch.memory_bytes {
            return Err(Failure::Memory { needed }.error(&fetch));
        }
        Ok(fetch)
    }

    pub(super) fn pack(&self) -> &Pack {
        &self.pack
    }

    /// The I/O engine: `io_uring` or `pread`.
    pub(super) fn engine(&self) -> &'static str {
        match self.engine {
            EngineKind::Uring => "io_uring",
            EngineKind::Pread => "pread",
            #[cfg(test)]
            EngineKind::Faulty(_) => "faulty",
        }
    }

    /// A description of the I/O engine: whether it bypasses the page cache, and why it is not io_uring.
    pub(super) fn describe(&self) -> String {
        let place = self.source.describe();
        match &self.no_uring {
            None => format!("{place} with {}", self.engine()),
            Some(reason) => format!("{place} with {} (io_uring: {reason})", self.engine()),
        }
    }

    /// Starts reading what `plan` needs from `first_step` on.
    ///
    /// # Errors
    /// [`ReadError::Memory`] if the first step does not fit, [`ReadError::Changed`] and [`ReadError::Modified`] if the
    /// file has changed since it was opened, [`ReadError::Open`] if the system refuses a thread or memory.
    pub(super) fn start(self: &Arc<Self>, plan: Arc<dyn Route>, first_step: u64) -> Result<DirectEpoch, ReadError> {
        let by_sample =
            plan.order() == OrderKind::Random && !self.layout.compressed && !self.fits_whole(self.slots(false));
        self.begin(plan, first_step, by_sample)
    }

    /// Like [`start`](Self::start), but the caller decides whether to read whole chunks or single samples. Single
    /// samples can be read in any order, but only if all requested fields are uncompressed.
    pub(super) fn begin(
        self: &Arc<Self>,
        plan: Arc<dyn Route>,
        first_step: u64,
        by_sample: bool,
    ) -> Result<DirectEpoch, ReadError> {
        self.pack.check_unchanged()?;
        let open = |source| ReadError::Open { path: self.pack.file_path().to_owned(), source };
        let memory = self.take_memory(by_sample).map_err(open)?;
        if !by_sample {
            let most = most_chunks(plan.as_ref(), first_step, memory.arena.n_slots());
            if most > memory.arena.n_slots() {
                let needed = self.bytes_for(most);
                return Err(Failure::Memory { needed }.error(self));
            }
        }
        let shared = Arc::new(Shared {
            fetch: Arc::clone(self),
            memory,
            by_sample,
            outstanding: Arc::default(),
            stop: AtomicBool::new(false),
            state: Mutex::new(State { next: first_step, ..State::default() }),
            changed: Condvar::new(),
            counts: Arc::default(),
        });
        let engine = self.engine.start(&self.source).map_err(open)?;
        let ahead = Ahead::new(Arc::clone(&shared), plan, engine);
        let epoch = DirectEpoch { shared };
        thread::Builder::new().name("packds-read".to_owned()).spawn(move || ahead.run(first_step)).map_err(open)?;
        Ok(epoch)
    }

    /// Whether `plan` takes single samples from compressed chunks that do not all stay in memory. A whole chunk would
    /// then be read for each of these samples.
    pub(super) fn wastes_chunks(&self, plan: &dyn Route) -> bool {
        let compressed = self.layout.compressed;
        plan.order() == OrderKind::Random && compressed && !self.fits_whole(self.slots(false))
    }

    /// Memory for an epoch, either reused from a finished epoch or new.
    fn take_memory(&self, by_sample: bool) -> io::Result<Arc<Memory>> {
        let mut idle = lock(&self.idle);
        let n_slots = self.slots(by_sample);
        // All epochs of a loader usually have the same order. Memory of a different shape is released first.
        idle.retain(|memory| memory.arena.n_slots() == n_slots);
        if let Some(memory) = idle.pop() {
            return Ok(memory);
        }
        let slot_bytes = if by_sample { self.layout.samples_slot } else { self.layout.chunk_slot };
        let slots = to_u64(slot_bytes.saturating_mul(n_slots));
        let decoded = self.memory_bytes.saturating_sub(slots);
        Memory::new(n_slots, slot_bytes, decoded).map(Arc::new)
    }

    /// Number of slots within the memory limit. For chunks, it is at most twice the number of chunks, because half of
    /// the slots may be borrowed.
    fn slots(&self, by_sample: bool) -> usize {
        let (each, most) = if by_sample {
            (self.bytes_for_samples(1), u64::MAX)
        } else {
            (self.bytes_for(1), self.pack.n_chunks().saturating_mul(2))
        };
        let fit = self.memory_bytes / each.max(1);
        to_usize(fit.min(most))
    }

    fn fits_whole(&self, n_slots: usize) -> bool {
        to_u64(n_slots) >= self.pack.n_chunks()
    }

    fn bytes_for(&self, chunks: usize) -> u64 {
        let each = self.layout.chunk_slot.saturating_add(self.layout.decoded);
        to_u64(each.saturating_mul(chunks))
    }

    /// Memory for `slots` slots of single samples.
    fn bytes_for_samples(&self, slots: usize) -> u64 {
        to_u64(self.layout.samples_slot.saturating_mul(slots))
    }

    /// Whether single samples are verified. Verification needs all their fields.
    fn checks_samples(&self) -> bool {
        self.checks.has_sample_crcs() && self.checks.policy() != Checksums::Off
    }

    /// Whether a body field is read when samples are read one by one.
    fn reads_position(&self, position: usize) -> bool {
        self.checks_samples() || self.positions.contains(&position)
    }
}

/// Maximum number of chunks from which a single step takes samples, for `first_step` and all later steps. The steps of
/// an epoch are usually similar. All of them are checked only if the first one takes more than half of the `slots`, or
/// if a step of a rare bucket may take more than all of them, so that the epoch does not fail midway.
fn most_chunks(plan: &dyn Route, first_step: u64, slots: usize) -> usize {
    let uses = |step| plan.chunk_uses(step).len();
    if first_step >= plan.steps() {
        return 0;
    }
    let first = uses(first_step);
    if first <= slots / 2 && (plan.is_even() || plan.samples_at(first_step).len() <= slots) {
        return first;
    }
    (first_step..plan.steps()).map(uses).max().unwrap_or(first)
}

/// State shared by an epoch, its steps and its thread.
#[derive(Debug)]
struct Shared {
    fetch: Arc<DirectFetch>,
    memory: Arc<Memory>,
    /// Whether samples are read one by one instead of by chunk.
    by_sample: bool,
    /// Number of steps that have been planned but not dropped.
    outstanding: Arc<AtomicU64>,
    stop: AtomicBool,
    state: Mutex<State>,
    /// Wakes threads that wait for a step, after a change.
    changed: Condvar,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct State {
    /// Steps that have buffers but have not been requested yet.
    planned: BTreeMap<u64, StepParts>,
    /// The first step that has not been planned yet.
    next: u64,
    ended: bool,
    failure: Option<Failure>,
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn notify(&self) {
        // The lock ensures that no thread is between checking and waiting.
        let _state = lock(&self.state);
        self.changed.notify_all();
    }

    fn add_step(&self, step: u64, parts: StepParts) {
        let mut state = lock(&self.state);
        // After a stop, this step will not be requested, so its buffers would never be released.
        if !self.is_stopped() {
            state.planned.insert(step, parts);
        }
        state.next = step.saturating_add(1);
        self.changed.notify_all();
    }

    fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let planned = std::mem::take(&mut lock(&self.state).planned);
        self.changed.notify_all();
        drop(planned);
        self.memory.bell.ring();
    }

    fn error(&self, source: FormatError) -> ReadError {
        self.fetch.pack.error(source)
    }
}

#[derive(Debug)]
struct StepParts {
    held: Held,
    /// Declared after the buffers, so that they are already free when dropping this wakes the waiting threads.
    _outstanding: Outstanding,
}

#[derive(Debug)]
enum Held {
    Chunks(Vec<(u64, Arc<Buffer>)>),
    /// Single samples. `places` are sorted by sample and position.
    Samples {
        buffers: Vec<Arc<Buffer>>,
        places: Vec<SamplePlace>,
    },
}

/// The position of an item in a step's buffers.
#[derive(Debug)]
struct SamplePlace {
    sample: u64,
    position: usize,
    /// Index in the step's list of buffers.
    buffer: usize,
    start: usize,
    len: usize,
}

impl Held {
    fn buffers(&self) -> impl Iterator<Item = &Arc<Buffer>> {
        let (chunks, buffers) = match self {
            Self::Chunks(chunks) => (chunks.as_slice(), &[][..]),
            Self::Samples { buffers, .. } => (&[][..], buffers.as_slice()),
        };
        chunks.iter().map(|(_, buffer)| buffer).chain(buffers)
    }
}

/// Counts a step that has been planned but not dropped.
#[derive(Debug)]
struct Outstanding {
    count: Arc<AtomicU64>,
    _ring: Ring,
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        // `_ring` is dropped after this, and wakes the waiting threads.
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl StepParts {
    fn new(shared: &Shared, held: Held) -> Self {
        shared.outstanding.fetch_add(1, Ordering::AcqRel);
        let count = Arc::clone(&shared.outstanding);
        let ring = shared.memory.ring();
        let _outstanding = Outstanding { count, _ring: ring };
        Self { held, _outstanding }
    }
}

#[derive(Debug)]
pub(super) struct DirectEpoch {
    shared: Arc<Shared>,
}

impl EpochFetch for DirectEpoch {
    /// Do not hold an earlier step while waiting for a later one. Returns [`ReadError::Read`] and
    /// [`ReadError::Changed`] if a buffer could not be read, [`ReadError::Memory`] if the step does not fit, and
    /// [`ReadError::Format`] if the step is not available.
    fn step(&self, step: u64) -> Result<StepItems, ReadError> {
        let shared = &self.shared;
        let parts = self.wait(step)?;
        for buffer in parts.held.buffers() {
            if let Some(failure) = buffer.failure() {
                return Err(failure.error(&shared.fetch));
            }
        }
        for buffer in parts.held.buffers() {
            buffer.check_if_unclaimed(&shared.fetch);
        }
        Ok(StepItems(Step::Direct(DirectStep { parts, shared: Arc::clone(shared) })))
    }

    fn stop(&self) {
        self.shared.stop();
    }

    fn stats(&self) -> FetchStats {
        let arena = &self.shared.memory.arena;
        let (all, free) = (to_u64(arena.n_slots()), to_u64(arena.n_free()));
        let read = FetchStats { buffers: all, buffers_in_use: all - free, ..self.shared.counts.stats() };
        read.plus(self.shared.fetch.checks.counts())
    }
}

impl DirectEpoch {
    fn wait(&self, step: u64) -> Result<StepParts, ReadError> {
        let shared = &*self.shared;
        let mut began = None;
        let mut state = lock(&shared.state);
        let result = loop {
            if shared.is_stopped() {
                let path = shared.fetch.pack.file_path().to_owned();
                break Err(ReadError::Stopped { path });
            }
            let is_filled = |parts: &StepParts| parts.held.buffers().all(|b| b.is_filled());
            match state.planned.get(&step).map(is_filled) {
                Some(true) => {}
                None if step < state.next => break Err(self.no_step(step, state.next)),
                Some(false) | None if !state.ended => {
                    began.get_or_insert_with(Instant::now);
                    state = wait(&shared.changed, state);
                    continue;
                }
                _ => break Err(self.ended(step, &state)),
            }
            if let Some(parts) = state.planned.remove(&step) {
                break Ok(parts);
            }
        };
        if let Some(began) = began {
            let waited = nanos(began.elapsed());
            shared.counts.wait_ns.fetch_add(waited, Ordering::Relaxed);
        }
        result
    }

    fn no_step(&self, step: u64, end: u64) -> ReadError {
        self.shared.error(FormatError::OutOfRange { what: "unrequested step", index: step, len: end })
    }

    /// Why a step is missing after the thread has ended.
    fn ended(&self, step: u64, state: &State) -> ReadError {
        match &state.failure {
            Some(failure) => failure.error(&self.shared.fetch),
            None => self.no_step(step, state.next),
        }
    }
}

impl Drop for DirectEpoch {
    /// Dropping returns immediately. The thread that owns the buffers waits for slow reads, then ends.
    fn drop(&mut self) {
        self.shared.stop();
        lock(&self.shared.fetch.idle).push(Arc::clone(&self.shared.memory));
    }
}

#[derive(Debug)]
pub(super) struct DirectStep {
    parts: StepParts,
    shared: Arc<Shared>,
}

impl DirectStep {
    /// Like [`StepItems::item`](super::StepItems::item).
    ///
    /// # Errors
    /// [`ReadError::Format`] if the chunk is damaged or the sample is not in this step, [`ReadError::Sample`].
    #[inline]
    pub(super) fn item<'a>(
        &'a self,
        position: usize,
        sample: u64,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], ReadError> {
        let fetch = &*self.shared.fetch;
        let Held::Chunks(chunks) = &self.parts.held else {
            return self.single_item(position, sample);
        };
        let (chunk, index) = fetch.pack.geometry().locate(sample);
        let Ok(at) = chunks.binary_search_by_key(&chunk, |(chunk, _)| *chunk) else {
            return Err(self.not_here(sample));
        };
        let Some((_, buffer)) = chunks.get(at) else {
            return Err(self.not_here(sample));
        };
        if let Err(error) = buffer.check(fetch) {
            self.check_alone(buffer, sample, error)?;
        }
        if sample < fetch.pack.n_samples()
            && let Some(Some(place)) = fetch.layout.places.get(position)
            && let Some((start, len)) = place.of(index, 1)
            && let Some(item) = buffer.slot(buffer.start + start, len)
        {
            return Ok(item);
        }
        let item = buffer.looked_up_item(fetch, &self.shared.memory, (position, index), scratch);
        fetch.pack.located(item)
    }

    /// In a chunk with this `error`, verifies one sample against its own checksum. A single flipped bit then affects
    /// only one sample, not the whole chunk.
    #[cold]
    fn check_alone(&self, buffer: &Buffer, sample: u64, error: ReadError) -> Result<(), ReadError> {
        let fetch = &*self.shared.fetch;
        let pack = &*fetch.pack;
        let (chunk, index) = pack.geometry().locate(sample);
        let plain = pack.schema().body().all(|(_, field)| field.codec.is_none());
        if !fetch.checks.has_sample_crcs() || !plain {
            return Err(error);
        }
        let Ok(view) = pack.view_chunk(chunk, buffer.chunk_bytes()) else {
            return Err(error);
        };
        let n_fields = pack.schema().body().count();
        let items = (0..n_fields).map(|position| view.stored_item(position, index));
        let Ok(items) = items.collect::<Result<Vec<_>, _>>() else {
            return Err(error);
        };
        let places = || pack.sample_places(sample).unwrap_or_default();
        fetch.checks.check_sample(pack, sample, items.into_iter(), places)
    }

    /// The verified item of a sample, if samples are read one by one.
    fn single_item(&self, position: usize, sample: u64) -> Result<&[u8], ReadError> {
        let fetch = &*self.shared.fetch;
        let (chunk, _) = fetch.pack.geometry().locate(sample);
        if fetch.checks_samples() && !fetch.checks.is_sample_done(sample, chunk) {
            let mut items = Vec::with_capacity(fetch.layout.places.len());
            for position in 0..fetch.layout.places.len() {
                items.push(self.read_item(position, sample)?);
            }
            let places = || -> Vec<Range<u64>> { fetch.pack.sample_places(sample).unwrap_or_default() };
            let items = items.into_iter();
            fetch.checks.check_sample(&fetch.pack, sample, items, places)?;
        } else if !fetch.checks.has_sample_crcs() && !fetch.checks.is_chunk_done(chunk) {
            self.check_chunk_apart(chunk)?;
        }
        self.read_item(position, sample)
    }

    /// Reads a chunk to verify its checksum. Used if single samples are read but have no checksums.
    #[cold]
    fn check_chunk_apart(&self, chunk: u64) -> Result<(), ReadError> {
        let fetch = &*self.shared.fetch;
        let pack = &*fetch.pack;
        let entry = pack.located(pack.chunk_entry(chunk))?;
        // The length was checked against the file and the limits when the pack was opened.
        let mut bytes = vec![0; to_usize(entry.stored_len)];
        pack.read_at(&mut bytes, entry.offset)?;
        fetch.checks.check_chunk(pack, chunk, &bytes)
    }

    fn read_item(&self, position: usize, sample: u64) -> Result<&[u8], ReadError> {
        let Held::Samples { buffers, places } = &self.parts.held else {
            return Err(self.not_here(sample));
        };
        let key = |place: &SamplePlace| (place.sample, place.position);
        let Ok(at) = places.binary_search_by_key(&(sample, position), key) else {
            // The position of the item is unknown, or the item is not in this step.
            self.shared.fetch.pack.located(self.shared.fetch.pack.sample_places(sample))?;
            return Err(self.not_here(sample));
        };
        let item = places.get(at).and_then(|place| {
            let buffer = buffers.get(place.buffer)?;
            buffer.slot(place.start, place.len)
        });
        item.ok_or_else(|| self.not_here(sample))
    }

    #[cold]
    fn not_here(&self, sample: u64) -> ReadError {
        self.shared.error(FormatError::OutOfRange {
            what: "step's sample",
            index: sample,
            len: self.shared.fetch.pack.n_samples(),
        })
    }

    /// Like [`StepItems::still_good`](super::StepItems::still_good). This is necessary because the positions of chunks
    /// were read through the mapping.
    pub(super) fn still_good(&self) -> Result<(), ReadError> {
        self.shared.fetch.pack.still_good()
    }

    /// Like [`StepItems::run`](super::StepItems::run). Also `None` if half of all buffers are borrowed.
    pub(super) fn run(&self, position: usize, first_sample: u64, n: u32) -> Result<Option<ItemRun>, ReadError> {
        let fetch = &*self.shared.fetch;
        let Held::Chunks(chunks) = &self.parts.held else {
            return Ok(None);
        };
        let (chunk, index) = fetch.pack.geometry().locate(first_sample);
        let in_chunk = fetch.pack.geometry().samples_in(chunk);
        let place = fetch.layout.places.get(position).copied().flatten();
        let fits = n > 0 && index.checked_add(n).is_some_and(|end| end <= in_chunk);
        let range = place.filter(|_| fits).and_then(|place| place.of(index, n));
        let Some((start, len)) = range else {
            return Ok(None);
        };
        let found = chunks.binary_search_by_key(&chunk, |(chunk, _)| *chunk);
        let Some((_, buffer)) = found.ok().and_then(|at| chunks.get(at)) else {
            return Err(self.not_here(first_sample));
        };
        buffer.check(fetch)?;
        let start = buffer.start + start;
        let pin = buffer.pin(&self.shared.memory);
        let run = |pin| Bytes::from_owner(DirectRun { pin, start, len });
        Ok(pin.map(|pin| ItemRun { bytes: run(pin), place: None }))
    }
}

/// Contiguous items that keep their buffer alive.
struct DirectRun {
    pin: Arc<Pin>,
    start: usize,
    len: usize,
}

impl AsRef<[u8]> for DirectRun {
    fn as_ref(&self) -> &[u8] {
        self.pin.buffer.slot(self.start, self.len).unwrap_or(&[])
    }
}
