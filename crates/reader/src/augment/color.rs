//! Draws the random colour changes of a view, in the order in which they are applied.

use packds_pixels::ops::Adjustment;
use packds_system::to_usize;

use super::AugmentPlan;
use super::draws::Draws;
use super::op::{Op, Stage};
use super::steps::Step;

/// The per-pixel colour changes in a view of the sample with the root key `root`.
pub(super) fn color_adjustments(plan: &AugmentPlan, root: u64, view: u32) -> impl Iterator<Item = Adjustment> {
    let ops = (0..).zip(&plan.ops);
    let steps = ops.flat_map(move |(number, op)| steps(op, Draws::new(root, view, number)));
    steps.flatten().filter_map(|step| match step {
        Step::Adjust(adjustment) => Some(adjustment),
        _ => None,
    })
}

/// Maximum number of colour operations that an op applies to an image. `None` if an operation needs more than the pixel
/// itself and the mean of the image.
pub(super) fn most_adjustments(op: &Op) -> Option<usize> {
    match *op {
        Op::Jitter { brightness, contrast, saturation, hue, .. } => {
            let by = [brightness, contrast, saturation, hue];
            Some(by.iter().filter(|by| **by > 0.0).count())
        }
        Op::Grayscale(_) | Op::Solarize { .. } => Some(1),
        _ if matches!(op.stage(), Stage::Policy | Stage::Color) => None,
        _ => Some(0),
    }
}

/// Whether an op may need the mean of its image.
pub(super) fn measures(op: &Op) -> bool {
    matches!(*op, Op::Jitter { contrast, .. } if contrast > 0.0)
}

/// The colour steps of an op. Draw 0 decides whether the op is applied.
pub(super) fn steps(op: &Op, draws: Draws) -> [Option<Step>; 4] {
    let one = |step| [Some(step), None, None, None];
    match *op {
        Op::Jitter { p, .. } if draws.chance(0, p) => jitter(op, draws).map(|adjustment| adjustment.map(Step::Adjust)),
        Op::Grayscale(p) if draws.chance(0, p) => one(Step::Adjust(Adjustment::Grayscale)),
        Op::Blur { kernel, sigma, p } if draws.chance(0, p) => {
            one(Step::Blur { kernel, sigma: single(draws.uniform(1, sigma)) })
        }
        Op::Solarize { threshold, p } if draws.chance(0, p) => one(Step::Adjust(Adjustment::Solarize(threshold))),
        _ => [None; 4],
    }
}

/// The changes of a colour jitter, in random order. Draws 1 to 3 decide the order, and draws 4 to 7 decide the amounts.
fn jitter(op: &Op, draws: Draws) -> [Option<Adjustment>; 4] {
    let Op::Jitter { brightness, contrast, saturation, hue, .. } = *op else {
        return [None; 4];
    };
    let factor = |index, by: f64| single(draws.uniform(index, ((1.0 - by).max(0.0), 1.0 + by)));
    jitter_order(draws).map(|which| match which {
        0 if brightness > 0.0 => Some(Adjustment::Brightness(factor(4, brightness))),
        1 if contrast > 0.0 => Some(Adjustment::Contrast(factor(5, contrast))),
        2 if saturation > 0.0 => Some(Adjustment::Saturation(factor(6, saturation))),
        3 if hue > 0.0 => Some(Adjustment::Hue(single(draws.uniform(7, (-hue, hue))))),
        _ => None,
    })
}

/// A random order of brightness (0), contrast (1), saturation (2) and hue (3), shuffled from the last position to the
/// first.
pub(super) fn jitter_order(draws: Draws) -> [u8; 4] {
    let mut order = [0, 1, 2, 3];
    for (index, last) in [(1, 3_u32), (2, 2), (3, 1)] {
        let other = draws.below(index, last + 1);
        order.swap(to_usize(last), to_usize(other));
    }
    order
}

#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32, and draws are within its range")]
pub(super) fn single(value: f64) -> f32 {
    value as f32
}
