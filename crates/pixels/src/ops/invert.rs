//! Inversion and solarization.

/// Replaces every value by 255 minus itself: Pillow's `ImageOps.invert`.
pub fn invert(pixels: &mut [u8]) {
    for value in pixels {
        *value = 255 - *value;
    }
}

/// Inverts values of at least `threshold`: Pillow's `ImageOps.solarize`.
pub fn solarize(pixels: &mut [u8], threshold: u8) {
    for value in pixels {
        *value = if *value < threshold { *value } else { 255 - *value };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_threshold_itself_is_inverted() {
        let mut pixels = [0, 127, 128, 129, 255];
        solarize(&mut pixels, 128);
        assert_eq!(pixels, [0, 127, 127, 126, 0]);
    }

    proptest! {
        #[test]
        fn inverting_twice_changes_nothing(pixels in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut twice = pixels.clone();
            invert(&mut twice);
            prop_assert!(pixels.iter().zip(&twice).all(|(a, b)| a + b == 255));
            invert(&mut twice);
            prop_assert_eq!(&pixels, &twice);
            solarize(&mut twice, 0);
            invert(&mut twice);
            prop_assert_eq!(pixels, twice);
        }
    }
}
