//! Moves keypoints with the image.

use super::movement::{Movement, moved};

/// x and y of a point in pixels, and its visibility: 0 if it is not labelled, 1 if it is hidden, 2 if it is visible.
pub type Keypoint = [f32; 3];

/// A point that is not labelled.
const UNLABELLED: Keypoint = [0.0; 3];

/// The points in the bytes of an entry of a stored field.
fn stored_points(entry: &[u8]) -> Vec<Keypoint> {
    let (points, _) = entry.as_chunks::<12>();
    let point = |point: &[u8; 12]| {
        let (numbers, _) = point.as_chunks();
        [0, 1, 2].map(|number| numbers.get(number).copied().map_or(f32::NAN, f32::from_le_bytes))
    };
    points.iter().map(point).collect()
}

impl Movement {
    /// Where the points of a box are in the view. `entry` has the bytes of the stored points. A point that a step moves
    /// out of the view is not labelled. In a mirror image, point `n` is the former point `swaps[n]`.
    pub fn keypoints(&self, entry: &[u8], swaps: &[u32]) -> Vec<Keypoint> {
        let points = stored_points(entry);
        let swap = |own: usize| {
            let other = swaps.get(own).filter(|_| self.is_mirrored());
            other.and_then(|other| usize::try_from(*other).ok()).unwrap_or(own)
        };
        let point = |own: usize| points.get(swap(own)).and_then(|point| self.keypoint(*point)).unwrap_or(UNLABELLED);
        (0..points.len()).map(point).collect()
    }

    #[expect(clippy::cast_possible_truncation, reason = "places are stored as f32")]
    fn keypoint(&self, [x, y, visibility]: Keypoint) -> Option<Keypoint> {
        let mut place = [x, y].map(f64::from);
        let [width, height] = [self.view.width, self.view.height].map(f64::from);
        for matrix in &self.matrices {
            place = moved(place, matrix);
            // A comparison with a number that is not finite is false.
            let is_inside = (0.0..=width).contains(&place[0]) && (0.0..=height).contains(&place[1]);
            is_inside.then_some(())?;
        }
        let [x, y] = place.map(|place| place as f32);
        (visibility > 0.0).then_some([x, y, visibility])
    }
}
