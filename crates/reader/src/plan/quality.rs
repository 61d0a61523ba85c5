//! How well an order shuffles, computed from a few numbers. See docs/reference/sampling.md, "Quality".

use packds_format::Geometry;

use super::order::{OrderKind, Shuffled};
use super::sampler::Recipe;

/// A verdict on how much batches differ from uniform batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The design effect is at most 1.05: as good as a full shuffle.
    UniformLike,
    /// The design effect is at most 1.5.
    Ok,
    /// The design effect is at most 3. Training loses some accuracy.
    Weak,
    /// The design effect is over 3. Training loses much accuracy or learns nothing.
    Harmful,
}

impl Verdict {
    /// The verdict for a design effect.
    pub fn of(deff: f64) -> Self {
        Self::ALL.into_iter().find(|verdict| deff <= verdict.limit()).unwrap_or(Self::Harmful)
    }

    /// The largest design effect that gets this verdict.
    pub const fn limit(self) -> f64 {
        match self {
            Self::UniformLike => 1.05,
            Self::Ok => 1.5,
            Self::Weak => 3.0,
            Self::Harmful => f64::INFINITY,
        }
    }
}

// These names are used in reports.
packds_system::named!(Verdict { UniformLike = "uniform-like", Ok = "ok", Weak = "weak", Harmful = "harmful" });

/// The numbers that determine the quality of an order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mixing {
    order: OrderKind,
    samples: f64,
    /// Mean number of a chunk's samples that are in the epoch.
    per_chunk: f64,
    /// The delivered batch size.
    batch: f64,
    /// Number of consecutive samples of one lane in a batch.
    pub(crate) run: f64,
    /// Number of samples that are mixed together in one lane.
    pub(crate) group: f64,
    /// The fraction of the epoch where runs start at group boundaries.
    aligned: f64,
}

impl Mixing {
    /// `samples` is the number of samples in the epoch, and `batch` is the delivered batch size.
    pub(crate) fn new(geometry: &Geometry, samples: u64, recipe: &Recipe, batch: u32) -> Self {
        let samples = samples as f64;
        let n_chunks = geometry.n_chunks();
        let share = samples / geometry.n_samples() as f64;
        let per_chunk = (f64::from(geometry.chunk_samples()) * share).min(samples);
        let lanes = f64::from(recipe.lanes);
        let planned = f64::from(recipe.batch);
        let run = (planned / lanes).min(f64::from(batch));
        let lane = samples / lanes;
        let group = match recipe.order.shuffled() {
            Shuffled::Nothing => per_chunk,
            Shuffled::All => samples,
            Shuffled::Windows => {
                // With several lanes, each lane starts and ends in the middle of chunks.
                let cut = if recipe.lanes > 1 { 1.0 } else { 0.0 };
                let slots = n_chunks as f64 / lanes + cut;
                let groups = (slots / recipe.window_per_lane(n_chunks) as f64).ceil();
                (lane / groups.max(1.0)).max(per_chunk.min(lane))
            }
        };
        let run = run * (f64::from(batch) / planned).max(1.0);
        let fits = (group / run).fract() < 1e-9 || (run / group).fract() < 1e-9;
        let aligned = if fits { starts_aligned(geometry, samples, recipe) } else { 0.0 };
        Self { order: recipe.order, samples, per_chunk, batch: f64::from(batch), run, group, aligned }
    }

    /// Expected number of other samples from the same chunk in a uniform batch.
    fn uniform_mates(&self) -> f64 {
        (self.batch - 1.0) * self.chunk_pairs()
    }

    /// The fraction of all pairs whose two samples come from the same chunk.
    fn chunk_pairs(&self) -> f64 {
        ratio(self.per_chunk - 1.0, self.samples - 1.0)
    }

    /// Mean number of other samples from the same chunk in a batch.
    fn chunk_mates(&self) -> f64 {
        match self.order.shuffled() {
            Shuffled::All => self.uniform_mates(),
            // Worst case: consecutive chunks of a sorted file are as similar as the samples of one chunk.
            _ if self.order.is_fixed() => self.batch - 1.0,
            Shuffled::Nothing | Shuffled::Windows => {
                let others = ratio(self.per_chunk - 1.0, self.group - 1.0);
                (self.group_mates() * others).max(0.0)
            }
        }
    }

    /// Mean number of other samples in a run that come from the same group as a given sample.
    fn group_mates(&self) -> f64 {
        let (run, group) = (self.run, self.group);
        let most = run.min(group) - 1.0;
        // If groups can start anywhere, two places of a run at distance d are in the same group with probability 1 - d
        // / group. The mean is twice the sum of (run - d) (group - d) over all d, divided by run and group.
        let first = most * (most + 1.0) / 2.0;
        let second = first * (2.0 * most + 1.0) / 3.0;
        let anywhere = 2.0 * (most * run * group - (run + group) * first + second) / (run * group);
        (self.aligned * most + (1.0 - self.aligned) * anywhere).max(0.0)
    }

    /// The design effect for a property with intra-chunk correlation `icc`.
    pub(crate) fn deff(&self, icc: f64) -> f64 {
        let excess = self.chunk_mates() - self.uniform_mates();
        1.0 + icc * ratio(excess, 1.0 - self.chunk_pairs())
    }

    /// The probability that two samples of one batch share a batch again in the next epoch, relative to uniform
    /// batches.
    pub(crate) fn repetition(&self) -> f64 {
        let uniform = ratio(self.batch - 1.0, self.samples - 1.0);
        if uniform <= 0.0 {
            return 1.0;
        }
        let again = match self.order.shuffled() {
            Shuffled::All => return 1.0,
            _ if self.order.is_fixed() => return 1.0 / uniform,
            Shuffled::Nothing => 1.0,
            Shuffled::Windows => ratio(self.group_mates(), self.group - 1.0),
        };
        let of_chunk = ratio(self.chunk_mates(), self.batch - 1.0);
        let pairs = self.chunk_pairs();
        // The mean over all pairs is the uniform rate. So if pairs from one chunk share a batch more often, other pairs
        // do so less often.
        let others = ratio(uniform - pairs * again, 1.0 - pairs).max(0.0);
        (of_chunk * again + (1.0 - of_chunk) * others) / uniform
    }
}

/// The fraction of the epoch where chunks start at multiples of the chunk size, counted from the start of a lane.
fn starts_aligned(geometry: &Geometry, samples: f64, recipe: &Recipe) -> f64 {
    let n = geometry.n_samples();
    let per_chunk = u64::from(geometry.chunk_samples());
    let whole = (samples - n as f64).abs() < 0.5;
    let lanes = u64::from(recipe.lanes);
    let even = n.is_multiple_of(lanes * per_chunk) && n.is_multiple_of(u64::from(recipe.batch));
    match recipe.order {
        _ if !whole => 0.0,
        // The short chunk can be at any place, so on average half of the line is after it.
        OrderKind::Window if lanes == 1 && !n.is_multiple_of(per_chunk) => 0.5,
        _ if lanes == 1 || even => 1.0,
        _ => 0.0,
    }
}

/// `part / whole`, or 0 if `whole` is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The smallest window with a design effect of at most `target`. The result is at most 0.5% too large.
pub(crate) fn smallest_window(geometry: &Geometry, samples: u64, batch: u32, icc: f64, target: f64) -> u64 {
    let n_chunks = geometry.n_chunks().max(1);
    let most = u32::try_from(n_chunks).unwrap_or(u32::MAX);
    let mut window = 1;
    while window < most {
        let recipe = Recipe::of_window(geometry, window, batch);
        if Mixing::new(geometry, samples, &recipe, batch).deff(icc) <= target {
            return u64::from(window);
        }
        window = window.saturating_add((window / 256).max(1));
    }
    n_chunks
}
