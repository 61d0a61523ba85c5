//! How pictures that a device holds are resized before windows of them are shown, as numbers.

use packds_pixels::{AxisTaps, Filter};

/// Words of a table after which pictures are no longer resized on a device: 64 MiB.
const MOST_WORDS: usize = 16 << 20;

/// The resampling of areas of pictures of one size to one size, for each length that an axis of an area may have.
///
/// A table starts with a word for each length from 1 to the picture's side: where its part starts, in words from the start
/// of the table, 0 where no area has it. A part is the number of weights of an output; then for each output its first source
/// position within the area, how many there are, and its weights, with zeros behind. See [`AxisTaps`] for the arithmetic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resampling {
    /// Of columns.
    pub across: Vec<u32>,
    /// Of rows.
    pub down: Vec<u32>,
    kind: Kind,
}

/// What the tables follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    from: (u32, u32),
    to: (u32, u32),
    filter: Filter,
    of_areas: bool,
}

impl Resampling {
    /// Of pictures whose size is `from` to `to`; of any area of them, or of the whole. None where that is too much for a table.
    pub(crate) fn new(
        from: (u32, u32),
        to: (u32, u32),
        filter: Filter,
        of_areas: bool,
    ) -> Option<Self> {
        Some(Self {
            across: table(from.0, to.0, filter, of_areas)?,
            down: table(from.1, to.1, filter, of_areas)?,
            kind: Kind {
                from,
                to,
                filter,
                of_areas,
            },
        })
    }

    /// Columns and rows of a picture when it is resized.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        self.kind.to
    }

    /// Whether the other has the same tables.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

fn table(side: u32, out: u32, filter: Filter, of_areas: bool) -> Option<Vec<u32>> {
    let mut words = vec![0; usize::try_from(side).ok()?];
    let shortest = if of_areas { 1 } else { side };
    for (length, place) in (shortest..=side).zip(usize::try_from(shortest - 1).ok()?..) {
        let start = u32::try_from(words.len()).ok()?;
        *words.get_mut(place)? = start;
        let taps = AxisTaps::new(length, out, filter);
        words.push(u32::try_from(taps.stride).ok()?);
        let outputs = taps.start.iter().zip(&taps.len);
        for ((first, n), weights) in outputs.zip(taps.weights.chunks_exact(taps.stride.max(1))) {
            words.extend([*first, *n]);
            words.extend(weights.iter().map(|weight| weight.cast_unsigned()));
        }
        if words.len() > MOST_WORDS {
            return None;
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_its_part_and_tables_are_bounded() {
        let areas = Resampling::new((9, 5), (4, 4), Filter::Bilinear, true).unwrap();
        assert!(areas.across[..9].iter().all(|start| *start >= 9));
        let part = usize::try_from(areas.down[4]).unwrap();
        let taps = AxisTaps::new(5, 4, Filter::Bilinear);
        let stride = u32::try_from(taps.stride).unwrap();
        assert_eq!(
            areas.down[part..part + 3],
            [stride, taps.start[0], taps.len[0]]
        );
        let whole = Resampling::new((9, 5), (4, 4), Filter::Bilinear, false).unwrap();
        assert!(whole.across[..8].iter().all(|start| *start == 0));
        assert!(!whole.is_like(&areas) && whole.is_like(&whole.clone()));
        assert_eq!(
            Resampling::new((60_000, 9), (4000, 4), Filter::Box, true),
            None
        );
    }
}
