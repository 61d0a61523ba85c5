//! Posterization.

/// Keeps the highest `bits` bits (1 to 8) of every value and clears the rest, like Pillow's `ImageOps.posterize`. If
/// `bits` is more than 8, all bits are kept.
pub fn posterize(pixels: &mut [u8], bits: u8) {
    let cleared = 8_u32.saturating_sub(bits.into());
    let mask = u8::MAX.checked_shl(cleared).unwrap_or(0);
    for value in pixels {
        *value &= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bits_stay() {
        for (bits, wanted) in [
            (0, [0, 0, 0, 0]),
            (1, [0, 0, 128, 128]),
            (3, [0, 96, 128, 224]),
            (8, [1, 127, 128, 255]),
            (9, [1, 127, 128, 255]),
        ] {
            let mut pixels = [1, 127, 128, 255];
            posterize(&mut pixels, bits);
            assert_eq!(pixels, wanted, "{bits}");
        }
    }
}
