//! The doctor's report.

use crate::advice::{Advice, advice};
use crate::model::{Case, Rung, Stage, Stages, Time};

/// Times below this fraction of a batch's time are ignored for the spread.
const COUNTS: f64 = 0.05;
/// Above this relative spread, the bottleneck is uncertain.
const TELLS: f64 = 1.0;
/// Above this relative spread, rates are rough.
const ROUGH: f64 = 0.25;

/// The bottleneck of a training run, how fast training could be, and what to change.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The bottleneck.
    pub binds: Stage,
    /// Milliseconds per batch of each stage alone.
    pub stages: Stages,
    /// Images per second at each level of caching, from the step alone to nothing cached.
    pub ladder: Vec<Rung>,
    /// Useful changes, largest gain first.
    pub advice: Vec<Advice>,
    /// Current images per second.
    pub images_per_s: f64,
    /// Images per second if only the step took time.
    pub possible_images_per_s: f64,
    /// Images per second predicted from the stages alone. It shows how accurate the model is.
    pub modelled_images_per_s: f64,
    /// Milliseconds per batch that belong to no stage, beyond the spread: stages wait for each other, or the step
    /// varies. Advice does not include this time.
    pub unexplained_ms: f64,
    /// The largest spread of the relevant times. A spread is half the difference between the slowest and the fastest
    /// slice of a run, relative to the run's time per batch.
    pub spread: f64,
    /// Whether a relevant time has too few batches for a spread.
    pub is_short: bool,
    /// Whether the spread is wide. The bottleneck is still reported, but rates are rough.
    pub is_rough: bool,
    /// Whether there are enough batches, with a small enough spread, to be certain of the bottleneck.
    pub is_certain: bool,
    /// All measurements.
    pub case: Case,
    /// A prediction that was tested.
    pub checked: Option<Checked>,
}

/// Advice that was applied, with the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The change.
    pub change: &'static str,
    /// Predicted images per second.
    pub predicted: f64,
    /// Measured images per second.
    pub measured: f64,
}

/// Interprets measurements.
pub fn diagnose(mut case: Case) -> Report {
    if let Some(trained) = case.trained {
        // A step cannot take longer than training with it. Such a difference is noise.
        case.step = case.step.at_most(trained);
    }
    let stages = case.stages();
    let (now, modelled) = (case.batch_ms(), case.overlap.batch_ms(&stages));
    let counted = counted(&case);
    let spread = counted.iter().map(Time::spread).fold(0.0, f64::max);
    let is_short = counted.iter().any(|time| time.is_short);
    let is_certain = spread <= TELLS && !is_short;
    let unexplained = now - modelled;
    Report {
        binds: case.binds(),
        stages,
        ladder: case.ladder(),
        advice: advice(&case, if is_certain { spread } else { f64::INFINITY }),
        images_per_s: case.rate(now),
        possible_images_per_s: case.rate(case.step.ms),
        modelled_images_per_s: case.rate(modelled),
        unexplained_ms: if unexplained > now * spread { unexplained } else { 0.0 },
        spread,
        is_short,
        is_rough: spread > ROUGH,
        is_certain,
        case,
        checked: None,
    }
}

/// The times that account for a significant share of a batch's time.
fn counted(case: &Case) -> Vec<Time> {
    let loading = &case.loading;
    let times = [
        case.step,
        case.copy,
        case.read,
        loading.decoded,
        loading.raw,
        loading.page_cache,
        loading.source,
        case.trained.unwrap_or_default(),
    ];
    let least = case.batch_ms() * COUNTS;
    let counted = times.into_iter().filter(|time| time.ms >= least);
    counted.collect()
}
