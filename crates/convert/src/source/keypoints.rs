//! The keypoints of a box: x, y and visibility of each. The modules that read boxes share them.

use std::cmp::Ordering;

use super::ragged::single;

/// Maximum number of points of a box.
pub(super) const MAX_POINTS: usize = 1 << 10;

/// The points of a box: x and y in pixels, and the visibility.
pub(super) type Points = Vec<[f32; 3]>;

/// A point. The visibility is 0 (not labelled), 1 (hidden) or 2 (visible). The place of a point that is not labelled is 0, 0.
pub(super) fn of_point([x, y, mark]: [f64; 3]) -> Result<[f32; 3], String> {
    let known = [0_u8, 1, 2].into_iter().find(|known| f64::from(*known).partial_cmp(&mark) == Some(Ordering::Equal));
    match (known, single(x), single(y)) {
        (None, ..) => Err(format!("expected 0, 1 or 2 as the visibility of a keypoint, found {mark}")),
        (Some(0), ..) => Ok([0.0; 3]),
        (Some(visibility), Some(x), Some(y)) => Ok([x, y, f32::from(visibility)]),
        _ => Err("a keypoint is too far away".to_owned()),
    }
}

/// The points of a box, and zeros up to `n` points.
pub(super) fn padded(points: &[[f32; 3]], n: usize) -> impl Iterator<Item = [f32; 3]> {
    points.iter().copied().chain(std::iter::repeat([0.0; 3])).take(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_are_not_labelled_are_zeros() {
        assert_eq!(of_point([1.5, 2.0, 2.0]), Ok([1.5, 2.0, 2.0]));
        assert_eq!(of_point([1.5, 2.0, 1.0]), Ok([1.5, 2.0, 1.0]));
        assert_eq!(of_point([1.5, 2.0, 0.0]), Ok([0.0; 3]));
        for (point, words) in [
            ([1.0, 1.0, 3.0], "expected 0, 1 or 2 as the visibility of a keypoint, found 3"),
            ([1.0, 1.0, 0.5], "found 0.5"),
            ([1e39, 1.0, 2.0], "too far away"),
        ] {
            assert!(of_point(point).unwrap_err().contains(words));
        }
        assert_eq!(padded(&[[1.0, 2.5, 2.0]], 2).collect::<Points>(), [[1.0, 2.5, 2.0], [0.0; 3]]);
    }
}
