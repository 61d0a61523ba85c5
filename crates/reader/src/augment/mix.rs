//! Mixing the samples of a batch: mixup and cutmix.

use packds_pixels::{FloatType, PixelError};
use packds_system::{to_u64, to_usize};

use super::draws::{Draws, MIX};
use super::frame::pixels;
use super::{AugmentError, AugmentPlan, SampleKey};
use crate::device::{Patch, Share};

/// How to mix a batch's labels. The label of sample `i` has the weight `lambda[i]`, and the label of its partner, the
/// sample at index `partner[i]` of the batch, has the weight `1 - lambda[i]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// The index of each sample's partner in the batch. The partner is the previous sample, and the first sample's
    /// partner is the last sample.
    pub partner: Vec<u32>,
    /// The weight of the sample itself, 0 to 1.
    pub lambda: Vec<f32>,
}

impl Mix {
    /// The labels of the mixed batch, `[batch, classes]` row by row. `lambda` is added for the sample's own class, and
    /// `1 - lambda` for its partner's class. If both classes are the same, the weights add up.
    ///
    /// # Errors
    /// `Label` for a label outside `0..n_classes`. `Buffer` if the number of labels or weights differs from the number
    /// of samples, or if a partner is outside the batch. `Pixels` if memory cannot be allocated.
    pub fn soft_labels<L: Copy + Into<i64>>(&self, labels: &[L], n_classes: usize) -> Result<Vec<f32>, AugmentError> {
        for (what, found) in [("labels of a batch", labels.len()), ("weights of a batch", self.lambda.len())] {
            check_count(what, self.partner.len(), found)?;
        }
        let class = |place: usize, label: i64| {
            let class = usize::try_from(label).ok();
            class.filter(|&class| class < n_classes).ok_or(AugmentError::Label { place, n_classes, found: label })
        };
        // Check this before allocating memory.
        for (place, label) in labels.iter().enumerate() {
            class(place, (*label).into())?;
        }
        let n_values = labels.len().saturating_mul(n_classes);
        let mut soft = Vec::new();
        soft.try_reserve_exact(n_values)
            .map_err(|_| PixelError::OutOfMemory { bytes: to_u64(n_values.saturating_mul(4)) })?;
        soft.resize(n_values, 0.0);
        let shares = self.partner.iter().zip(&self.lambda);
        // If there are no classes, every label has failed the check above.
        let rows = soft.chunks_exact_mut(n_classes.max(1));
        for ((place, row), (partner, lambda)) in rows.enumerate().zip(shares) {
            let partner = to_usize(*partner);
            let (Some(own), Some(other)) = (labels.get(place), labels.get(partner)) else {
                return Err(AugmentError::Buffer {
                    what: "samples of a batch that includes every partner",
                    expected: partner.saturating_add(1),
                    found: labels.len(),
                });
            };
            let shares = [(place, (*own).into(), *lambda), (partner, (*other).into(), 1.0 - *lambda)];
            for (place, label, share) in shares {
                if let Some(value) = row.get_mut(class(place, label)?) {
                    *value += share;
                }
            }
        }
        Ok(soft)
    }
}

pub(super) fn check_count(what: &'static str, expected: usize, found: usize) -> Result<(), AugmentError> {
    if expected == found {
        return Ok(());
    }
    Err(AugmentError::Buffer { what, expected, found })
}

impl AugmentPlan {
    /// Mixes a finished batch in place. Returns `None` if the plan has neither mixup nor cutmix. `batch` has the
    /// results of `keys`, one after another.
    ///
    /// Weights and rectangles depend only on the sample. Partners depend on the batch.
    ///
    /// # Errors
    /// `Buffer` if the size of the batch is not `item_bytes()` for each key.
    pub fn mix(&self, keys: &[SampleKey], batch: &mut [u8]) -> Result<Option<Mix>, AugmentError> {
        let Some(mix) = self.mixed(keys) else { return Ok(None) };
        let n_bytes = self.item_bytes();
        let expected = n_bytes.saturating_mul(keys.len());
        check_count("bytes of a batch to mix", expected, batch.len())?;
        if keys.len() < 2 {
            return Ok(Some(mix));
        }
        // Samples are mixed from last to first, so each sample's partner is still unchanged. The exception is the
        // first sample: its partner, the last sample, is mixed earlier, so a copy of the last sample is kept.
        let last = batch[expected - n_bytes..].to_vec();
        for (place, key) in keys.iter().enumerate().rev() {
            let (before, item) = batch.split_at_mut(place * n_bytes);
            let partner = match place {
                0 => &last,
                _ => &before[(place - 1) * n_bytes..],
            };
            self.combine(self.share(*key), &mut item[..n_bytes], partner);
        }
        Ok(Some(mix))
    }

    /// How to mix the labels of `keys`. `None` if images are not mixed.
    pub(crate) fn mixed(&self, keys: &[SampleKey]) -> Option<Mix> {
        if self.mixup.is_none() && self.cutmix.is_none() {
            return None;
        }
        let n = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let before = |place: u32| place.checked_sub(1).unwrap_or(n - 1);
        let lambda = |key: &SampleKey| self.lambda(self.share(*key));
        Some(Mix { partner: (0..n).map(before).collect(), lambda: keys.iter().map(lambda).collect() })
    }

    /// How a sample is mixed with its partner. Draw 0 chooses between mixup and cutmix, draws 1 to 4 give the weight,
    /// and draws 5 (y) and 6 (x) give the centre of the rectangle.
    #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
    pub(crate) fn share(&self, key: SampleKey) -> Share {
        let size = self.size();
        let draws = Draws::new(key.root(), MIX, MIX);
        let cutmix = match (self.mixup, self.cutmix) {
            (Some(alpha), Some(_)) if draws.chance(0, 0.5) => Err(alpha),
            (_, Some(alpha)) => Ok(alpha),
            (alpha, None) => Err(alpha.unwrap_or(1.0)),
        };
        match cutmix {
            Err(alpha) => Share {
                patch: Patch { x: (0, size.width), y: (0, size.height) },
                own: Some(draws.beta(1, alpha) as f32),
            },
            Ok(alpha) => {
                let half = 0.5 * (1.0 - draws.beta(1, alpha)).sqrt();
                let span = |index, side: u32| {
                    let middle = draws.below(index, side);
                    let half = pixels((half * f64::from(side)).floor());
                    (middle.saturating_sub(half), middle.saturating_add(half).min(side))
                };
                Share { patch: Patch { y: span(5, size.height), x: span(6, size.width) }, own: None }
            }
        }
    }

    /// The weight of the sample itself. For a rectangle, it is the weight after clipping at the edges.
    #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
    pub(super) fn lambda(&self, share: Share) -> f32 {
        share.own.unwrap_or_else(|| {
            let Patch { x, y } = share.patch;
            let area = f64::from(x.1 - x.0) * f64::from(y.1 - y.0);
            let size = self.size();
            (1.0 - area / (f64::from(size.width) * f64::from(size.height))) as f32
        })
    }

    fn combine(&self, share: Share, item: &mut [u8], partner: &[u8]) {
        match share.own {
            Some(own) => blend(self.float, own, item, partner),
            None => self.for_each_run(share.patch, |run, _| {
                if let (Some(to), Some(from)) = (item.get_mut(run.clone()), partner.get(run)) {
                    to.copy_from_slice(from);
                }
            }),
        }
    }
}

/// Mixes values into the first array: `lambda * own + (1 - lambda) * other`, rounded to the type. `None` means bytes.
pub fn blend(float: Option<FloatType>, lambda: f32, own: &mut [u8], other: &[u8]) {
    let mixed = |own: f32, other: f32| lambda * own + (1.0 - lambda) * other;
    match float {
        None => {
            for (own, other) in own.iter_mut().zip(other) {
                *own = byte(mixed((*own).into(), (*other).into()));
            }
        }
        Some(float) => float.combine(own, other, mixed),
    }
}

/// Rounds to the nearest byte, half up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is between two bytes, and the cast of a float saturates"
)]
fn byte(value: f32) -> u8 {
    (value + 0.5) as u8
}
