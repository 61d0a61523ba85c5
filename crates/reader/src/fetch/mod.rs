//! From a plan to bytes in memory: what a step needs is there before it is asked for, checked, and handed out without a
//! copy where it lies as it should.
//!
//! A [`Fetch`] belongs to one loader: it holds the pack, the way it is read ([`Access`]) and what was already checked. Of
//! each epoch there is one [`EpochFetch`], of each step of it one [`StepItems`]. Not for the order of samples, which is
//! `plan`, and not for what becomes of the bytes.

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

pub use self::access::{Access, AccessReport};
pub use self::checks::Checksums;

pub(crate) use self::access::{Choice, against_holding, choose};
pub(crate) use self::direct::chunk_memory;

use self::checks::Checks;
use self::direct::{DirectFetch, DirectRun, DirectStep};
use self::mapped::{MappedEpoch, MappedFetch, MappedStep};
use crate::plan::Route;
use crate::{Pack, ReadError};

/// What a loader asks of its fetching.
#[derive(Debug, Clone)]
pub(crate) struct FetchOptions {
    /// How to read.
    pub(crate) access: Access,
    /// When to check.
    pub(crate) checksums: Checksums,
    /// Bytes for buffers of chunks, where chunks are read into buffers.
    pub(crate) memory_bytes: u64,
    /// What the user allows in all, where that was said: a pack larger than this is not mapped by [`Access::Auto`].
    pub(crate) budget: Option<u64>,
    /// Bytes of the loader's other packs that have memory first, because they are smaller.
    pub(crate) beside: u64,
    /// The body fields wanted, by their positions among the schema's body fields.
    pub(crate) positions: Vec<usize>,
}

/// What was read, checked and waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchStats {
    /// Bytes asked from the disk. Of a mapped pack those that were not in memory and asked for ahead.
    pub bytes_read: u64,
    /// Requests to the disk.
    pub reads: u64,
    /// Nanoseconds that steps waited for bytes, of all threads together.
    pub wait_ns: u64,
    /// Bytes summed for their checksum.
    pub bytes_checked: u64,
    /// Chunks whose checksum was computed.
    pub chunks_checked: u64,
    /// Samples whose checksum was computed.
    pub samples_checked: u64,
    /// Nanoseconds in which at least one request was under way. 0 of a mapped pack.
    pub busy_ns: u64,
    /// Chunks given up although they were needed again, because there was no buffer left. 0 of a mapped pack.
    pub chunks_evicted: u64,
    /// Buffers there are. 0 of a mapped pack.
    pub buffers: u64,
    /// Buffers in use now.
    pub buffers_in_use: u64,
}

impl FetchStats {
    /// Of an epoch's readings and those of a later one of the same loader: what is counted since the loader was made is
    /// the later one's.
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

    /// Of two readings together.
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

/// How one loader reads one pack, shared by its epochs.
#[derive(Debug)]
pub(crate) struct Fetch {
    report: AccessReport,
    /// What buffers may take.
    memory_bytes: u64,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Mapped(Arc<MappedFetch>),
    /// And the map, where it may be used for what would need whole chunks for single samples.
    Direct(Arc<DirectFetch>, Option<Arc<MappedFetch>>),
}

impl Fetch {
    /// Reads as `choice` says, which [`choose`] made of the same options. Checks the column of sample checksums.
    ///
    /// # Errors
    /// [`ReadError::Format`] where a position is no body field or the column of checksums is damaged.
    pub(crate) fn chosen(
        pack: Arc<Pack>,
        options: FetchOptions,
        choice: Choice,
    ) -> Result<Arc<Self>, ReadError> {
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
            let engine = if pack.storage().file().is_some() {
                "mmap"
            } else {
                "memory"
            };
            let mapped = MappedFetch::new(pack, checks, &options.positions)?;
            (engine, Engine::Mapped(Arc::new(mapped)))
        };
        let report = AccessReport {
            access,
            engine: engine_name,
            past_cache: choice.past_cache,
            reason,
        };
        Ok(Arc::new(Self {
            report,
            memory_bytes,
            engine,
        }))
    }

    #[cfg(test)]
    pub(crate) fn new(pack: Arc<Pack>, options: FetchOptions) -> Result<Arc<Self>, ReadError> {
        let choice = choose(&pack, &options);
        Self::chosen(pack, options, choice)
    }

    /// How the pack is read, and why.
    pub(crate) fn report(&self) -> &AccessReport {
        &self.report
    }

    /// Starts to read what `plan` needs from `first_step` on.
    ///
    /// # Errors
    /// [`ReadError::Changed`] and [`ReadError::Modified`] where the file is no longer the one that was opened.
    pub(crate) fn start(
        self: &Arc<Self>,
        plan: Arc<dyn Route>,
        first_step: u64,
    ) -> Result<Box<dyn EpochFetch>, ReadError> {
        let mapped = match &self.engine {
            Engine::Mapped(fetch) => fetch,
            // Direct reading would read whole chunks for single samples.
            Engine::Direct(direct, Some(fetch)) if direct.wastes_chunks(&*plan) => fetch,
            Engine::Direct(direct, _) => return Ok(Box::new(direct.start(plan, first_step)?)),
        };
        let epoch = MappedEpoch::start(mapped, plan, first_step, self.memory_bytes)?;
        Ok(Box::new(epoch))
    }
}

/// The reading of one epoch. Dropping it ends its threads at once.
pub(crate) trait EpochFetch: fmt::Debug + Send + Sync {
    /// What this rank needs at `step`, once it is in memory. Steps are asked for in ascending order, each once, from any
    /// thread, several at a time; dropping the result frees what only it used.
    ///
    /// # Errors
    /// [`ReadError::Stopped`] after [`stop`](Self::stop), and what reading found.
    fn step(&self, step: u64) -> Result<StepItems, ReadError>;

    /// Wakes all who wait for a step: they get [`ReadError::Stopped`].
    fn stop(&self);

    /// What was read and checked so far.
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
    /// The decoded item of the body field at `position` of `sample`, checked. `scratch` is used where it must be
    /// decompressed.
    ///
    /// # Errors
    /// [`ReadError::Sample`] and [`ReadError::Format`] where the bytes are damaged, [`ReadError::Changed`] where they are
    /// no longer there.
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

    /// The items of `n` samples from `first_sample` on, where they lie one after the other in memory: no copy. None where
    /// they do not, or are compressed or of variable size. Checked: whole chunks by their checksum.
    ///
    /// # Errors
    /// As [`item`](Self::item).
    pub(crate) fn run(
        &self,
        position: usize,
        first_sample: u64,
        n: u32,
    ) -> Result<Option<ItemRun>, ReadError> {
        match &self.0 {
            Step::Mapped(step) => step.run(position, first_sample, n),
            Step::Direct(step) => {
                let run = step.run(position, first_sample, n)?;
                Ok(run.map(|run| ItemRun(Run::Direct(run))))
            }
        }
    }

    /// Whether what was handed out until now were the file's bytes: asked after they were copied, because a file that is
    /// cut short while it is mapped shows zeros instead of failing.
    ///
    /// # Errors
    /// [`ReadError::Changed`], or [`ReadError::Read`] where the disk failed.
    pub(crate) fn still_good(&self) -> Result<(), ReadError> {
        match &self.0 {
            Step::Mapped(step) => step.still_good(),
            Step::Direct(step) => step.still_good(),
        }
    }
}

/// Items that lie one after the other, without a copy. It keeps alive what it shows.
#[derive(Debug, Clone)]
pub(crate) struct ItemRun(Run);

#[derive(Debug, Clone)]
enum Run {
    /// These bytes of the pack.
    Mapped(Arc<Pack>, Range<usize>),
    /// These bytes of a buffer.
    Direct(DirectRun),
}

impl ItemRun {
    /// Where they lie in the pack's bytes; none where they lie in a buffer.
    pub(crate) fn in_pack(&self) -> Option<(&Arc<Pack>, &Range<usize>)> {
        match &self.0 {
            Run::Mapped(pack, range) => Some((pack, range)),
            Run::Direct(_) => None,
        }
    }
}

impl AsRef<[u8]> for ItemRun {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            // The range was within the pack when the run was made, and its bytes stay where they are.
            Run::Mapped(pack, range) => pack.bytes_unchecked().get(range.clone()).unwrap_or(&[]),
            Run::Direct(run) => run.as_ref(),
        }
    }
}
