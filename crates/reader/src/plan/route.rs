//! What fetching knows of a plan: which samples each step needs. Not how they were ordered.

use std::fmt::Debug;

use super::epoch::{ChunkUse, EpochPlan};
use super::sampler::OrderKind;

/// A rank's way through one pack, step by step.
pub(crate) trait Route: Debug + Send + Sync {
    /// Steps, counted from 0.
    fn steps(&self) -> u64;

    /// The samples of a step, as they come; none beyond the last step.
    fn samples_at(&self, step: u64) -> Vec<u64>;

    /// The chunks that a step takes samples from, in order of first use.
    fn chunk_uses(&self, step: u64) -> Vec<ChunkUse>;

    /// The order in which samples come.
    fn order(&self) -> OrderKind;

    /// Whether the steps from `first_step` on are an epoch of the pack or more.
    fn is_whole_from(&self, first_step: u64) -> bool;
}

impl Route for EpochPlan {
    fn steps(&self) -> u64 {
        Self::steps(self)
    }

    fn samples_at(&self, step: u64) -> Vec<u64> {
        self.batch(step).map(|slot| slot.sample).collect()
    }

    fn chunk_uses(&self, step: u64) -> Vec<ChunkUse> {
        Self::chunk_uses(self, step)
    }

    fn order(&self) -> OrderKind {
        Self::order(self)
    }

    fn is_whole_from(&self, first_step: u64) -> bool {
        first_step == 0
    }
}
