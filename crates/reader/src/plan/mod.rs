//! Determines which sample is delivered when: orders, windows, subsets, weights, ranks, resuming. The result is
//! computed and never stored. docs/reference/sampling.md lists the guarantees, with formulas and test vectors.
//!
//! A [`Sampler`] contains the options. Combined with a [`Dataset`], [`Ranks`] and a [`Batching`], it becomes a
//! [`Schedule`]. Each epoch of a schedule is an [`EpochPlan`]. All of this is arithmetic on a few numbers. Without a
//! [`Choice`] of samples and without a [`Bucketing`], time and memory do not grow with the dataset. The only part that
//! reads a file is a [`Choice`] by columns.
//!
//! ```
//! use packds_format::Geometry;
//! use packds_reader::plan::{Batching, Dataset, Order, Ranks, Sampler, State};
//!
//! let dataset = Dataset::new(Geometry::new(1_281_167, 64)?, 9_633_792, &[7; 16]);
//! let sampler = Sampler::new(Order::Window { chunks: None }).seed(42);
//! let schedule = sampler.schedule(dataset, Ranks::new(3, 8)?, Batching::per_rank(32))?;
//! let plan = schedule.epoch(0)?;
//! assert_eq!(plan.batch(0).count(), 32);
//! let saved = plan.state(100).to_json();
//!
//! // Later, on two ranks: the same global batches from step 100 on.
//! let state = State::from_json(&saved)?;
//! let schedule = sampler.resume(dataset, Ranks::new(0, 2)?, Batching::per_rank(128), &state)?;
//! let (plan, step) = schedule.at(&state)?;
//! assert_eq!((plan.epoch(), step), (0, 100));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buckets;
mod choice;
mod columns;
mod counted;
mod epoch;
mod error;
mod lanes;
mod line;
mod mixture;
mod order;
mod quality;
mod report;
mod rng;
mod route;
mod sampler;
mod state;
mod stored;

pub use choice::Choice;
pub use error::PlanError;
pub use mixture::MixtureState;
pub use order::Order;
pub use sampler::{Last, Ranks};
pub use state::State;

// Internals for the other crates of this workspace. They may change in any version.
#[doc(hidden)]
pub use self::{
    buckets::Bucketing,
    columns::Integers,
    epoch::{Batch, ChunkUse, EpochPlan, Slot},
    mixture::{MixedSlot, Mixture, Source},
    order::OrderKind,
    quality::Verdict,
    report::{LabelReport, Notice, ShuffleReport, WindowQuality},
    rng::{Domain, below, key, random},
    sampler::{Batching, Dataset, Recipe, Sampler, Schedule},
};

pub(crate) use mixture::{SourcePlan, check_proportion};
pub(crate) use order::Shuffled;
pub(crate) use route::Route;
pub(crate) use stored::StoredRoute;
