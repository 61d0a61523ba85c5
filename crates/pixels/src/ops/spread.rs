//! Histogram stretching and equalization of each channel.

use crate::histogram::counts;

/// Stretches every channel so that its minimum becomes 0 and its maximum 255 (or 254 if Pillow's arithmetic falls just
/// short), like Pillow's `ImageOps.autocontrast` without a cutoff. A constant channel stays unchanged. `channels` is 1
/// or 3.
pub fn autocontrast(pixels: &mut [u8], channels: u8) {
    map_channels(pixels, channels, stretched);
}

/// Equalizes the histogram of every channel as far as replacing values allows, like Pillow's `ImageOps.equalize`.
/// `channels` is 1 or 3.
pub fn equalize(pixels: &mut [u8], channels: u8) {
    map_channels(pixels, channels, evened);
}

/// The new value for each value. `None` if all are unchanged.
type Table = Option<[u8; 256]>;

fn map_channels(pixels: &mut [u8], channels: u8, of: fn(&[u32; 256]) -> Table) {
    match channels {
        3 => map::<3>(pixels, of),
        _ => map::<1>(pixels, of),
    }
}

fn map<const N: usize>(pixels: &mut [u8], of: fn(&[u32; 256]) -> Table) {
    let tables = counts::<N>(pixels).map(|counts| of(&counts));
    if tables.iter().all(Option::is_none) {
        return;
    }
    let tables = tables.map(|table| table.unwrap_or_else(same));
    for pixel in pixels.as_chunks_mut::<N>().0 {
        for (value, table) in pixel.iter_mut().zip(&tables) {
            *value = table[usize::from(*value)];
        }
    }
}

fn same() -> [u8; 256] {
    table(|value| value)
}

/// A table with the result of `of` for each value.
fn table(mut of: impl FnMut(u8) -> u8) -> [u8; 256] {
    let mut table = [0; 256];
    for (value, to) in (0..=255).zip(&mut table) {
        *to = of(value);
    }
    table
}

/// The table that maps the lowest value to 0 and the highest to 255, as Pillow computes it: linearly in `f64`,
/// truncated and clipped.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast truncates and clips")]
fn stretched(counts: &[u32; 256]) -> Table {
    let occurs = |value: &u8| counts[usize::from(*value)] > 0;
    let low = (0..=255).find(occurs)?;
    let high = (0..=255).rfind(occurs)?;
    if high <= low {
        return None;
    }
    let scale = 255.0 / f64::from(high - low);
    let offset = -f64::from(low) * scale;
    Some(table(|value| (f64::from(value) * scale + offset) as u8))
}

/// The table that equalizes a histogram, computed from cumulative counts as in Pillow. The step is 1/255 of the number
/// of all pixels except those with the highest value.
fn evened(counts: &[u32; 256]) -> Table {
    let last = counts.iter().rfind(|count| **count > 0)?;
    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let step = (all - u64::from(*last)) / 255;
    if step == 0 {
        return None;
    }
    let mut below = step / 2;
    Some(table(|value| {
        let level = u8::try_from(below / step).unwrap_or(u8::MAX);
        below += u64::from(counts[usize::from(value)]);
        level
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_channel_is_stretched_by_its_own_ends() {
        let mut pixels = [10, 7, 0, 20, 7, 255, 15, 7, 3];
        autocontrast(&mut pixels, 3);
        assert_eq!(pixels, [0, 7, 0, 255, 7, 255, 127, 7, 3]);
    }

    #[test]
    fn pictures_of_few_pixels_are_not_evened() {
        // The step is 1/255 of the number of all pixels except those with the highest value. With fewer than 255 such
        // pixels, the step is 0.
        let mut pixels: Vec<u8> = (0..=254).collect();
        let before = pixels.clone();
        equalize(&mut pixels, 1);
        assert_eq!(pixels, before);
        equalize(&mut [], 3);
        autocontrast(&mut [], 3);
    }

    #[test]
    fn more_than_the_last_level_is_clipped() {
        // 509 pixels below the highest value give a step of 1. The cumulative counts go up to 509.
        let mut pixels = [vec![3; 509], vec![200; 4]].concat();
        equalize(&mut pixels, 1);
        assert_eq!((pixels[0], pixels[512]), (0, 255));
    }

    proptest! {
        #[test]
        fn what_is_spread_keeps_its_order(pixels in prop::collection::vec(any::<u8>(), 0..3000)) {
            for spread in [autocontrast, equalize] {
                let mut result = pixels.clone();
                spread(&mut result, 1);
                let mut pairs: Vec<_> = pixels.iter().zip(&result).collect();
                pairs.sort_unstable();
                prop_assert!(pairs.is_sorted_by_key(|(_, after)| **after));
            }
        }

        #[test]
        fn what_is_stretched_reaches_both_ends(low in 0_u8..255, by in 1_u8..=255) {
            let high = low.saturating_add(by);
            let mut pixels = [low, high, high - (high - low) / 2];
            autocontrast(&mut pixels, 1);
            prop_assert!(pixels[0] == 0 && pixels[1] >= 254, "{pixels:?}");
        }
    }
}
