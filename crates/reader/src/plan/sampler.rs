//! Samplers decide which samples come in which order, in which batches, and on which rank. They are checked once and
//! then fixed for a run.

use std::ops::Range;
use std::sync::Arc;

use packds_format::{Geometry, hash_bytes};

use super::buckets::Bucketing;
use super::choice::Choice;
use super::epoch::EpochPlan;
use super::error::PlanError;
use super::order::{Order, OrderKind};
use super::report::Notice;
use super::state::State;
use crate::setters::setters;

/// Default number of chunks that are shuffled together.
const DEFAULT_WINDOW: u32 = 64;
/// Default memory for windows, over all ranks.
const DEFAULT_MEMORY_BYTES: u64 = 4 << 30;
/// Maximum number of lanes. A plan keeps 40 bytes for each.
const MAX_LANES: u32 = 1 << 16;

/// The properties of a pack that a plan needs. They are only numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dataset {
    geometry: Geometry,
    chunk_bytes: u64,
    fingerprint: u64,
}

impl Dataset {
    /// Describes a pack: its division into chunks, the size of a full chunk in memory, and its identifier.
    pub fn new(geometry: Geometry, chunk_bytes: u64, pack_uuid: &[u8; 16]) -> Self {
        let mut bytes = pack_uuid.to_vec();
        bytes.extend(geometry.n_samples().to_le_bytes());
        bytes.extend(u64::from(geometry.chunk_samples()).to_le_bytes());
        Self { geometry, chunk_bytes, fingerprint: hash_bytes(0, &bytes) }
    }

    /// The division into chunks.
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Size of a full chunk in memory.
    pub const fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// A hash of the pack's identifier and its division into chunks, for distinguishing packs.
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Approximate size of the whole dataset in memory. It assumes that every chunk is full.
    pub fn total_bytes(&self) -> u64 {
        self.geometry.n_chunks().saturating_mul(self.chunk_bytes)
    }
}

/// Everything that determines the order of a run, except seed, epoch, data and choice of samples. It is decided at the
/// start of a run and saved in every [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// The order.
    pub order: OrderKind,
    /// For the order `Window`: the maximum number of chunks that are shuffled together, over all lanes. 1 for every
    /// other order.
    pub window: u32,
    /// Number of parts of the epoch that are read in parallel. It divides the batch.
    pub lanes: u32,
    /// The global batch that the lanes were made for.
    pub batch: u32,
}

impl Recipe {
    /// The recipe with this window, and as many lanes as it allows.
    pub(crate) fn of_window(geometry: &Geometry, window: u32, batch: u32) -> Self {
        Self { order: OrderKind::Window, window, lanes: default_lanes(geometry, window, batch), batch }
    }

    fn describe(&self) -> String {
        format!("'{}' with window {}, lanes {}, batch {}", self.order.name(), self.window, self.lanes, self.batch)
    }

    /// Maximum number of chunks that each lane shuffles together, out of `n_chunks`.
    pub(crate) fn window_per_lane(&self, n_chunks: u64) -> u64 {
        if u64::from(self.window) >= n_chunks {
            // Without a limit, a window is the whole lane, even if the lane starts or ends in the middle of a chunk.
            return u64::MAX;
        }
        u64::from(self.window / self.lanes).max(1)
    }
}

/// The number of this process, and the number of processes that train together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    rank: u32,
    world: u32,
}

impl Ranks {
    /// Rank number `rank` of `world` ranks.
    ///
    /// # Errors
    /// [`PlanError::Rank`] unless `rank` is below `world`.
    pub const fn new(rank: u32, world: u32) -> Result<Self, PlanError> {
        if rank >= world {
            return Err(PlanError::Rank { rank, world });
        }
        Ok(Self { rank, world })
    }

    /// The rank of a single process.
    pub const fn single() -> Self {
        Self { rank: 0, world: 1 }
    }

    /// The number of this process, from 0.
    pub const fn rank(&self) -> u32 {
        self.rank
    }

    /// The number of processes.
    pub const fn world(&self) -> u32 {
        self.world
    }
}

/// What to do with samples that do not fill the last batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Last {
    /// Leave them out of this epoch.
    #[default]
    Drop,
    /// Fill the batch with the first samples of the epoch, marked as padding.
    Pad,
}

/// How samples are grouped into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Batching {
    size: BatchSize,
    last: Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchSize {
    PerRank(u32),
    Global(u32),
}

impl Batching {
    /// Batches with this many samples on each rank.
    pub const fn per_rank(samples: u32) -> Self {
        Self { size: BatchSize::PerRank(samples), last: Last::Drop }
    }

    /// Batches with this many samples over all ranks.
    pub const fn global(samples: u32) -> Self {
        Self { size: BatchSize::Global(samples), last: Last::Drop }
    }

    /// Sets what to do with samples that do not fill the last batch.
    pub const fn last(self, last: Last) -> Self {
        Self { last, ..self }
    }

    pub(crate) fn resolve(&self, ranks: Ranks) -> Result<u32, PlanError> {
        let world = ranks.world;
        let batch = match self.size {
            BatchSize::Global(batch) => batch,
            BatchSize::PerRank(per_rank) => {
                per_rank.checked_mul(world).ok_or(PlanError::BatchTooLarge { per_rank, world })?
            }
        };
        if batch == 0 {
            return Err(PlanError::Zero { what: "the batch" });
        }
        if !batch.is_multiple_of(world) {
            return Err(PlanError::World { batch, world });
        }
        Ok(batch)
    }
}

/// The options of a run: which samples, in which order.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Sampler {
    order: Order,
    seed: u64,
    choice: Option<Arc<Choice>>,
    buckets: Option<Arc<Bucketing>>,
    lanes: Option<u32>,
    memory_bytes: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        Self::new(Order::Auto)
    }
}

impl Sampler {
    /// All samples in this order, with seed 0 and 4 GiB for windows.
    pub const fn new(order: Order) -> Self {
        Self { order, seed: 0, choice: None, buckets: None, lanes: None, memory_bytes: DEFAULT_MEMORY_BYTES }
    }

    setters! {
        /// The order of samples.
        order(order: Order) = order;
        /// The seed of the run.
        seed(seed: u64) = seed;
        /// Selects samples, or makes some of them more frequent than others.
        choice(choice: Choice) = Some(Arc::new(choice));
        /// Makes all samples of a batch come from one bucket.
        buckets(buckets: Bucketing) = Some(Arc::new(buckets));
        /// The number of lanes. For `Window`, the default is the largest divisor of the global batch that the window
        /// and the number of chunks allow. For `Chunks`, the default is 1. Other orders have one lane.
        lanes(lanes: u32) = Some(lanes);
        /// Memory for the windows of all ranks. Two windows must fit.
        memory_bytes(bytes: u64) = bytes;
    }

    pub(crate) const fn chooses(&self) -> bool {
        self.choice.is_some()
    }

    /// The sampler for the pack at index `place` of a mixture in which all packs share these options. Every pack after
    /// the first gets its own seed: a hash of this seed, the index and the pack. If they had the same seed, packs of
    /// equal size would visit samples in the same order, and samples with the same number would get the same
    /// augmentation.
    pub fn for_source(mut self, place: u64, dataset: &Dataset) -> Self {
        if place > 0 {
            let bytes = [place.to_le_bytes(), dataset.fingerprint().to_le_bytes()].concat();
            self.seed = hash_bytes(self.seed, &bytes);
        }
        self
    }

    /// Chooses values for the options that are not set, and checks everything. It takes the same time for any dataset.
    ///
    /// # Errors
    /// [`PlanError`] if dataset, batch, ranks and options do not match.
    pub fn schedule(&self, dataset: Dataset, ranks: Ranks, batching: Batching) -> Result<Schedule, PlanError> {
        let batch = batching.resolve(ranks)?;
        let mut notices = Vec::new();
        let (order, window) = self.decide(&dataset, &mut notices)?;
        let lanes = match (self.lanes, order) {
            (Some(lanes), _) => lanes,
            (None, OrderKind::Window) => default_lanes(&dataset.geometry, window, batch),
            (None, _) => 1,
        };
        let recipe = Recipe { order, window, lanes, batch };
        self.with_recipe(dataset, ranks, batching, recipe, notices)
    }

    /// The schedule for resuming a run. Decisions that were made at its start still apply, even if this sampler does
    /// not set these options. The number of ranks and the batch may differ.
    ///
    /// # Errors
    /// [`PlanError::OtherRun`] if the state is for different data, or a different choice of samples, seed or order.
    /// [`PlanError`] as for [`schedule`](Self::schedule).
    pub fn resume(
        &self,
        dataset: Dataset,
        ranks: Ranks,
        batching: Batching,
        state: &State,
    ) -> Result<Schedule, PlanError> {
        let recipe = state.recipe;
        let same = |what, expected: String, found: String| {
            if expected == found {
                return Ok(());
            }
            Err(PlanError::OtherRun { what, expected, found })
        };
        let order = self.order.kind().unwrap_or(recipe.order);
        same("order", recipe.order.name().to_owned(), order.name().to_owned())?;
        if let Order::Window { chunks: Some(window) } = self.order {
            same("window", recipe.window.to_string(), window.to_string())?;
        }
        if let Some(lanes) = self.lanes {
            same("number of lanes", recipe.lanes.to_string(), lanes.to_string())?;
        }
        let schedule = self.with_recipe(dataset, ranks, batching, recipe, Vec::new())?;
        schedule.check(state)?;
        Ok(schedule)
    }

    fn decide(&self, dataset: &Dataset, notices: &mut Vec<Notice>) -> Result<(OrderKind, u32), PlanError> {
        let total_bytes = dataset.total_bytes();
        let order = match self.order.kind() {
            Some(order) => order,
            None if total_bytes <= self.memory_bytes => {
                notices.push(Notice::AutoRandom { total_bytes, memory_bytes: self.memory_bytes });
                OrderKind::Random
            }
            None => OrderKind::Window,
        };
        let window = match self.order {
            Order::Window { chunks: Some(0) } => return Err(PlanError::Zero { what: "the window" }),
            Order::Window { chunks: Some(chunks) } => chunks,
            _ if order == OrderKind::Window => self.default_window(dataset, notices),
            _ => 1,
        };
        Ok((order, window))
    }

    fn default_window(&self, dataset: &Dataset, notices: &mut Vec<Notice>) -> u32 {
        let fit = self.memory_bytes / dataset.chunk_bytes.saturating_mul(2).max(1);
        let window = u32::try_from(fit).unwrap_or(DEFAULT_WINDOW);
        let window = window.clamp(1, DEFAULT_WINDOW);
        if window < DEFAULT_WINDOW {
            notices.push(Notice::WindowReduced {
                chunks: window,
                from: DEFAULT_WINDOW,
                memory_bytes: self.memory_bytes,
            });
        }
        window
    }

    fn with_recipe(
        &self,
        dataset: Dataset,
        ranks: Ranks,
        batching: Batching,
        recipe: Recipe,
        notices: Vec<Notice>,
    ) -> Result<Schedule, PlanError> {
        let batch = batching.resolve(ranks)?;
        check_recipe(&recipe)?;
        let n_samples = dataset.geometry.n_samples();
        if n_samples == 0 {
            return Err(PlanError::NoSamples);
        }
        if let Some(choice) = &self.choice
            && choice.n_samples() != n_samples
        {
            return Err(PlanError::Selection { expected: choice.n_samples(), found: n_samples });
        }
        if let Some(buckets) = &self.buckets {
            if buckets.n_samples() != n_samples {
                return Err(PlanError::Selection { expected: buckets.n_samples(), found: n_samples });
            }
            if batch != recipe.batch {
                return Err(PlanError::BucketBatch { planned: recipe.batch, found: batch });
            }
        }
        Ok(Schedule {
            dataset,
            seed: self.seed,
            choice: self.choice.clone(),
            buckets: self.buckets.clone(),
            recipe,
            ranks,
            batch,
            last: batching.last,
            notices,
        })
    }
}

fn check_recipe(recipe: &Recipe) -> Result<(), PlanError> {
    let lanes = recipe.lanes;
    let wrong = |why| Err(PlanError::Lanes { lanes, why });
    if recipe.batch == 0 || recipe.window == 0 || lanes == 0 {
        return Err(PlanError::Zero { what: "the batch, the window or the number of lanes" });
    }
    if !recipe.batch.is_multiple_of(lanes) {
        return wrong("their number must divide the global batch");
    }
    if lanes > MAX_LANES {
        return wrong("at most 65536 are possible");
    }
    match recipe.order {
        OrderKind::Window if lanes > recipe.window => wrong("each lane needs a chunk of the window"),
        order if lanes > 1 && !order.has_lanes() => wrong("sequential and random orders have only one lane"),
        _ => Ok(()),
    }
}

/// The largest divisor of the batch for which each lane gets a chunk of the window and a full chunk of the pack.
pub(crate) fn default_lanes(geometry: &Geometry, window: u32, batch: u32) -> u32 {
    let full = geometry.n_samples() / u64::from(geometry.chunk_samples());
    let most = u64::from(window.min(MAX_LANES)).min(full);
    largest_divisor(batch, u32::try_from(most).unwrap_or(MAX_LANES))
}

/// The largest divisor of `n` that is at most `most`. It is at least 1. This takes time proportional to the square root
/// of `n`.
fn largest_divisor(n: u32, most: u32) -> u32 {
    let fitting = divisors(n).filter(|&d| d <= most);
    fitting.max().unwrap_or(1)
}

/// The divisors of `n` in pairs: a divisor up to the square root, in ascending order, followed by its complement.
pub(crate) fn divisors(n: u32) -> impl Iterator<Item = u32> {
    let pairs = (1..=n.isqrt()).filter(move |d| n.is_multiple_of(*d));
    pairs.flat_map(move |d| [d, n / d])
}

/// A sampler combined with a dataset, ranks and batches: everything that determines a run's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub(crate) dataset: Dataset,
    pub(crate) seed: u64,
    pub(crate) choice: Option<Arc<Choice>>,
    pub(crate) buckets: Option<Arc<Bucketing>>,
    pub(crate) recipe: Recipe,
    pub(crate) ranks: Ranks,
    /// The global batch that is delivered. It differs from the recipe's batch if a resumed run changed it.
    pub(crate) batch: u32,
    pub(crate) last: Last,
    pub(crate) notices: Vec<Notice>,
}

impl Schedule {
    /// Whether an epoch can contain any of these samples.
    pub(crate) fn has_some(&self, samples: Range<u64>) -> bool {
        self.choice.as_ref().is_none_or(|choice| choice.has_some(samples))
    }

    /// The seed of order and augmentation.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The resolved options.
    pub const fn recipe(&self) -> Recipe {
        self.recipe
    }

    /// Samples of one step on all ranks.
    pub const fn global_batch(&self) -> u32 {
        self.batch
    }

    /// Samples of one step on this rank.
    pub const fn rank_batch(&self) -> u32 {
        self.batch / self.ranks.world
    }

    /// Notices about decisions.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The plan of an epoch. Making it takes the same time for any dataset, except that a [`Choice`] needs one pass
    /// over its codes.
    ///
    /// # Errors
    /// [`PlanError::NoSamples`] or [`PlanError::NoBatch`].
    pub fn epoch(&self, epoch: u32) -> Result<EpochPlan, PlanError> {
        EpochPlan::new(self, epoch, 0)
    }

    /// The plan of a state's epoch, and the step to resume at.
    ///
    /// # Errors
    /// [`PlanError::OtherRun`] if the state is not from this run, [`PlanError::State`] if a batch in a bucket does not
    /// end there, otherwise as for [`epoch`](Self::epoch).
    pub fn at(&self, state: &State) -> Result<(EpochPlan, u64), PlanError> {
        self.check(state)?;
        let batch = u64::from(self.batch);
        if self.buckets.is_some() && !state.position.is_multiple_of(batch) {
            let why = format!("`at` is {}, but batches in buckets end at multiples of {batch}", state.position);
            return Err(PlanError::State { why });
        }
        let plan = EpochPlan::new(self, state.epoch, state.position % batch)?;
        let step = state.position / batch;
        if step >= plan.steps() {
            // The rest is smaller than a batch of this size, so the epoch is over.
            return Ok((self.epoch(state.epoch.saturating_add(1))?, 0));
        }
        Ok((plan, step))
    }

    /// The state at a position of an epoch.
    pub(super) fn state(&self, epoch: u32, position: u64) -> State {
        State {
            dataset: self.dataset.fingerprint(),
            choice: self.choice_fingerprint(),
            seed: self.seed,
            recipe: self.recipe,
            epoch,
            position,
        }
    }

    /// A hash of the choice of samples and of the buckets, or 0 if there are none.
    fn choice_fingerprint(&self) -> u64 {
        let choice = self.choice.as_ref().map_or(0, |choice| choice.fingerprint());
        self.buckets.as_ref().map_or(choice, |buckets| hash_bytes(choice, &buckets.fingerprint().to_le_bytes()))
    }

    fn check(&self, state: &State) -> Result<(), PlanError> {
        let hex = |number: u64| format!("{number:016x}");
        let numbers = [
            ("dataset", state.dataset, self.dataset.fingerprint),
            ("choice of samples or buckets", state.choice, self.choice_fingerprint()),
            ("seed", state.seed, self.seed),
        ];
        if let Some((what, expected, found)) = numbers.into_iter().find(|(_, a, b)| a != b) {
            return Err(PlanError::OtherRun { what, expected: hex(expected), found: hex(found) });
        }
        if state.recipe != self.recipe {
            return Err(PlanError::OtherRun {
                what: "order",
                expected: state.recipe.describe(),
                found: self.recipe.describe(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_the_largest_divisor_of_the_batch_that_fits() {
        for (batch, most, expected) in [
            (256, 64, 64),
            (250, 64, 50),
            (127, 64, 1),
            (127, 200, 127),
            (1016, 64, 8),
            (96, 64, 48),
            (32, 64, 32),
            (7, 0, 1),
        ] {
            assert_eq!(largest_divisor(batch, most), expected, "{batch} {most}");
        }
    }
}
