//! Draws keypoints over a thumbnail: a dot for each point, and the lines of the skeleton.

use packds_format::{DType, Field, Scalar};
use packds_pixels::Image;
use packds_report::Rgb;
use packds_system::to_usize;

use super::boxes::put;

/// The colours of visible and of hidden points.
const VISIBLE: Rgb = [255; 3];
const HIDDEN: Rgb = [128; 3];

/// The keypoints of all boxes of a sample.
pub(super) struct Points<'a> {
    /// x, y and visibility of each point, in pixels of the stored image.
    points: Vec<[f64; 3]>,
    field: &'a Field,
}

impl<'a> Points<'a> {
    pub(super) fn new(field: &'a Field, item: &[u8]) -> Self {
        let numbers: Vec<f64> = Scalar::each(DType::F32, item).map(Scalar::nearest_f64).collect();
        Self { points: numbers.as_chunks::<3>().0.to_vec(), field }
    }

    /// Draws the points of a box over an image that is resized by these factors.
    pub(super) fn draw(&self, of: usize, scale: [f64; 2], color: Rgb, shown: &mut Image) {
        let n = self.field.shape.first().copied().map_or(1, to_usize).max(1);
        let points = self.points.chunks_exact(n).nth(of).unwrap_or_default();
        let place = |point: u32| {
            let point = points.get(to_usize(point)).filter(|point| point[2] > 0.0)?;
            Some([point[0] * scale[0], point[1] * scale[1]])
        };
        for [from, to] in self.field.keypoints.iter().flat_map(|keypoints| &keypoints.skeleton) {
            if let (Some(from), Some(to)) = (place(*from), place(*to)) {
                line(from, to, color, shown);
            }
        }
        for [x, y, visibility] in points.iter().filter(|point| point[2] > 0.0) {
            let color = if *visibility > 1.0 { VISIBLE } else { HIDDEN };
            let [x, y] = [x * scale[0], y * scale[1]];
            for (right, down) in [(0.0, 0.0), (-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0)] {
                dot([x + right, y + down], color, shown);
            }
        }
    }
}

/// Draws the pixel at a place, if it is inside the image.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside the image")]
fn dot([x, y]: [f64; 2], color: Rgb, shown: &mut Image) {
    if (0.0..f64::from(shown.width)).contains(&x) && (0.0..f64::from(shown.height)).contains(&y) {
        put(shown, (x as u32, y as u32), color);
    }
}

/// Draws the part of a line that is inside the image.
fn line(from: [f64; 2], to: [f64; 2], color: Rgb, shown: &mut Image) {
    let (mut start, mut end) = (0.0_f64, 1.0_f64);
    let along = [to[0] - from[0], to[1] - from[1]];
    for (axis, side) in [f64::from(shown.width), f64::from(shown.height)].into_iter().enumerate() {
        let ([x, y], [across, down]) = (from, along);
        let (place, along) = if axis == 0 { (x, across) } else { (y, down) };
        if along == 0.0 {
            continue;
        }
        let (enter, leave) = ((0.0 - place) / along, (side - place) / along);
        (start, end) = (start.max(enter.min(leave)), end.min(enter.max(leave)));
    }
    let long = (along[0].abs().max(along[1].abs()) * (end - start)).ceil();
    // Not if the line misses the image, or a place is not a number.
    if !(start < end && (0.0..=f64::from(shown.width) + f64::from(shown.height)).contains(&long)) {
        return;
    }
    let mut step = 0.5;
    while step < long {
        let share = start + (end - start) * step / long;
        dot([from[0] + along[0] * share, from[1] + along[1] * share], color, shown);
        step += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packds_format::{Keypoints, Role};

    fn drawn(points: &[[f32; 3]], skeleton: Vec<[u32; 2]>) -> Vec<(u32, u32, Rgb)> {
        let n = u64::try_from(points.len()).unwrap();
        let mut field = Field::ragged("joints", DType::F32, &[n, 3]).with_role(Role::Keypoints);
        let names = (0..n).map(|number| number.to_string()).collect();
        field.keypoints = Some(Keypoints::named(names, skeleton));
        let item: Vec<u8> = points.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
        let mut shown = Image { width: 7, height: 5, channels: 3, data: vec![0; 105] };
        Points::new(&field, &item).draw(0, [1.0, 1.0], [1, 2, 3], &mut shown);
        let pixels = shown.data.as_chunks::<3>().0.iter().zip(0..);
        pixels.filter(|(pixel, _)| **pixel != [0; 3]).map(|(pixel, at)| (at % 7, at / 7, *pixel)).collect()
    }

    #[test]
    fn labelled_points_are_dots() {
        let found = drawn(&[[1.5, 1.5, 2.0], [5.5, 3.5, 1.0], [3.5, 3.5, 0.0]], vec![[0, 2]]);
        let dots =
            [(1, 0, VISIBLE), (0, 1, VISIBLE), (1, 1, VISIBLE), (2, 1, VISIBLE), (1, 2, VISIBLE), (5, 2, HIDDEN)];
        assert_eq!(found[..6], dots);
        assert_eq!(found.len(), 10);
    }

    #[test]
    fn lines_end_at_the_edges_of_the_image() {
        let line = |from: [f32; 2], to: [f32; 2]| {
            let found = drawn(&[[from[0], from[1], 2.0], [to[0], to[1], 2.0]], vec![[0, 1]]);
            found.into_iter().filter(|(.., color)| *color == [1, 2, 3]).map(|(x, y, _)| (x, y)).collect::<Vec<_>>()
        };
        let middle: Vec<(u32, u32)> = (0..7).map(|x| (x, 2)).collect();
        assert_eq!(line([-9.0, 2.5], [20.0, 2.5]), middle);
        assert_eq!(line([-1e6, 2.5], [1e6, 2.5]), middle);
        // Its ends are too far away to say where it is.
        assert!(line([-1e30, 2.5], [1e30, 2.5]).len() < 8);
        assert!(line([-9.0, -2.5], [20.0, -2.5]).is_empty());
        assert!(line([f32::NAN, 2.5], [f32::INFINITY, 2.5]).is_empty());
    }
}
