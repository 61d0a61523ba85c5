//! Batches whose samples are all in one bucket, such as images with about the same aspect ratio. See
//! docs/reference/sampling.md, "Buckets".
//!
//! The positions of an epoch are visited in order, and each sample joins the batch of its bucket. This cannot be
//! computed for a single step, so a plan with buckets keeps where each batch ends. From this, it finds the samples of
//! any batch again.

use packds_system::{lock, to_u64, to_usize};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use packds_format::hash_bytes;

use super::epoch::{EpochPlan, Slot};
use super::sampler::{Last, Schedule};

/// Number of steps whose samples are kept. Prefetching is usually fewer steps ahead of filling.
const KEPT_STEPS: usize = 64;

/// The bucket of each sample of a pack. It takes one byte per sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucketing {
    codes: Vec<u8>,
    /// Number of samples in each bucket.
    counts: Vec<u64>,
    fingerprint: u64,
}

impl Bucketing {
    /// Puts each sample into the bucket with the number that `bucket` returns. Calls it once per sample, in file order.
    /// `identity` says what the buckets are. A run can be resumed only with the same buckets.
    pub fn new(n_samples: u64, identity: &str, bucket: impl FnMut(u64) -> u8) -> Self {
        let codes: Vec<u8> = (0..n_samples).map(bucket).collect();
        let most = codes.iter().max().copied().unwrap_or(0);
        let mut counts = vec![0; usize::from(most) + 1];
        for code in &codes {
            if let Some(count) = counts.get_mut(usize::from(*code)) {
                *count += 1;
            }
        }
        let fingerprint = hash_bytes(hash_bytes(0, identity.as_bytes()), &codes);
        Self { codes, counts, fingerprint }
    }

    /// Number of samples that buckets were assigned to.
    pub(crate) fn n_samples(&self) -> u64 {
        to_u64(self.codes.len())
    }

    /// Number of samples in each bucket.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The bucket of a sample.
    fn of(&self, sample: u64) -> u8 {
        self.codes.get(to_usize(sample)).copied().unwrap_or(0)
    }
}

/// A position of an epoch in a rank's batch, and its sample.
pub(crate) type Member = (u64, Slot);

/// The batches of an epoch with buckets, formed as far as they were requested.
#[derive(Debug)]
pub(crate) struct Walk {
    bucketing: Arc<Bucketing>,
    batch: u64,
    /// The rank's places in a batch.
    places: Range<u64>,
    last: Last,
    formed: Mutex<Formed>,
}

#[derive(Debug)]
struct Formed {
    /// The position that is visited next.
    next: u64,
    /// The positions that are not in a batch yet, for each bucket.
    waiting: Vec<Vec<u64>>,
    ends: Vec<End>,
    /// The rank's samples in the steps that were formed most recently.
    recent: VecDeque<(u64, Arc<[Member]>)>,
}

/// Where a batch ends.
#[derive(Debug, Clone, Copy)]
struct End {
    bucket: u8,
    /// The position after the batch's last sample.
    position: u64,
}

impl Walk {
    pub(crate) fn new(bucketing: &Arc<Bucketing>, schedule: &Schedule) -> Self {
        let per_rank = u64::from(schedule.rank_batch());
        let start = u64::from(schedule.ranks.rank()) * per_rank;
        let waiting = vec![Vec::new(); bucketing.counts.len()];
        Self {
            bucketing: Arc::clone(bucketing),
            batch: u64::from(schedule.batch),
            places: start..start + per_rank,
            last: schedule.last,
            formed: Mutex::new(Formed { next: 0, waiting, ends: Vec::new(), recent: VecDeque::new() }),
        }
    }

    /// Number of batches in an epoch with these samples.
    pub(crate) fn steps(&self, samples: impl Iterator<Item = u64>) -> u64 {
        let mut counts = vec![0_u64; self.bucketing.counts.len()];
        for sample in samples {
            if let Some(count) = counts.get_mut(usize::from(self.bucketing.of(sample))) {
                *count += 1;
            }
        }
        self.steps_of(&counts)
    }

    /// Number of batches in an epoch in which each sample occurs once.
    pub(crate) fn steps_of_all(&self) -> u64 {
        self.steps_of(&self.bucketing.counts)
    }

    fn steps_of(&self, counts: &[u64]) -> u64 {
        let steps = |count: &u64| match self.last {
            Last::Drop => count / self.batch,
            Last::Pad => count.div_ceil(self.batch),
        };
        counts.iter().map(steps).sum()
    }

    /// Number of buckets that have samples.
    pub(crate) fn n_used(&self) -> usize {
        self.bucketing.counts.iter().filter(|count| **count > 0).count()
    }

    /// Number of samples in buckets that cannot fill a batch.
    pub(crate) fn never_full(&self) -> u64 {
        self.bucketing.counts.iter().filter(|count| **count < self.batch).sum()
    }

    /// Size of the tables. The bucket of each sample is kept only once for all epochs.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let formed = lock(&self.formed);
        let waiting = to_u64(formed.waiting.len()) * self.batch * 8;
        let recent = to_u64(formed.recent.len()) * (self.places.end - self.places.start) * to_u64(size_of::<Member>());
        self.bucketing.n_samples() + waiting + recent + to_u64(size_of_val(formed.ends.as_slice()))
    }

    /// The bucket of a step's samples. `None` past the last step.
    pub(crate) fn bucket(&self, plan: &EpochPlan, step: u64) -> Option<usize> {
        let mut formed = lock(&self.formed);
        self.form(plan, &mut formed, step);
        formed.ends.get(to_usize(step)).map(|end| end.bucket.into())
    }

    /// The rank's samples at a step. Empty past the last step.
    pub(crate) fn members(&self, plan: &EpochPlan, step: u64) -> Arc<[Member]> {
        let mut formed = lock(&self.formed);
        self.form(plan, &mut formed, step);
        match formed.recent.iter().find(|(known, _)| *known == step) {
            Some((_, members)) => Arc::clone(members),
            None => self.found_again(plan, &formed.ends, step),
        }
    }

    /// Forms batches up to a step, if the epoch has that many.
    fn form(&self, plan: &EpochPlan, formed: &mut Formed, step: u64) {
        while to_u64(formed.ends.len()) <= step {
            let Some((end, positions)) = self.next_batch(plan, formed) else { return };
            let members = self.share(plan, end.bucket, positions);
            formed.recent.truncate(KEPT_STEPS - 1);
            formed.recent.push_front((to_u64(formed.ends.len()), members));
            formed.ends.push(end);
        }
    }

    /// The batch that is full next. After the last position, the buckets whose batches are not full, in order.
    fn next_batch(&self, plan: &EpochPlan, formed: &mut Formed) -> Option<(End, Vec<u64>)> {
        while let Some(sample) = plan.position(formed.next) {
            let (bucket, position) = (self.bucketing.of(sample), formed.next);
            formed.next += 1;
            let waiting = formed.waiting.get_mut(usize::from(bucket))?;
            waiting.push(position);
            if to_u64(waiting.len()) == self.batch {
                return Some((End { bucket, position: formed.next }, std::mem::take(waiting)));
            }
        }
        if self.last == Last::Drop {
            return None;
        }
        let mut rests = (0_u8..=u8::MAX).zip(&mut formed.waiting);
        let (bucket, rest) = rests.find(|(_, rest)| !rest.is_empty())?;
        Some((End { bucket, position: formed.next }, std::mem::take(rest)))
    }

    /// The rank's samples at a step that was formed before.
    fn found_again(&self, plan: &EpochPlan, ends: &[End], step: u64) -> Arc<[Member]> {
        let step = to_usize(step);
        let Some(end) = ends.get(step) else { return Arc::default() };
        let before = ends.iter().take(step).rev().find(|before| before.bucket == end.bucket);
        let start = before.map_or(0, |before| before.position);
        let positions = self.positions(plan, end.bucket, start..end.position).collect();
        self.share(plan, end.bucket, positions)
    }

    /// The positions with samples of a bucket, in order.
    fn positions(&self, plan: &EpochPlan, bucket: u8, among: Range<u64>) -> impl Iterator<Item = u64> {
        among.filter(move |position| plan.position(*position).is_some_and(|sample| self.bucketing.of(sample) == bucket))
    }

    /// The rank's share of a global batch with these positions. Ranks take contiguous shares in the order of the places
    /// in planned batches, so that each rank stays near its lanes. The first samples of the bucket fill the rest of a
    /// batch that is not full.
    fn share(&self, plan: &EpochPlan, bucket: u8, mut positions: Vec<u64>) -> Arc<[Member]> {
        positions.sort_unstable_by_key(|position| (position % self.batch, *position));
        let own = to_u64(positions.len());
        let mut padding = Vec::new();
        if own < self.places.end {
            let missing = to_usize(self.batch - own);
            padding = self.positions(plan, bucket, 0..plan.len()).take(missing).collect();
        }
        let padding = padding.iter().cycle().take(to_usize(self.batch.saturating_sub(own)));
        let marked = positions.iter().map(|position| (position, false));
        let all = marked.chain(padding.map(|position| (position, true)));
        let places = to_usize(self.places.start)..to_usize(self.places.end);
        let of_rank = all.skip(places.start).take(places.len());
        let member = |(position, padding): (&u64, bool)| {
            let sample = plan.position(*position)?;
            Some((*position, Slot { sample, padding }))
        };
        of_rank.filter_map(member).collect()
    }
}
