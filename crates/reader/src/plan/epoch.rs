//! The plan of one epoch: which sample is at which position, and which rank gets it. See docs/reference/sampling.md.

use packds_system::{to_u64, to_usize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use packds_format::Permutation;

use super::buckets::{Member, Walk};
use super::error::PlanError;
use super::lanes::{LaneGroups, Lanes};
use super::line::{ChunkOrder, Line};
use super::order::OrderKind;
use super::rng::{Domain, key};
use super::sampler::{Last, Schedule};
use super::state::State;

/// One position in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The sample, by position in the file, from 0.
    pub sample: u64,
    /// Whether the position is padding of the last batch. Padding repeats the first samples of the epoch.
    pub padding: bool,
}

/// A chunk that a step needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkUse {
    /// The chunk.
    pub chunk: u64,
    /// The last step that takes samples from it, as far as known at this step. A later step may list the chunk again
    /// with a later value.
    pub until: u64,
}

/// The order of one epoch. It is computed and not stored.
#[derive(Debug, Clone)]
pub struct EpochPlan {
    schedule: Schedule,
    epoch: u32,
    line: Line,
    lanes: Lanes,
    mix: Mix,
    /// The batches, if there are buckets.
    buckets: Option<Arc<Walk>>,
    /// Number of positions before step 0, if a resumed run changed its batch size. It is less than one batch.
    origin: u64,
    steps: u64,
}

/// How the samples on the line are shuffled.
#[derive(Debug, Clone)]
enum Mix {
    /// The line is not shuffled.
    Keep,
    /// All samples are shuffled together.
    All(Permutation),
    /// The samples of each group in a lane are shuffled together.
    Groups(Vec<LaneGroups>),
}

impl EpochPlan {
    pub(crate) fn new(schedule: &Schedule, epoch: u32, origin: u64) -> Result<Self, PlanError> {
        let Schedule { dataset, seed, recipe, .. } = *schedule;
        let choice = schedule.choice.as_ref();
        let order = match recipe.order {
            OrderKind::Sequential | OrderKind::Random => ChunkOrder::File,
            OrderKind::Chunks if recipe.lanes == 1 && choice.is_none() => {
                let n_samples = dataset.geometry().n_samples();
                let rest = n_samples % u64::from(recipe.batch);
                ChunkOrder::Aligned { delivered: n_samples - rest }
            }
            OrderKind::Chunks | OrderKind::Window => ChunkOrder::Anywhere,
        };
        let line = Line::new(dataset.geometry(), order, choice, seed, epoch);
        let len = line.len();
        if len == 0 {
            return Err(PlanError::NoSamples);
        }
        let lanes = Lanes::new(len, recipe.batch, recipe.lanes);
        let mix = match recipe.order {
            OrderKind::Sequential | OrderKind::Chunks => Mix::Keep,
            OrderKind::Random => Mix::All(Permutation::new(len, key(seed, epoch, Domain::Samples, 0))),
            OrderKind::Window => {
                let most = recipe.window_per_lane(dataset.geometry().n_chunks());
                let groups = |lane| LaneGroups::new(&line, &lanes, lane, most);
                Mix::Groups((0..lanes.count()).map(groups).collect())
            }
        };
        let batch = u64::from(schedule.batch);
        let left = len.saturating_sub(origin);
        let steps = match schedule.last {
            Last::Drop => left / batch,
            Last::Pad => left.div_ceil(batch),
        };
        let mut plan = Self { schedule: schedule.clone(), epoch, line, lanes, mix, buckets: None, origin, steps };
        if let Some(bucketing) = &schedule.buckets {
            let walk = Walk::new(bucketing, schedule);
            plan.steps = match choice {
                None => walk.steps_of_all(),
                Some(_) => walk.steps((0..len).map(|x| plan.line.sample(x))),
            };
            if plan.steps == 0 {
                return Err(PlanError::NoFullBucket { samples: len, batch: schedule.batch, buckets: walk.n_used() });
            }
            plan.buckets = Some(Arc::new(walk));
        } else if steps == 0 && origin == 0 {
            return Err(PlanError::NoBatch { samples: len, batch: schedule.batch });
        }
        Ok(plan)
    }

    /// The epoch.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The order of samples.
    pub const fn order(&self) -> OrderKind {
        self.schedule.recipe.order
    }

    /// Number of positions. A sample that occurs twice has two positions.
    pub fn len(&self) -> u64 {
        self.line.len()
    }

    /// Always false, because an epoch without samples is an error.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of batches in the epoch. It is the same on every rank.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Number of samples that no batch of this epoch contains.
    pub fn dropped(&self) -> u64 {
        let delivered = self.origin + self.steps * u64::from(self.schedule.batch);
        self.len().saturating_sub(delivered)
    }

    /// Size of the tables that this plan keeps. There are tables for each lane and, with a choice of samples, for each
    /// chunk.
    pub fn memory_bytes(&self) -> u64 {
        let lanes = match &self.mix {
            Mix::Groups(lanes) => size_of_val(lanes.as_slice()),
            Mix::Keep | Mix::All(_) => 0,
        };
        let buckets = self.buckets.as_ref().map_or(0, |walk| walk.memory_bytes());
        self.line.memory_bytes() + to_u64(lanes) + buckets
    }

    /// The sample at position `position` of the epoch, over all ranks. `None` past the end. It does not allocate.
    /// Without a choice of samples, it takes less than a microsecond for any number of samples.
    pub fn position(&self, position: u64) -> Option<u64> {
        if position >= self.len() {
            return None;
        }
        let place = match &self.mix {
            Mix::All(permutation) => permutation.at(position),
            Mix::Keep => {
                let (lane, place) = self.lanes.locate(position);
                self.lanes.start(lane) + place
            }
            Mix::Groups(lanes) => {
                let (lane, place) = self.lanes.locate(position);
                let groups = lanes.get(to_usize(lane))?;
                let place = groups.start + place;
                let group = groups.group_of(&self.line, place);
                let key = key(self.schedule.seed, self.epoch, Domain::Group, group.start);
                let within = Permutation::new(group.end - group.start, key);
                group.start + within.at(place - group.start)
            }
        };
        Some(self.line.sample(place))
    }

    /// The bucket of all samples of a step. 0 without buckets.
    pub fn bucket(&self, step: u64) -> usize {
        self.buckets.as_ref().and_then(|walk| walk.bucket(self, step)).unwrap_or(0)
    }

    /// The batches, if there are buckets.
    pub(crate) fn walk(&self) -> Option<&Walk> {
        self.buckets.as_deref()
    }

    /// The samples of this rank at a step. Empty past the last step.
    pub fn batch(&self, step: u64) -> Batch<'_> {
        if let Some(walk) = &self.buckets {
            let members = walk.members(self, step);
            return Batch { plan: self, start: 0, next: 0, end: to_u64(members.len()), members: Some(members) };
        }
        let per_rank = u64::from(self.schedule.rank_batch());
        let first = u64::from(self.schedule.ranks.rank()) * per_rank;
        self.batch_part(step, first..first + per_rank)
    }

    /// The samples in these positions of a step's global batch, without buckets. Empty past the last step.
    pub(crate) fn batch_part(&self, step: u64, places: Range<u64>) -> Batch<'_> {
        Batch {
            plan: self,
            start: self.origin.saturating_add(step.saturating_mul(u64::from(self.schedule.batch))),
            next: places.start,
            end: if step < self.steps { places.end } else { places.start },
            members: None,
        }
    }

    /// The chunks that a step of this rank takes samples from, in order of first use.
    pub fn chunk_uses(&self, step: u64) -> Vec<ChunkUse> {
        self.uses_of(step, self.batch(step))
    }

    /// The chunks that `batch` (a step or a part of it) takes samples from, in order of first use.
    pub(crate) fn uses_of(&self, step: u64, mut batch: Batch<'_>) -> Vec<ChunkUse> {
        let mut uses: Vec<ChunkUse> = Vec::new();
        let mut known: BTreeMap<u64, usize> = BTreeMap::new();
        while let Some((position, slot)) = batch.advance() {
            let (chunk, _) = self.schedule.dataset.geometry().locate(slot.sample);
            let place = *known.entry(chunk).or_insert_with(|| {
                uses.push(ChunkUse { chunk, until: step });
                uses.len() - 1
            });
            if let Some(seen) = uses.get_mut(place) {
                seen.until = seen.until.max(self.last_step(position).min(self.steps - 1));
            }
        }
        uses
    }

    /// The state to save in order to resume at `step`. After the last step, it is the start of the next epoch.
    pub fn state(&self, step: u64) -> State {
        let (epoch, position) = if step >= self.steps {
            (self.epoch.saturating_add(1), 0)
        } else {
            (self.epoch, self.origin + step * u64::from(self.schedule.batch))
        };
        self.schedule.state(epoch, position)
    }

    /// All samples of the epoch in an unspecified order. Each occurs as often as in the epoch.
    pub(crate) fn samples(&self) -> impl Iterator<Item = u64> {
        // Without a choice, each sample occurs once, so positions do not need to be computed.
        let all = self.schedule.choice.is_none();
        (0..self.len()).filter_map(move |x| if all { Some(x) } else { self.position(x) })
    }

    /// The range of the short chunk on the line. An empty range at the end if there is no short chunk.
    pub(crate) fn short_chunk(&self) -> (u64, u64) {
        self.line.short_chunk()
    }

    /// The last step that takes samples from the group or chunk of a position.
    fn last_step(&self, position: u64) -> u64 {
        let position = position % self.len();
        let (lane, place) = self.lanes.locate(position);
        let start = self.lanes.start(lane);
        let end = match &self.mix {
            Mix::All(_) => return self.steps.saturating_sub(1),
            Mix::Keep => {
                let (slot, _) = self.line.slot_of(start + place);
                self.line.start(slot + 1).min(self.lanes.start(lane + 1))
            }
            Mix::Groups(lanes) => {
                let groups = lanes.get(to_usize(lane));
                groups.map_or(start + place + 1, |groups| groups.group_of(&self.line, start + place).end)
            }
        };
        let last = self.lanes.last_position(lane, end - 1 - start);
        let step = last.saturating_sub(self.origin) / u64::from(self.schedule.batch);
        // A sample waits until the batch of its bucket is full, which usually takes this many steps more. A chunk with
        // a sample that waits longer may be read again.
        step + self.buckets.as_ref().map_or(0, |walk| to_u64(walk.n_used() / 2))
    }

    /// The `nth` position of the batch that starts at `start`, in the order in which ranks take their shares. This
    /// order follows the places in a planned batch, so that each rank stays in its lanes.
    fn share(&self, start: u64, nth: u64) -> u64 {
        let planned = u64::from(self.schedule.recipe.batch);
        let (rounds, more) = (u64::from(self.schedule.batch) / planned, u64::from(self.schedule.batch) % planned);
        let first = start % planned;
        // Places in first..first + more (modulo the planned batch) occur one more time than the others.
        let parts = if first + more <= planned {
            [(first, rounds), (first + more, rounds + 1), (planned, rounds)]
        } else {
            [(first + more - planned, rounds + 1), (first, rounds), (planned, rounds + 1)]
        };
        let (mut from, mut nth) = (0, nth);
        for (to, times) in parts {
            let here = (to - from) * times;
            if nth < here {
                let place = from + nth / times;
                return start + (place + planned - first) % planned + nth % times * planned;
            }
            nth -= here;
            from = to;
        }
        start
    }
}

/// The samples of one rank at one step.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    plan: &'a EpochPlan,
    start: u64,
    next: u64,
    end: u64,
    /// The samples, if there are buckets.
    members: Option<Arc<[Member]>>,
}

impl Batch<'_> {
    /// The next position and its slot.
    fn advance(&mut self) -> Option<(u64, Slot)> {
        if self.next >= self.end {
            return None;
        }
        if let Some(members) = &self.members {
            let member = members.get(to_usize(self.next)).copied();
            self.next += 1;
            return member;
        }
        let position = self.plan.share(self.start, self.next);
        self.next += 1;
        let len = self.plan.len();
        let sample = self.plan.position(position % len)?;
        let padding = position >= len;
        Some((position, Slot { sample, padding }))
    }
}

impl Iterator for Batch<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        self.advance().map(|(_, slot)| slot)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = to_usize(self.end - self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Batch<'_> {}
