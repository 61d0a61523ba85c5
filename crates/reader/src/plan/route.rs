//! A plan as seen by the code that fetches: which samples each step needs, regardless of how they were ordered.

use std::fmt::Debug;

use super::epoch::{ChunkUse, EpochPlan};
use super::order::OrderKind;

/// A rank's sequence of samples from one pack, step by step.
pub(crate) trait Route: Debug + Send + Sync {
    fn steps(&self) -> u64;

    /// The samples of a step in order. Empty past the last step.
    fn samples_at(&self, step: u64) -> Vec<u64>;

    /// The chunks that a step takes samples from, in order of first use.
    fn chunk_uses(&self, step: u64) -> Vec<ChunkUse>;

    fn order(&self) -> OrderKind;

    /// Whether all steps take samples from about the same number of chunks.
    fn is_even(&self) -> bool {
        true
    }

    /// Whether the steps from `first_step` on cover at least one whole epoch of the pack.
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

    fn is_even(&self) -> bool {
        self.walk().is_none()
    }

    fn is_whole_from(&self, first_step: u64) -> bool {
        first_step == 0
    }
}
