//! The taps of one axis as byte tables, for the gathers and products of `avx512`.

use std::ops::Range;

use super::taps::Taps;

/// Output bytes per step.
pub(super) const LANES: usize = 16;
/// Number of source bytes that a step can gather from.
pub(super) const REACH: usize = 64;
/// Taps per output byte in a step.
const TAPS: usize = 4;
/// Number of runs of 16 output bytes in a block of 64. Blocks are always complete.
const QUARTERS: usize = 4;

/// Four taps for each of 16 output bytes: their positions relative to `base`, and the signed digits of their weights,
/// `(high * 256 + middle) * 256 + low`.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Step {
    pub(super) from: [u8; REACH],
    pub(super) high: [u8; REACH],
    pub(super) middle: [u8; REACH],
    pub(super) low: [u8; REACH],
    pub(super) base: usize,
}

/// The steps for all bytes of an output row.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Each 16 output bytes need `n_groups` steps. The output is rounded up to blocks of 64 bytes.
    pub(super) steps: Vec<Step>,
    pub(super) n_groups: usize,
    /// Minimum length of a row in bytes. No step reads beyond it.
    pub(super) reach: usize,
    /// The channels and columns that the table was computed for.
    key: Option<(usize, Range<usize>)>,
}

impl Lanes {
    /// Drops the table, because its taps have changed.
    pub(super) fn clear(&mut self) {
        self.key = None;
        self.steps.clear();
    }

    /// Computes the table for rows with these `columns`.
    pub(super) fn compute(&mut self, taps: &Taps, channels: usize, columns: Range<usize>) {
        let key = (channels, columns);
        if self.key.as_ref() == Some(&key) {
            return;
        }
        let columns = key.1.clone();
        self.key = Some(key);
        let row_bytes = columns.len() * channels;
        self.reach = row_bytes.max(REACH);
        self.n_groups = taps.longest.div_ceil(TAPS).max(1);
        self.steps.clear();
        let n_bytes = taps.start.len() * channels;
        let n_lanes = n_bytes.next_multiple_of(LANES * QUARTERS);
        for first in (0..n_lanes).step_by(LANES) {
            for group in 0..self.n_groups {
                let outputs = first.min(n_bytes)..(first + LANES).min(n_bytes);
                let Some(step) = self.step(taps, channels, columns.start, outputs, group) else {
                    self.steps.clear();
                    return;
                };
                self.steps.push(step);
            }
        }
    }

    /// A single step. `None` if its taps are too far apart, or if a weight needs more than three digits.
    fn step(&self, taps: &Taps, channels: usize, offset: usize, outputs: Range<usize>, group: usize) -> Option<Step> {
        let at = |output: usize| {
            let pixel = output / channels;
            let first = (taps.start[pixel] - offset) * channels + output % channels;
            let n_taps = taps.len[pixel].saturating_sub(group * TAPS).min(TAPS);
            (pixel, first + group * TAPS * channels, n_taps)
        };
        let used = outputs.clone().map(at).filter(|&(_, _, n_taps)| n_taps > 0);
        let base = used.map(|(_, first, _)| first).min().unwrap_or(0);
        let base = base.min(self.reach - REACH);
        let mut step = Step { from: [0; REACH], high: [0; REACH], middle: [0; REACH], low: [0; REACH], base };
        for (lane, (pixel, first, n_taps)) in outputs.map(at).enumerate() {
            let weights = &taps.weights[pixel * taps.stride + group * TAPS..];
            for (tap, &weight) in weights.iter().take(n_taps).enumerate() {
                let place = lane * TAPS + tap;
                let from = first + tap * channels - base;
                step.from[place] = u8::try_from(from).ok().filter(|&from| from < 64)?;
                let [low, middle, high] = digits(weight)?;
                step.low[place] = low;
                step.middle[place] = middle;
                step.high[place] = high;
            }
        }
        Some(step)
    }

    /// Whether the taps fit in a table. If not, another kernel is used.
    pub(super) fn is_usable(&self) -> bool {
        !self.steps.is_empty()
    }
}

/// A weight as digits from -128 to 127, stored as bytes. The lowest digit comes first.
fn digits(weight: i32) -> Option<[u8; 3]> {
    let [low, ..] = weight.to_le_bytes();
    let rest = (weight - i32::from(low.cast_signed())) >> 8;
    let [middle, ..] = rest.to_le_bytes();
    let rest = (rest - i32::from(middle.cast_signed())) >> 8;
    let high = i8::try_from(rest).ok()?;
    Some([low, middle, high.cast_unsigned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_up_the_weight() {
        for weight in [0, 1, -1, 127, 128, -129, 32_768, -32_769, 4_194_304, -800_000, 8_000_000] {
            let [low, middle, high] = digits(weight).unwrap().map(|byte| i32::from(byte as i8));
            assert_eq!((high * 256 + middle) * 256 + low, weight);
        }
        assert_eq!(digits(1 << 24), None);
    }
}
