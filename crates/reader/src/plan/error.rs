//! Why a plan cannot be made or resumed.

/// Why samplers, batches and ranks do not fit a data set, or a saved state does not fit them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is nothing to plan.
    #[error("no samples to plan: the pack is empty, or nothing was selected")]
    NoSamples,
    /// Numbers that no pack has.
    #[error("not a pack's numbers: {0}")]
    Geometry(String),
    /// A number that must be at least 1.
    #[error("{what} is 0: it must be at least 1")]
    Zero {
        /// Which number.
        what: &'static str,
    },
    /// A rank that does not exist.
    #[error("rank {rank} does not exist in a world of {world}: ranks count from 0")]
    Rank {
        /// The rank given.
        rank: u32,
        /// The number of ranks.
        world: u32,
    },
    /// Ranks cannot have equal shares of the global batch.
    #[error("a global batch of {batch} does not divide among {world} ranks")]
    World {
        /// Samples of the global batch.
        batch: u32,
        /// The number of ranks.
        world: u32,
    },
    /// A batch per rank that makes the global batch too large to count.
    #[error("{per_rank} samples on each of {world} ranks is more than 2^32 - 1")]
    BatchTooLarge {
        /// Samples per rank.
        per_rank: u32,
        /// The number of ranks.
        world: u32,
    },
    /// Dropping the last batch drops everything.
    #[error(
        "no whole batch: {samples} samples are fewer than the global batch of {batch}; pad the last batch or make it smaller"
    )]
    NoBatch {
        /// Samples of the epoch.
        samples: u64,
        /// Samples of the global batch.
        batch: u32,
    },
    /// A number of lanes that the order or the batch does not allow.
    #[error("{lanes} lanes are not possible: {why}")]
    Lanes {
        /// The number asked for.
        lanes: u32,
        /// Which rule they break.
        why: &'static str,
    },
    /// A selection names a sample beyond the last.
    #[error("sample {sample} is selected, but there are only {samples}")]
    NoSuchSample {
        /// The sample named.
        sample: u64,
        /// Samples of the pack.
        samples: u64,
    },
    /// A weight that is negative, not a number or too large.
    #[error("weight {weight} of sample {sample} is not between 0 and {limit}")]
    Weight {
        /// Its sample.
        sample: u64,
        /// The weight.
        weight: f64,
        /// The largest one allowed.
        limit: f64,
    },
    /// A selection made for another number of samples.
    #[error("the selection is for {expected} samples, the pack has {found}")]
    Selection {
        /// Samples the selection was made for.
        expected: u64,
        /// Samples of the pack.
        found: u64,
    },
    /// A pack of a mixture would give no sample, or more than it has, to each batch.
    #[error("pack {source_index} of the mixture: {why}")]
    Mixture {
        /// Its place in the mixture, from 0.
        source_index: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A saved state is not one.
    #[error("not a saved state: {why}")]
    State {
        /// What is wrong with it.
        why: String,
    },
    /// A saved state belongs to another run.
    #[error("the saved state is for another {what}: it has {expected}, this run has {found}")]
    OtherRun {
        /// What differs.
        what: &'static str,
        /// The state's value.
        expected: String,
        /// This run's value.
        found: String,
    },
    /// A saved state belongs to another mixture.
    #[error(
        "the saved state is for another mixture than this one with a global batch of {batch} samples: packs, proportions, order, seed, memory budget and global batch must be the same; make the loader with those of the run"
    )]
    OtherMixture {
        /// Samples of this mixture's global batch.
        batch: usize,
    },
}
