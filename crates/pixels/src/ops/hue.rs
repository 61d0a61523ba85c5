//! Hue rotation in Pillow's 8-bit HSV.
//!
//! Every step is rounded as in Pillow, sometimes in `f32` and sometimes in `f64`. 8-bit HSV loses colours, and this
//! code must lose the same colours as Pillow. Even a rotation by 0 converts to HSV and back.

use super::planes::{BLOCK, join, mapped, split};
use super::{fastest, whole};

/// Rotates all hues by `factor` of the circle, -0.5 to 0.5, like torchvision's `adjust_hue` on Pillow images. Values
/// outside this range wrap around. Images without 3 channels stay unchanged.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the hue is a byte that wraps around")]
pub fn adjust_hue(pixels: &mut [u8], channels: u8, factor: f32) {
    if channels == 3 {
        let turn = (f64::from(factor) * 255.0) as i64 as u8;
        fastest!(turn_hue(pixels, turn));
    }
}

#[inline(always)]
pub(super) fn turn_hue(pixels: &mut [u8], turn: u8) {
    let (sector_of, part_of) = sectors(turn);
    for block in pixels.as_chunks_mut::<3>().0.chunks_mut(BLOCK) {
        let mut planes = split(block);
        let hues = mapped(&planes, hue);
        let saturations = mapped(&planes, saturation);
        let values = mapped(&planes, value);
        let (mut sectors, mut parts) = ([0; BLOCK], [0.0; BLOCK]);
        for (index, hue) in hues.iter().enumerate() {
            sectors[index] = sector_of[usize::from(*hue)];
            parts[index] = part_of[usize::from(*hue)];
        }
        let (mut lows, mut middles) = ([0; BLOCK], [0; BLOCK]);
        for index in 0..BLOCK {
            let (value, saturation) = (values[index], saturations[index]);
            lows[index] = low(value, saturation);
            middles[index] = middle(value, saturation, sectors[index], parts[index]);
        }
        let [red, green, blue] = &mut planes;
        for index in 0..BLOCK {
            let sector = sectors[index];
            let values = [lows[index], middles[index], values[index]];
            red[index] = pick(sector, [0, 5], [1, 4], values);
            green[index] = pick(sector, [1, 2], [0, 3], values);
            blue[index] = pick(sector, [3, 4], [2, 5], values);
        }
        join(&planes, block);
    }
}

/// For each hue: the sector (0 to 5) of the rotated hue, and its position in the sector.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "six times a fraction of the circle, rounded to f32 like Pillow"
)]
#[inline(always)]
fn sectors(turn: u8) -> ([u8; 256], [f32; 256]) {
    let (mut numbers, mut parts) = ([0; 256], [0.0; 256]);
    for (hue, (number, part)) in (0_u8..=255).zip(numbers.iter_mut().zip(&mut parts)) {
        let sixths = f64::from(hue.wrapping_add(turn)) * 6.0 / 255.0;
        let whole = sixths as u8;
        *number = whole % 6;
        *part = (sixths - f64::from(whole)) as f32;
    }
    (numbers, parts)
}

#[inline(always)]
fn value([red, green, blue]: [u8; 3]) -> u8 {
    red.max(green).max(blue)
}

#[inline(always)]
fn range([red, green, blue]: [u8; 3]) -> u8 {
    value([red, green, blue]) - red.min(green).min(blue)
}

/// The range divided by the value, scaled to a byte. 0 for gray and black.
#[inline(always)]
fn saturation(color: [u8; 3]) -> u8 {
    let parts = f32::from(range(color)) / f32::from(value(color).max(1));
    whole::cut(f64::from(parts) * 255.0)
}

/// The hue. 0 for gray, which has no hue.
#[expect(clippy::cast_possible_truncation, reason = "Pillow's roundings to f32")]
#[inline(always)]
fn hue(color: [u8; 3]) -> u8 {
    let [red, green, blue] = color;
    let high = value(color);
    let (to_red, to_green, to_blue) = (high - red, high - green, high - blue);
    let (sixths, plus, minus) = if red == high {
        (0.0, to_blue, to_green)
    } else if green == high {
        (2.0, to_red, to_blue)
    } else {
        (4.0, to_green, to_red)
    };
    // For gray, both distances are 0, so the hue is 0 too.
    let range = f32::from(range(color).max(1));
    let (plus, minus) = (f32::from(plus) / range, f32::from(minus) / range);
    // Pillow subtracts in f32 if red is highest. These differences are exact in f64, so they are rounded to the same
    // result.
    let sixths = (sixths + f64::from(plus) - f64::from(minus)) as f32;
    let circle = f64::from(sixths) / 6.0 + 1.0;
    let hue = if circle >= 1.0 { circle - 1.0 } else { circle };
    whole::cut(f64::from(hue as f32) * 255.0)
}

/// The lowest channel of a colour with this value and saturation.
#[inline(always)]
fn low(value: u8, saturation: u8) -> u8 {
    darkened(value, f64::from(fraction(saturation)))
}

/// The middle channel. Pillow multiplies in `f32` in odd sectors, where this channel decreases, and in `f64` in the
/// others, where it increases.
#[inline(always)]
fn middle(value: u8, saturation: u8, sector: u8, part: f32) -> u8 {
    let saturation = fraction(saturation);
    let falling = f64::from(saturation * part);
    let rising = f64::from(saturation) * (1.0 - f64::from(part));
    darkened(value, if sector & 1 == 1 { falling } else { rising })
}

/// The value minus a fraction of it, rounded to an integer. Halves are rounded up.
#[inline(always)]
fn darkened(value: u8, by: f64) -> u8 {
    whole::cut(f64::from(value) * (1.0 - by) + 0.5)
}

#[expect(clippy::cast_possible_truncation, reason = "Pillow rounds to f32")]
#[inline(always)]
fn fraction(value: u8) -> f32 {
    (f64::from(value) / 255.0) as f32
}

/// The value of a channel: the highest in two sectors, the middle one in two others, otherwise the lowest. The code
/// uses masks, because the compiler would turn branches into jumps.
#[inline(always)]
fn pick(sector: u8, highest: [u8; 2], middle: [u8; 2], values: [u8; 3]) -> u8 {
    let mask = |sectors: [u8; 2]| u8::from((sector == sectors[0]) | (sector == sectors[1])).wrapping_neg();
    let (high, middle) = (mask(highest), mask(middle));
    (values[0] & !(high | middle)) | (values[1] & middle) | (values[2] & high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_third_of_the_circle_turns_red_into_green() {
        let mut pixels = [255, 0, 0, 0, 0, 0, 90, 90, 90, 255, 255, 255];
        adjust_hue(&mut pixels, 3, 1.0 / 3.0);
        assert_eq!(pixels, [0, 255, 0, 0, 0, 0, 90, 90, 90, 255, 255, 255]);
    }

    #[test]
    fn single_channels_have_no_hue() {
        let mut pixels = [1, 2, 3];
        adjust_hue(&mut pixels, 1, 0.5);
        assert_eq!(pixels, [1, 2, 3]);
    }

    proptest! {
        #[test]
        fn turn_0_is_only_the_way_through_hsv(pixels in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut turned = pixels.clone();
            adjust_hue(&mut turned, 3, 0.0);
            // No channel changes by more than 7 levels.
            for (before, after) in pixels.iter().zip(&turned) {
                prop_assert!(before.abs_diff(*after) <= 7, "{before} {after}");
            }
            let mut again = pixels.clone();
            turn_hue(&mut again, 0);
            prop_assert_eq!(turned, again, "the vector loop differs from the plain one");
        }

        #[test]
        fn turns_keep_the_highest_channel(
            pixels in prop::collection::vec(any::<[u8; 3]>(), 1..300),
            factor in -0.5_f32..0.5,
        ) {
            let mut turned = pixels.clone();
            adjust_hue(turned.as_flattened_mut(), 3, factor);
            for (before, after) in pixels.iter().zip(&turned) {
                prop_assert_eq!(before.iter().max(), after.iter().max());
            }
        }
    }
}
