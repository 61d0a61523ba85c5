//! Images whose size depends on the sample: a random short side, with a limit for the longest side.

use std::borrow::Cow;

use packds_pixels::{DecodeOptions, PixelError, Resize};
use packds_system::to_usize;

use super::augmenter::pixel_bytes;
use super::draws::Draws;
use super::frame::pixels;
use super::op::{Op, Size};
use super::{AugmentError, AugmentPlan, Output};

/// The lengths that a side is drawn from: `low`, `low + step` and so on, up to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) low: u32,
    pub(super) high: u32,
    pub(super) step: u32,
}

impl Sides {
    fn drawn(self, draws: Draws) -> u32 {
        let n = (self.high - self.low.min(self.high)) / self.step.max(1) + 1;
        self.low + self.step * draws.below(0, n)
    }
}

/// The size of an image whose short side is resized to `short`, or less if its long side would be above `long`. This is
/// how torchvision's `RandomShortestSize` computes it.
fn resized(picture: Size, short: u32, long: Option<u32>) -> Size {
    let (width, height) = (f64::from(picture.width), f64::from(picture.height));
    let mut factor = f64::from(short) / width.min(height);
    if let Some(long) = long {
        factor = factor.min(f64::from(long) / width.max(height));
    }
    let side = |side: f64| pixels(side * factor).max(1);
    Size { width: side(width), height: side(height) }
}

impl AugmentPlan {
    /// Whether results of different images have different sizes. The width and height of the output are then 0.
    pub fn sizes_vary(&self) -> bool {
        self.output().width == 0
    }

    /// The plan for one sample, with an image of this size: the random short side is drawn.
    pub(crate) fn for_sample(&self, root: u64, picture: Size) -> Result<Cow<'_, Self>, AugmentError> {
        let drawn = (0_u32..).zip(&self.ops).find_map(|(number, op)| match *op {
            // There is one view.
            Op::ShortSide { sides, long } => Some((number, sides.drawn(Draws::new(root, 0, number)), long)),
            _ => None,
        });
        let Some((number, short, long)) = drawn else { return Ok(Cow::Borrowed(self)) };
        let Size { width, height } = resized(picture, short, long);
        let limit = DecodeOptions::default().max_pixels;
        if u64::from(width) * u64::from(height) > limit {
            return Err(PixelError::TooManyPixels { width, height, limit }.into());
        }
        let mut plan = self.clone();
        if let Some(op) = plan.ops.get_mut(to_usize(number)) {
            *op = Op::Resize(Resize::Exact { width, height });
        }
        if self.sizes_vary() {
            let values = pixel_bytes(Size { width, height }, self.output().channels)?;
            let bytes = values.checked_mul(to_usize(self.output().dtype.size()));
            let item_bytes = bytes.ok_or(PixelError::OutOfMemory { bytes: u64::MAX })?;
            plan.set_output(Output { width, height, ..self.output() }, item_bytes);
        }
        Ok(Cow::Owned(plan))
    }
}
