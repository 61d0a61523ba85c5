//! Why a plan cannot be made or resumed.

use packds_system::{Opt, counted};

const ORDER: Opt = Opt::new("order");
const WINDOW: Opt = Opt::new("window");

/// Why samplers, batches and ranks do not match a dataset, or why they do not match a saved state.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There are no samples to plan.
    #[error("no samples to plan: the pack is empty, or nothing was selected")]
    NoSamples,
    /// The metadata of the pack is inconsistent.
    #[error("inconsistent pack metadata: {0}")]
    Geometry(String),
    /// A number is 0, but must be at least 1.
    #[error("{what} is 0: it must be at least 1")]
    Zero {
        /// The name of the number.
        what: &'static str,
    },
    /// A window was given for an order that does not use one.
    #[error("{WINDOW} requires {}, found {}", ORDER.with("window"), ORDER.with(order))]
    OtherOrder {
        /// The order.
        order: &'static str,
    },
    /// The rank does not exist.
    #[error("rank {rank} does not exist in a world of {world}: ranks are numbered from 0")]
    Rank {
        /// The given rank.
        rank: u32,
        /// The number of ranks.
        world: u32,
    },
    /// The global batch cannot be divided equally among the ranks.
    #[error("a global batch of {batch} cannot be divided equally among {world} ranks")]
    World {
        /// Samples in the global batch.
        batch: u32,
        /// The number of ranks.
        world: u32,
    },
    /// The batch per rank makes the global batch too large.
    #[error(
        "{} on each of {} exceed the limit of 2^32 - 1 samples",
        counted(*per_rank, "sample"),
        counted(*world, "rank")
    )]
    BatchTooLarge {
        /// Samples per rank.
        per_rank: u32,
        /// The number of ranks.
        world: u32,
    },
    /// All samples would be dropped with the last batch.
    #[error(
        "no whole batch: expected at least the global batch of {}, found {}",
        counted(*batch, "sample"),
        counted(*samples, "sample")
    )]
    NoBatch {
        /// Samples in the epoch.
        samples: u64,
        /// Samples in the global batch.
        batch: u32,
    },
    /// No bucket has enough samples for a batch.
    #[error(
        "no whole batch: {} are in {}, and none of them has the {batch} of a global batch; use fewer buckets, or smaller batches",
        counted(*samples, "sample"),
        counted(*buckets, "bucket")
    )]
    NoFullBucket {
        /// Samples in the epoch.
        samples: u64,
        /// Samples in the global batch.
        batch: u32,
        /// Number of buckets that have samples.
        buckets: usize,
    },
    /// A resumed run with buckets has another global batch. Its batches cannot be continued.
    #[error(
        "a run with buckets must keep its global batch: it has {}, but this run has {found}",
        counted(*planned, "sample")
    )]
    BucketBatch {
        /// Samples in the global batch of the saved run.
        planned: u32,
        /// Samples in the global batch of this run.
        found: u32,
    },
    /// The order or the batch does not allow this number of lanes.
    #[error("{lanes} lanes are not possible: {why}")]
    Lanes {
        /// The requested number.
        lanes: u32,
        /// The violated rule.
        why: &'static str,
    },
    /// A selection contains a sample that the pack does not have.
    #[error("sample {sample} is selected, but the pack's sample numbers are below {samples}")]
    NoSuchSample {
        /// The sample.
        sample: u64,
        /// Number of samples in the pack.
        samples: u64,
    },
    /// A weight is negative, NaN or too large.
    #[error("weight {weight} of sample {sample} is not between 0 and {limit}")]
    Weight {
        /// The sample that has the weight.
        sample: u64,
        /// The weight.
        weight: f64,
        /// The largest allowed weight.
        limit: f64,
    },
    /// A selection was made for a pack with a different number of samples.
    #[error("the selection is for a pack of {}, but this pack has {found}", counted(*expected, "sample"))]
    Selection {
        /// Number of samples that the selection was made for.
        expected: u64,
        /// Number of samples in the pack.
        found: u64,
    },
    /// A pack cannot be part of a mixture. Its proportion is invalid or rounds to 0 samples, it has fewer samples than
    /// its part of a batch, or it has a choice of samples.
    #[error("pack {source_index} of the mixture: {why}")]
    Mixture {
        /// Its index in the mixture, from 0.
        source_index: usize,
        /// The problem.
        why: &'static str,
    },
    /// A saved state is invalid.
    #[error("not a saved state: {why}")]
    State {
        /// The problem.
        why: String,
    },
    /// A saved state belongs to another run.
    #[error("the saved state is for another {what}: it has {expected}, but this run has {found}")]
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
        "the saved state is not for this mixture with a global batch of {batch} samples: packs, proportions, order, seed, memory budget and global batch must be the same; make the loader with the settings of the saved run"
    )]
    OtherMixture {
        /// Samples in this mixture's global batch.
        batch: usize,
    },
}
