//! Precomputed positions and weights for resizing images on a device before they are cropped.

use packds_pixels::{AxisTaps, Filter};
use packds_system::to_usize;

/// Maximum number of words of taps: 64 MiB. If there are more, images are not resized on a device.
const MOST_WORDS: usize = 16 << 20;

/// How to resample areas of images to one size, for each possible length of an axis.
///
/// The taps of a length start with the maximum number of weights per output. After that, each output has its first
/// source position in the area, its number of weights, and its weights, padded with zeros. See [`AxisTaps`] for the
/// arithmetic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resampling {
    taps: Vec<u32>,
    across: Places,
    down: Places,
    kind: Kind,
}

/// Where the taps of each length start, beginning with the shortest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Places {
    shortest: u32,
    starts: Vec<u32>,
}

/// The parameters that determine the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    from: (u32, u32),
    to: (u32, u32),
    filter: Filter,
    of_areas: bool,
}

impl Resampling {
    /// Makes the table for resizing images of size `from`, or any area of them if `of_areas` is set, to size `to`.
    /// `None` if the table would be too large.
    pub(crate) fn new(from: (u32, u32), to: (u32, u32), filter: Filter, of_areas: bool) -> Option<Self> {
        let kind = Kind { from, to, filter, of_areas };
        let mut taps = Vec::new();
        let across = kind.axis(from.0, to.0, &mut taps)?;
        let down = if (from.0, to.0) == (from.1, to.1) { across.clone() } else { kind.axis(from.1, to.1, &mut taps)? };
        Some(Self { taps, across, down, kind })
    }

    /// The taps of all lengths.
    pub fn taps(&self) -> &[u32] {
        &self.taps
    }

    /// Where the taps for an area of this size start. `None` if areas cannot have this size.
    pub fn places(&self, width: u32, height: u32) -> Option<(u32, u32)> {
        Some((self.across.of(width)?, self.down.of(height)?))
    }

    /// Width and height of a resized image.
    pub const fn size(&self) -> (u32, u32) {
        self.kind.to
    }

    /// Whether `other` has the same tables.
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Places {
    fn of(&self, length: u32) -> Option<u32> {
        let number = length.checked_sub(self.shortest)?;
        self.starts.get(to_usize(number)).copied()
    }
}

impl Kind {
    /// Adds the taps of an axis for each possible length.
    fn axis(&self, side: u32, out: u32, words: &mut Vec<u32>) -> Option<Places> {
        let shortest = if self.of_areas { 1 } else { side };
        let mut starts = Vec::new();
        for length in shortest..=side {
            starts.push(u32::try_from(words.len()).ok()?);
            push_taps(&AxisTaps::new(length, out, self.filter), words)?;
            if words.len() > MOST_WORDS {
                return None;
            }
        }
        Some(Places { shortest, starts })
    }
}

fn push_taps(taps: &AxisTaps, words: &mut Vec<u32>) -> Option<()> {
    words.push(u32::try_from(taps.stride).ok()?);
    let outputs = taps.start.iter().zip(&taps.len);
    for ((first, n), weights) in outputs.zip(taps.weights.chunks_exact(taps.stride.max(1))) {
        words.extend([*first, *n]);
        words.extend(weights.iter().map(|weight| weight.cast_unsigned()));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_at(areas: &Resampling, place: u32, taps: &AxisTaps) -> bool {
        let mut words = Vec::new();
        push_taps(taps, &mut words).unwrap();
        areas.taps()[usize::try_from(place).unwrap()..].starts_with(&words)
    }

    #[test]
    fn every_length_has_its_taps_and_they_are_bounded() {
        let areas = Resampling::new((9, 5), (4, 3), Filter::Bilinear, true).unwrap();
        for (width, height) in (1..=9).flat_map(|w| (1..=5).map(move |h| (w, h))) {
            let (across, down) = areas.places(width, height).unwrap();
            assert!(is_at(&areas, across, &AxisTaps::new(width, 4, Filter::Bilinear)));
            assert!(is_at(&areas, down, &AxisTaps::new(height, 3, Filter::Bilinear)));
        }
        for outside in [(0, 1), (1, 0), (10, 1), (1, 6)] {
            assert_eq!(areas.places(outside.0, outside.1), None);
        }
        let whole = Resampling::new((9, 5), (4, 3), Filter::Bilinear, false).unwrap();
        assert!(whole.places(9, 5).is_some() && whole.places(8, 5).is_none());
        assert!(!whole.is_like(&areas) && whole.is_like(&whole.clone()));
        assert_eq!(Resampling::new((60_000, 9), (4000, 4), Filter::Box, true), None);
    }

    #[test]
    fn axes_that_are_alike_share_their_taps() {
        let square = Resampling::new((9, 9), (4, 4), Filter::Bilinear, true).unwrap();
        let (across, down) = square.places(7, 7).unwrap();
        assert_eq!(across, down);
        let other = Resampling::new((9, 9), (4, 5), Filter::Bilinear, true).unwrap();
        assert!(other.taps().len() > 2 * square.taps().len());
    }
}
