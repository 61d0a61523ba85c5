//! What one machine of a cluster reads, chunk by chunk, according to the real plans of its ranks.

use std::collections::HashMap;

use packds_format::Geometry;
use packds_reader::plan::{Batching, Dataset, EpochPlan, Order, PlanError, Ranks, Sampler};

/// A data set and the ranks that read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cluster {
    pub(super) n_samples: u64,
    pub(super) chunk_samples: u32,
    pub(super) chunk_bytes: u64,
    pub(super) order: Order,
    pub(super) seed: u64,
    /// Samples of one step on one rank.
    pub(super) batch: u32,
    pub(super) ranks: u32,
    pub(super) ranks_per_host: u32,
}

/// A chunk that a rank of the machine needs and does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Read {
    /// The step, counted over all epochs.
    pub(super) step: u64,
    pub(super) chunk: u64,
}

/// All reads of one machine.
#[derive(Debug)]
pub(super) struct Reads {
    pub(super) reads: Vec<Read>,
    pub(super) steps_per_epoch: u64,
    /// Memory of the plan of one rank.
    pub(super) plan_bytes: u64,
    /// Time to compute one position of a plan, in nanoseconds.
    pub(super) ns_per_position: f64,
    /// Maximum number of chunks that a rank holds at once.
    pub(super) held: usize,
}

impl Cluster {
    /// The reads of the first machine. The others read other chunks at the same rate. `tell` is called with the number of
    /// steps done.
    pub(super) fn reads(&self, epochs: u32, tell: &dyn Fn(u64, u64)) -> Result<Reads, PlanError> {
        let ranks = self.ranks_per_host.min(self.ranks);
        let plans = (0..ranks).map(|rank| self.epochs(rank, epochs)).collect::<Result<Vec<_>, _>>()?;
        let steps_per_epoch = plans.first().and_then(|plans| plans.first()).map_or(0, EpochPlan::steps);
        let plan_bytes = plans.first().and_then(|plans| plans.first()).map_or(0, EpochPlan::memory_bytes);
        let mut found = Reads { reads: Vec::new(), steps_per_epoch, plan_bytes, ns_per_position: 0.0, held: 0 };
        let mut held: Vec<HashMap<u64, u64>> = vec![HashMap::new(); plans.len()];
        let started = std::time::Instant::now();
        for epoch in 0..epochs {
            for step in 0..steps_per_epoch {
                let all = u64::from(epoch) * steps_per_epoch + step;
                if step % 64 == 0 {
                    tell(all, u64::from(epochs) * steps_per_epoch);
                }
                for (held, plans) in held.iter_mut().zip(&plans) {
                    let Some(plan) = plans.get(usize::try_from(epoch).unwrap_or(usize::MAX)) else { continue };
                    for used in plan.chunk_uses(step) {
                        let until = held.entry(used.chunk).or_insert_with(|| {
                            found.reads.push(Read { step: all, chunk: used.chunk });
                            used.until
                        });
                        *until = used.until.max(*until);
                    }
                    found.held = found.held.max(held.len());
                    held.retain(|_, until| *until > step);
                }
            }
            held.iter_mut().for_each(HashMap::clear);
        }
        let positions = u64::from(epochs) * steps_per_epoch * u64::from(self.batch) * u64::from(ranks);
        found.ns_per_position = started.elapsed().as_secs_f64() * 1e9 / positions.max(1) as f64;
        Ok(found)
    }

    fn epochs(&self, rank: u32, epochs: u32) -> Result<Vec<EpochPlan>, PlanError> {
        let geometry = Geometry::new(self.n_samples, self.chunk_samples).map_err(|_| PlanError::NoSamples)?;
        let dataset = Dataset::new(geometry, self.chunk_bytes, &[0; 16]);
        let sampler = Sampler::new(self.order).seed(self.seed);
        let schedule = sampler.schedule(dataset, Ranks::new(rank, self.ranks)?, Batching::per_rank(self.batch))?;
        (0..epochs).map(|epoch| schedule.epoch(epoch)).collect()
    }

    pub(super) fn n_hosts(&self) -> u32 {
        self.ranks.div_ceil(self.ranks_per_host.max(1))
    }
}
