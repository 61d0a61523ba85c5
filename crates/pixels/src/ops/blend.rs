//! Adjusts brightness, contrast and saturation as Pillow's `ImageEnhance` does.
//!
//! Each value becomes `base + factor * (value - base)`, computed in `f32`, truncated and clipped. The base is black for
//! brightness, the image's mean luma for contrast, and each pixel's luma for saturation.

use super::gray::{luma, mean_luma};
use super::planes::{BLOCK, join, mapped, split};
use super::{fastest, whole};

/// Multiplies every value by `factor`: 0 is black, 1 is unchanged. This is Pillow's `ImageEnhance.Brightness`.
pub fn adjust_brightness(pixels: &mut [u8], factor: f32) {
    fastest!(blend(pixels, 0, factor));
}

/// Scales the distance from the image's mean luma: 0 is uniform gray, 1 is unchanged. Pillow's
/// `ImageEnhance.Contrast`. `channels` is 1 or 3.
pub fn adjust_contrast(pixels: &mut [u8], channels: u8, factor: f32) {
    let mean = mean_luma(pixels, channels);
    fastest!(blend(pixels, mean, factor));
}

/// Scales the distance of every colour from its own luma: 0 is gray, 1 is unchanged. Pillow's
/// `ImageEnhance.Color`. Images without 3 channels are unchanged.
pub fn adjust_saturation(pixels: &mut [u8], channels: u8, factor: f32) {
    if channels == 3 {
        fastest!(saturate(pixels, factor));
    }
}

/// Computes `base + factor * (value - base)`, truncated and clipped. There must be two roundings in `f32`, as in
/// Pillow's C code, so never fuse the product and the sum.
#[inline(always)]
pub(super) fn mixed(value: u8, base: u8, factor: f32) -> u8 {
    let difference = f32::from(i16::from(value) - i16::from(base));
    whole::clipped(f32::from(base) + factor * difference)
}

#[inline(always)]
pub(super) fn blend(pixels: &mut [u8], base: u8, factor: f32) {
    for value in pixels {
        *value = mixed(*value, base, factor);
    }
}

#[inline(always)]
pub(super) fn saturate(pixels: &mut [u8], factor: f32) {
    for block in pixels.as_chunks_mut::<3>().0.chunks_mut(BLOCK) {
        let mut planes = split(block);
        let gray = mapped(&planes, luma);
        for plane in &mut planes {
            for (value, gray) in plane.iter_mut().zip(&gray) {
                *value = mixed(*value, *gray, factor);
            }
        }
        join(&planes, block);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pixels() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..400).prop_map(|mut pixels| {
            pixels.truncate(pixels.len() / 3 * 3);
            pixels
        })
    }

    fn all(pixels: &[u8], factor: f32) -> [Vec<u8>; 3] {
        let mut results = [pixels.to_vec(), pixels.to_vec(), pixels.to_vec()];
        adjust_brightness(&mut results[0], factor);
        adjust_contrast(&mut results[1], 3, factor);
        adjust_saturation(&mut results[2], 3, factor);
        results
    }

    #[test]
    fn factors_that_are_no_numbers_give_black() {
        assert_eq!(all(&[1, 2, 3], f32::NAN), [const { [0; 3] }; 3]);
    }

    #[test]
    fn negative_factors_extrapolate() {
        let mut pixels = [10, 20, 30];
        adjust_contrast(&mut pixels, 1, -1.0);
        assert_eq!(pixels, [30, 20, 10]);
        adjust_brightness(&mut pixels, -0.5);
        assert_eq!(pixels, [0; 3]);
    }

    proptest! {
        #[test]
        fn factor_1_changes_nothing(pixels in pixels()) {
            prop_assert_eq!(all(&pixels, 1.0), [pixels.clone(), pixels.clone(), pixels]);
        }

        #[test]
        fn factor_0_leaves_the_base(pixels in pixels()) {
            let [dark, even, gray] = all(&pixels, 0.0);
            prop_assert!(dark.iter().all(|value| *value == 0));
            let mean = mean_luma(&pixels, 3);
            prop_assert!(even.iter().all(|value| *value == mean));
            prop_assert!(gray.as_chunks::<3>().0.iter().all(|[r, g, b]| r == g && g == b));
        }

        #[test]
        fn single_channels_have_no_saturation(pixels in pixels(), factor in -2.0_f32..3.0) {
            let mut result = pixels.clone();
            adjust_saturation(&mut result, 1, factor);
            prop_assert_eq!(pixels, result);
        }

        #[test]
        fn vector_loops_equal_the_plain_ones(pixels in pixels(), factor in -2.0_f32..4.0) {
            let [dark, even, gray] = all(&pixels, factor);
            let mean = mean_luma(&pixels, 3);
            let mut plain = pixels.clone();
            blend(&mut plain, 0, factor);
            prop_assert_eq!(&dark, &plain);
            plain.clone_from(&pixels);
            blend(&mut plain, mean, factor);
            prop_assert_eq!(&even, &plain);
            plain.clone_from(&pixels);
            saturate(&mut plain, factor);
            prop_assert_eq!(&gray, &plain);
            // The results of blocks are the same as those of single pixels.
            plain.clone_from(&pixels);
            plain.chunks_exact_mut(3).for_each(|pixel| saturate(pixel, factor));
            prop_assert_eq!(gray, plain);
        }
    }
}
