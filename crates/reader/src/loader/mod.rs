//! Makes batches in memory from a pack, in an order that is known in advance. Training code iterates over these
//! batches.
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
//! Several packs with the same fields are mixed in fixed proportions. The number of samples from each pack is the same
//! in every batch.
//! ```no_run
//! use packds_reader::loader::Loader;
//!
//! let loader = Loader::builder(packds_reader::open("photos.pack")?)
//!     .proportion(0.75)
//!     .mix(packds_reader::open("drawings.pack")?, 0.25)
//!     .batch(256)
//!     .build()?;
//! let mut epoch = loader.epoch(0)?;
//! for batch in &mut epoch {
//!     let batch = batch?;
//!     let of_drawings = batch.packs().iter().filter(|pack| **pack == 1).count();
//!     assert_eq!(of_drawings, 64);
//! }
//! // To continue later: `loader.epoch_at_mixture(&state)`.
//! let state = epoch.mixture_state();
//! # Ok::<(), packds_reader::loader::LoadError>(())
//! ```
//!
//! Data flows in one direction. `schedule` determines the samples of a step and fetches their bytes. The threads in
//! `workers` begin steps in order and split each batch into pieces. `fill` writes the pieces into a slot of the staging
//! ring. `finish` turns them into a batch. The consumer takes the batch from the `board`.

mod batch;
mod board;
mod boxes;
mod epoch;
mod error;
mod fill;
mod filling;
mod finish;
mod geometry;
mod instance_masks;
mod journal;
mod kept;
mod options;
mod outputs;
mod pictures;
mod remedy;
mod schedule;
mod sources;
mod stats;
mod tuner;
mod workers;

#[cfg(test)]
mod tests;

use packds_system::{Opt, lock, to_u64};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use self::board::Board;
use self::epoch::Lease;
use self::outputs::Contents;
use self::pictures::Pictures;
use self::schedule::{EpochSchedule, Sequence};
use self::stats::{count, time};
use self::workers::{Shared, Workers};
use crate::Pack;
use crate::augment::Output;
use crate::device::Receiver;
use crate::fetch::{AccessReport, Fetch};
use crate::plan::{Mixture, MixtureState, Notice, PlanError, Schedule, ShuffleReport, State, Verdict};

pub use self::batch::{BadSample, Batch};
pub use self::epoch::Epoch;
pub use self::error::LoadError;
pub use self::geometry::BatchGeometry;
#[doc(hidden)]
pub use self::kept::{ImageSize, Kept};
pub use self::options::LoaderBuilder;
pub use self::outputs::BatchField;
pub use self::stats::LoaderStats;
pub use self::tuner::Tuned;

// Internals for the other crates of this workspace. They may change in any version.
#[doc(hidden)]
pub use self::{
    journal::JOURNAL,
    options::{Decodable, FileSurvey, Holdable, Probe},
    remedy::Remedy,
};

/// What to do with a sample that cannot be read or decoded, or does not match its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BadSamples {
    /// End the epoch with an error that names the sample.
    #[default]
    Error,
    /// Leave it out. The batch is shorter.
    Skip,
    /// Replace it with the last good sample before it in the batch, or if there is none, with the first good one after
    /// it.
    Substitute,
}

packds_system::named!(BadSamples { Error = "error", Skip = "skip", Substitute = "substitute" });

/// The loader of one pack, or of several packs in fixed proportions. Its order, batches, fields, augmentation and
/// memory are already decided. See the [module](self).
///
/// It has threads only while an [`Epoch`] is open. It may be shared between threads. It has one staging ring, so only
/// one epoch can be open at a time.
#[derive(Debug)]
pub struct Loader {
    contents: Arc<Contents>,
    shared: Arc<Shared>,
    /// How each pack is read.
    fetches: Vec<Arc<Fetch>>,
    /// The schedule of the only pack, or of the first pack of a mixture.
    schedule: Schedule,
    /// Set if there are several packs.
    mixture: Option<Arc<Mixture>>,
    /// Number of threads per epoch. The tuner decides how many of them are active.
    threads: usize,
    /// How many of these threads the system could not start for the last epoch.
    not_started: AtomicUsize,
    requested_prefetch: Option<NonZero<usize>>,
    in_use: Arc<AtomicBool>,
    held: Arc<AtomicUsize>,
    made_in: u32,
    /// The threads of the last epoch, as long as they exist. They are used for statistics.
    last: Mutex<Weak<Workers>>,
}

impl Loader {
    /// Starts building a loader for `pack`.
    pub fn builder(pack: impl Into<Arc<Pack>>) -> LoaderBuilder {
        LoaderBuilder::new(pack.into())
    }

    /// The batches of an epoch, starting at its first step. An epoch of a mixture has [`Mixture::steps_per_epoch`]
    /// steps, which use about as many samples as all packs have together.
    ///
    /// # Errors
    /// [`LoadError::EpochOpen`] if another epoch of this loader is open, [`LoadError::Forked`] in a child process,
    /// [`LoadError::Plan`] if the epoch would have no batches, [`LoadError::Read`] if the file has changed.
    pub fn epoch(&self, number: u32) -> Result<Epoch, LoadError> {
        self.epoch_from(number, 0)
    }

    /// Like [`epoch`](Self::epoch), but starts at a given step.
    ///
    /// # Errors
    /// As for [`epoch`](Self::epoch).
    #[doc(hidden)]
    pub fn epoch_from(&self, number: u32, step: u64) -> Result<Epoch, LoadError> {
        self.start(self.sequence(number)?, step)
    }

    fn sequence(&self, number: u32) -> Result<Sequence, LoadError> {
        Ok(match &self.mixture {
            None => Sequence::Epoch(Arc::new(self.schedule.epoch(number)?)),
            Some(mixture) => Sequence::Mixture(Arc::clone(mixture), number),
        })
    }

    /// The batches from a saved state to the end of its epoch. Make the loader with [`LoaderBuilder::resume`], or with
    /// exactly the same options.
    ///
    /// # Errors
    /// [`LoadError::Plan`] if the state is from another run, otherwise as for [`epoch`](Self::epoch).
    pub fn epoch_at(&self, state: &State) -> Result<Epoch, LoadError> {
        if self.mixture.is_some() {
            return Err(LoadError::Option(
                "the state belongs to one pack, but this loader mixes several: continue with `Epoch::mixture_state` and `Loader::epoch_at_mixture`".to_owned(),
            ));
        }
        let (plan, step) = self.schedule.at(state)?;
        self.start(Sequence::Epoch(Arc::new(plan)), step)
    }

    /// The batches from a saved state of a mixture to the end of its epoch. The number of ranks may change. Packs,
    /// proportions, order, seed, memory budget and global batch must be the same.
    ///
    /// # Errors
    /// [`LoadError::Plan`] if the state is from another run, [`LoadError::Option`] if there is only one pack, otherwise
    /// as for [`epoch`](Self::epoch).
    pub fn epoch_at_mixture(&self, state: &MixtureState) -> Result<Epoch, LoadError> {
        let Some(mixture) = &self.mixture else {
            return Err(LoadError::Option(
                "the state belongs to a mixture, but this loader has one pack: continue with `Epoch::state` and `Loader::epoch_at`".to_owned(),
            ));
        };
        let step = mixture.at(state)?;
        let per_epoch = mixture.steps_per_epoch();
        let number = u32::try_from(step / per_epoch)
            .map_err(|_| PlanError::State { why: format!("step {step} is after the last possible epoch") })?;
        self.start(Sequence::Mixture(Arc::clone(mixture), number), step % per_epoch)
    }

    fn start(&self, sequence: Sequence, first_step: u64) -> Result<Epoch, LoadError> {
        let found = std::process::id();
        if found != self.made_in {
            let made_in = self.made_in;
            return Err(LoadError::Forked { made_in, found });
        }
        let lease = Lease::take(&self.in_use)?;
        for pack in self.contents.packs.iter() {
            pack.protect()?;
        }
        let number = sequence.number();
        let held = Arc::clone(&self.held);
        let board = Board::new(first_step, sequence.steps(), &lock(&self.shared.tuner), held);
        let workers = Arc::new(Workers {
            board: Arc::new(board),
            schedule: EpochSchedule::start(sequence, &self.fetches, first_step)?,
            contents: Arc::clone(&self.contents),
            shared: Arc::clone(&self.shared),
        });
        let table_bytes = workers.schedule.table_bytes();
        self.shared.counters.table_bytes.store(table_bytes, Ordering::Relaxed);
        *lock(&self.last) = Arc::downgrade(&workers);
        let epoch = Epoch::start(workers, self.threads, number, lease)?;
        let not_started = self.threads.saturating_sub(epoch.n_threads());
        self.not_started.store(not_started, Ordering::Relaxed);
        Ok(epoch)
    }

    /// The pack. For a mixture, the first pack.
    pub fn pack(&self) -> &Arc<Pack> {
        // A loader has at least one pack.
        &self.contents.packs[0]
    }

    /// All packs. [`Batch::packs`] contains indices into this list.
    pub fn packs(&self) -> &[Arc<Pack>] {
        &self.contents.packs
    }

    /// Maximum number of threads that decode and copy. [`tuning`](Self::tuning) reports how many are active.
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// The history of active threads and prefetched batches, with reasons. The oldest entry comes first. Values that
    /// [`LoaderBuilder::threads`] and [`LoaderBuilder::prefetch`] fix do not change. The others adapt to the training
    /// run.
    pub fn tuning(&self) -> Vec<Tuned> {
        lock(&self.shared.tuner).log().to_vec()
    }

    /// The receiver of the batches.
    #[doc(hidden)]
    pub fn receiver(&self) -> &dyn Receiver {
        self.shared.device.receiver()
    }

    /// The output of the augmentation, if there is one.
    #[doc(hidden)]
    pub fn picture_output(&self) -> Option<Output> {
        let pictures = self.contents.outputs.pictures_on_host();
        pictures.map(Pictures::made)
    }

    /// Number of steps in an epoch.
    ///
    /// # Errors
    /// [`LoadError::Plan`] if the epoch cannot be planned.
    #[doc(hidden)]
    pub fn steps(&self) -> Result<u64, LoadError> {
        Ok(self.sequence(0)?.steps())
    }

    /// The fields of each batch.
    pub fn fields(&self) -> &[BatchField] {
        &self.contents.outputs.fields
    }

    /// The order, batch and ranks in use. For a mixture, those of its first pack, where the batch is only that pack's
    /// share of the mixture's batch. See [`mixture`](Self::mixture).
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The plan of a mixture. `None` for a single pack.
    pub fn mixture(&self) -> Option<&Mixture> {
        self.mixture.as_deref()
    }

    /// How the pack is read, and why. For a mixture, this is about the first pack.
    pub fn access(&self) -> &AccessReport {
        self.fetches[0].report()
    }

    /// How random the batches are: the design effect of each label, how often samples share a batch again, memory, and
    /// a verdict. For a mixture, the report covers only the samples of its first pack.
    ///
    /// # Errors
    /// [`LoadError::Read`] if the pack's statistics are damaged, [`LoadError::Plan`] if the epoch would have no
    /// batches.
    pub fn shuffle_report(&self) -> Result<ShuffleReport, LoadError> {
        shuffle_report(self.pack(), &self.schedule)
    }

    /// Notices for the user: defaults that were chosen, how the pack is read, and problems with the order, the prefetch
    /// and the threads. For a mixture, each notice about a pack begins with its path.
    ///
    /// # Errors
    /// As for [`shuffle_report`](Self::shuffle_report).
    pub fn notices(&self) -> Result<Vec<String>, LoadError> {
        let of_loader = [self.too_far_ahead(), self.fewer_threads()];
        let mut all: Vec<String> = of_loader.into_iter().flatten().collect();
        all.extend(self.of_each_pack(|pack, schedule, access| {
            let report = shuffle_report(pack, schedule)?;
            Ok(notices(&report, access))
        })?);
        Ok(all)
    }

    /// Problems that cost accuracy: samples that no epoch uses, an order that does not shuffle this pack enough, fields
    /// of a mixture that only some packs have, keypoints that do not swap in flipped images, and fields that should move
    /// with the images but do not ([`Batch::geometry`]). Poor shuffling is not reported for the order `sequential`,
    /// because users choose this order on purpose.
    ///
    /// # Errors
    /// As for [`shuffle_report`](Self::shuffle_report).
    pub fn doubts(&self) -> Result<Vec<String>, LoadError> {
        let mut doubts = self.of_each_pack(|pack, schedule, _| Ok(doubts(&shuffle_report(pack, schedule)?)))?;
        for pack in self.packs().iter().skip(1) {
            let lacking = self.contents.outputs.lacking(pack);
            if !lacking.is_empty() {
                let (path, names) = (pack.file_path().display(), lacking.join("`, `"));
                doubts.push(format!(
                    "{path}: `{names}` will not be loaded, because the first pack has no such field: list the fields to load"
                ));
            }
        }
        let outputs = &self.contents.outputs;
        if let Some(points) = outputs.pictures.as_ref().and_then(|pictures| pictures.unswapped_points(outputs)) {
            doubts.push(format!(
                "left and right points of `{points}` do not swap in flipped images, because the pack does not name its keypoints: leave flips out, or write the pack with names"
            ));
        }
        let unmoved = geometry::unmoved(self.pack(), &self.contents.outputs);
        if !unmoved.is_empty() {
            let (names, stay) = (unmoved.join("`, `"), if unmoved.len() == 1 { "stays" } else { "stay" });
            doubts.push(format!(
                "`{names}` {stay} as stored although images are cropped, resized, flipped or rotated: a batch's geometry() says how each image was changed"
            ));
        }
        Ok(doubts)
    }

    /// Calls `tell` for each pack and returns the results. If there are several packs, each result begins with the
    /// path.
    fn of_each_pack(
        &self,
        tell: impl Fn(&Pack, &Schedule, &AccessReport) -> Result<Vec<String>, LoadError>,
    ) -> Result<Vec<String>, LoadError> {
        let Some(mixture) = &self.mixture else {
            return tell(self.pack(), &self.schedule, self.access());
        };
        let mut all = Vec::new();
        let parts = self.contents.packs.iter().zip(mixture.schedules());
        for ((pack, schedule), fetch) in parts.zip(&self.fetches) {
            let path = pack.file_path().display();
            let of_pack = tell(pack, schedule, fetch.report())?;
            all.extend(of_pack.iter().map(|notice| format!("{path}: {notice}")));
        }
        Ok(all)
    }

    /// A notice if fewer batches are prefetched than requested.
    fn too_far_ahead(&self) -> Option<String> {
        let (requested, slots) = (self.requested_prefetch?.get(), self.shared.arena.n_slots());
        (requested > slots).then(|| {
            format!("prefetch is {requested}, but the staging ring has {slots} slots, so at most {slots} batches are prepared ahead; increase `slots` to prepare more")
        })
    }

    /// The number of threads in the last epoch, if the system started too few.
    fn only_started(&self) -> Option<usize> {
        let missing = self.not_started.load(Ordering::Relaxed);
        (missing > 0).then_some(self.threads.saturating_sub(missing))
    }

    /// A notice if the system started too few threads.
    fn fewer_threads(&self) -> Option<String> {
        let requested = self.threads;
        self.only_started().map(|started| {
            format!("the system started only {started} of {requested} loading threads: loading may be slower; allow more threads (`ulimit -u`, the `pids` limit of a container)")
        })
    }

    /// What the loader has done so far, and where it waited.
    pub fn stats(&self) -> LoaderStats {
        let workers = lock(&self.last).upgrade();
        // The totals do not include an epoch that is still open.
        let fetched = *lock(&self.shared.fetched);
        let counters = &self.shared.counters;
        let (threads, prefetch) = {
            let tuner = lock(&self.shared.tuner);
            let threads = tuner.threads();
            let there = self.only_started().unwrap_or(threads);
            (threads.min(there), tuner.prefetch())
        };
        LoaderStats {
            batches: count(&counters.batches),
            samples: count(&counters.samples),
            bytes: count(&counters.bytes),
            bad_samples: count(&counters.bad_samples),
            host_decoded: count(&counters.host_decoded),
            consumer_waited: time(&counters.consumer_waited),
            consumer_busy: time(&counters.consumer_busy),
            threads_busy: time(&counters.threads_busy),
            threads_waited_for_disk: time(&counters.disk_waited),
            threads_waited_for_consumer: time(&counters.threads_idle),
            fetch: match workers {
                Some(workers) => fetched.then(workers.schedule.stats()),
                None => fetched,
            },
            threads,
            prefetch,
            slots: self.shared.arena.n_slots(),
            slot_bytes: to_u64(self.shared.arena.slot_bytes()),
            numa_node: self.shared.arena.node(),
            table_bytes: count(&counters.table_bytes),
        }
    }
}

fn shuffle_report(pack: &Pack, schedule: &Schedule) -> Result<ShuffleReport, LoadError> {
    let stats = pack.stats().map_err(|error| pack.error(error))?;
    let labels: Vec<(&str, Option<f64>)> = stats
        .labels
        .iter()
        .filter(|(_, label)| label.icc.is_some())
        .map(|(name, label)| (name.as_str(), label.icc))
        .collect();
    Ok(schedule.shuffle_report(&labels)?)
}

fn notices(report: &ShuffleReport, access: &AccessReport) -> Vec<String> {
    let mut notices: Vec<String> = report.notices.iter().map(ToString::to_string).collect();
    if let Some(verdict) = bad_verdict(report) {
        notices.push(format!("{verdict}: {}", similar_neighbours()));
    }
    notices.push(access.reason.clone());
    notices
}

/// What to do if neighbouring samples have similar labels.
fn similar_neighbours() -> String {
    const KEEP_ORDER: Opt = Opt::new("keep_order");
    const SHUFFLE: Opt = Opt::new("shuffle");
    let info = SHUFFLE.in_command();
    format!(
        "neighbouring samples have similar labels: `packds info {info}` says which window is large enough, or convert again without {KEEP_ORDER}"
    )
}

/// Problems with the order of one pack that cost accuracy.
fn doubts(report: &ShuffleReport) -> Vec<String> {
    let of_kind = |is_kind: fn(&Notice) -> bool| {
        let found = report.notices.iter().filter(move |notice| is_kind(notice));
        found.map(ToString::to_string)
    };
    let mut doubts: Vec<String> = of_kind(|n| matches!(n, Notice::NeverSeen { .. })).collect();
    let verdict = bad_verdict(report).filter(|_| !report.order.is_fixed());
    if let Some(verdict) = verdict {
        let sorted: Vec<String> = of_kind(|n| matches!(n, Notice::Sorted { .. })).collect();
        doubts.push(if sorted.is_empty() {
            format!("{verdict}: {}", similar_neighbours())
        } else {
            format!("{verdict}: {}", sorted.join("; "))
        });
    }
    doubts
}

/// The verdict on the order as a sentence, if the order is not good enough for the labels.
fn bad_verdict(report: &ShuffleReport) -> Option<String> {
    let verdict = report.verdict;
    let verdict = verdict.filter(|verdict| matches!(verdict, Verdict::Weak | Verdict::Harmful))?;
    let order = report.order.name();
    Some(format!("order '{order}' is {} for this pack", verdict.name()))
}
