//! Sets rectangles of a view to fixed or random values, after its values are normalized and converted.

use packds_pixels::{FloatType, Layout};
use packds_system::to_usize;

use super::AugmentPlan;
use super::draws::Draws;
use super::frame::pixels;
use super::op::{Filling, Op, Size, Span};
use crate::device::Patch;

/// The first draw for random values.
const NORMALS: u64 = 32;

/// Erases the random rectangles of a view. Its values must already be normalized and converted.
pub(super) fn erase(plan: &AugmentPlan, root: u64, view: u32, out: &mut [u8]) {
    for (op, draws, patch) in drawn(plan, root, view) {
        match erased_to(op) {
            Some(values) => fill(plan, patch, values, out),
            None => fill_randomly(plan, patch, draws, out),
        }
    }
}

impl AugmentPlan {
    /// Whether erasing sets random values. Devices do not support this.
    pub(super) fn erases_randomly(&self) -> bool {
        let random = Filling::Random;
        let mut ops = self.ops.iter();
        ops.any(|op| matches!(op, Op::Erase { value, .. } if *value == random))
    }
}

/// The erasing ops with their draws and rectangles, in order. A rectangle is empty if nothing is erased.
pub(super) fn drawn(plan: &AugmentPlan, root: u64, view: u32) -> impl Iterator<Item = (&Op, Draws, Patch)> {
    (0..).zip(&plan.ops).filter_map(move |(number, op)| {
        let draws = Draws::new(root, view, number);
        let patch = match *op {
            Op::Erase { p, scale, ratio, .. } => erased(draws, plan.size(), p, scale, ratio).unwrap_or_default(),
            Op::Cutout(side) => cut_out(draws, plan.size(), side),
            _ => return None,
        };
        Some((op, draws, patch))
    })
}

/// The value that an erasing op sets. `None` if it is random.
pub(super) fn erased_to(op: &Op) -> Option<&[f32]> {
    match op {
        Op::Erase { value: Filling::Values(values), .. } => Some(values),
        Op::Cutout(_) => Some(&[0.0]),
        _ => None,
    }
}

/// The rectangle of torchvision's `RandomErasing.get_params`. `None` if nothing is erased. Draw 0 decides whether to
/// erase. Attempt `t` uses draws `1 + 2 t` (area) and `2 + 2 t` (ratio). Draws 21 (y) and 22 (x) decide the position.
pub(super) fn erased(draws: Draws, size: Size, p: f64, scale: Span, ratio: Span) -> Option<Patch> {
    if !draws.chance(0, p) {
        return None;
    }
    let (full_width, full_height) = (f64::from(size.width), f64::from(size.height));
    for attempt in 0..10 {
        let area = full_width * full_height * draws.uniform(1 + 2 * attempt, scale);
        let aspect = draws.log_uniform(2 + 2 * attempt, ratio);
        let height = (area * aspect).sqrt().round_ties_even();
        let width = (area / aspect).sqrt().round_ties_even();
        if height < full_height && width < full_width {
            let (width, height) = (pixels(width), pixels(height));
            let y = draws.below(21, size.height - height + 1);
            let x = draws.below(22, size.width - width + 1);
            return Some(Patch { x: (x, x + width), y: (y, y + height) });
        }
    }
    None
}

/// The square around the pixel given by draws 0 (y) and 1 (x), clipped to the image.
pub(super) fn cut_out(draws: Draws, size: Size, side: u32) -> Patch {
    let span = |index, full: u32| {
        let center = draws.below(index, full);
        let start = i64::from(center) - i64::from(side / 2);
        let end = start + i64::from(side);
        let clip = |place: i64| u32::try_from(place.clamp(0, full.into())).unwrap_or(0);
        (clip(start), clip(end))
    };
    Patch { y: span(0, size.height), x: span(1, size.width) }
}

/// Sets the values of a rectangle. `value` has one number, or one per channel.
fn fill(plan: &AugmentPlan, patch: Patch, value: &[f32], out: &mut [u8]) {
    let channels = usize::from(plan.output().channels);
    let encoded = plan.encoded(value);
    let n = plan.value_bytes();
    plan.for_each_run(patch, |run, channel| {
        let Some(run) = out.get_mut(run) else { return };
        for (place, to) in run.chunks_exact_mut(n).enumerate() {
            let channel = channel.unwrap_or(place % channels);
            if let Some(from) = encoded.get(channel) {
                to.copy_from_slice(&from[..n]);
            }
        }
    });
}

impl AugmentPlan {
    /// Size of one value of the result.
    pub(super) fn value_bytes(&self) -> usize {
        self.float.map_or(1, FloatType::n_bytes)
    }

    /// Calls `run` with the byte range of each row of a rectangle in a result. If the result has separate planes, this
    /// goes plane by plane and also passes the plane's number.
    pub(super) fn for_each_run(&self, patch: Patch, mut run: impl FnMut(std::ops::Range<usize>, Option<usize>)) {
        let channels = usize::from(self.output().channels);
        let (planes, values) = match self.output().layout {
            Layout::Hwc => (1, channels),
            Layout::Chw => (channels, 1),
        };
        let pixel = values * self.value_bytes();
        let (width, height) = (to_usize(self.size().width), to_usize(self.size().height));
        let (left, right) = (to_usize(patch.x.0), to_usize(patch.x.1));
        for plane in 0..planes {
            for row in to_usize(patch.y.0)..to_usize(patch.y.1) {
                let start = (plane * height + row) * width;
                let bytes = (start + left) * pixel..(start + right) * pixel;
                run(bytes, (planes > 1).then_some(plane));
            }
        }
    }
}

/// Sets the values of a rectangle to normally distributed numbers, drawn plane by plane and row by row.
fn fill_randomly(plan: &AugmentPlan, patch: Patch, draws: Draws, out: &mut [u8]) {
    let Some(float) = plan.float else { return };
    let side = |(first, end): (u32, u32)| u64::from(end.saturating_sub(first));
    let (width, height) = (side(patch.x), side(patch.y));
    let channels = u64::from(plan.output().channels);
    let n = float.n_bytes();
    // Adjacent values of a plane usually share a pair, so the last pair of each plane is cached.
    let mut pairs = [(u64::MAX, [0.0; 2]); 3];
    let mut row = 0;
    plan.for_each_run(patch, |run, plane| {
        let Some(run) = out.get_mut(run) else { return };
        for (place, to) in (0..).zip(run.chunks_exact_mut(n)) {
            // `row` continues from one plane to the next.
            let (channel, number) = match plane {
                Some(_) => (0, row * width + place),
                None => {
                    let channel = place % channels;
                    (channel, (channel * height + row) * width + place / channels)
                }
            };
            let Some(last) = pairs.get_mut(to_usize(channel)) else { continue };
            if last.0 != number / 2 {
                *last = (number / 2, normals(draws, number / 2));
            }
            let value = last.1[usize::from(!number.is_multiple_of(2))];
            to.copy_from_slice(&encode(Some(float), value)[..n]);
        }
        row += 1;
    });
}

/// Two normally distributed numbers from the halves of a draw, using the Box-Muller method.
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32, and no value is above 7")]
pub(super) fn normals(draws: Draws, pair: u64) -> [f32; 2] {
    let word = draws.word(NORMALS + pair);
    let part = |bits: u64, above: f64| (f64::from(bits as u32) + above) * 2.0_f64.powi(-32);
    let radius = (-2.0 * part(word >> 32, 0.5).ln()).sqrt();
    let (sin, cos) = (std::f64::consts::TAU * part(word, 0.0)).sin_cos();
    [(radius * cos) as f32, (radius * sin) as f32]
}

/// The bytes of a value in the type of the result. Smaller types use only the first bytes.
pub(super) fn encode(float: Option<FloatType>, value: f32) -> [u8; 4] {
    match float {
        // The value is an integer from 0 to 255, as checked when the plan was made.
        None => [u8::try_from(pixels(value.into())).unwrap_or(u8::MAX), 0, 0, 0],
        Some(float) => float.bits(value).to_le_bytes(),
    }
}
