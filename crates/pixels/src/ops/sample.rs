//! Smooth interpolation as in Pillow: weighted sums of the four or sixteen pixels around a point.
//!
//! Every point is computed separately in `f64` and truncated. Each step is a loop over all pixels of a block, so that
//! the compiler vectorizes it.

use super::{fastest, whole};

/// Pixels per block.
const LANES: usize = 32;

/// The source image.
#[derive(Debug)]
pub(super) struct Picture<'a, const N: usize> {
    pub(super) pixels: &'a [[u8; N]],
    pub(super) width: usize,
    pub(super) height: usize,
}

impl<'a, const N: usize> Picture<'a, N> {
    pub(super) fn new(data: &'a [u8], width: usize, height: usize) -> Self {
        let pixels = data.as_chunks().0;
        Self { pixels, width, height }
    }

    /// The values of a pixel as a word, with the first value in the lowest byte. Unused bytes are unspecified.
    #[inline(always)]
    fn word(&self, index: usize) -> u32 {
        let bytes = &self.pixels[index..];
        if let Some(word) = bytes.as_flattened().first_chunk() {
            return u32::from_le_bytes(*word);
        }
        let mut word = [0; 4];
        for (to, value) in word.iter_mut().zip(bytes.as_flattened()) {
            *to = *value;
        }
        u32::from_le_bytes(word)
    }
}

/// The mapping and the filter of an [`Affine`](super::Affine).
#[derive(Debug)]
pub(super) struct Map<const N: usize> {
    pub(super) matrix: [f64; 6],
    pub(super) fill: [u8; N],
    /// Whether sixteen pixels are used instead of four.
    pub(super) cubic: bool,
}

pub(super) fn gray(picture: &Picture<'_, 1>, map: &Map<1>, out: &mut [[u8; 1]]) {
    fastest!(gray_blocks(picture, map, out));
}

pub(super) fn color(picture: &Picture<'_, 3>, map: &Map<3>, out: &mut [[u8; 3]]) {
    fastest!(color_blocks(picture, map, out));
}

#[inline(always)]
pub(super) fn gray_blocks(picture: &Picture<'_, 1>, map: &Map<1>, out: &mut [[u8; 1]]) {
    plain(picture, map, out);
}

#[inline(always)]
pub(super) fn color_blocks(picture: &Picture<'_, 3>, map: &Map<3>, out: &mut [[u8; 3]]) {
    plain(picture, map, out);
}

#[inline(always)]
pub(super) fn plain<const N: usize>(picture: &Picture<'_, N>, map: &Map<N>, out: &mut [[u8; N]]) {
    if map.cubic {
        draw::<N, 4, Cubic>(picture, map, out);
    } else {
        draw::<N, 2, Linear>(picture, map, out);
    }
}

/// Interpolation between `T` consecutive values.
trait Taps<const T: usize> {
    /// Number of values before the one directly to the left of the point.
    const BEFORE: f64;

    /// The value at fraction `part` between the two middle values.
    fn between(values: [f64; T], part: f64) -> f64;
}

struct Linear;
struct Cubic;

impl Taps<2> for Linear {
    const BEFORE: f64 = 0.0;

    #[inline(always)]
    fn between([a, b]: [f64; 2], part: f64) -> f64 {
        a + (b - a) * part
    }
}

impl Taps<4> for Cubic {
    const BEFORE: f64 = 1.0;

    #[inline(always)]
    fn between([a, b, c, d]: [f64; 4], part: f64) -> f64 {
        let once = c - a;
        let twice = 2.0 * (a - b) + c - d;
        let thrice = b - a - c + d;
        b + part * (once + part * (twice + part * thrice))
    }
}

#[expect(clippy::cast_precision_loss, reason = "rows are exact in f64")]
#[inline(always)]
fn draw<const N: usize, const T: usize, K: Taps<T>>(picture: &Picture<'_, N>, map: &Map<N>, out: &mut [[u8; N]]) {
    let mut points = Points::<T>::new(picture.width, picture.height);
    for (row, pixels) in out.chunks_exact_mut(picture.width).enumerate() {
        for (block, pixels) in pixels.chunks_mut(LANES).enumerate() {
            points.find::<K>(&map.matrix, block * LANES, row as f64 + 0.5);
            let values = blended::<N, T, K>(picture, &points);
            for (lane, pixel) in pixels.iter_mut().enumerate() {
                let mut value = map.fill;
                if points.inside[lane] {
                    for (value, values) in value.iter_mut().zip(&values) {
                        *value = values[lane];
                    }
                }
                *pixel = value;
            }
        }
    }
}

/// Source positions of a block's pixels.
struct Points<const T: usize> {
    width: f64,
    height: f64,
    inside: [bool; LANES],
    /// The columns around each point, from left to right, and the rows around it. They are clamped to the edge.
    columns: [[f64; LANES]; T],
    rows: [[f64; LANES]; T],
    /// The distance of each point from the first of the two middle columns, and from the first of the two middle rows.
    right: [f64; LANES],
    down: [f64; LANES],
}

impl<const T: usize> Points<T> {
    #[expect(clippy::cast_precision_loss, reason = "sides are exact in f64")]
    fn new(width: usize, height: usize) -> Self {
        Self {
            width: width as f64,
            height: height as f64,
            inside: [false; LANES],
            columns: [[0.0; LANES]; T],
            rows: [[0.0; LANES]; T],
            right: [0.0; LANES],
            down: [0.0; LANES],
        }
    }

    /// Computes the positions of the block that starts at column `first` of row `y`.
    #[expect(clippy::cast_precision_loss, reason = "columns are exact in f64")]
    #[inline(always)]
    fn find<K: Taps<T>>(&mut self, matrix: &[f64; 6], first: usize, y: f64) {
        let [a, b, c, d, e, f] = *matrix;
        let (width, height) = (self.width, self.height);
        let first = first as f64 + 0.5;
        let (mut across, mut along) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let x = first + lane as f64;
            let (x, y) = (a * x + b * y + c, d * x + e * y + f);
            self.inside[lane] = (x >= 0.0) & (y >= 0.0) & (x < width) & (y < height);
            across[lane] = (x - 0.5).floor();
            along[lane] = (y - 0.5).floor();
            self.right[lane] = x - 0.5 - across[lane];
            self.down[lane] = y - 0.5 - along[lane];
        }
        let mut by = -K::BEFORE;
        for (columns, rows) in self.columns.iter_mut().zip(&mut self.rows) {
            for lane in 0..LANES {
                columns[lane] = (across[lane] + by).max(0.0).min(width - 1.0);
                rows[lane] = (along[lane] + by).max(0.0).min(height - 1.0);
            }
            by += 1.0;
        }
    }
}

/// The values of a block's pixels, channel by channel. Outside the source they are unspecified.
#[expect(clippy::manual_clamp, reason = "clamp would let NaN pass")]
#[inline(always)]
fn blended<const N: usize, const T: usize, K: Taps<T>>(
    picture: &Picture<'_, N>,
    points: &Points<T>,
) -> [[u8; LANES]; N] {
    // For each channel, the value of each row, interpolated along the row.
    let mut of_rows = [[[0.0; LANES]; T]; N];
    for (tap, rows) in points.rows.iter().enumerate() {
        let mut words = [[0; LANES]; T];
        for (words, columns) in words.iter_mut().zip(&points.columns) {
            let mut places = [0; LANES];
            for lane in 0..LANES {
                places[lane] = whole::index(rows[lane] * points.width + columns[lane]);
            }
            for (word, place) in words.iter_mut().zip(places) {
                *word = picture.word(place);
            }
        }
        for (channel, of_rows) in of_rows.iter_mut().enumerate() {
            for lane in 0..LANES {
                let mut values = [0.0; T];
                for (value, words) in values.iter_mut().zip(&words) {
                    *value = byte(words[lane], channel);
                }
                of_rows[tap][lane] = K::between(values, points.right[lane]);
            }
        }
    }
    let mut result = [[0; LANES]; N];
    for (result, of_rows) in result.iter_mut().zip(&of_rows) {
        for lane in 0..LANES {
            let mut values = [0.0; T];
            for (value, of_row) in values.iter_mut().zip(of_rows) {
                *value = of_row[lane];
            }
            let value = K::between(values, points.down[lane]);
            result[lane] = whole::cut(value.max(0.0).min(255.0));
        }
    }
    result
}

#[inline(always)]
fn byte(word: u32, channel: usize) -> f64 {
    f64::from(((word >> (8 * channel)) & 255).cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map<const N: usize>(matrix: [f64; 6], cubic: bool) -> Map<N> {
        Map { matrix, fill: [7; N], cubic }
    }

    proptest! {
        #[test]
        fn vector_loops_equal_the_plain_ones(
            (width, height) in (1_usize..70, 1_usize..9),
            matrix in prop::array::uniform6(-2.0_f64..2.0),
            moved in -40.0_f64..40.0,
            cubic in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let [a, b, _, d, e, _] = matrix;
            let matrix = [a, b, moved, d, e, moved / 4.0];
            let data: Vec<u8> = (0..(width * height * 3) as u64)
                .map(|index| ((index ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).to_le_bytes()[0])
                .collect();
            let picture = Picture::<3>::new(&data, width, height);
            let (mut fast, mut slow) = (vec![[1; 3]; width * height], vec![[2; 3]; width * height]);
            color(&picture, &map(matrix, cubic), &mut fast);
            plain(&picture, &map(matrix, cubic), &mut slow);
            prop_assert_eq!(fast, slow);
            let data = &data[..width * height];
            let picture = Picture::<1>::new(data, width, height);
            let (mut fast, mut slow) = (vec![[1]; width * height], vec![[2]; width * height]);
            gray(&picture, &map(matrix, cubic), &mut fast);
            plain(&picture, &map(matrix, cubic), &mut slow);
            prop_assert_eq!(fast, slow);
        }
    }
}
