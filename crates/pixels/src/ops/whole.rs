//! Float-to-byte conversion without clipping casts, which compilers do not vectorize.
//!
//! An `f32` above 2^23 (an `f64` above 2^52) has no fraction. Adding such a number to a value rounds the value to an
//! integer, with ties to even, and leaves this integer in the lowest bits.

const WHOLE: f32 = 8_388_608.0;
const WHOLE_64: f64 = 4_503_599_627_370_496.0;

/// The byte nearest to a value of 0 to 255. Ties go to even.
#[expect(clippy::cast_possible_truncation, reason = "the value is in the lowest byte")]
#[inline(always)]
pub(super) fn nearest(value: f32) -> u8 {
    (value + WHOLE).to_bits() as u8
}

/// The value clipped to 0 to 255 and truncated. NaN gives 0.
#[expect(clippy::manual_clamp, reason = "clamp would let NaN pass")]
#[inline(always)]
pub(super) fn clipped(value: f32) -> u8 {
    let value = value.max(0.0).min(255.0);
    let nearest = value + WHOLE - WHOLE;
    let whole = if nearest > value { nearest - 1.0 } else { nearest };
    self::nearest(whole)
}

/// A value of 0 to 255, truncated to a byte.
#[expect(clippy::cast_possible_truncation, reason = "the value is in the lowest byte")]
#[inline(always)]
pub(super) fn cut(value: f64) -> u8 {
    let nearest = value + WHOLE_64 - WHOLE_64;
    let whole = if nearest > value { nearest - 1.0 } else { nearest };
    (whole + WHOLE_64).to_bits() as u8
}

/// An integral value of 0 to 2^52 as an index.
#[inline(always)]
pub(super) fn index(value: f64) -> usize {
    ((value + WHOLE_64).to_bits() & ((1 << 52) - 1)) as usize
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the clipping casts are the reference"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_and_their_neighbours_are_rounded_as_casts_do() {
        for whole in 0..=255_u8 {
            let value = f32::from(whole);
            for near in [value, value.next_down(), value.next_up(), value + 0.5] {
                assert_eq!(clipped(near), near as u8, "{near}");
                assert_eq!(cut(f64::from(near.max(0.0))), near as u8, "{near}");
            }
            let half = (value + 0.5).min(254.5);
            for near in [half, half.next_down(), half.next_up()] {
                assert_eq!(nearest(near), near.round_ties_even() as u8, "{near}");
            }
        }
        for place in [0, 1, 255, 65_535 * 65_535] {
            assert_eq!(index(place as f64), place);
        }
        let clips = [f32::NAN, f32::NEG_INFINITY, -0.0, 256.0, f32::INFINITY];
        assert_eq!(clips.map(clipped), [0, 0, 0, 255, 255]);
    }

    proptest! {
        #[test]
        fn values_become_bytes_as_casts_do(value in -300.0_f32..600.0, part in 0.0_f64..256.0) {
            prop_assert_eq!(clipped(value), value as u8);
            prop_assert_eq!(cut(part), part as u8);
            let inside = value.clamp(0.0, 255.0);
            prop_assert_eq!(nearest(inside), inside.round_ties_even() as u8);
        }
    }
}
