//! Which samples an epoch contains, and how often: subsets, weights and balanced classes. See
//! docs/reference/sampling.md, "Weights".
//!
//! A choice is made in one to three passes over a column, and takes at most 7 bits per sample. It does not depend on
//! the order.

use packds_system::{to_u64, to_usize};
use std::collections::BTreeMap;
use std::ops::Range;

use packds_format::hash_bytes;

use super::error::PlanError;
use super::rng::{Domain, key, random};

/// Maximum weight. It limits how often one sample occurs in an epoch.
const MAX_WEIGHT: f64 = 65_536.0;
/// The weight 1.0 in the palette. Weights have 32 fractional bits.
const ONE: u64 = 1 << 32;
/// Bits per code of a weighted choice. Selections need 1 bit.
const WEIGHT_BITS: u8 = 7;
/// Number of different weights that a code can represent.
const LEVELS: usize = 1 << WEIGHT_BITS;

/// How often each sample occurs in an epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    n_samples: u64,
    bits: u8,
    codes: Vec<u8>,
    palette: Vec<u64>,
    rounding: f64,
    fingerprint: u64,
}

impl Choice {
    /// Selects the given samples. Duplicates have no effect.
    ///
    /// # Errors
    /// [`PlanError::NoSuchSample`].
    pub fn samples(n_samples: u64, samples: impl IntoIterator<Item = u64>) -> Result<Self, PlanError> {
        let mut codes = Codes::new(n_samples, 1);
        for sample in samples {
            if sample >= n_samples {
                return Err(PlanError::NoSuchSample { sample, samples: n_samples });
            }
            codes.set(sample, 1);
        }
        Ok(Self::new(codes, vec![0, ONE], 0.0))
    }

    /// Selects the samples in the given ranges. Overlaps have no effect.
    ///
    /// # Errors
    /// [`PlanError::NoSuchSample`].
    pub fn ranges(n_samples: u64, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<Self, PlanError> {
        let mut codes = Codes::new(n_samples, 1);
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            if range.end > n_samples {
                return Err(PlanError::NoSuchSample { sample: range.end - 1, samples: n_samples });
            }
            range.for_each(|sample| codes.set(sample, 1));
        }
        Ok(Self::new(codes, vec![0, ONE], 0.0))
    }

    /// Selects the samples for which `selected` returns true. Calls it once per sample, in file order.
    pub fn filter(n_samples: u64, mut selected: impl FnMut(u64) -> bool) -> Self {
        let mut codes = Codes::new(n_samples, 1);
        (0..n_samples).filter(|&sample| selected(sample)).for_each(|sample| codes.set(sample, 1));
        Self::new(codes, vec![0, ONE], 0.0)
    }

    /// Makes sample `i` occur `weight(i)` times per epoch on average. The integer part is the minimum number of
    /// occurrences. The fractional part is the probability of one more occurrence. Calls `weight` once per sample. If
    /// there are over 128 different weights, calls it a second time and rounds each weight to one of 128 without
    /// changing the averages. See [`rounding`](Self::rounding).
    ///
    /// # Errors
    /// [`PlanError::Weight`].
    pub fn weighted(n_samples: u64, weight: impl Fn(u64) -> f64) -> Result<Self, PlanError> {
        let mut codes = Codes::new(n_samples, WEIGHT_BITS);
        let mut levels: BTreeMap<u64, u8> = BTreeMap::new();
        let (mut low, mut high, mut many) = (u64::MAX, 0, false);
        for sample in 0..n_samples {
            let value = fixed(sample, weight(sample))?;
            if value > 0 {
                low = low.min(value);
            }
            high = high.max(value);
            if many {
                continue;
            }
            let next = u8::try_from(levels.len()).unwrap_or(u8::MAX);
            let code = *levels.entry(value).or_insert(next);
            many = levels.len() > LEVELS;
            codes.set(sample, code.min(WEIGHT_BITS_MASK));
        }
        if !many {
            let mut palette = vec![0; levels.len()];
            for (value, code) in levels {
                if let Some(level) = palette.get_mut(usize::from(code)) {
                    *level = value;
                }
            }
            return Ok(Self::new(codes, palette, 0.0));
        }
        let (palette, rounding) = geometric_levels(low, high);
        let rounding_key = key(0, 0, Domain::Rounding, 0);
        let mut codes = Codes::new(n_samples, WEIGHT_BITS);
        for sample in 0..n_samples {
            let value = fixed(sample, weight(sample))?;
            let draw = random(rounding_key, sample);
            codes.set(sample, nearest_level(&palette, value, draw));
        }
        Ok(Self::new(codes, palette, rounding))
    }

    /// Makes all classes equally frequent on average. The epoch has as many samples as the pack. The weight of a sample
    /// is `(N / classes) / count`. Calls `label` twice per sample, or three times if classes have over 128 different
    /// sizes.
    ///
    /// # Errors
    /// [`PlanError::Weight`] if a class is so rare that its samples would occur more than 65,536 times.
    pub fn balanced(n_samples: u64, label: impl Fn(u64) -> i64) -> Result<Self, PlanError> {
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for sample in 0..n_samples {
            *counts.entry(label(sample)).or_default() += 1;
        }
        let classes = counts.len() as f64;
        Self::weighted(n_samples, |sample| {
            let count = counts.get(&label(sample)).copied().unwrap_or(1);
            n_samples as f64 / (classes * count as f64)
        })
    }

    /// Number of samples of the pack.
    pub const fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// The maximum relative error of a weight after rounding. 0 for up to 128 different weights.
    pub const fn rounding(&self) -> f64 {
        self.rounding
    }

    /// Size of the choice in memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        to_u64(self.codes.len() + self.palette.len() * 8)
    }

    /// Whether the number of occurrences of a sample can differ between epochs.
    pub fn varies(&self) -> bool {
        self.palette.iter().any(|weight| !weight.is_multiple_of(ONE))
    }

    /// A hash of the whole choice. Equal choices have equal hashes.
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Whether an epoch can contain any of these samples.
    pub(crate) fn has_some(&self, mut samples: Range<u64>) -> bool {
        samples.any(|sample| {
            let code = Codes::get(&self.codes, self.bits, sample);
            self.palette.get(usize::from(code)).is_some_and(|weight| *weight > 0)
        })
    }

    /// How often `sample` occurs in the epoch with this key.
    pub(crate) fn times(&self, sample: u64, occurrence_key: u64) -> u64 {
        let code = Codes::get(&self.codes, self.bits, sample);
        let weight = self.palette.get(usize::from(code)).copied().unwrap_or(0);
        let rest = weight & (ONE - 1);
        let more = rest != 0 && (random(occurrence_key, sample) >> 32) < rest;
        (weight >> 32) + u64::from(more)
    }

    fn new(codes: Codes, palette: Vec<u64>, rounding: f64) -> Self {
        let Codes { n_samples, bits, bytes } = codes;
        let palette_hash = palette.iter().fold(n_samples, |hash, weight| hash_bytes(hash, &weight.to_le_bytes()));
        Self { n_samples, bits, fingerprint: hash_bytes(palette_hash, &bytes), codes: bytes, palette, rounding }
    }
}

/// Codes of `bits` bits each, packed from the lowest bit upwards.
struct Codes {
    n_samples: u64,
    bits: u8,
    bytes: Vec<u8>,
}

const WEIGHT_BITS_MASK: u8 = (1 << WEIGHT_BITS) - 1;

impl Codes {
    fn new(n_samples: u64, bits: u8) -> Self {
        // There is one extra byte, because a code is read as two bytes.
        let len = (n_samples * u64::from(bits)).div_ceil(8) + 1;
        Self { n_samples, bits, bytes: vec![0; to_usize(len)] }
    }

    fn place(bits: u8, sample: u64) -> (usize, u32) {
        let bit = sample * u64::from(bits);
        let shift = u32::try_from(bit % 8).unwrap_or(0);
        (to_usize(bit / 8), shift)
    }

    fn set(&mut self, sample: u64, code: u8) {
        let (byte, shift) = Self::place(self.bits, sample);
        let word = (u16::from(code) << shift).to_le_bytes();
        for (to, from) in self.bytes.iter_mut().skip(byte).zip(word) {
            *to |= from;
        }
    }

    fn get(bytes: &[u8], bits: u8, sample: u64) -> u8 {
        let (byte, shift) = Self::place(bits, sample);
        let low = bytes.get(byte).copied().unwrap_or(0);
        let high = bytes.get(byte + 1).copied().unwrap_or(0);
        let [code, _] = (u16::from_le_bytes([low, high]) >> shift).to_le_bytes();
        code & ((1 << bits) - 1)
    }
}

/// A weight with 32 fractional bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the weight is between 0 and 2^16 (checked), so the scaled value is below 2^48"
)]
fn fixed(sample: u64, weight: f64) -> Result<u64, PlanError> {
    if (0.0..=MAX_WEIGHT).contains(&weight) {
        return Ok((weight * ONE as f64).round() as u64);
    }
    Err(PlanError::Weight { sample, weight, limit: MAX_WEIGHT })
}

/// The levels: 0, and 127 levels from `low` to `high` in a geometric sequence. Also returns their common ratio minus 1.
fn geometric_levels(low: u64, high: u64) -> (Vec<u64>, f64) {
    let steps = (LEVELS - 2) as f64;
    let factor = (high as f64 / low as f64).powf(1.0 / steps);
    let mut palette = vec![0, low];
    for level in 1..LEVELS - 2 {
        let value = low as f64 * factor.powf(level as f64) / ONE as f64;
        palette.push(fixed(0, value).unwrap_or(high).clamp(low, high));
    }
    palette.push(high);
    (palette, factor - 1.0)
}

/// The level below or above `value`. It is chosen at random so that the mean is `value`.
fn nearest_level(palette: &[u64], value: u64, draw: u64) -> u8 {
    let above = palette.partition_point(|&level| level < value);
    let up = palette.get(above).copied().unwrap_or(value);
    let below = above.saturating_sub(1);
    let down = palette.get(below).copied().unwrap_or(value);
    // A draw in 0..(up - down) is below (value - down) with exactly the probability that preserves the mean.
    let takes_upper = up <= down || super::rng::below(draw, up - down) < value - down.min(value);
    let code = if value == up || takes_upper { above } else { below };
    u8::try_from(code).unwrap_or(WEIGHT_BITS_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_codes_come_back() {
        for bits in 1..=7 {
            let mut codes = Codes::new(1000, bits);
            let value = |i: u64| u8::try_from(i * 37 % (1 << bits)).unwrap();
            (0..1000).for_each(|i| codes.set(i, value(i)));
            assert!((0..1000).all(|i| Codes::get(&codes.bytes, bits, i) == value(i)));
        }
    }

    #[test]
    fn a_choice_takes_less_than_a_byte_a_sample() {
        let n = 100_000;
        let weighted = Choice::weighted(n, |i| (i % 500) as f64 / 100.0).unwrap();
        assert!(weighted.memory_bytes() < n * 9 / 10);
        assert!(Choice::filter(n, |i| i % 3 == 0).memory_bytes() < n / 7);
    }

    #[test]
    fn many_weights_are_rounded_but_not_on_average() {
        let n = 200_000;
        let weight = |i: u64| 0.01 + (i % 1000) as f64 / 250.0;
        let choice = Choice::weighted(n, weight).unwrap();
        assert!(choice.rounding() > 0.0 && choice.rounding() < 0.06);
        let (mut expected, mut found) = (0.0, 0.0);
        for i in 0..n {
            let code = Codes::get(&choice.codes, choice.bits, i);
            let level = choice.palette[usize::from(code)] as f64 / ONE as f64;
            assert!((level / weight(i) - 1.0).abs() <= choice.rounding() + 1e-6);
            expected += weight(i);
            found += level;
        }
        assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
    }

    #[test]
    fn up_to_128_weights_are_exact() {
        let choice = Choice::weighted(1280, |i| (i % 128) as f64 / 8.0).unwrap();
        assert_eq!(choice.rounding().to_bits(), 0.0_f64.to_bits());
        assert_eq!(choice.times(80, 0), 10);
        assert!(choice.varies());
        assert!(!Choice::filter(5, |_| true).varies());
    }

    #[test]
    fn impossible_weights_and_samples_are_named() {
        for weight in [-1.0, f64::NAN, f64::INFINITY, 1e6] {
            let found = Choice::weighted(5, |i| if i == 3 { weight } else { 1.0 });
            assert!(matches!(found, Err(PlanError::Weight { sample: 3, .. })));
        }
        let missing = PlanError::NoSuchSample { sample: 5, samples: 5 };
        assert_eq!(Choice::samples(5, [1, 5]), Err(missing.clone()));
        assert_eq!(Choice::ranges(5, [0..2, 3..6]), Err(missing));
    }
}
