//! From a pack to batches in memory, in an order that is known in advance: what training code iterates over.
//!
//! ```no_run
//! use packds_reader::loader::Loader;
//! use packds_reader::plan::Order;
//!
//! let loader = Loader::builder(packds_reader::open("train.pack")?)
//!     .batch(256)
//!     .order(Order::Window { chunks: None })
//!     .seed(42)
//!     .build()?;
//! for batch in loader.epoch(3)? {
//!     let batch = batch?;
//!     let (pixels, labels) = (batch.elements::<u8>("image")?, batch.elements::<i32>("label")?);
//!     println!("step {}: {} bytes, labels {:?}", batch.step(), pixels.len(), &labels[..4]);
//! }
//! # Ok::<(), packds_reader::loader::LoadError>(())
//! ```
//!
//! Data goes one way: `course` says which samples a step has and fetches their bytes, the `crew` of threads begins steps in
//! order and cuts each batch into pieces, `fill` writes them into a slot of the staging ring, `finish` makes a batch of
//! them, and the consumer gets it from the `board`.

mod batch;
mod board;
mod course;
mod crew;
mod depth;
mod epoch;
mod error;
mod fill;
mod filling;
mod finish;
mod options;
mod outputs;
mod pictures;
mod stats;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use self::board::Board;
use self::course::Course;
use self::crew::Crew;
use self::depth::Depth;
use self::epoch::Lease;
use self::outputs::Outputs;
use self::stats::{Counters, count, time};
use crate::MappedPack;
use crate::arena::Arena;
use crate::device::Device;
use crate::fetch::{AccessReport, Fetch, FetchStats};
use crate::plan::{EpochPlan, OrderKind, Schedule, ShuffleReport, State, Verdict};

pub use self::batch::{BadSample, Batch};
pub use self::epoch::Epoch;
pub use self::error::LoadError;
pub use self::options::LoaderBuilder;
pub use self::outputs::BatchField;
pub use self::stats::LoaderStats;

/// What becomes of a sample that cannot be read, does not match its checksum or cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BadSamples {
    /// The epoch ends with the error that names it.
    #[default]
    Error,
    /// It is left out: its batch is shorter.
    Skip,
    /// Another sample of the batch takes its place: the one before it, else the one behind it.
    Substitute,
}

/// A pack with all decisions made: order, batches, fields, augmentation, memory. See the [module](self).
///
/// It has threads only while an [`Epoch`] is open. It may be shared between threads; its one staging ring serves one
/// epoch at a time.
#[derive(Debug)]
pub struct Loader {
    packs: Arc<[Arc<MappedPack>]>,
    fetch: Arc<Fetch>,
    schedule: Schedule,
    outputs: Arc<Outputs>,
    arena: Arc<Arena>,
    device: Arc<dyn Device>,
    counters: Arc<Counters>,
    threads: usize,
    depth: Option<usize>,
    bad_samples: BadSamples,
    in_use: Arc<AtomicBool>,
    held: Arc<AtomicUsize>,
    made_in: u32,
    /// The crew of the last epoch, for statistics, and what it had read when it ended.
    last: Mutex<Weak<Crew>>,
}

impl Loader {
    /// Begins to make a loader for `pack`.
    #[must_use]
    pub fn builder(pack: impl Into<Arc<MappedPack>>) -> LoaderBuilder {
        LoaderBuilder::new(pack.into())
    }

    /// The batches of an epoch, from its first step on.
    ///
    /// # Errors
    /// [`LoadError::EpochOpen`] while another epoch of this loader exists, [`LoadError::Forked`] in a child process,
    /// [`LoadError::Plan`] where the epoch has no batch, [`LoadError::Read`] where the file has changed.
    pub fn epoch(&self, number: u32) -> Result<Epoch, LoadError> {
        self.start(self.schedule.epoch(number)?, 0)
    }

    /// The batches from a saved state on, to the end of its epoch. The loader must have been made with
    /// [`LoaderBuilder::resume`], or with the very same options.
    ///
    /// # Errors
    /// [`LoadError::Plan`] where the state is of another run, and as for [`epoch`](Self::epoch).
    pub fn epoch_at(&self, state: &State) -> Result<Epoch, LoadError> {
        let (plan, step) = self.schedule.at(state)?;
        self.start(plan, step)
    }

    fn start(&self, plan: EpochPlan, first_step: u64) -> Result<Epoch, LoadError> {
        let found = std::process::id();
        if found != self.made_in {
            let made_in = self.made_in;
            return Err(LoadError::Forked { made_in, found });
        }
        let lease = Lease::take(&self.in_use)?;
        let number = plan.epoch();
        let depth = Depth::new(self.arena.n_slots(), self.depth);
        let held = Arc::clone(&self.held);
        let board = Arc::new(Board::new(first_step, plan.steps(), depth, held));
        let crew = Arc::new(Crew {
            board,
            course: Course::start(plan, &self.fetch, first_step)?,
            outputs: Arc::clone(&self.outputs),
            packs: Arc::clone(&self.packs),
            arena: Arc::clone(&self.arena),
            device: Arc::clone(&self.device),
            counters: Arc::clone(&self.counters),
            bad_samples: self.bad_samples,
            seed: self.schedule.seed(),
            piece_rows: self.piece_rows(),
            lends: matches!(
                self.schedule.recipe().order,
                OrderKind::Sequential | OrderKind::Chunks
            ),
        });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&crew);
        Epoch::start(crew, self.threads, number, lease)
    }

    /// Rows of a piece: several pieces for each thread, so that all end at about the same time.
    fn piece_rows(&self) -> usize {
        if self.threads == 1 {
            return self.outputs.rows;
        }
        self.outputs.rows.div_ceil(self.threads * 4).max(1)
    }

    /// The pack.
    #[must_use]
    pub fn pack(&self) -> &Arc<MappedPack> {
        // A loader is made from at least one pack.
        &self.packs[0]
    }

    /// What each batch holds.
    #[must_use]
    pub fn fields(&self) -> &[BatchField] {
        &self.outputs.fields
    }

    /// The order, batch and ranks, as they were decided.
    #[must_use]
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// How the pack is read, and why.
    #[must_use]
    pub fn access(&self) -> &AccessReport {
        self.fetch.report()
    }

    /// How random the batches are: design effect of each label, batch-mates that meet again, memory, a verdict.
    ///
    /// # Errors
    /// [`LoadError::Read`] where the pack's statistics are damaged, [`LoadError::Plan`] where the epoch has no batch.
    pub fn shuffle_report(&self) -> Result<ShuffleReport, LoadError> {
        let pack = self.pack();
        let stats = pack.stats().map_err(|error| pack.error(error))?;
        let labels: Vec<(&str, Option<f64>)> = stats
            .labels
            .iter()
            .filter(|(_, label)| label.icc.is_some())
            .map(|(name, label)| (name.as_str(), label.icc))
            .collect();
        Ok(self.schedule.shuffle_report(&labels)?)
    }

    /// What the user should know: what was decided where options left it open, and what is doubtful about the order.
    ///
    /// # Errors
    /// As for [`shuffle_report`](Self::shuffle_report).
    pub fn notices(&self) -> Result<Vec<String>, LoadError> {
        let report = self.shuffle_report()?;
        let mut notices: Vec<String> = report.notices.iter().map(ToString::to_string).collect();
        if let Some(verdict @ (Verdict::Weak | Verdict::Harmful)) = report.verdict {
            let order = report.order.name();
            notices.push(format!(
                "the order {order} is {} for this pack, whose neighbours have like labels: `packds info --shuffle` says which window is enough, converting without --keep-order cures it",
                verdict.name()
            ));
        }
        notices.push(self.access().reason.clone());
        Ok(notices)
    }

    /// What was done so far, and who waited for whom.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        let crew = self
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade();
        let counters = &self.counters;
        let depth = usize::try_from(count(&counters.depth)).unwrap_or(usize::MAX);
        LoaderStats {
            batches: count(&counters.batches),
            samples: count(&counters.samples),
            bytes: count(&counters.bytes),
            bad_samples: count(&counters.bad_samples),
            consumer_waited: time(&counters.consumer_waited),
            consumer_busy: time(&counters.consumer_busy),
            threads_busy: time(&counters.threads_busy),
            threads_waited_for_disk: time(&counters.disk_waited),
            threads_waited_for_consumer: time(&counters.threads_idle),
            fetch: crew
                .as_ref()
                .map_or_else(FetchStats::default, |crew| crew.course.stats()),
            depth,
            slots: self.arena.n_slots(),
            slot_bytes: u64::try_from(self.arena.slot_bytes()).unwrap_or(u64::MAX),
            table_bytes: crew.map_or(0, |crew| crew.course.table_bytes()),
        }
    }
}
