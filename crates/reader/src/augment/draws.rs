//! Random numbers for augmentation: pure functions of (seed, epoch, sample, view, op, draw). See
//! docs/reference/augmentation.md, "Draws".

use crate::plan::{Domain, key, random};

use super::SampleKey;

/// Replaces the view and the op in the draws for mixing a batch, because mixing does not belong to a view.
pub(super) const MIX: u32 = u32::MAX;

/// The draws of one op in one view of one sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    key: u64,
}

impl SampleKey {
    pub(super) fn root(self) -> u64 {
        key(self.seed, self.epoch, Domain::Augment, self.sample)
    }
}

impl Draws {
    /// The draws of op number `op` in view `view` of the sample with the root key `root`.
    pub(super) fn new(root: u64, view: u32, op: u32) -> Self {
        let place = (u64::from(view) << 32) | u64::from(op);
        Self { key: random(root, place) }
    }

    /// Draw `index`: 64 uniform bits.
    pub(super) fn word(self, index: u64) -> u64 {
        random(self.key, index)
    }

    /// Draw `index` as a multiple of 2^-53 in [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "an f64 holds 53 bits exactly")]
    pub(super) fn unit(self, index: u64) -> f64 {
        (self.word(index) >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Draw `index`, uniform from `low` to `high`.
    pub(super) fn uniform(self, index: u64, (low, high): (f64, f64)) -> f64 {
        low + (high - low) * self.unit(index)
    }

    /// Draw `index` from `low` to `high`, uniform in its logarithm.
    pub(super) fn log_uniform(self, index: u64, (low, high): (f64, f64)) -> f64 {
        self.uniform(index, (low.ln(), high.ln())).exp()
    }

    /// Draw `index` as a number from 0 to `n - 1`. 0 if `n` is 0.
    pub(super) fn below(self, index: u64, n: u32) -> u32 {
        let below = crate::plan::below(self.word(index), u64::from(n));
        // Cannot fail: the result is below `n`, a u32.
        u32::try_from(below).unwrap_or(0)
    }

    /// Whether draw `index` is true, with probability `p`. It is never true for `p` = 0 and always true for `p` = 1.
    pub(super) fn chance(self, index: u64, p: f64) -> bool {
        self.unit(index) < p
    }

    /// A number in [0, 1] with the distribution Beta(alpha, alpha), from draws `index` to `index + 3`.
    ///
    /// Beta(alpha + 1, alpha + 1) needs two draws, without rejection. Two powers of uniform numbers then reduce the
    /// shape of its two gamma variables to alpha.
    pub(super) fn beta(self, index: u64, alpha: f64) -> f64 {
        // The result is in (0, 1], so that its logarithm is finite.
        let above_zero = |index| 1.0 - self.unit(index);
        let radius = -(2.0 / (2.0 * alpha + 1.0) * above_zero(index).ln()).exp_m1();
        let turn = std::f64::consts::TAU * self.unit(index + 1);
        let wide = (0.5 + 0.5 * radius.sqrt() * turn.cos()).clamp(0.0, 1.0);
        let powers = (above_zero(index + 3).ln() - above_zero(index + 2).ln()) / alpha;
        // The logarithm of (1 - lambda) / lambda. If it is infinite, the result is exactly 0 or 1.
        let odds = ((1.0 - wide) / wide).ln() + powers;
        1.0 / (1.0 + odds.exp())
    }
}
