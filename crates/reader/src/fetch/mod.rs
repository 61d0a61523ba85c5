//! Fetches the bytes of a plan. Data is read ahead, before its step is requested. It is verified and, if possible, used
//! without a copy.
//!
//! A [`Fetch`] belongs to one loader. It holds the pack, the [`Access`], and the record of verified data. Each epoch
//! has an [`EpochFetch`], and each of its steps has a [`StepItems`]. The order of samples is decided in `plan`, and the
//! bytes are processed elsewhere.

mod access;
mod ahead;
mod checks;
mod direct;
mod early;
mod mapped;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

pub use self::access::{Access, AccessReport};
pub use self::checks::Checksums;

pub(crate) use self::access::{Choice, against_holding, choose};
pub(crate) use self::direct::chunk_memory;

use self::checks::Checks;
use self::direct::{DirectFetch, DirectStep};
use self::mapped::{MappedEpoch, MappedFetch, MappedStep};
use crate::plan::{Route, StoredRoute};
use crate::{Pack, ReadError};

#[derive(Debug, Clone)]
pub(crate) struct FetchOptions {
    pub(crate) access: Access,
    pub(crate) checksums: Checksums,
    /// Memory for the buffers, if chunks are read into buffers.
    pub(crate) memory_bytes: u64,
    /// The user's memory limit, if it is set. [`Access::Auto`] does not map a pack that is larger than this.
    pub(crate) budget: Option<u64>,
    /// Total size of the loader's smaller packs, which get memory first.
    pub(crate) beside: u64,
    /// The requested body fields, by their positions in the body.
    pub(crate) positions: Vec<usize>,
}

/// Statistics of reading, verifying and waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchStats {
    /// Bytes requested from the disk. For a mapped pack, bytes that were prefetched because they were not in memory.
    pub bytes_read: u64,
    /// Number of requests to the disk.
    pub reads: u64,
    /// Nanoseconds that steps waited for bytes, summed over all threads.
    pub wait_ns: u64,
    /// Number of bytes whose checksums were computed.
    pub bytes_checked: u64,
    /// Number of chunks whose checksums were computed.
    pub chunks_checked: u64,
    /// Number of samples whose checksums were computed.
    pub samples_checked: u64,
    /// Nanoseconds with at least one request in progress. 0 for a mapped pack.
    pub busy_ns: u64,
    /// Number of chunks that were evicted although they were needed again, because all buffers were in use. 0 for a
    /// mapped pack.
    pub chunks_evicted: u64,
    /// Number of buffers. 0 for a mapped pack.
    pub buffers: u64,
    /// Number of buffers in use now.
    pub buffers_in_use: u64,
}

impl FetchStats {
    /// Combines an epoch's statistics with those of a later one. Counters of the whole loader are taken from the later
    /// epoch.
    pub(crate) const fn then(self, later: Self) -> Self {
        Self {
            bytes_read: self.bytes_read + later.bytes_read,
            reads: self.reads + later.reads,
            wait_ns: self.wait_ns + later.wait_ns,
            busy_ns: self.busy_ns + later.busy_ns,
            chunks_evicted: self.chunks_evicted + later.chunks_evicted,
            ..later
        }
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            bytes_read: self.bytes_read + other.bytes_read,
            reads: self.reads + other.reads,
            wait_ns: self.wait_ns + other.wait_ns,
            bytes_checked: self.bytes_checked + other.bytes_checked,
            chunks_checked: self.chunks_checked + other.chunks_checked,
            samples_checked: self.samples_checked + other.samples_checked,
            busy_ns: self.busy_ns + other.busy_ns,
            chunks_evicted: self.chunks_evicted + other.chunks_evicted,
            buffers: self.buffers + other.buffers,
            buffers_in_use: self.buffers_in_use + other.buffers_in_use,
        }
    }
}

/// How much was read for one epoch, and how long its steps waited.
#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    reads: AtomicU64,
    wait_ns: AtomicU64,
    /// Nanoseconds with at least one request in progress.
    busy_ns: AtomicU64,
    evicted: AtomicU64,
}

impl Counts {
    fn stats(&self) -> FetchStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FetchStats {
            bytes_read: load(&self.bytes),
            reads: load(&self.reads),
            wait_ns: load(&self.wait_ns),
            busy_ns: load(&self.busy_ns),
            chunks_evicted: load(&self.evicted),
            ..FetchStats::default()
        }
    }
}

/// How one loader reads one pack. Shared by the loader's epochs.
#[derive(Debug)]
pub(crate) struct Fetch {
    report: AccessReport,
    memory_bytes: u64,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Mapped(Arc<MappedFetch>),
    /// There may also be a mapping, for steps that would otherwise read whole chunks for single samples.
    Direct(Arc<DirectFetch>, Option<Arc<MappedFetch>>),
}

impl Fetch {
    /// Reads the pack as in `choice`, which [`choose`] made from the same options. Verifies the column of sample
    /// checksums.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a position is not a body field or the column of checksums is damaged.
    pub(crate) fn chosen(pack: Arc<Pack>, options: FetchOptions, choice: Choice) -> Result<Arc<Self>, ReadError> {
        let checks = Checks::new(&pack, options.checksums)?;
        let memory_bytes = options.memory_bytes;
        let (access, mut reason) = (choice.access, choice.reason);
        let (engine_name, engine) = if access == Access::Direct {
            let mapped = if choice.past_cache {
                None
            } else {
                let checks = Checks::new(&pack, options.checksums)?;
                let mapped = MappedFetch::new(Arc::clone(&pack), checks, &options.positions)?;
                Some(Arc::new(mapped))
            };
            let direct = DirectFetch::new(pack, checks, &options, choice.past_cache)?;
            reason = format!("{reason}; {}", direct.describe());
            (direct.engine(), Engine::Direct(direct, mapped))
        } else {
            let engine = if pack.is_in_memory() { "memory" } else { "mmap" };
            let mapped = MappedFetch::new(pack, checks, &options.positions)?;
            (engine, Engine::Mapped(Arc::new(mapped)))
        };
        let report = AccessReport { access, engine: engine_name, past_cache: choice.past_cache, reason };
        Ok(Arc::new(Self { report, memory_bytes, engine }))
    }

    fn pack(&self) -> &Pack {
        match &self.engine {
            Engine::Mapped(fetch) => &fetch.pack,
            Engine::Direct(fetch, _) => fetch.pack(),
        }
    }

    pub(crate) fn report(&self) -> &AccessReport {
        &self.report
    }

    /// Starts reading what `plan` needs from `first_step` on.
    ///
    /// # Errors
    /// [`ReadError::Changed`] and [`ReadError::Modified`] if the file has changed since it was opened.
    pub(crate) fn start(
        self: &Arc<Self>,
        plan: Arc<dyn Route>,
        first_step: u64,
    ) -> Result<Box<dyn EpochFetch>, ReadError> {
        let plan = StoredRoute::of(plan, self.pack().geometry());
        let mapped = match &self.engine {
            Engine::Mapped(fetch) => fetch,
            // Direct reads would read whole chunks for single samples.
            Engine::Direct(direct, Some(fetch)) if direct.wastes_chunks(&*plan) => fetch,
            Engine::Direct(direct, _) => return Ok(Box::new(direct.start(plan, first_step)?)),
        };
        let epoch = MappedEpoch::start(mapped, plan, first_step, self.memory_bytes)?;
        Ok(Box::new(epoch))
    }
}

/// Reads one epoch. Dropping it stops its threads immediately.
pub(crate) trait EpochFetch: fmt::Debug + Send + Sync {
    /// Waits for the data of `step` on this rank. Request each step once, in ascending order. Several threads may wait
    /// at the same time. Dropping the result releases its memory.
    ///
    /// # Errors
    /// [`ReadError::Stopped`] after [`stop`](Self::stop), and read errors.
    fn step(&self, step: u64) -> Result<StepItems, ReadError>;

    /// Wakes all threads that wait for a step. They get [`ReadError::Stopped`].
    fn stop(&self);

    fn stats(&self) -> FetchStats;
}

/// The bytes of one step of one rank.
#[derive(Debug)]
pub(crate) struct StepItems(Step);

#[derive(Debug)]
enum Step {
    Mapped(MappedStep),
    Direct(DirectStep),
}

impl StepItems {
    /// The decoded and verified item of `sample` in the body field at `position`. `scratch` is used for decompression.
    ///
    /// # Errors
    /// [`ReadError::Sample`] and [`ReadError::Format`] if the bytes are damaged, [`ReadError::Changed`] if the file was
    /// truncated.
    pub(crate) fn item<'a>(
        &'a self,
        position: usize,
        sample: u64,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], ReadError> {
        match &self.0 {
            Step::Mapped(step) => step.item(position, sample, scratch),
            Step::Direct(step) => step.item(position, sample, scratch),
        }
    }

    /// The items of `n` samples that start at `first_sample`, without a copy, if they are contiguous in memory. `None`
    /// otherwise, and for compressed or variable-size items. Whole chunks are verified against their checksums.
    pub(crate) fn run(&self, position: usize, first_sample: u64, n: u32) -> Result<Option<ItemRun>, ReadError> {
        match &self.0 {
            Step::Mapped(step) => step.run(position, first_sample, n),
            Step::Direct(step) => step.run(position, first_sample, n),
        }
    }

    /// Checks that everything delivered so far came from the file. Call it after copying, because reads from a
    /// truncated mapped file return zeros instead of failing.
    ///
    /// # Errors
    /// [`ReadError::Changed`], or [`ReadError::Read`] if the disk failed.
    pub(crate) fn still_good(&self) -> Result<(), ReadError> {
        match &self.0 {
            Step::Mapped(step) => step.still_good(),
            Step::Direct(step) => step.still_good(),
        }
    }
}

/// Contiguous items that are not copied. They keep their memory alive.
#[derive(Debug, Clone)]
pub(crate) struct ItemRun {
    bytes: Bytes,
    /// Their range in the pack's bytes. `None` if they are in a buffer.
    place: Option<(Arc<Pack>, Range<usize>)>,
}

impl ItemRun {
    pub(crate) fn in_pack(&self) -> Option<(&Arc<Pack>, &Range<usize>)> {
        self.place.as_ref().map(|(pack, range)| (pack, range))
    }
}

impl AsRef<[u8]> for ItemRun {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
