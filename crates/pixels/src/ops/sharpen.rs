//! Sharpness: linear interpolation between a smoothed image and the image itself.

use super::blend::mixed;
use super::fastest;
use crate::decode::{byte_count, usize_of};
use crate::error::PixelError;

/// Sharpens images, reusing its memory.
#[derive(Debug, Default)]
pub struct Sharpen {
    /// Copies of the row above and the current row.
    rows: Vec<u8>,
}

impl Sharpen {
    /// A sharpener that has not allocated memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Scales the difference from the image smoothed over 3 x 3 pixels: 0 is smooth, 1 is unchanged, 2 is sharp. This
    /// is Pillow's `ImageEnhance.Sharpness`, which does not change the pixels at the edges.
    ///
    /// # Errors
    /// `WrongBuffer` if the pixels do not match the size.
    pub fn adjust(
        &mut self,
        pixels: &mut [u8],
        width: u32,
        height: u32,
        channels: u8,
        factor: f32,
    ) -> Result<(), PixelError> {
        let expected = byte_count(width, height, usize::from(channels))?;
        PixelError::check_len(pixels.len(), expected)?;
        if width < 3 || height < 3 || channels == 0 {
            return Ok(());
        }
        let channels = usize::from(channels);
        let stride = usize_of(width) * channels;
        self.rows.resize(2 * stride, 0);
        let rows = self.rows.as_mut_slice();
        fastest!(sharpen(pixels, rows, channels, factor));
        Ok(())
    }
}

/// Sharpens everything except the edges. `rows` is scratch space for two rows.
#[inline(always)]
pub(super) fn sharpen(pixels: &mut [u8], rows: &mut [u8], channels: usize, factor: f32) {
    let stride = rows.len() / 2;
    let (mut above, mut row) = rows.split_at_mut(stride);
    let (first, mut rest) = pixels.split_at_mut(stride);
    above.copy_from_slice(first);
    while rest.len() >= 2 * stride {
        let (out, below) = rest.split_at_mut(stride);
        row.copy_from_slice(out);
        let inside = &mut out[channels..stride - channels];
        sharpen_row([above, row, &below[..stride]], channels, factor, inside);
        std::mem::swap(&mut above, &mut row);
        rest = below;
    }
}

/// Sharpens a row, except its ends, from the row itself and its neighbours.
#[inline(always)]
fn sharpen_row(rows: [&[u8]; 3], channels: usize, factor: f32, out: &mut [u8]) {
    let n = out.len();
    let [above, row, below] = rows.map(|row| {
        let part = |first: usize| &row[first..first + n];
        [part(0), part(channels), part(2 * channels)]
    });
    for place in 0..n {
        let column =
            |part: usize| u16::from(above[part][place]) + u16::from(row[part][place]) + u16::from(below[part][place]);
        let value = row[1][place];
        let sum = column(0) + column(1) + column(2) + 4 * u16::from(value);
        out[place] = mixed(value, thirteenth(sum), factor);
    }
}

/// Divides a sum with a total weight of 13 by 13. Rounds to the nearest integer; there are no ties, because 13 is odd.
/// The `f32` error in Pillow is too small to change the rounding.
#[expect(clippy::cast_possible_truncation, reason = "a sum of 13 bytes, divided by 13")]
#[inline(always)]
fn thirteenth(sum: u16) -> u8 {
    (((u32::from(sum) + 6) * 5042) >> 16) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sums_are_divided_to_the_nearest() {
        for sum in 0..=13 * 255 {
            assert_eq!(u16::from(thirteenth(sum)), (2 * sum + 13) / 26, "{sum}");
        }
    }

    #[test]
    fn a_point_is_smoothed_and_sharpened() {
        let point = |factor| {
            let mut pixels = [0; 25];
            pixels[12] = 130;
            Sharpen::new().adjust(&mut pixels, 5, 5, 1, factor).unwrap();
            pixels
        };
        let smooth = point(0.0);
        assert_eq!(smooth[5..15], [0, 10, 10, 10, 0, 0, 10, 50, 10, 0]);
        let sharp = point(2.0);
        assert_eq!(sharp[5..15], [0, 0, 0, 0, 0, 0, 0, 210, 0, 0]);
    }

    #[test]
    fn edges_and_narrow_pictures_stay() {
        for (width, height) in [(1, 1), (2, 9), (9, 2), (1, 12), (3, 3)] {
            let mut pixels: Vec<u8> = (0..width * height * 3).map(|n: u32| (n * 37).to_le_bytes()[0]).collect();
            let before = pixels.clone();
            let mut sharpen = Sharpen::new();
            sharpen.adjust(&mut pixels, width, height, 3, 0.0).unwrap();
            if (width, height) == (3, 3) {
                assert_ne!(pixels[12..15], before[12..15]);
                pixels[12..15].copy_from_slice(&before[12..15]);
            }
            assert_eq!(pixels, before, "{width}x{height}");
        }
        let wrong = Sharpen::new().adjust(&mut [0; 8], 3, 1, 3, 0.5);
        assert!(matches!(wrong, Err(PixelError::WrongBuffer { .. })));
    }

    proptest! {
        #[test]
        fn vector_loops_equal_the_plain_ones(
            (width, height) in (3_u32..90, 3_u32..9),
            channels in prop_oneof![Just(1_u8), Just(3)],
            factor in -1.0_f32..3.0,
            seed in any::<u64>(),
        ) {
            let len = u64::from(width * height) * u64::from(channels);
            let mut fast: Vec<u8> = (0..len)
                .map(|index| ((index ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).to_le_bytes()[0])
                .collect();
            let mut plain = fast.clone();
            Sharpen::new().adjust(&mut fast, width, height, channels, factor).unwrap();
            let mut rows = vec![0; 2 * width as usize * usize::from(channels)];
            sharpen(&mut plain, &mut rows, usize::from(channels), factor);
            prop_assert_eq!(fast, plain);
        }
    }
}
