//! How well a run's order shuffles, and what it costs: [`ShuffleReport`].

use std::fmt;

use packds_format::LabelStats;
use packds_system::{Words, counted};

use super::buckets::Walk;
use super::epoch::EpochPlan;
use super::error::PlanError;
use super::order::{OrderKind, Shuffled};
use super::quality::{Mixing, Verdict, smallest_window};
use super::sampler::{Last, Recipe, Schedule, default_lanes, divisors};
use crate::human::bytes;

const PAD_LAST: Words = Words { command: "pad the last batch", python: "use drop_last=False" };

/// If chunks are read more often than this per epoch, there is a notice.
const MUCH_REREADING: f64 = 1.25;

/// A notice about a run's order.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The order `Auto` chose `Random`.
    AutoRandom {
        /// Size of the dataset.
        total_bytes: u64,
        /// The memory limit.
        memory_bytes: u64,
    },
    /// The default window does not fit in memory.
    WindowReduced {
        /// The chosen window.
        chunks: u32,
        /// The default window.
        from: u32,
        /// The memory limit for two windows.
        memory_bytes: u64,
    },
    /// The file is sorted by this label, and the order does not shuffle it enough.
    Sorted {
        /// The label.
        label: String,
        /// Its intra-chunk correlation.
        icc: f64,
        /// The design effect of a batch.
        deff: f64,
        /// The smallest window with a verdict of `ok`.
        window_ok: u64,
    },
    /// Chunks are read more than once per epoch, because ranks or lanes share them.
    Rereading {
        /// Mean number of reads per chunk and epoch.
        times: f64,
        /// The number of ranks.
        world: u32,
        /// The smallest window, at least the chosen one, that gives a rank its own lanes. `None` if no window does, or
        /// the order has no windows.
        window: Option<u32>,
    },
    /// The same samples are left out of every epoch.
    NeverSeen {
        /// Number of these samples.
        samples: u64,
    },
    /// All samples of a batch come from one bucket.
    Buckets {
        /// Number of buckets that have samples.
        buckets: usize,
        /// Number of samples that epoch 0 leaves out, because the last batches of their buckets are not full.
        dropped: u64,
    },
    /// There are too many different weights to represent each one exactly.
    WeightsRounded {
        /// The maximum relative error of a weight.
        by: f64,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AutoRandom { total_bytes, memory_bytes } => {
                write!(
                    f,
                    "order 'auto' is 'random' here: all samples ({}) fit in the memory limit of {}",
                    bytes(*total_bytes),
                    bytes(*memory_bytes)
                )
            }
            Self::WindowReduced { chunks, from, memory_bytes } => write!(
                f,
                "the window has {} instead of {from}: two windows must fit in the memory limit of {}",
                counted(*chunks, "chunk"),
                bytes(*memory_bytes)
            ),
            Self::Sorted { label, icc, deff, window_ok } => write!(
                f,
                "the file is sorted by `{label}` (icc {icc:.2}), and this order mixes too little (design effect \
                 {deff:.1}): use a window of {} or convert again with shuffling",
                counted(*window_ok, "chunk")
            ),
            Self::Rereading { times, world, window } => {
                if *world == 1 {
                    return write!(
                        f,
                        "each chunk is read {times:.2} times per epoch, because parallel parts of the epoch begin in the middle of chunks: a smaller window has fewer parts"
                    );
                }
                write!(f, "each chunk is read {times:.2} times per epoch, because the {world} ranks share chunks: ")?;
                match window {
                    Some(chunks) => {
                        write!(f, "with a window of {}, each rank has its own chunks", counted(*chunks, "chunk"))
                    }
                    None => f.write_str(
                        "make a rank's batch a whole number of chunks, or convert again with smaller chunks",
                    ),
                }
            }
            Self::NeverSeen { samples: 1 } => {
                write!(f, "every epoch leaves out the same sample: to include it, {PAD_LAST}",)
            }
            Self::NeverSeen { samples } => {
                write!(f, "every epoch leaves out the same {samples} samples: to include them, {PAD_LAST}")
            }
            Self::Buckets { buckets, dropped } => write!(
                f,
                "each batch has samples of one of {}: an epoch leaves out {}, because the last batches of buckets are not full",
                counted(*buckets, "bucket"),
                counted(*dropped, "sample")
            ),
            Self::WeightsRounded { by } => write!(
                f,
                "there are more than 128 different weights, so each is rounded by up to {:.1} %; the averages do not change",
                by * 100.0
            ),
        }
    }
}

/// The effect of the order on one label.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelReport {
    /// The label's name.
    pub name: String,
    /// Its intra-chunk correlation, if defined.
    pub icc: Option<f64>,
    /// The variance of a batch's statistics, relative to uniform batches.
    pub deff: f64,
    /// The verdict on this effect.
    pub verdict: Verdict,
    /// The smallest window with a verdict of `ok`.
    pub window_ok: u64,
    /// The smallest window with a verdict of `uniform-like`.
    pub window_uniform: u64,
}

/// How well an order shuffles, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct ShuffleReport {
    /// The order.
    pub order: OrderKind,
    /// Number of chunks that are shuffled together, over all ranks.
    pub window: u64,
    /// Number of parts of the epoch that are read in parallel.
    pub lanes: u32,
    /// The fraction of the epoch that is shuffled together.
    pub coverage: f64,
    /// One report per label.
    pub labels: Vec<LabelReport>,
    /// The worst verdict of all labels. `None` if there are no labels and the order is not random.
    pub verdict: Option<Verdict>,
    /// The probability that two samples of one batch share a batch again in the next epoch, relative to uniform
    /// batches.
    pub repetition: f64,
    /// Memory for two windows, over all ranks. For the random order, the size of the whole dataset.
    pub window_bytes: u64,
    /// Memory for two windows on one rank.
    pub rank_window_bytes: u64,
    /// Memory for the choice of samples and the tables of a plan, per rank.
    pub table_bytes: u64,
    /// How often a chunk is read in an epoch, over all ranks. `None` for the random order.
    pub chunk_reads: Option<f64>,
    /// Number of samples that an epoch leaves out.
    pub dropped: u64,
    /// Notices for the user.
    pub notices: Vec<Notice>,
}

/// The quality of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowQuality {
    /// Number of chunks that are shuffled together.
    pub window: u32,
    /// The design effect for the given label.
    pub deff: f64,
    /// The probability that two samples of one batch share a batch again in the next epoch, relative to uniform
    /// batches.
    pub repetition: f64,
}

impl Schedule {
    /// The quality of windows of 1, 2, 4 and so on up to all chunks, with these batches, for a label with this
    /// intra-chunk correlation. It makes the plan of epoch 0.
    ///
    /// # Errors
    /// As for [`epoch`](Self::epoch).
    pub fn by_window(&self, icc: f64) -> Result<Vec<WindowQuality>, PlanError> {
        let samples = self.epoch(0)?.len();
        let geometry = self.dataset.geometry();
        let most = u32::try_from(geometry.n_chunks()).unwrap_or(u32::MAX);
        let doubling = (0..u32::BITS).map(|power| 1 << power);
        let windows = doubling.take_while(|window| *window < most).chain([most]);
        let quality = |window| {
            let recipe = Recipe::of_window(&geometry, window, self.batch);
            let mixing = Mixing::new(&geometry, samples, &recipe, self.batch);
            WindowQuality { window, deff: mixing.deff(icc), repetition: mixing.repetition() }
        };
        Ok(windows.map(quality).collect())
    }

    /// The quality of this order for labels with these names and intra-chunk correlations. It makes the plan of epoch
    /// 0.
    ///
    /// # Errors
    /// As for [`epoch`](Self::epoch).
    pub fn shuffle_report(&self, labels: &[(&str, Option<f64>)]) -> Result<ShuffleReport, PlanError> {
        let plan = self.epoch(0)?;
        let geometry = self.dataset.geometry();
        let mixing = Mixing::new(&geometry, plan.len(), &self.recipe, self.batch);
        let labels: Vec<LabelReport> = labels
            .iter()
            .map(|&(name, icc)| {
                let rho = icc.unwrap_or(0.0);
                let smallest =
                    |verdict: Verdict| smallest_window(&geometry, plan.len(), self.batch, rho, verdict.limit());
                let deff = mixing.deff(rho);
                LabelReport {
                    name: name.to_owned(),
                    icc,
                    deff,
                    verdict: Verdict::of(deff),
                    window_ok: smallest(Verdict::Ok),
                    window_uniform: smallest(Verdict::UniformLike),
                }
            })
            .collect();
        let random = self.recipe.order == OrderKind::Random;
        let verdict = labels.iter().map(|label| label.verdict).max();
        let window = self.chunks_mixed();
        let window_bytes = self.window_bytes(window);
        let choice_bytes = self.choice.as_ref().map_or(0, |choice| choice.memory_bytes());
        let mut report = ShuffleReport {
            order: self.recipe.order,
            window,
            lanes: self.recipe.lanes,
            coverage: window as f64 / geometry.n_chunks() as f64,
            labels,
            verdict: verdict.or(random.then_some(Verdict::UniformLike)),
            repetition: mixing.repetition(),
            window_bytes,
            rank_window_bytes: self.rank_share(window_bytes),
            table_bytes: choice_bytes + plan.memory_bytes(),
            chunk_reads: self.chunk_reads(&mixing),
            dropped: plan.dropped(),
            notices: self.notices.clone(),
        };
        self.add_notices(&mut report, &plan);
        Ok(report)
    }

    fn add_notices(&self, report: &mut ShuffleReport, plan: &EpochPlan) {
        let sorted = report.labels.iter().filter_map(|label| {
            let icc = label.icc.filter(|&icc| icc > LabelStats::SHUFFLED_ICC)?;
            (label.deff > Verdict::Ok.limit()).then(|| Notice::Sorted {
                label: label.name.clone(),
                icc,
                deff: label.deff,
                window_ok: label.window_ok,
            })
        });
        report.notices.extend(sorted);
        if let Some(times) = report.chunk_reads.filter(|&times| times > MUCH_REREADING) {
            report.notices.push(Notice::Rereading { times, world: self.ranks.world(), window: self.unshared_window() });
        }
        if let Some(walk) = plan.walk() {
            report.notices.push(Notice::Buckets { buckets: walk.n_used(), dropped: plan.dropped() });
        }
        let samples = self.never_seen(plan);
        if samples > 0 {
            report.notices.push(Notice::NeverSeen { samples });
        }
        if let Some(choice) = &self.choice
            && choice.rounding() > 0.0
        {
            let by = choice.rounding();
            report.notices.push(Notice::WeightsRounded { by });
        }
    }

    /// Number of chunks that are shuffled together.
    fn chunks_mixed(&self) -> u64 {
        let n_chunks = self.dataset.geometry().n_chunks();
        let lanes = u64::from(self.recipe.lanes);
        match self.recipe.order.shuffled() {
            Shuffled::Nothing => lanes.min(n_chunks),
            Shuffled::All => n_chunks,
            Shuffled::Windows => {
                let per_lane = self.recipe.window_per_lane(n_chunks);
                lanes.saturating_mul(per_lane).min(n_chunks)
            }
        }
    }

    /// The size of two windows, because the next window is read while one is used. If the whole dataset is smaller, or
    /// the order is random, the size of the dataset.
    fn window_bytes(&self, window: u64) -> u64 {
        let twice = window.saturating_mul(2).min(self.dataset.geometry().n_chunks());
        twice.saturating_mul(self.dataset.chunk_bytes())
    }

    /// One rank's part of the windows: the part in its own lanes. In random order, every rank may use all chunks.
    fn rank_share(&self, window_bytes: u64) -> u64 {
        let lanes = u64::from(self.recipe.lanes);
        let world = u64::from(self.ranks.world());
        match self.recipe.order {
            OrderKind::Random => window_bytes,
            _ => (window_bytes / lanes).saturating_mul(lanes.div_ceil(world)),
        }
    }

    /// How often a chunk is read in an epoch, over all ranks.
    fn chunk_reads(&self, mixing: &Mixing) -> Option<f64> {
        let (planned, lanes) = (u64::from(self.recipe.batch), u64::from(self.recipe.lanes));
        let (batch, world) = (u64::from(self.batch), u64::from(self.ranks.world()));
        // Number of consecutive places of a planned batch that belong to the same rank.
        let piece = if batch.is_multiple_of(planned) && planned.is_multiple_of(world) {
            planned / world
        } else if planned.is_multiple_of(batch) {
            batch / world
        } else {
            0
        };
        let run = planned / lanes;
        let group = mixing.group;
        if self.recipe.order == OrderKind::Random {
            return None;
        }
        // Each boundary between two ranks inside a lane adds a reader to the lane.
        let (borders, piece) = match piece {
            0 => ((world - 1) as f64, batch as f64),
            _ => {
                let inner = planned / piece - planned / (piece / gcd(piece, run) * run);
                (inner as f64 / lanes as f64, piece as f64)
            }
        };
        let readers = (1.0 + borders).min(world as f64);
        // The number of readers of a group is 1 plus the number of boundaries that it crosses.
        let crossed = 1.0 + (group - 1.0) * (borders + 1.0) / run as f64;
        let unmixed = self.recipe.order != OrderKind::Window && lanes == 1;
        let reads = if unmixed && (piece / group).fract() < 1e-9 {
            1.0
        } else if unmixed && (group / piece).fract() < 1e-9 {
            group / piece
        } else {
            readers.min(crossed)
        };
        let cut = (lanes - 1) as f64 / self.dataset.geometry().n_chunks() as f64;
        Some(reads + cut)
    }

    /// The smallest window at least as large as the chosen one for which the number of lanes is a multiple of the
    /// number of ranks.
    fn unshared_window(&self) -> Option<u32> {
        if self.recipe.order != OrderKind::Window {
            return None;
        }
        let world = self.ranks.world();
        let geometry = self.dataset.geometry();
        let first = self.recipe.window.max(world);
        let own = |window: &u32| default_lanes(&geometry, *window, self.batch).is_multiple_of(world);
        // The number of lanes changes only at divisors of the batch.
        std::iter::once(first)
            .chain(divisors(self.batch).filter(|&divisor| divisor > first))
            .filter(|&window| u64::from(window) <= geometry.n_chunks())
            .filter(own)
            .min()
    }

    /// Number of samples that every epoch leaves out.
    fn never_seen(&self, plan: &EpochPlan) -> u64 {
        let geometry = self.dataset.geometry();
        let dropped = plan.dropped();
        if self.last == Last::Pad {
            return 0;
        }
        match self.recipe.order {
            order if order.is_fixed() => dropped,
            _ if self.buckets.is_some() && self.choice.is_some() => 0,
            _ if self.buckets.is_some() => plan.walk().map_or(0, Walk::never_full),
            OrderKind::Chunks if self.recipe.lanes == 1 && self.choice.is_none() => {
                let per_chunk = u64::from(geometry.chunk_samples());
                let full = geometry.n_samples() / per_chunk;
                let delivered = geometry.n_samples() - dropped;
                let (short_start, short_end) = plan.short_chunk();
                // The short chunk has the same place in all epochs, but other chunks can be at any place. Therefore
                // every epoch leaves out the end of the short chunk. Every epoch leaves out the same samples of the
                // other chunks only if even the chunk that comes first is not delivered completely.
                let of_short = short_end.saturating_sub(delivered.max(short_start));
                let first = if short_start == 0 { short_end } else { 0 };
                let most = delivered.saturating_sub(first).min(per_chunk);
                of_short + full * (per_chunk - most)
            }
            _ => 0,
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

impl ShuffleReport {
    /// The report as one JSON object.
    pub fn to_json(&self) -> String {
        let Self { window, lanes, coverage, repetition, window_bytes, rank_window_bytes, table_bytes, dropped, .. } =
            self;
        let labels: Vec<String> = self.labels.iter().map(LabelReport::to_json).collect();
        let notices: Vec<String> = self.notices.iter().map(|notice| quote(&notice.to_string())).collect();
        let (order, labels, notices) = (quote(self.order.name()), labels.join(","), notices.join(","));
        let verdict = self.verdict.map_or_else(null, |verdict| quote(verdict.name()));
        let chunk_reads = self.chunk_reads.map_or_else(null, |reads| reads.to_string());
        format!(
            "{{\"order\":{order},\"window\":{window},\"lanes\":{lanes},\"coverage\":{coverage},\"labels\":[{labels}],\
             \"verdict\":{verdict},\"repetition\":{repetition},\"window_bytes\":{window_bytes},\
             \"rank_window_bytes\":{rank_window_bytes},\"table_bytes\":{table_bytes},\"chunk_reads\":{chunk_reads},\
             \"dropped\":{dropped},\"notices\":[{notices}]}}"
        )
    }
}

impl LabelReport {
    fn to_json(&self) -> String {
        let Self { deff, window_ok, window_uniform, .. } = self;
        let (name, verdict) = (quote(&self.name), quote(self.verdict.name()));
        let icc = self.icc.map_or_else(null, |icc| icc.to_string());
        format!(
            "{{\"name\":{name},\"icc\":{icc},\"deff\":{deff},\"verdict\":{verdict},\"window_ok\":{window_ok},\
             \"window_uniform\":{window_uniform}}}"
        )
    }
}

fn null() -> String {
    "null".to_owned()
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
