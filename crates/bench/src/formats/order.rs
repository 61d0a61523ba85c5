//! Assigns samples to batches in three orders. Every format uses the same orders.

use packds_system::{to_u64, to_usize};
use std::ops::Range;

use packds_format::mix64;

/// The order of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderName {
    /// Samples and batches as written.
    Sequential,
    /// Every sample in random order.
    PerSample,
    /// Batches in random order, samples within them as written.
    Chunk,
}

packds_system::named!(OrderName {
    Sequential = "sequential",
    PerSample = "per-sample",
    Chunk = "chunk",
});

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rows {
    Run(Range<u64>),
    Each(Vec<u64>),
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Run(run) => to_usize(run.end.saturating_sub(run.start)),
            Self::Each(samples) => samples.len(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (run, each) = match self {
            Self::Run(run) => (run.clone(), [].as_slice()),
            Self::Each(samples) => (0..0, samples.as_slice()),
        };
        run.chain(each.iter().copied())
    }
}

/// A batch, and the thread that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) lane: usize,
    pub(crate) rows: Rows,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) order: OrderName,
    pub(crate) n_samples: u64,
    /// Batch size. Divides the number of samples.
    pub(crate) batch: u64,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
    /// Shard size, for formats that are read sequentially.
    pub(crate) shard: Option<u64>,
}

impl Schedule {
    /// The batches of an epoch in delivery order. Threads take turns.
    pub(crate) fn epoch(&self, epoch: u32) -> Vec<Planned> {
        let seed = mix64(self.seed ^ mix64(u64::from(epoch) + 1));
        let batch = self.batch.max(1);
        if let Some(shard) = self.shard {
            return self.by_shard(shard.max(batch), seed);
        }
        let n = to_usize(self.batch).max(1);
        let rows: Vec<Rows> = match self.order {
            OrderName::PerSample => {
                let mut all: Vec<u64> = (0..self.n_samples).collect();
                shuffle(&mut all, seed);
                all.chunks(n).map(|samples| Rows::Each(samples.to_vec())).collect()
            }
            OrderName::Sequential => self.runs(0..self.n_samples),
            OrderName::Chunk => {
                let mut runs = self.runs(0..self.n_samples);
                shuffle(&mut runs, seed);
                runs
            }
        };
        let lanes = (0..self.threads.max(1)).cycle();
        lanes.zip(rows).map(|(lane, rows)| Planned { lane, rows }).collect()
    }

    /// Each thread reads its own shards sequentially. Threads take turns to deliver.
    fn by_shard(&self, shard: u64, seed: u64) -> Vec<Planned> {
        let mut shards: Vec<Range<u64>> =
            (0..self.n_samples.div_ceil(shard)).map(|i| i * shard..((i + 1) * shard).min(self.n_samples)).collect();
        if self.order != OrderName::Sequential {
            shuffle(&mut shards, seed);
        }
        let n_lanes = self.threads.max(1);
        let mut lanes: Vec<std::vec::IntoIter<Rows>> = (0..n_lanes)
            .map(|lane| {
                let mine = shards.iter().skip(lane).step_by(n_lanes);
                let runs: Vec<Rows> = mine.flat_map(|shard| self.runs(shard.clone())).collect();
                runs.into_iter()
            })
            .collect();
        let mut all = Vec::new();
        loop {
            let before = all.len();
            for (lane, rows) in lanes.iter_mut().enumerate() {
                all.extend(rows.next().map(|rows| Planned { lane, rows }));
            }
            if all.len() == before {
                return all;
            }
        }
    }

    fn runs(&self, samples: Range<u64>) -> Vec<Rows> {
        let batch = self.batch.max(1);
        let n = (samples.end - samples.start).div_ceil(batch);
        (0..n)
            .map(|i| samples.start + i * batch)
            .map(|start| Rows::Run(start..(start + batch).min(samples.end)))
            .collect()
    }
}

/// Fisher-Yates shuffle with seeded random numbers.
fn shuffle<T>(items: &mut [T], seed: u64) {
    for last in (1..items.len()).rev() {
        let place = to_u64(last);
        let random = mix64(seed.wrapping_add(mix64(place)));
        let other = to_usize(random % (place + 1));
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(order: OrderName, shard: Option<u64>) -> Schedule {
        Schedule { order, n_samples: 24, batch: 4, threads: 2, seed: 7, shard }
    }

    fn samples(plan: &[Planned]) -> Vec<u64> {
        plan.iter().flat_map(|p| p.rows.iter()).collect()
    }

    #[test]
    fn every_order_has_every_sample_once() {
        for order in OrderName::ALL {
            for shard in [None, Some(8), Some(16)] {
                let mut all = samples(&schedule(order, shard).epoch(3));
                all.sort_unstable();
                assert_eq!(all, (0..24).collect::<Vec<_>>(), "{order} {shard:?}");
            }
        }
    }

    #[test]
    fn sequential_is_as_written() {
        let plan = schedule(OrderName::Sequential, None).epoch(0);
        assert_eq!(samples(&plan), (0..24).collect::<Vec<_>>());
        assert!(plan.iter().map(|p| p.lane).eq([0, 1, 0, 1, 0, 1]));
    }

    #[test]
    fn chunks_are_whole_and_shuffled() {
        let plan = schedule(OrderName::Chunk, None).epoch(0);
        let runs = plan.iter().map(|p| match &p.rows {
            Rows::Run(run) => (run.start % 4, run.end - run.start),
            Rows::Each(_) => (9, 9),
        });
        assert!(runs.into_iter().all(|run| run == (0, 4)));
        assert_ne!(samples(&plan), (0..24).collect::<Vec<_>>());
    }

    #[test]
    fn seed_and_epoch_decide_the_order() {
        let first = schedule(OrderName::PerSample, None);
        assert_eq!(first.epoch(1), first.epoch(1));
        assert_ne!(first.epoch(1), first.epoch(2));
        let other = Schedule { seed: 8, ..first };
        assert_ne!(first.epoch(1), other.epoch(1));
    }

    #[test]
    fn each_thread_reads_its_shards_from_end_to_end() {
        let plan = schedule(OrderName::Chunk, Some(8)).epoch(0);
        for lane in 0..2 {
            let mine: Vec<Planned> = plan.iter().filter(|p| p.lane == lane).cloned().collect();
            for shard in samples(&mine).chunks(8) {
                assert!(shard.windows(2).all(|w| w[1] == w[0] + 1), "{shard:?}");
                assert_eq!(shard[0] % 8, 0);
            }
        }
        // There are three shards for two threads. The first thread has two of them, so its remaining batches come last.
        assert!(plan.iter().map(|p| p.lane).eq([0, 1, 0, 1, 0, 0]));
    }
}
