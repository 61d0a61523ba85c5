//! What the doctor says.

use super::advice::{Advice, advice};
use super::model::{Case, Rung, Stage, Stages, Time};

/// Times below this part of a batch's do not say how much the machine's speed changed.
const COUNTS: f64 = 0.05;
/// Times that differ by more than this part of themselves do not say what binds.
const TELLS: f64 = 1.0;
/// Rates of times that differ by more than this part of themselves are rough.
const ROUGH: f64 = 0.25;

/// What binds a training, how fast it could be, and what to change.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The stage that binds.
    pub binds: Stage,
    /// Milliseconds of each stage for a batch, each alone.
    pub stages: Stages,
    /// Images a second by what is cached, from the step alone to everything from the source.
    pub ladder: Vec<Rung>,
    /// What is worth changing, from what gives most.
    pub advice: Vec<Advice>,
    /// Images a second as it is.
    pub images_per_s: f64,
    /// Images a second if nothing but the step took time.
    pub possible_images_per_s: f64,
    /// What the stages alone make one expect: how good the model is.
    pub modelled_images_per_s: f64,
    /// Milliseconds of a batch that are in no stage, beyond the spread: what stages wait for each other, and the step's own ups
    /// and downs. No advice counts on them.
    pub unexplained_ms: f64,
    /// The largest spread of the times that count: half of what lies between slices of a run, as a part of the time.
    pub spread: f64,
    /// Whether a time that counts is of too few batches to say how much it differs.
    pub is_short: bool,
    /// Whether the spread is wide: what binds is said, but rates are no better than that.
    pub is_rough: bool,
    /// Whether the times are of enough batches, and agree well enough, to say what binds.
    pub is_certain: bool,
    /// All that was measured.
    pub case: Case,
    /// A prediction that was tried.
    pub checked: Option<Checked>,
}

/// A piece of advice that was followed, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// What was changed.
    pub change: &'static str,
    /// Images a second as predicted.
    pub predicted: f64,
    /// Images a second as measured.
    pub measured: f64,
}

/// From what was measured to what it means.
#[must_use]
pub fn diagnose(mut case: Case) -> Report {
    if let Some(trained) = case.trained {
        // A step cannot take longer than training with it: what looks so is chance.
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
        unexplained_ms: if unexplained > now * spread {
            unexplained
        } else {
            0.0
        },
        spread,
        is_short,
        is_rough: spread > ROUGH,
        is_certain,
        case,
        checked: None,
    }
}

/// The times that say something about a batch's.
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
