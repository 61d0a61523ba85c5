//! Sampler: which samples, in which order, in which batches, for which rank; checked once and then fixed for a run.

use std::sync::Arc;

use packds_format::{Geometry, hash_bytes};

use super::choice::Choice;
use super::epoch::EpochPlan;
use super::error::PlanError;
use super::report::Notice;
use super::state::State;

/// Chunks mixed by default.
const DEFAULT_WINDOW: u32 = 64;
/// Memory that windows may take by default, all ranks together.
const DEFAULT_MEMORY_BYTES: u64 = 4 << 30;
/// The most lanes: a plan keeps 40 bytes for each.
const MAX_LANES: u32 = 1 << 16;

/// What a plan needs to know of a pack: numbers, no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dataset {
    geometry: Geometry,
    chunk_bytes: u64,
    fingerprint: u64,
}

impl Dataset {
    /// A pack's division into chunks, the bytes that a full chunk takes in memory, and the pack's identifier.
    #[must_use]
    pub fn new(geometry: Geometry, chunk_bytes: u64, pack_uuid: &[u8; 16]) -> Self {
        let mut bytes = pack_uuid.to_vec();
        bytes.extend(geometry.n_samples().to_le_bytes());
        bytes.extend(u64::from(geometry.chunk_samples()).to_le_bytes());
        Self {
            geometry,
            chunk_bytes,
            fingerprint: hash_bytes(0, &bytes),
        }
    }

    /// The division into chunks.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Bytes of a full chunk in memory.
    #[must_use]
    pub const fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Tells one pack from another: a hash of its identifier and its division.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Bytes of all chunks in memory, about.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.geometry.n_chunks().saturating_mul(self.chunk_bytes)
    }
}

/// In which order an epoch visits samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// [`Random`](Self::Random) for what fits in memory, else [`Window`](Self::Window) of the default size.
    #[default]
    Auto,
    /// As in the file.
    Sequential,
    /// Every sample anywhere.
    Random,
    /// Chunks in random order, each as in the file.
    Chunks,
    /// So many chunks, in random order, mixed at one time.
    Window {
        /// Chunks, all ranks together; none for 64, or as many as fit twice in memory if those are fewer.
        chunks: Option<u32>,
    },
}

/// An [`Order`] that has been decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKind {
    /// As in the file.
    Sequential,
    /// Every sample anywhere.
    Random,
    /// Chunks in random order, each as in the file.
    Chunks,
    /// Chunks in random order, several mixed at one time.
    Window,
}

impl OrderKind {
    /// Its name in states and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::Chunks => "chunks",
            Self::Window => "window",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Sequential, Self::Random, Self::Chunks, Self::Window]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// All that decides the order of a run besides seed, epoch and data; decided at its start and kept in every [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// The order.
    pub order: OrderKind,
    /// Chunks mixed at one time, all lanes together, at most. 1 where nothing is mixed.
    pub window: u32,
    /// Parts of the epoch that are read side by side: a divisor of the batch.
    pub lanes: u32,
    /// The global batch that the lanes are made for.
    pub batch: u32,
}

impl Recipe {
    /// In words, for messages.
    fn describe(&self) -> String {
        format!(
            "{} of window {}, lanes {}, batch {}",
            self.order.name(),
            self.window,
            self.lanes,
            self.batch
        )
    }

    /// Chunks of `n_chunks` that each lane mixes at one time, at most.
    pub(crate) fn window_per_lane(&self, n_chunks: u64) -> u64 {
        if u64::from(self.window) >= n_chunks {
            // All of the lane, although its ends may cut chunks.
            return u64::MAX;
        }
        u64::from(self.window / self.lanes).max(1)
    }
}

/// One of the processes that train together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    rank: u32,
    world: u32,
}

impl Ranks {
    /// Rank `rank` of `world`.
    ///
    /// # Errors
    /// [`PlanError::Rank`] unless `rank` is below `world`.
    pub const fn new(rank: u32, world: u32) -> Result<Self, PlanError> {
        if rank >= world {
            return Err(PlanError::Rank { rank, world });
        }
        Ok(Self { rank, world })
    }

    /// The only process.
    #[must_use]
    pub const fn single() -> Self {
        Self { rank: 0, world: 1 }
    }

    /// Which process, from 0.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.rank
    }

    /// How many there are.
    #[must_use]
    pub const fn world(&self) -> u32 {
        self.world
    }
}

/// What becomes of the samples that do not fill a last batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Last {
    /// They are left out of this epoch.
    #[default]
    Drop,
    /// The batch is filled with the first samples of the epoch, marked as padding.
    Pad,
}

/// How samples are made into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// So many samples on each rank.
    #[must_use]
    pub const fn per_rank(samples: u32) -> Self {
        Self {
            size: BatchSize::PerRank(samples),
            last: Last::Drop,
        }
    }

    /// So many samples on all ranks together.
    #[must_use]
    pub const fn global(samples: u32) -> Self {
        Self {
            size: BatchSize::Global(samples),
            last: Last::Drop,
        }
    }

    /// What to do with the last samples.
    #[must_use]
    pub const fn last(mut self, last: Last) -> Self {
        self.last = last;
        self
    }

    pub(crate) const fn last_rule(&self) -> Last {
        self.last
    }

    /// The global batch.
    pub(crate) fn resolve(&self, ranks: Ranks) -> Result<u32, PlanError> {
        let world = ranks.world;
        let batch = match self.size {
            BatchSize::Global(batch) => batch,
            BatchSize::PerRank(per_rank) => per_rank
                .checked_mul(world)
                .ok_or(PlanError::BatchTooLarge { per_rank, world })?,
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

/// Which samples, in which order: the options of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampler {
    order: Order,
    seed: u64,
    choice: Option<Arc<Choice>>,
    lanes: Option<u32>,
    memory_bytes: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        Self::new(Order::Auto)
    }
}

impl Sampler {
    /// All samples in this order, seed 0, 4 GiB for windows.
    #[must_use]
    pub const fn new(order: Order) -> Self {
        Self {
            order,
            seed: 0,
            choice: None,
            lanes: None,
            memory_bytes: DEFAULT_MEMORY_BYTES,
        }
    }

    /// Another order, all else as it is.
    #[must_use]
    pub const fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Another seed, another order.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Only some samples, or some more often than others.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = Some(Arc::new(choice));
        self
    }

    /// Whether not every sample comes once.
    pub(crate) const fn chooses(&self) -> bool {
        self.choice.is_some()
    }

    /// This many lanes instead of the largest divisor of the global batch that the window allows. For `Chunks` and
    /// `Window` only.
    #[must_use]
    pub const fn lanes(mut self, lanes: u32) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// The sampler of the pack at `place`, from 0, of a mixture whose packs are all sampled like this: from the second on
    /// with a seed of its own, a hash of this one, the place and the pack. Else packs of one size would go through their
    /// samples in step, and augment those with the same number alike.
    #[must_use]
    pub fn for_source(mut self, place: u64, dataset: &Dataset) -> Self {
        if place > 0 {
            let bytes = [place.to_le_bytes(), dataset.fingerprint().to_le_bytes()].concat();
            self.seed = hash_bytes(self.seed, &bytes);
        }
        self
    }

    /// Memory for the windows of all ranks together, two windows at a time.
    #[must_use]
    pub const fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Decides what the options leave open and checks that all fits together. Takes the same time for any data set.
    ///
    /// # Errors
    /// [`PlanError`] where data set, batch, ranks and options do not fit together.
    pub fn schedule(
        &self,
        dataset: Dataset,
        ranks: Ranks,
        batching: Batching,
    ) -> Result<Schedule, PlanError> {
        let batch = batching.resolve(ranks)?;
        let mut notices = Vec::new();
        let (order, window) = self.decide(&dataset, &mut notices)?;
        let lanes = match (self.lanes, order) {
            (Some(lanes), _) => lanes,
            (None, OrderKind::Window) => default_lanes(&dataset.geometry, window, batch),
            (None, _) => 1,
        };
        let recipe = Recipe {
            order,
            window,
            lanes,
            batch,
        };
        self.with_recipe(dataset, ranks, batching, recipe, notices)
    }

    /// The schedule with which a run goes on: what was decided at its start holds, whatever this sampler leaves open.
    /// World and batch may differ from the run's.
    ///
    /// # Errors
    /// [`PlanError::OtherRun`] where the state is for other data, another choice of samples, another seed or order;
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
            Err(PlanError::OtherRun {
                what,
                expected,
                found,
            })
        };
        let order = match self.order {
            Order::Auto => recipe.order,
            Order::Sequential => OrderKind::Sequential,
            Order::Random => OrderKind::Random,
            Order::Chunks => OrderKind::Chunks,
            Order::Window { .. } => OrderKind::Window,
        };
        same(
            "order",
            recipe.order.name().to_owned(),
            order.name().to_owned(),
        )?;
        if let Order::Window {
            chunks: Some(window),
        } = self.order
        {
            same("window", recipe.window.to_string(), window.to_string())?;
        }
        if let Some(lanes) = self.lanes {
            same(
                "number of lanes",
                recipe.lanes.to_string(),
                lanes.to_string(),
            )?;
        }
        let schedule = self.with_recipe(dataset, ranks, batching, recipe, Vec::new())?;
        schedule.check(state)?;
        Ok(schedule)
    }

    fn decide(
        &self,
        dataset: &Dataset,
        notices: &mut Vec<Notice>,
    ) -> Result<(OrderKind, u32), PlanError> {
        Ok(match self.order {
            Order::Sequential => (OrderKind::Sequential, 1),
            Order::Random => (OrderKind::Random, 1),
            Order::Chunks => (OrderKind::Chunks, 1),
            Order::Window { chunks: Some(0) } => {
                return Err(PlanError::Zero { what: "the window" });
            }
            Order::Window {
                chunks: Some(chunks),
            } => (OrderKind::Window, chunks),
            Order::Window { chunks: None } => {
                (OrderKind::Window, self.default_window(dataset, notices))
            }
            Order::Auto if dataset.total_bytes() <= self.memory_bytes => {
                notices.push(Notice::AutoRandom {
                    total_bytes: dataset.total_bytes(),
                    memory_bytes: self.memory_bytes,
                });
                (OrderKind::Random, 1)
            }
            Order::Auto => (OrderKind::Window, self.default_window(dataset, notices)),
        })
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
            return Err(PlanError::Selection {
                expected: choice.n_samples(),
                found: n_samples,
            });
        }
        Ok(Schedule {
            dataset,
            seed: self.seed,
            choice: self.choice.clone(),
            recipe,
            ranks,
            batch,
            last: batching.last_rule(),
            notices,
        })
    }
}

fn check_recipe(recipe: &Recipe) -> Result<(), PlanError> {
    let lanes = recipe.lanes;
    let wrong = |why| Err(PlanError::Lanes { lanes, why });
    if recipe.batch == 0 || recipe.window == 0 || lanes == 0 {
        return Err(PlanError::Zero {
            what: "the batch, the window or the number of lanes",
        });
    }
    if !recipe.batch.is_multiple_of(lanes) {
        return wrong("they must divide the global batch");
    }
    if lanes > MAX_LANES {
        return wrong("there may be 65536 at most");
    }
    match recipe.order {
        OrderKind::Window if lanes > recipe.window => {
            wrong("each lane needs a chunk of the window")
        }
        OrderKind::Sequential | OrderKind::Random if lanes > 1 => {
            wrong("sequential and random orders have one")
        }
        _ => Ok(()),
    }
}

/// The largest divisor of the batch for which each lane has a chunk of the window and a whole chunk of the pack.
pub(crate) fn default_lanes(geometry: &Geometry, window: u32, batch: u32) -> u32 {
    let full = geometry.n_samples() / u64::from(geometry.chunk_samples());
    let most = u64::from(window.min(MAX_LANES)).min(full);
    largest_divisor(batch, u32::try_from(most).unwrap_or(MAX_LANES))
}

/// The largest divisor of `n` that is at most `most`, or 1. Takes time in the root of `n`.
fn largest_divisor(n: u32, most: u32) -> u32 {
    let fitting = divisors(n).filter(|&d| d <= most);
    fitting.max().unwrap_or(1)
}

/// The divisors of `n`, in time in its root: those up to the root ascending, the others descending beside them.
pub(crate) fn divisors(n: u32) -> impl Iterator<Item = u32> {
    let pairs = (1..=n.isqrt()).filter(move |d| n.is_multiple_of(*d));
    pairs.flat_map(move |d| [d, n / d])
}

/// A sampler that fits a data set, ranks and batches: all that a run's order depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub(crate) dataset: Dataset,
    pub(crate) seed: u64,
    pub(crate) choice: Option<Arc<Choice>>,
    pub(crate) recipe: Recipe,
    pub(crate) ranks: Ranks,
    /// The global batch that is delivered: the recipe's, unless a resumed run changed it.
    pub(crate) batch: u32,
    pub(crate) last: Last,
    pub(crate) notices: Vec<Notice>,
}

impl Schedule {
    /// The seed of order and augmentation.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// What was decided.
    #[must_use]
    pub const fn recipe(&self) -> Recipe {
        self.recipe
    }

    /// Samples of one step on all ranks.
    #[must_use]
    pub const fn global_batch(&self) -> u32 {
        self.batch
    }

    /// Samples of one step on this rank.
    #[must_use]
    pub const fn rank_batch(&self) -> u32 {
        self.batch / self.ranks.world
    }

    /// What was decided for reasons that one may want to know.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The plan of an epoch. Takes the same time for any data set, unless there is a [`Choice`]: then it is one pass
    /// over its codes.
    ///
    /// # Errors
    /// [`PlanError::NoSamples`] or [`PlanError::NoBatch`].
    pub fn epoch(&self, epoch: u32) -> Result<EpochPlan, PlanError> {
        EpochPlan::new(self, epoch, 0)
    }

    /// The plan of the epoch that a state is in, and the step to go on with.
    ///
    /// # Errors
    /// [`PlanError::OtherRun`] where the state is not of this run, and as for [`epoch`](Self::epoch).
    pub fn at(&self, state: &State) -> Result<(EpochPlan, u64), PlanError> {
        self.check(state)?;
        let batch = u64::from(self.batch);
        let plan = EpochPlan::new(self, state.epoch, state.position % batch)?;
        let step = state.position / batch;
        if step >= plan.steps() {
            // What is left is less than this batch size wants: the epoch is over.
            return Ok((self.epoch(state.epoch.saturating_add(1))?, 0));
        }
        Ok((plan, step))
    }

    /// A hash of the choice of samples; 0 for all of them.
    pub(crate) fn choice_fingerprint(&self) -> u64 {
        self.choice
            .as_ref()
            .map_or(0, |choice| choice.fingerprint())
    }

    fn check(&self, state: &State) -> Result<(), PlanError> {
        let hex = |number: u64| format!("{number:016x}");
        let numbers = [
            ("data set", state.dataset, self.dataset.fingerprint),
            ("choice of samples", state.choice, self.choice_fingerprint()),
            ("seed", state.seed, self.seed),
        ];
        if let Some((what, expected, found)) = numbers.into_iter().find(|(_, a, b)| a != b) {
            return Err(PlanError::OtherRun {
                what,
                expected: hex(expected),
                found: hex(found),
            });
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
