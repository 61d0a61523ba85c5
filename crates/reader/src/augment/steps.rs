//! The operations on the pixels of a view after cropping: rotations, affine transforms, policies and colours. Their
//! random parameters are drawn in the order in which the operations are applied.

use packds_pixels::ops::{Adjustment, Affine, Blur, Sampling, Sharpen, autocontrast, equalize, posterize};
use packds_pixels::{PixelError, Pixels};

use super::draws::Draws;
use super::op::{Op, Size, Stage};
use super::{AugmentError, AugmentPlan, color, policy};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// The sampling and the fill value come from the plan.
    Map(Affine),
    Adjust(Adjustment),
    Blur {
        kernel: u32,
        sigma: f32,
    },
    Sharpen(f32),
    Posterize(u8),
    Autocontrast,
    Equalize,
}

/// Calls `to` with each step of a view, for the sample with the root key `root`.
pub(super) fn each_step(
    plan: &AugmentPlan,
    root: u64,
    view: u32,
    mut to: impl FnMut(Step) -> Result<(), AugmentError>,
) -> Result<(), AugmentError> {
    for (number, op) in (0..).zip(&plan.ops) {
        let draws = Draws::new(root, view, number);
        match op.stage() {
            Stage::Map => to(Step::Map(map(op, draws, plan.size())?))?,
            Stage::Policy => {
                for drawn in policy::drawn(op, draws, plan.size()) {
                    if let Some(step) = drawn.step(plan.size())? {
                        to(step)?;
                    }
                }
            }
            Stage::Color => color::steps(op, draws).into_iter().flatten().try_for_each(&mut to)?,
            Stage::Resize | Stage::Crop | Stage::Flip | Stage::Erase => {}
        }
    }
    Ok(())
}

/// The transform that a rotation or an affine op draws. For other ops it is the identity.
fn map(op: &Op, draws: Draws, size: Size) -> Result<Affine, PixelError> {
    let Size { width, height } = size;
    let both_ways = |index, most: f64| draws.uniform(index, (-most, most));
    match *op {
        Op::Affine { degrees, translate, scale, shear } => {
            let right = both_ways(1, translate.0 * f64::from(width)).round_ties_even();
            let down = both_ways(2, translate.1 * f64::from(height)).round_ties_even();
            let scale = draws.uniform(3, scale);
            let shear = (both_ways(4, shear.0), both_ways(5, shear.1));
            let turn = both_ways(0, degrees);
            Affine::new(width, height, turn, (right, down), scale, shear)
        }
        Op::Rotation(degrees) => Affine::rotation(width, height, both_ways(0, degrees)),
        _ => Affine::rotation(width, height, 0.0),
    }
}

#[derive(Debug, Default)]
pub(super) struct Tools {
    blur: Blur,
    sharpen: Sharpen,
}

impl Tools {
    /// Applies the steps of one view, alternating between two buffers. Returns the buffer with the result. If
    /// [`AugmentPlan::maps`] is false, the second buffer is not needed.
    pub(super) fn work<'a>(
        &mut self,
        plan: &AugmentPlan,
        (root, view): (u64, u32),
        mut from: &'a mut [u8],
        mut to: &'a mut [u8],
    ) -> Result<&'a mut [u8], AugmentError> {
        let Size { width, height } = plan.size();
        let channels = plan.output().channels;
        each_step(plan, root, view, |step| {
            match step {
                Step::Map(affine) => {
                    let map = Affine { sampling: plan.sampling(), fill: plan.fill, ..affine };
                    map.apply_into(pixels(from, plan.size(), channels), to)?;
                    std::mem::swap(&mut from, &mut to);
                }
                Step::Adjust(adjustment) => adjustment.apply(from, channels),
                Step::Blur { kernel, sigma } => {
                    self.blur.gaussian(from, width, height, channels, kernel, sigma)?;
                }
                Step::Sharpen(factor) => self.sharpen.adjust(from, width, height, channels, factor)?,
                Step::Posterize(bits) => posterize(from, bits),
                Step::Autocontrast => autocontrast(from, channels),
                Step::Equalize => equalize(from, channels),
            }
            Ok(())
        })?;
        Ok(from)
    }
}

/// Like [`Tools::work`], but for a mask. Only geometric transforms are applied, with nearest-neighbour sampling and 0
/// outside.
pub(super) fn map_mask<'a>(
    plan: &AugmentPlan,
    (root, view): (u64, u32),
    channels: u8,
    mut from: &'a mut [u8],
    mut to: &'a mut [u8],
) -> Result<&'a mut [u8], AugmentError> {
    each_step(plan, root, view, |step| {
        if let Step::Map(affine) = step {
            let map = Affine { sampling: Sampling::Nearest, fill: [0; 4], ..affine };
            map.apply_into(pixels(from, plan.size(), channels), to)?;
            std::mem::swap(&mut from, &mut to);
        }
        Ok(())
    })?;
    Ok(from)
}

fn pixels(data: &[u8], Size { width, height }: Size, channels: u8) -> Pixels<'_> {
    Pixels { data, width, height, channels }
}
