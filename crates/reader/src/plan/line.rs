//! The line: all samples of an epoch, chunk after chunk, in the order in which the epoch visits chunks. See
//! docs/reference/sampling.md, "The line".
//!
//! This module only maps places to samples. Other modules divide the line into lanes and windows.

use packds_system::{to_u64, to_usize};
use std::sync::Arc;

use packds_format::{Geometry, Permutation};

use super::choice::Choice;
use super::rng::{Domain, below, key, random};

/// Minimum number of samples per table entry. It limits the table to 1/8 byte per sample.
const SAMPLES_PER_ENTRY: u64 = 64;

/// The order of chunks on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkOrder {
    /// File order.
    File,
    /// Shuffled. The short chunk (the last chunk in the file, if it is not full) is placed as late as possible, but
    /// entirely within the full batches. Chunks before it stay aligned with batches.
    Aligned {
        /// Number of samples in full batches.
        delivered: u64,
    },
    /// Shuffled, with the short chunk at any position.
    Anywhere,
}

/// All samples of one epoch, in the order of chunks. A "slot" is the place of a chunk on the line, even if the chunk is
/// empty.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    geometry: Geometry,
    permutation: Option<Permutation>,
    /// The slot of the short chunk. If the short chunk is last or does not exist, this is the number of full chunks.
    short_slot: u64,
    counts: Option<Counts>,
}

/// The positions of chunks, if not every sample occurs exactly once.
#[derive(Debug, Clone)]
struct Counts {
    choice: Arc<Choice>,
    occurrence_key: u64,
    slots_per_entry: u64,
    /// Number of samples before slot `entry * slots_per_entry`. The last entry is the total.
    before: Vec<u64>,
}

impl Line {
    pub(crate) fn new(
        geometry: Geometry,
        order: ChunkOrder,
        choice: Option<&Arc<Choice>>,
        seed: u64,
        epoch: u32,
    ) -> Self {
        let per_chunk = u64::from(geometry.chunk_samples());
        let full = geometry.n_samples() / per_chunk;
        let short = geometry.n_samples() % per_chunk;
        let short_slot = match order {
            ChunkOrder::File => full,
            _ if short == 0 => full,
            ChunkOrder::Aligned { delivered } if delivered < geometry.n_samples() => {
                delivered.checked_sub(short).map_or(full, |d| d / per_chunk)
            }
            ChunkOrder::Aligned { .. } => full,
            ChunkOrder::Anywhere => {
                let word = random(key(seed, epoch, Domain::ShortChunk, 0), 0);
                below(word, full + 1)
            }
        };
        let permutation =
            (order != ChunkOrder::File).then(|| Permutation::new(full, key(seed, epoch, Domain::Chunks, 0)));
        let mut line = Self { geometry, permutation, short_slot, counts: None };
        line.counts = choice.map(|choice| line.count(choice, seed, epoch));
        line
    }

    /// Number of samples on the line.
    pub(crate) fn len(&self) -> u64 {
        match &self.counts {
            None => self.geometry.n_samples(),
            Some(counts) => counts.before.last().copied().unwrap_or(0),
        }
    }

    /// Size of the tables of this epoch.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let entries = self.counts.as_ref().map_or(0, |counts| counts.before.len());
        to_u64(entries * 8)
    }

    /// The chunk in a slot.
    pub(crate) fn chunk(&self, slot: u64) -> u64 {
        let Some(permutation) = &self.permutation else { return slot };
        match slot.cmp(&self.short_slot) {
            std::cmp::Ordering::Less => permutation.at(slot),
            std::cmp::Ordering::Equal => permutation.len(),
            std::cmp::Ordering::Greater => permutation.at(slot - 1),
        }
    }

    /// The range of the short chunk, if every sample occurs once. If there is no short chunk, an empty range at the
    /// end.
    pub(crate) fn short_chunk(&self) -> (u64, u64) {
        let per_chunk = u64::from(self.geometry.chunk_samples());
        let start = self.short_slot * per_chunk;
        (start, start + self.geometry.n_samples() % per_chunk)
    }

    /// Number of samples before a slot.
    pub(crate) fn start(&self, slot: u64) -> u64 {
        let Some(counts) = &self.counts else { return self.whole_start(slot) };
        let slot = slot.min(self.geometry.n_chunks());
        let entry = slot / counts.slots_per_entry;
        (entry * counts.slots_per_entry..slot)
            .map(|slot| self.chunk_count(counts, slot))
            .fold(counts.entry(entry), |sum, count| sum + count)
    }

    /// The slot that contains place `x` of the line, and the slot's first place.
    pub(crate) fn slot_of(&self, x: u64) -> (u64, u64) {
        let Some(counts) = &self.counts else {
            let slot = self.whole_slot(x);
            return (slot, self.whole_start(slot));
        };
        let entries = counts.before.partition_point(|&before| before <= x);
        let entry = to_u64(entries.saturating_sub(1));
        let mut slot = entry * counts.slots_per_entry;
        let mut start = counts.entry(entry);
        // If each entry has only one slot, the entry is the slot, and chunks do not need to be counted.
        if counts.slots_per_entry > 1 {
            while slot + 1 < self.geometry.n_chunks() {
                let next = start + self.chunk_count(counts, slot);
                if next > x {
                    break;
                }
                (slot, start) = (slot + 1, next);
            }
        }
        (slot, start)
    }

    /// The sample at place `x`.
    pub(crate) fn sample(&self, x: u64) -> u64 {
        let (slot, start) = self.slot_of(x);
        let first = self.geometry.first_sample(self.chunk(slot));
        let Some(counts) = &self.counts else { return first + (x - start) };
        let mut rest = x - start;
        let mut sample = first;
        loop {
            let times = counts.choice.times(sample, counts.occurrence_key);
            if rest < times || sample + 1 >= self.geometry.n_samples() {
                return sample;
            }
            rest -= times;
            sample += 1;
        }
    }

    fn whole_start(&self, slot: u64) -> u64 {
        let per_chunk = u64::from(self.geometry.chunk_samples());
        if slot <= self.short_slot {
            return slot * per_chunk;
        }
        (slot - 1) * per_chunk + self.geometry.n_samples() % per_chunk
    }

    fn whole_slot(&self, x: u64) -> u64 {
        let per_chunk = u64::from(self.geometry.chunk_samples());
        let short_start = self.short_slot * per_chunk;
        let short_end = short_start + self.geometry.n_samples() % per_chunk;
        if x < short_start {
            x / per_chunk
        } else if x < short_end {
            self.short_slot
        } else {
            // If there is no short chunk, both ends are at or past the end of the line, so this branch is not reached.
            self.short_slot + 1 + (x - short_end) / per_chunk
        }
    }

    fn count(&self, choice: &Arc<Choice>, seed: u64, epoch: u32) -> Counts {
        let per_chunk = u64::from(self.geometry.chunk_samples());
        let mut counts = Counts {
            choice: Arc::clone(choice),
            occurrence_key: key(seed, epoch, Domain::Occurrence, 0),
            slots_per_entry: SAMPLES_PER_ENTRY.div_ceil(per_chunk),
            before: Vec::new(),
        };
        let mut sum = 0;
        for slot in 0..self.geometry.n_chunks() {
            if slot.is_multiple_of(counts.slots_per_entry) {
                counts.before.push(sum);
            }
            sum += self.chunk_count(&counts, slot);
        }
        counts.before.push(sum);
        counts.before.shrink_to_fit();
        counts
    }

    fn chunk_count(&self, counts: &Counts, slot: u64) -> u64 {
        let chunk = self.chunk(slot);
        let first = self.geometry.first_sample(chunk);
        (first..first + u64::from(self.geometry.samples_in(chunk)))
            .map(|sample| counts.choice.times(sample, counts.occurrence_key))
            .sum()
    }
}

impl Counts {
    fn entry(&self, entry: u64) -> u64 {
        self.before.get(to_usize(entry)).or(self.before.last()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: u64, per_chunk: u32, order: ChunkOrder, choice: Option<Choice>) -> Line {
        let geometry = Geometry::new(n, per_chunk).unwrap();
        Line::new(geometry, order, choice.map(Arc::new).as_ref(), 5, 3)
    }

    #[test]
    fn every_sample_lies_on_the_line_as_often_as_chosen() {
        for n in [1, 2, 7, 64, 100, 129, 640] {
            for per_chunk in [1, 3, 10, 64, 65, 700] {
                let delivered = n / 6 * 6;
                for order in [ChunkOrder::File, ChunkOrder::Aligned { delivered }, ChunkOrder::Anywhere] {
                    let whole = line(n, per_chunk, order, None);
                    let mut seen: Vec<u64> = (0..whole.len()).map(|x| whole.sample(x)).collect();
                    seen.sort_unstable();
                    assert!(seen.into_iter().eq(0..n));

                    let times = |i: u64| [0, 2, 1, 0, 0, 5][usize::try_from(i % 6).unwrap()];
                    let choice = Choice::weighted(n, |i| times(i) as f64).unwrap();
                    let some = line(n, per_chunk, order, Some(choice));
                    let mut seen: Vec<u64> = (0..some.len()).map(|x| some.sample(x)).collect();
                    seen.sort_unstable();
                    let all = (0..n).flat_map(|i| (0..times(i)).map(move |_| i));
                    assert!(seen.into_iter().eq(all), "{n} {per_chunk} {order:?}");
                }
            }
        }
    }

    #[test]
    fn slots_and_starts_agree() {
        let weights = |i: u64| (i % 4) as f64 * 0.75;
        for choice in [None, Some(Choice::weighted(1000, weights).unwrap())] {
            let line = line(1000, 7, ChunkOrder::Anywhere, choice);
            for x in 0..line.len() {
                let (slot, start) = line.slot_of(x);
                assert_eq!(line.start(slot), start);
                assert!(start <= x && x < line.start(slot + 1), "{x}");
            }
        }
    }

    #[test]
    fn the_table_takes_an_eighth_of_a_byte_a_sample() {
        for per_chunk in [1, 5, 64, 1000] {
            let line = line(100_000, per_chunk, ChunkOrder::Anywhere, Some(Choice::filter(100_000, |_| true)));
            assert!(line.memory_bytes() <= 100_000 / 8 + 16, "{per_chunk}");
        }
    }
}
