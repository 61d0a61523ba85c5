//! Conversion to gray.

use super::fastest;
use super::planes::{BLOCK, join, mapped, split};

/// Pillow's luma: ITU-R 601 in 16-bit fixed point. This is the value of `convert("L")`.
#[expect(clippy::cast_possible_truncation, reason = "the weights sum to 65536, so the result is a byte")]
#[inline(always)]
pub(crate) fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let sum = u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471;
    ((sum + 0x8000) >> 16) as u8
}

/// Replaces every colour with its luma in all three channels, like torchvision's `rgb_to_grayscale` with three output
/// channels. Images without 3 channels stay unchanged.
pub fn to_grayscale(pixels: &mut [u8], channels: u8) {
    if channels == 3 {
        fastest!(grayscale(pixels));
    }
}

#[inline(always)]
pub(super) fn grayscale(pixels: &mut [u8]) {
    for block in pixels.as_chunks_mut::<3>().0.chunks_mut(BLOCK) {
        join(&[mapped(&split(block), luma); 3], block);
    }
}

/// The mean luma, rounded as in Pillow's `ImageEnhance.Contrast`. 0 if there are no pixels.
pub(super) fn mean_luma(pixels: &[u8], channels: u8) -> u8 {
    let (n_pixels, sum) = if channels == 3 {
        let pixels = pixels.as_chunks::<3>().0;
        let mut sum = 0;
        fastest!(luma_sum(pixels, &mut sum));
        (pixels.len(), sum)
    } else {
        let sum = pixels.chunks(1 << 16).map(byte_sum).sum();
        (pixels.len(), sum)
    };
    rounded_mean(sum, n_pixels)
}

/// Adds lumas to `sum`.
#[inline(always)]
pub(super) fn luma_sum(pixels: &[[u8; 3]], sum: &mut u64) {
    // The sum of a block's lumas is less than 2^24, so it fits in a `u32`.
    for block in pixels.chunks(1 << 16) {
        let of_block: u32 = block.iter().map(|pixel| u32::from(luma(*pixel))).sum();
        *sum += u64::from(of_block);
    }
}

/// The sum of at most 2^16 bytes.
fn byte_sum(block: &[u8]) -> u64 {
    u64::from(block.iter().map(|value| u32::from(*value)).sum::<u32>())
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums below 2^53 are exact, and the mean of bytes is a byte"
)]
fn rounded_mean(sum: u64, n_pixels: usize) -> u8 {
    if n_pixels == 0 {
        return 0;
    }
    (sum as f64 / n_pixels as f64 + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn means_are_rounded_half_up() {
        assert_eq!(mean_luma(&[1, 2], 1), 2);
        assert_eq!(mean_luma(&[1, 1, 2], 1), 1);
        assert_eq!(mean_luma(&[9, 9, 9, 10, 10, 10], 3), 10);
        assert_eq!(mean_luma(&[], 3), 0);
        assert_eq!(mean_luma(&vec![255; 200_000], 1), 255);
        assert_eq!(mean_luma(&vec![255; 300_000], 3), 255);
    }

    proptest! {
        #[test]
        fn gray_stays_gray(values in prop::collection::vec(any::<u8>(), 0..70)) {
            let gray: Vec<u8> = values.iter().flat_map(|value| [*value; 3]).collect();
            let mut again = gray.clone();
            to_grayscale(&mut again, 3);
            prop_assert_eq!(gray, again);
            let mut single = values.clone();
            to_grayscale(&mut single, 1);
            prop_assert_eq!(values, single);
        }

        #[test]
        fn vector_loops_equal_the_plain_ones(pixels in prop::collection::vec(any::<u8>(), 0..500)) {
            let (mut fast, mut plain) = (pixels.clone(), pixels.clone());
            to_grayscale(&mut fast, 3);
            grayscale(&mut plain);
            prop_assert_eq!(fast, plain);
            let mut sum = 0;
            let colors = pixels.as_chunks::<3>().0;
            luma_sum(colors, &mut sum);
            prop_assert_eq!(mean_luma(&pixels, 3), rounded_mean(sum, colors.len()));
        }
    }
}
