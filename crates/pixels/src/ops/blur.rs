//! Gaussian blur, like torchvision's `gaussian_blur` on a Pillow image.
//!
//! torchvision applies a square kernel of `f32` weights, which is the product of a column and a row. Here columns are
//! summed first, then rows. The sums are rounded differently in their last bits. This can change a value by one level
//! if it is close to the middle between two levels.

use super::{fastest, whole};
use crate::decode::{byte_count, usize_of};
use crate::error::PixelError;

/// Number of values that are summed together.
const LANES: usize = 32;
/// Maximum kernel size, in pixels.
const MAX_KERNEL: u32 = 4095;

/// Blurs images, reusing its memory.
#[derive(Debug, Default)]
pub struct Blur {
    kernel: Kernel,
    /// The image before the blur.
    source: Vec<u8>,
    /// A row of column sums, with padding on both sides.
    sums: Vec<f32>,
}

/// The weights from the middle outwards. Both sides have the same weights.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    size: u32,
    sigma: f32,
    /// The weights. The one in the middle is halved, because every sum adds both sides.
    weights: Vec<f32>,
}

/// The inputs and the scratch row of [`convolve`], except the kernel.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    source: &'a [u8],
    sums: &'a mut [f32],
    stride: usize,
    channels: usize,
}

impl Blur {
    /// A blur that has not allocated memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Blurs an image in place, with a Gaussian of `sigma` pixels in a square with sides of `kernel` pixels.
    ///
    /// Edges are mirrored without repeating the edge pixels. Values differ from torchvision's by at most one level.
    ///
    /// # Errors
    /// `InvalidArgument` if the kernel is even, is larger than 4095 pixels, or extends beyond the mirrored image
    /// (half of it must be less than both sides), or if sigma is not finite and positive. `WrongBuffer` if the pixels
    /// do not match the size.
    pub fn gaussian(
        &mut self,
        pixels: &mut [u8],
        width: u32,
        height: u32,
        channels: u8,
        kernel: u32,
        sigma: f32,
    ) -> Result<(), PixelError> {
        let expected = byte_count(width, height, usize::from(channels))?;
        PixelError::check_len(pixels.len(), expected)?;
        if kernel.is_multiple_of(2) || kernel > MAX_KERNEL || kernel / 2 >= width.min(height) {
            return Err(PixelError::argument(
                "blur kernel",
                "an odd number of pixels, at most 4095, whose half is less than the shorter side",
                format!("{kernel} for {width}x{height}"),
            ));
        }
        if !(sigma.is_finite() && sigma > 0.0) {
            return Err(PixelError::argument("blur sigma", "above 0", sigma));
        }
        if expected == 0 {
            return Ok(());
        }
        self.kernel.set(kernel, sigma);
        self.source.clear();
        self.source.extend_from_slice(pixels);
        let channels = usize::from(channels);
        let stride = usize_of(width) * channels;
        let padding = usize_of(kernel / 2) * channels;
        self.sums.clear();
        self.sums.resize(stride + 2 * padding, 0.0);
        let rows = Rows { source: &self.source, sums: &mut self.sums, stride, channels };
        let kernel = &self.kernel;
        fastest!(convolve(rows, kernel, pixels));
        Ok(())
    }
}

impl Kernel {
    /// The weights `exp(-0.5 (x / sigma)^2)`, divided by their sum.
    #[expect(clippy::cast_precision_loss, reason = "integers up to 2047 are exact in f32")]
    fn set(&mut self, size: u32, sigma: f32) {
        if self.size == size && self.sigma.to_bits() == sigma.to_bits() {
            return;
        }
        (self.size, self.sigma) = (size, sigma);
        let half = size / 2;
        let density = |x: u32| (-0.5 * (x as f32 / sigma).powi(2)).exp();
        self.weights.clear();
        self.weights.extend((0..=half).map(density));
        let sum = 2.0 * self.weights.iter().sum::<f32>() - self.weights[0];
        for weight in &mut self.weights {
            *weight /= sum;
        }
        self.weights[0] *= 0.5;
    }
}

#[inline(always)]
pub(super) fn convolve(rows: Rows<'_>, kernel: &Kernel, out: &mut [u8]) {
    let weights = kernel.weights.as_slice();
    let padding = weights.len().saturating_sub(1) * rows.channels;
    for (y, row) in out.chunks_exact_mut(rows.stride).enumerate() {
        let columns = &mut rows.sums[padding..padding + rows.stride];
        sum_columns(rows.source, rows.stride, y, weights, columns);
        pad(rows.sums, padding, rows.channels);
        sum_row(rows.sums, rows.channels, weights, row);
    }
}

/// Computes the weighted sum around row `y` for each value of the row.
#[inline(always)]
fn sum_columns(source: &[u8], stride: usize, y: usize, weights: &[f32], out: &mut [f32]) {
    let (blocks, rest) = out.as_chunks_mut::<LANES>();
    let behind = blocks.len() * LANES;
    for (index, block) in blocks.iter_mut().enumerate() {
        *block = columns_around(source, stride, y, index * LANES, weights);
    }
    for (index, sum) in rest.iter_mut().enumerate() {
        [*sum] = columns_around(source, stride, y, behind + index, weights);
    }
}

/// The weighted sums around row `y` for `N` values, starting at `x`.
#[inline(always)]
fn columns_around<const N: usize>(source: &[u8], stride: usize, y: usize, x: usize, weights: &[f32]) -> [f32; N] {
    let n_rows = source.len() / stride;
    let part = |row: usize| source[row * stride + x..].first_chunk::<N>();
    let mut sums = [0.0; N];
    for (distance, weight) in weights.iter().enumerate() {
        let below = y + distance;
        // Rows are mirrored at the first and the last row.
        let (Some(above), Some(below)) =
            (part(y.abs_diff(distance)), part(below.min((2 * (n_rows - 1)).saturating_sub(below))))
        else {
            break;
        };
        for ((sum, above), below) in sums.iter_mut().zip(above).zip(below) {
            let both = u16::from(*above) + u16::from(*below);
            *sum += weight * f32::from(both);
        }
    }
    sums
}

/// Fills the padding of a row by mirroring it at its first and last pixel.
#[inline(always)]
fn pad(row: &mut [f32], padding: usize, channels: usize) {
    let last = row.len() - padding - channels;
    for distance in (channels..=padding).step_by(channels) {
        row.copy_within(padding + distance..padding + distance + channels, padding - distance);
        row.copy_within(last - distance..last - distance + channels, last + distance);
    }
}

/// Writes the rounded weighted sum around each value of a padded row.
#[inline(always)]
fn sum_row(row: &[f32], channels: usize, weights: &[f32], out: &mut [u8]) {
    let (blocks, rest) = out.as_chunks_mut::<LANES>();
    let behind = blocks.len() * LANES;
    for (index, block) in blocks.iter_mut().enumerate() {
        let values = values_around::<LANES>(row, channels, index * LANES, weights);
        // Do not use `map` on arrays here, because it may be compiled outside the AVX2 function.
        for (to, value) in block.iter_mut().zip(values) {
            *to = whole::nearest(value);
        }
    }
    for (index, value) in rest.iter_mut().enumerate() {
        *value = whole::nearest(values_around::<1>(row, channels, behind + index, weights)[0]);
    }
}

/// The weighted sums around `N` values of a padded row, starting at value `x` of the row without its padding.
#[inline(always)]
fn values_around<const N: usize>(row: &[f32], channels: usize, x: usize, weights: &[f32]) -> [f32; N] {
    let middle = x + weights.len().saturating_sub(1) * channels;
    let mut sums = [0.0; N];
    for (distance, weight) in weights.iter().enumerate() {
        let (Some(left), Some(right)) = (
            row[middle - distance * channels..].first_chunk::<N>(),
            row[middle + distance * channels..].first_chunk::<N>(),
        ) else {
            break;
        };
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += weight * (left + right);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The square kernel in `f64`, before rounding.
    fn exact(pixels: &[u8], width: usize, channels: usize, kernel: usize, sigma: f64) -> Vec<f64> {
        let half = kernel / 2;
        let weights: Vec<f64> =
            (0..kernel).map(|x| (-0.5 * ((x as f64 - half as f64) / sigma).powi(2)).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let height = pixels.len() / width / channels;
        let mirror = |at: usize, tap: usize, len: usize| {
            let place = (at + tap).abs_diff(half);
            place.min((2 * (len - 1)).abs_diff(place))
        };
        let value = |index: usize| {
            let (y, x, c) = (index / channels / width, index / channels % width, index % channels);
            let mut total = 0.0;
            for (j, vertical) in weights.iter().enumerate() {
                for (i, horizontal) in weights.iter().enumerate() {
                    let place = mirror(y, j, height) * width + mirror(x, i, width);
                    let weight = vertical * horizontal / sum / sum;
                    total += weight * f64::from(pixels[place * channels + c]);
                }
            }
            total
        };
        (0..pixels.len()).map(value).collect()
    }

    #[test]
    fn a_point_spreads_as_its_kernel() {
        let mut pixels = [0; 25];
        pixels[12] = 255;
        Blur::new().gaussian(&mut pixels, 5, 5, 1, 3, 0.8).unwrap();
        // The weights are exp(-0.5 / 0.64) : 1 : exp(-0.5 / 0.64), divided by their sum 1.9156.
        assert_eq!(pixels[11..14], [32, 69, 32]);
        assert_eq!(pixels[6..9], [15, 32, 15]);
        assert_eq!(pixels[..6], [0; 6]);
    }

    #[test]
    fn arguments_out_of_range_are_errors() {
        let mut blur = Blur::new();
        let mut pixels = [0; 5 * 3];
        let mut fails = |kernel, sigma, expected: &str| {
            let error = blur.gaussian(&mut pixels, 5, 3, 1, kernel, sigma).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        };
        fails(4, 1.0, "invalid blur kernel");
        fails(0, 1.0, "invalid blur kernel");
        fails(7, 1.0, "found \"7 for 5x3\"");
        fails(u32::MAX, 1.0, "invalid blur kernel");
        fails(3, 0.0, "invalid blur sigma");
        fails(3, f32::NAN, "invalid blur sigma");
        fails(3, f32::INFINITY, "invalid blur sigma");
        let wrong = blur.gaussian(&mut [0; 14], 5, 3, 1, 3, 1.0).unwrap_err();
        assert!(matches!(wrong, PixelError::WrongBuffer { expected: 15, found: 14 }));
        assert!(blur.gaussian(&mut [], 0, 3, 1, 1, 1.0).is_err());
        assert!(blur.gaussian(&mut [], 3, 3, 0, 3, 1.0).is_ok());
    }

    #[test]
    fn a_tiny_sigma_changes_nothing() {
        let mut pixels = [1, 200, 3, 4, 5, 60, 7, 8, 9];
        Blur::new().gaussian(&mut pixels, 3, 3, 1, 3, f32::MIN_POSITIVE).unwrap();
        assert_eq!(pixels, [1, 200, 3, 4, 5, 60, 7, 8, 9]);
    }

    proptest! {
        #[test]
        fn values_are_within_a_rounding_of_the_exact_ones(
            (width, height) in (4_u32..45, 4_u32..12),
            channels in prop_oneof![Just(1_u8), Just(3)],
            half in 0_u32..4,
            sigma in 0.1_f32..4.0,
            seed in any::<u8>(),
        ) {
            let len = (width * height) as usize * usize::from(channels);
            let pixels: Vec<u8> = (0..len as u64)
                .map(|index| (index.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()[0] ^ seed)
                .collect();
            let kernel = 2 * half + 1;
            let (mut fast, mut plain) = (pixels.clone(), pixels.clone());
            let mut blur = Blur::new();
            blur.gaussian(&mut fast, width, height, channels, kernel, sigma).unwrap();
            let wanted = exact(
                &pixels,
                width as usize,
                usize::from(channels),
                kernel as usize,
                f64::from(sigma),
            );
            for (value, wanted) in fast.iter().zip(wanted) {
                prop_assert!((f64::from(*value) - wanted).abs() < 0.501, "{value} {wanted}");
            }
            let rows = Rows {
                source: &blur.source,
                sums: &mut blur.sums,
                stride: width as usize * usize::from(channels),
                channels: usize::from(channels),
            };
            convolve(rows, &blur.kernel, &mut plain);
            prop_assert_eq!(fast, plain, "the vector loops differ from the plain ones");
        }
    }
}
