//! The resampling of one axis as tables, for code that resamples elsewhere, such as on a GPU.

use super::taps::{PRECISION, Taps};
use crate::geometry::{Filter, Span};

/// The weights of each output position of an axis. To compute an output value, sum `weight * byte` over its run of
/// source positions, add half of `1 << AxisTaps::PRECISION`, shift right by `PRECISION` bits, and clamp to a byte.
///
/// An image is resampled along one axis, rounded to bytes, and then resampled along the other. The horizontal pass
/// comes first, unless [`rows_come_first`] returns true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisTaps {
    /// First source position of each output.
    pub start: Vec<u32>,
    /// Number of source positions of each output.
    pub len: Vec<u32>,
    /// Weights, [`stride`](Self::stride) per output, padded with zeros.
    pub weights: Vec<i32>,
    /// Number of weights stored per output: the length of the longest run.
    pub stride: usize,
}

impl AxisTaps {
    /// Fractional bits of a weight.
    pub const PRECISION: u32 = PRECISION;

    /// Computes the taps for resampling an axis from `source` to `out` positions, which are both at least 1.
    #[must_use]
    pub fn new(source: u32, out: u32, filter: Filter) -> Self {
        let narrow = |n: &usize| u32::try_from(*n).unwrap_or(u32::MAX);
        let mut taps = Taps::default();
        taps.compute(source, Span::whole(out), filter, false);
        let stride = taps.longest;
        let mut weights = Vec::with_capacity(taps.start.len() * stride);
        for index in 0..taps.start.len() {
            let own = &taps.weights[index * taps.stride..];
            match taps.stride {
                // Without resampling, each position is copied.
                0 => weights.push(1 << PRECISION),
                _ => weights.extend(&own[..stride]),
            }
        }
        Self {
            start: taps.start.iter().map(narrow).collect(),
            len: taps.len.iter().map(narrow).collect(),
            weights,
            stride,
        }
    }
}

/// Whether Pillow 13 runs the vertical pass first when it resizes `width` x `height` pixels to `to_width` x
/// `to_height`.
#[must_use]
pub fn rows_come_first(width: u32, height: u32, to_width: u32, to_height: u32) -> bool {
    let fewer_rows = i64::from(height) - i64::from(to_height);
    let fewer_columns = i64::from(width) - i64::from(to_width);
    fewer_columns != 0 && fewer_rows > 0 && fewer_rows > 2 * fewer_columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Image;
    use crate::resize::resize;

    /// Applies the taps in plain arithmetic.
    fn resampled(image: &[u8], side: u32, taps: &AxisTaps) -> Vec<u8> {
        let index = |n: u32| usize::try_from(n).unwrap();
        assert_eq!(image.len(), index(side));
        (0..taps.start.len())
            .map(|out| {
                let run = &image[index(taps.start[out])..][..index(taps.len[out])];
                let weights = &taps.weights[out * taps.stride..];
                let products = run.iter().zip(weights).map(|(byte, w)| i32::from(*byte) * w);
                let sum = products.sum::<i32>() + (1 << (AxisTaps::PRECISION - 1));
                u8::try_from((sum >> AxisTaps::PRECISION).clamp(0, 255)).unwrap()
            })
            .collect()
    }

    #[test]
    fn taps_give_the_bytes_of_a_resize() {
        for filter in Filter::ALL {
            for (side, out) in [(1, 1), (1, 7), (9, 4), (31, 31), (40, 7), (23, 60), (255, 224)] {
                let data: Vec<u8> = (0..side).map(|at| (at * 97 % 251) as u8).collect();
                let image = Image { width: side, height: 1, channels: 1, data: data.clone() };
                let wanted = resize(&image, out, 1, filter).unwrap().data;
                let taps = AxisTaps::new(side, out, filter);
                assert_eq!(resampled(&data, side, &taps), wanted, "{filter:?} {side} {out}");
            }
        }
    }
}
