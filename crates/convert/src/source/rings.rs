//! The outlines of objects: rings of points. Outer rings run clockwise on the screen, and holes the other way, so that the nonzero
//! winding rule gives the mask.
//!
//! Polygons are given as points, and masks as runs of pixels, which are traced along the edges of the pixels.

use super::ragged::single;

/// The points of an outline. The last is connected to the first.
pub(crate) type Ring = Vec<[f32; 2]>;

/// Maximum number of rings of a box, and of boxes of an image, so that f32 holds their numbers exactly.
pub(super) const MAX_RINGS: usize = 1 << 24;
/// Maximum width and height of a mask, so that f32 holds its corners exactly.
pub(super) const MAX_SIDE: u32 = 1 << 20;

/// Why points are not a ring.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoRing {
    /// There are fewer than 3 points, or they enclose nothing.
    Empty,
    /// A coordinate is too large for f32, or is not a number.
    TooFar,
}

/// The outer ring with these points, clockwise on the screen.
pub(super) fn outer(points: &[[f64; 2]]) -> Result<Ring, NoRing> {
    let rounded = points.iter().map(|[x, y]| Some([single(*x)?, single(*y)?]));
    let mut ring: Ring = rounded.collect::<Option<_>>().ok_or(NoRing::TooFar)?;
    let area = area(&ring);
    if ring.len() < 3 || area == 0.0 {
        return Err(NoRing::Empty);
    }
    if area < 0.0 {
        // The first point stays the first.
        ring.reverse();
        ring.rotate_right(1);
    }
    Ok(ring)
}

/// The area of a ring. Positive if the ring is clockwise on the screen, where y points down.
pub(crate) fn area(ring: &[[f32; 2]]) -> f64 {
    let Some([x0, y0]) = ring.first().map(|point| point.map(f64::from)) else { return 0.0 };
    // Relative to the first point, because far from the origin the products would lose digits.
    let points = ring.iter().map(|[x, y]| [f64::from(*x) - x0, f64::from(*y) - y0]);
    let after = points.clone().cycle().skip(1);
    points.zip(after).map(|([x, y], [next_x, next_y])| x * next_y - next_x * y).sum::<f64>() / 2.0
}

/// Consecutive pixels of a column: its number, the first row, and the row after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) x: u32,
    pub(super) top: u32,
    pub(super) bottom: u32,
}

/// Adds a run that follows all others. Adjacent runs are joined.
pub(super) fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        _ if run.top >= run.bottom => {}
        Some(last) if last.x == run.x && last.bottom == run.top => last.bottom = run.bottom,
        _ => runs.push(run),
    }
}

type Point = (u32, u32);

/// The rings around the pixels of a mask, along the edges of the pixels. The runs are in the order of their columns and rows, and do not
/// touch. Pixels that touch only at a corner are in different rings.
pub(super) fn trace(runs: &[Run]) -> Vec<Ring> {
    let edges = edges_of(runs);
    let mut is_used = vec![false; edges.len()];
    let mut rings = Vec::new();
    for first in 0..edges.len() {
        let (mut ring, mut here) = (Ring::new(), Some(first));
        let mut before = None;
        while let Some(at) = here.filter(|at| is_used.get(*at) == Some(&false)) {
            let Some(&edge) = edges.get(at) else { break };
            if let Some(is_used) = is_used.get_mut(at) {
                *is_used = true;
            }
            let direction = direction_of(edge);
            if before != Some(direction) {
                ring.push(corner(edge.0));
            }
            before = Some(direction);
            here = next(&edges, edge);
        }
        // The first point is no corner if the ring goes straight through it.
        if before == edges.get(first).map(|edge| direction_of(*edge)) && ring.len() > 1 {
            ring.remove(0);
        }
        if !ring.is_empty() {
            rings.push(ring);
        }
    }
    rings
}

#[expect(clippy::cast_precision_loss, reason = "the sides of masks are at most 2^20")]
fn corner((x, y): Point) -> [f32; 2] {
    [x as f32, y as f32]
}

/// An edge of a mask, with the mask on its right on the screen.
type Edge = (Point, Point);

/// All edges, sorted by their start.
fn edges_of(runs: &[Run]) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(runs.len() * 4);
    for Run { x, top, bottom } in runs {
        edges.push(((*x, *top), (x + 1, *top)));
        edges.push(((x + 1, *bottom), (*x, *bottom)));
    }
    let columns: Vec<&[Run]> = runs.chunk_by(|one, other| one.x == other.x).collect();
    let mut left: &[Run] = &[];
    for column in columns {
        let x = column.first().map_or(0, |run| run.x);
        if left.first().is_some_and(|run| run.x + 1 != x) {
            sides(left, &[], &mut edges);
            left = &[];
        }
        sides(left, column, &mut edges);
        left = column;
    }
    sides(left, &[], &mut edges);
    edges.sort_unstable();
    edges
}

/// Adds the vertical edges between two adjacent columns: where only one of them is part of the mask.
fn sides(left: &[Run], right: &[Run], edges: &mut Vec<Edge>) {
    let x = left.first().map(|run| run.x + 1).or(right.first().map(|run| run.x)).unwrap_or_default();
    let ends = |runs: &[Run], is_left: bool| -> Vec<(u32, bool)> {
        runs.iter().flat_map(|run| [(run.top, is_left), (run.bottom, is_left)]).collect()
    };
    let mut ends = [ends(left, true), ends(right, false)].concat();
    ends.sort_unstable();
    let (mut in_left, mut in_right, mut start) = (false, false, 0);
    for (y, is_left) in ends {
        if start < y && in_left != in_right {
            edges.push(if in_left { ((x, start), (x, y)) } else { ((x, y), (x, start)) });
        }
        start = y;
        if is_left {
            in_left = !in_left;
        } else {
            in_right = !in_right;
        }
    }
}

/// Whether an edge leads to the right, down, to the left or up, as steps of x and y.
fn direction_of(((from_x, from_y), (to_x, to_y)): Edge) -> (i8, i8) {
    let step = |from: u32, to: u32| match to.cmp(&from) {
        std::cmp::Ordering::Less => -1,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    };
    (step(from_x, to_x), step(from_y, to_y))
}

/// The edge after this one. Where two pixels touch at a corner, the ring turns right, and so stays at its own pixel.
fn next(edges: &[Edge], edge: Edge) -> Option<usize> {
    let from = edges.partition_point(|(start, _)| *start < edge.1);
    let n = edges.iter().skip(from).take_while(|(start, _)| *start == edge.1).count();
    let (x, y) = direction_of(edge);
    let turns_right = |at: &usize| edges.get(*at).is_some_and(|edge| direction_of(*edge) == (-y, x));
    let mut choices = from..from + n;
    if n == 1 { Some(from) } else { choices.find(turns_right) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::mutation::Dice;

    #[test]
    fn outer_rings_are_clockwise_on_the_screen() {
        let clockwise = [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]];
        let ring = outer(&clockwise).unwrap();
        assert_eq!((area(&ring), ring[1]), (2.0, [2.0, 0.0]));
        let other: Vec<[f64; 2]> = clockwise.iter().rev().copied().collect();
        let turned = outer(&other).unwrap();
        assert_eq!((area(&turned), turned[0]), (2.0, [0.0, 1.0]));
        assert_eq!(outer(&clockwise[..2]), Err(NoRing::Empty));
        assert_eq!(outer(&[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), Err(NoRing::Empty));
        assert_eq!(outer(&[[0.0, 0.0], [1e39, 1.0], [2.0, 0.0]]), Err(NoRing::TooFar));
        assert_eq!(outer(&[[0.0, f64::NAN], [1.0, 1.0], [2.0, 0.0]]), Err(NoRing::TooFar));
    }

    /// The runs of a mask that is drawn row by row.
    fn runs_of(rows: &[&[u8]]) -> Vec<Run> {
        let (mut runs, width) = (Vec::new(), rows.first().map_or(0, |row| row.len()));
        for x in 0..width {
            for (y, row) in rows.iter().enumerate().filter(|(_, row)| row[x] == b'#') {
                let [x, top] = [x, y].map(|side| u32::try_from(side).unwrap());
                assert_eq!(row.len(), width);
                push(&mut runs, Run { x, top, bottom: top + 1 });
            }
        }
        runs
    }

    #[test]
    fn a_mask_with_a_hole_is_an_outer_ring_and_one_that_runs_the_other_way() {
        let rings = trace(&runs_of(&[b"####.", b"#..#.", b"####."]));
        assert_eq!(
            rings,
            [
                vec![[0.0, 0.0], [4.0, 0.0], [4.0, 3.0], [0.0, 3.0]],
                vec![[1.0, 1.0], [1.0, 2.0], [3.0, 2.0], [3.0, 1.0]]
            ]
        );
        assert_eq!(rings.iter().map(|ring| area(ring)).collect::<Vec<_>>(), [12.0, -2.0]);
    }

    #[test]
    fn pixels_that_touch_at_a_corner_are_in_different_rings() {
        let rings = trace(&runs_of(&[b"#.", b".#"]));
        assert_eq!(rings.iter().map(|ring| area(ring)).collect::<Vec<_>>(), [1.0, 1.0]);
        let rings = trace(&runs_of(&[b".#", b"#."]));
        assert_eq!(rings.iter().map(|ring| area(ring)).collect::<Vec<_>>(), [1.0, 1.0]);
        assert!(trace(&[]).is_empty());
    }

    #[test]
    fn traced_masks_are_the_masks_by_pixel_centres() {
        let mut dice = Dice::new(11);
        for _ in 0..300 {
            let (width, height) = (1 + dice.below(9), 1 + dice.below(9));
            let share = 1 + dice.below(4);
            let rows: Vec<Vec<u8>> = (0..height)
                .map(|_| (0..width).map(|_| if dice.below(5) < share { b'#' } else { b'.' }).collect())
                .collect();
            let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
            let rings = trace(&runs_of(&rows));
            let size = (u32::try_from(width).unwrap(), u32::try_from(height).unwrap());
            let mut mask = vec![b'.'; width * height];
            packds_pixels::fill_rings(rings.iter().map(Vec::as_slice), size, &mut mask).unwrap();
            mask.iter_mut().filter(|pixel| **pixel == 1).for_each(|pixel| *pixel = b'#');
            assert_eq!(mask, rows.concat());
            // Every corner is one, and each ring has an area.
            for ring in &rings {
                let n = ring.len();
                assert!(
                    area(ring) != 0.0
                        && (0..n).all(|k| {
                            let [a, b, c] = [k, k + 1, k + 2].map(|k| ring[k % n]);
                            (a[0].to_bits() == b[0].to_bits()) != (b[0].to_bits() == c[0].to_bits())
                        }),
                    "{ring:?}"
                );
            }
        }
    }
}
