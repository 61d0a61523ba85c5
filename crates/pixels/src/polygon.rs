//! Fills polygons.

use packds_system::{to_u64, to_usize};

use crate::PixelError;

/// Maximum number of rows that the edges of a polygon cross, counted for each edge. Outlines of real objects cross some
/// thousands. The limit keeps hostile ones from taking minutes.
const MAX_CROSSINGS: u64 = 1 << 24;

/// An edge, as far as it crosses rows of the mask.
#[derive(Debug, Clone, Copy)]
struct Edge {
    /// The first row whose centre it crosses.
    first: u32,
    /// The row after the last one.
    end: u32,
    /// Where it crosses the centre of row `first`.
    x: f64,
    /// How far it moves to the right from row to row.
    slope: f64,
    /// 1 if it leads down, and -1 if it leads up.
    turn: i32,
}

/// Writes 1 to each pixel of a mask of `width` x `height` bytes whose centre is inside the rings, by the nonzero winding
/// rule. Other pixels keep their value. The last vertex of a ring is connected to the first. Vertices are x and y; 0, 0
/// is the upper left corner of the mask. They may be outside it.
///
/// # Errors
/// `WrongBuffer` if the mask has another length, and `InvalidArgument` if a vertex is not finite, or if the edges cross
/// too many rows.
pub fn fill_rings<'a>(
    rings: impl IntoIterator<Item = &'a [[f32; 2]]>,
    (width, height): (u32, u32),
    mask: &mut [u8],
) -> Result<(), PixelError> {
    PixelError::check_len(mask.len(), to_usize(width).saturating_mul(to_usize(height)))?;
    let edges = edges(rings, height)?;
    let mut waiting = edges.into_iter().peekable();
    let mut active: Vec<Edge> = Vec::new();
    let mut crossings: Vec<(u32, i32)> = Vec::new();
    for (row, pixels) in (0..).zip(mask.chunks_exact_mut(to_usize(width.max(1)))) {
        active.retain(|edge| edge.end > row);
        while let Some(edge) = waiting.next_if(|edge| edge.first <= row) {
            active.push(edge);
        }
        if active.is_empty() && waiting.peek().is_none() {
            break;
        }
        crossings.clear();
        crossings.extend(active.iter().map(|edge| (edge.column(row, width), edge.turn)));
        crossings.sort_unstable();
        fill_row(pixels, &crossings);
    }
    Ok(())
}

/// The edges that cross the centre of a row, in the order of their first rows.
fn edges<'a>(rings: impl IntoIterator<Item = &'a [[f32; 2]]>, height: u32) -> Result<Vec<Edge>, PixelError> {
    let mut edges = Vec::new();
    let mut n_crossings = 0_u64;
    for ring in rings {
        if let Some(vertex) = ring.iter().find(|vertex| vertex.iter().any(|place| !place.is_finite())) {
            return Err(PixelError::argument("vertex", "finite numbers", format!("{vertex:?}")));
        }
        for (from, to) in ring.iter().zip(ring.iter().cycle().skip(1)) {
            let (from, to) = (from.map(f64::from), to.map(f64::from));
            let ([x, top], [other, bottom], turn) = if from[1] <= to[1] { (from, to, 1) } else { (to, from, -1) };
            let (first, end) = (centers_before(top, height), centers_before(bottom, height));
            if first < end {
                n_crossings = n_crossings.saturating_add(u64::from(end - first));
                let slope = (other - x) / (bottom - top);
                edges.push(Edge { first, end, x: x + (f64::from(first) + 0.5 - top) * slope, slope, turn });
            }
        }
    }
    if n_crossings > MAX_CROSSINGS {
        let found = format!("{} edges that cross {n_crossings}", to_u64(edges.len()));
        return Err(PixelError::argument("polygon", "edges that cross at most 2^24 rows", found));
    }
    edges.sort_unstable_by_key(|edge| edge.first);
    Ok(edges)
}

impl Edge {
    /// The first column whose centre is to the right of the edge in this row.
    fn column(&self, row: u32, width: u32) -> u32 {
        centers_before(self.x + f64::from(row.saturating_sub(self.first)) * self.slope, width)
    }
}

/// Number of pixels whose centres are before `place`, of `n` in a line.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited to n")]
fn centers_before(place: f64, n: u32) -> u32 {
    (place - 0.5).ceil().clamp(0.0, f64::from(n)) as u32
}

/// Fills the pixels of a row between sorted crossings.
fn fill_row(pixels: &mut [u8], crossings: &[(u32, i32)]) {
    let (mut turns, mut start) = (0, 0);
    for (column, turn) in crossings {
        if turns == 0 {
            start = *column;
        }
        turns += turn;
        if turns == 0 {
            pixels.get_mut(to_usize(start)..to_usize(*column)).unwrap_or_default().fill(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(rings: &[Vec<[f32; 2]>], (width, height): (u32, u32)) -> Vec<u8> {
        let mut mask = vec![0; to_usize(width * height)];
        fill_rings(rings.iter().map(Vec::as_slice), (width, height), &mut mask).unwrap();
        mask
    }

    /// How often the rings wind around a point: the crossings of its ray to the left.
    fn windings(rings: &[Vec<[f32; 2]>], [x, y]: [f64; 2]) -> i32 {
        let mut windings = 0;
        for ring in rings {
            for (n, from) in ring.iter().enumerate() {
                let (from, to) = (from.map(f64::from), ring[(n + 1) % ring.len()].map(f64::from));
                let is_above = |point: [f64; 2]| point[1] < y;
                if is_above(from) != is_above(to) {
                    let crossing = from[0] + (y - from[1]) / (to[1] - from[1]) * (to[0] - from[0]);
                    windings += if crossing >= x {
                        0
                    } else if is_above(from) {
                        1
                    } else {
                        -1
                    };
                }
            }
        }
        windings
    }

    proptest! {
        #[test]
        fn pixels_are_filled_if_rings_wind_around_their_centres(
            rings in prop::collection::vec(prop::collection::vec(prop::array::uniform2(-9.0_f32..25.0), 0..9), 0..4),
            (width, height) in (1..20_u32, 1..20_u32),
        ) {
            let mask = filled(&rings, (width, height));
            for (n, value) in (0..).zip(mask) {
                let center = [f64::from(n % width) + 0.5, f64::from(n / width) + 0.5];
                prop_assert_eq!(value == 1, windings(&rings, center) != 0, "{:?}", center);
            }
        }

        #[test]
        fn any_finite_vertices_are_filled(
            ring in prop::collection::vec(prop::array::uniform2(any::<u32>().prop_map(f32::from_bits)), 0..9),
        ) {
            let mut mask = [0; 48];
            let result = fill_rings([ring.as_slice()], (8, 6), &mut mask);
            prop_assert_eq!(result.is_ok(), ring.iter().flatten().all(|place| place.is_finite()));
        }
    }

    #[test]
    fn holes_turn_the_other_way_and_overlaps_count_once() {
        let square = |a: f32, b: f32| vec![[a, a], [b, a], [b, b], [a, b]];
        let hole: Vec<[f32; 2]> = square(1.0, 3.0).into_iter().rev().collect();
        assert_eq!(filled(&[square(0.0, 4.0), hole], (4, 4)), [1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(filled(&[square(0.0, 2.0), square(1.0, 3.0)], (3, 3)), [1, 1, 0, 1, 1, 1, 0, 1, 1]);
    }

    #[test]
    fn a_polygon_around_everything_fills_the_mask() {
        let far = vec![[-1e30, -1e30], [1e30, -1e30], [1e30, 1e30], [-1e30, 1e30]];
        assert_eq!(filled(&[far], (3, 2)), [1; 6]);
    }

    #[test]
    fn vertices_that_are_no_numbers_and_endless_outlines_are_errors() {
        let error = |ring: &[[f32; 2]], (width, height): (u32, u32)| {
            let mut mask = vec![0; to_usize(width * height)];
            fill_rings([ring], (width, height), &mut mask).unwrap_err().to_string()
        };
        assert_eq!(error(&[[0.0, f32::NAN]], (1, 1)), "invalid vertex: expected finite numbers, found \"[0.0, NaN]\"");
        let zigzag = [[0.0, -1.0], [1.0, 9e9]].repeat(1 << 16);
        let found = error(&zigzag, (1, 200));
        assert!(found.starts_with("invalid polygon: expected edges that cross at most 2^24 rows"), "{found}");
        assert_eq!(fill_rings([], (2, 2), &mut [0; 3]), Err(PixelError::WrongBuffer { expected: 4, found: 3 }));
    }
}
