//! Several packs in fixed proportions. The number of samples from each pack is the same in every batch. See
//! docs/reference/sampling.md, "Mixtures".

use packds_system::{lock, to_u64, to_usize};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use packds_format::hash_bytes;

use super::epoch::{ChunkUse, EpochPlan};
use super::error::PlanError;
use super::order::OrderKind;
use super::route::Route;
use super::sampler::{Batching, Dataset, Ranks, Sampler, Schedule};
use super::state::{Fields, MAX_POSITION, State, VERSION};

/// Number of epoch plans cached per pack.
const KEPT_EPOCHS: usize = 4;

/// A pack of a mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The pack.
    pub dataset: Dataset,
    /// Its order and seed. The sampler must use all samples.
    pub sampler: Sampler,
    /// Its share of each batch, relative to the others.
    pub proportion: f64,
}

/// One position in a batch of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MixedSlot {
    /// Index of the pack in the mixture.
    pub source: usize,
    /// The sample, by position in its pack's file.
    pub sample: u64,
}

/// The position of a run over a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MixtureState {
    /// Fingerprint of everything that determines the order.
    pub mixture: u64,
    /// Steps completed by all ranks together.
    pub step: u64,
}

impl MixtureState {
    /// The position as one line of JSON, under 100 bytes.
    pub fn to_json(&self) -> String {
        format!("{{\"v\":{VERSION},\"mixture\":\"{:016x}\",\"step\":{}}}", self.mixture, self.step)
    }

    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// [`PlanError::State`] for anything else.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let fields = Fields::parse(text, 3)?;
        Ok(Self { mixture: fields.hex("mixture")?, step: fields.number("step", MAX_POSITION)? })
    }
}

/// An endless sequence of batches from several packs. Each pack has its own epochs.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    parts: Vec<Part>,
    /// For each place of the global batch, its source, and its index among the samples of that source in the batch.
    places: Vec<(usize, u32)>,
    ranks: Ranks,
    steps_per_epoch: u64,
    fingerprint: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct Part {
    schedule: Schedule,
    quota: u32,
    steps: u64,
}

impl Mixture {
    /// Makes a mixture with batches of this size. Each pack contributes its proportion of the global batch, rounded by
    /// largest remainders. [`quotas`](Self::quotas) has the result. Time and memory depend on the batch, not on the
    /// packs.
    ///
    /// # Errors
    /// [`PlanError::Mixture`] if a pack's proportion is not a positive number or rounds to zero, if a pack has fewer
    /// samples than its part of a batch, or if it has a choice of samples. [`PlanError`] if packs, batches and ranks do
    /// not match.
    pub fn new(sources: &[Source], ranks: Ranks, batching: Batching) -> Result<Self, PlanError> {
        let batch = batching.resolve(ranks)?;
        let quotas = apportion(sources, batch)?;
        let mut parts = Vec::with_capacity(sources.len());
        let mut hash = u64::from(batch);
        for ((source_index, source), quota) in sources.iter().enumerate().zip(quotas) {
            let wrong = |why| PlanError::Mixture { source_index, why };
            let samples = source.dataset.geometry().n_samples();
            if samples < u64::from(quota) {
                return Err(wrong("it has fewer samples than its part of a batch"));
            }
            let all = Batching::global(quota);
            let schedule = source.sampler.schedule(source.dataset, Ranks::single(), all)?;
            if schedule.choice.is_some() {
                return Err(wrong("a mixture uses whole packs, not a selection of samples"));
            }
            if schedule.buckets.is_some() {
                return Err(wrong(
                    "the samples of a mixture cannot be put into buckets; load one pack, or convert the packs into one",
                ));
            }
            let state = schedule.epoch(0)?.state(0);
            hash = hash_bytes(hash, state.to_json().as_bytes());
            parts.push(Part { schedule, quota, steps: samples / u64::from(quota) });
        }
        let total: u64 = sources.iter().map(|s| s.dataset.geometry().n_samples()).sum();
        Ok(Self {
            places: places(&parts),
            parts,
            ranks,
            steps_per_epoch: (total / u64::from(batch)).max(1),
            fingerprint: hash,
        })
    }

    /// Number of samples from each pack in every global batch.
    pub fn quotas(&self) -> Vec<u32> {
        self.parts.iter().map(|part| part.quota).collect()
    }

    /// Number of steps of an epoch. In these steps, the mixture uses about as many samples as all packs have together.
    pub const fn steps_per_epoch(&self) -> u64 {
        self.steps_per_epoch
    }

    /// The samples of this rank at a step, counted from the start of the run. There is no last step.
    ///
    /// # Errors
    /// This does not fail for a valid mixture, because all its packs have plans.
    pub fn batch(&self, step: u64) -> Result<Vec<MixedSlot>, PlanError> {
        let mut plans = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let epoch = epoch_number(step / part.steps);
            let start = step % part.steps * u64::from(part.quota);
            plans.push((part.schedule.epoch(epoch)?, start));
        }
        let slot = |&(source, nth): &(usize, u32)| {
            let (plan, start): &(EpochPlan, u64) = plans.get(source)?;
            let sample = plan.position(start + u64::from(nth))?;
            Some(MixedSlot { source, sample })
        };
        Ok(self.rank_places().iter().filter_map(slot).collect())
    }

    /// For each place of this rank's batches, its source, and its index among the samples of that source in the global
    /// batch.
    fn rank_places(&self) -> &[(usize, u32)] {
        let per_rank = self.places.len() / to_usize(self.ranks.world()).max(1);
        let first = to_usize(self.ranks.rank()) * per_rank;
        self.places.get(first..first + per_rank).unwrap_or_default()
    }

    /// The source of each place of this rank's batches.
    pub(crate) fn rank_sources(&self) -> Vec<usize> {
        self.rank_places().iter().map(|place| place.0).collect()
    }

    /// This rank's plan for each pack. It covers `steps` steps, starting at step `first` of the run.
    pub(crate) fn source_plans(&self, first: u64, steps: u64) -> Vec<SourcePlan> {
        let plan = |(source, part): (usize, &Part)| {
            // Places are sorted, so a rank's samples of each source are contiguous.
            let mut own = self.rank_places().iter().filter(|place| place.0 == source);
            let start = own.next().map_or(0, |place| u64::from(place.1));
            let n = self.rank_places().iter().filter(|place| place.0 == source).count();
            SourcePlan {
                schedule: part.schedule.clone(),
                epoch_steps: part.steps,
                places: start..start + to_u64(n),
                first,
                steps,
                epochs: Mutex::default(),
            }
        };
        self.parts.iter().enumerate().map(plan).collect()
    }

    /// The schedule of each pack with its part of the batch. It does not divide the samples among ranks, because ranks
    /// divide the mixture's batch.
    pub fn schedules(&self) -> impl ExactSizeIterator<Item = &Schedule> {
        self.parts.iter().map(|part| &part.schedule)
    }

    /// The state to save for resuming at `step`.
    pub const fn state(&self, step: u64) -> MixtureState {
        MixtureState { mixture: self.fingerprint, step }
    }

    /// The step to resume at. The number of ranks may change. Packs, samplers, proportions and the global batch must be
    /// the same.
    ///
    /// # Errors
    /// [`PlanError::OtherMixture`].
    pub fn at(&self, state: &MixtureState) -> Result<u64, PlanError> {
        if state.mixture == self.fingerprint {
            return Ok(state.step);
        }
        let batch = self.places.len();
        Err(PlanError::OtherMixture { batch })
    }
}

/// One rank's plan for one pack of a mixture. It covers a number of steps of the mixture, over several epochs of the
/// pack.
#[derive(Debug)]
pub(crate) struct SourcePlan {
    schedule: Schedule,
    /// Steps in an epoch of the pack.
    epoch_steps: u64,
    /// The rank's part of the pack's samples in a global batch.
    places: Range<u64>,
    /// The number of this plan's first step, counted from the start of the run.
    first: u64,
    steps: u64,
    /// The epochs used most recently. Prefetching and filling may work on different epochs.
    epochs: Mutex<VecDeque<Arc<EpochPlan>>>,
}

impl SourcePlan {
    /// The samples of a step in order, and the pack's epoch that they belong to.
    pub(crate) fn samples(&self, step: u64) -> Result<(u32, Vec<u64>), PlanError> {
        let (plan, at) = self.locate(step)?;
        let batch = plan.batch_part(at, self.places.clone());
        Ok((plan.epoch(), batch.map(|slot| slot.sample).collect()))
    }

    /// Whether this rank takes no samples from the pack.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Size of the cached tables.
    pub(crate) fn memory_bytes(&self) -> u64 {
        lock(&self.epochs).iter().map(|plan| plan.memory_bytes()).sum()
    }

    /// The state of the pack alone before a step.
    pub(crate) fn state(&self, step: u64) -> State {
        let (epoch, at) = self.place_of(step);
        self.schedule.state(epoch, at * u64::from(self.schedule.batch))
    }

    /// The pack's epoch at a step, and the step in that epoch.
    fn place_of(&self, step: u64) -> (u32, u64) {
        let step = self.first.saturating_add(step);
        (epoch_number(step / self.epoch_steps), step % self.epoch_steps)
    }

    /// The plan of the pack's epoch at a step, and the step in that epoch.
    fn locate(&self, step: u64) -> Result<(Arc<EpochPlan>, u64), PlanError> {
        let (number, at) = self.place_of(step);
        let mut epochs = lock(&self.epochs);
        if let Some(plan) = epochs.iter().find(|plan| plan.epoch() == number) {
            return Ok((Arc::clone(plan), at));
        }
        let plan = Arc::new(self.schedule.epoch(number)?);
        epochs.truncate(KEPT_EPOCHS - 1);
        epochs.push_front(Arc::clone(&plan));
        Ok((plan, at))
    }
}

impl Route for SourcePlan {
    fn steps(&self) -> u64 {
        self.steps
    }

    fn samples_at(&self, step: u64) -> Vec<u64> {
        self.samples(step).map(|found| found.1).unwrap_or_default()
    }

    fn chunk_uses(&self, step: u64) -> Vec<ChunkUse> {
        let Ok((plan, at)) = self.locate(step) else {
            return Vec::new();
        };
        let mut uses = plan.uses_of(at, plan.batch_part(at, self.places.clone()));
        let last = self.steps.saturating_sub(1);
        for chunk_use in &mut uses {
            // In random order, the pack's next epoch needs every chunk again.
            chunk_use.until = match plan.order() {
                OrderKind::Random => last,
                _ => (step + (chunk_use.until - at)).min(last),
            };
        }
        uses
    }

    fn order(&self) -> OrderKind {
        self.schedule.recipe.order
    }

    fn is_whole_from(&self, first_step: u64) -> bool {
        self.first == 0 && first_step == 0 && self.steps >= self.epoch_steps
    }
}

/// The number of an epoch. All epochs past the largest number share that number.
fn epoch_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Rejects an invalid proportion, even for a single pack.
pub(crate) fn check_proportion(source_index: usize, proportion: f64) -> Result<(), PlanError> {
    if proportion > 0.0 && proportion.is_finite() {
        return Ok(());
    }
    Err(PlanError::Mixture { source_index, why: "its proportion is not a positive number" })
}

/// Number of samples of each source in a batch. The shares of `batch` are rounded down, and the sources with the
/// largest remainders get one more.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a non-negative share of a u32 is a u32")]
fn apportion(sources: &[Source], batch: u32) -> Result<Vec<u32>, PlanError> {
    let total: f64 = sources.iter().map(|source| source.proportion).sum();
    let mut quotas = Vec::with_capacity(sources.len());
    let mut losses = Vec::with_capacity(sources.len());
    for (source_index, source) in sources.iter().enumerate() {
        check_proportion(source_index, source.proportion)?;
        if !total.is_finite() {
            return Err(PlanError::Mixture { source_index, why: "the sum of all proportions is too large" });
        }
        let exact = f64::from(batch) * (source.proportion / total);
        quotas.push(exact.floor() as u32);
        losses.push((exact.fract(), source_index));
    }
    let given: u32 = quotas.iter().sum();
    losses.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let missing = to_usize(batch.saturating_sub(given));
    for (_, source_index) in losses.into_iter().take(missing) {
        if let Some(quota) = quotas.get_mut(source_index) {
            *quota += 1;
        }
    }
    match quotas.iter().position(|&quota| quota == 0) {
        Some(source_index) => Err(PlanError::Mixture {
            source_index,
            why: "its proportion rounds to 0 samples of the global batch; use a larger batch",
        }),
        None if quotas.is_empty() => Err(PlanError::NoSamples),
        None => Ok(quotas),
    }
}

/// Spreads the samples of each source evenly over the batch, so that each rank gets its share.
fn places(parts: &[Part]) -> Vec<(usize, u32)> {
    let mut places: Vec<(u64, u64, usize, u32)> = Vec::new();
    for (source, part) in parts.iter().enumerate() {
        let of = u64::from(part.quota);
        places.extend((0..part.quota).map(|nth| (2 * u64::from(nth) + 1, of, source, nth)));
    }
    // Sort by (nth + 1/2) / quota. Fractions are compared by cross-multiplying, which fits in a u128.
    places.sort_by(|a, b| {
        let (left, right) = (u128::from(a.0) * u128::from(b.1), u128::from(b.0) * u128::from(a.1));
        left.cmp(&right).then(a.2.cmp(&b.2))
    });
    places.into_iter().map(|place| (place.2, place.3)).collect()
}
