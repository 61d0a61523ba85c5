//! Draws boxes over a thumbnail, with their polygons and keypoints.

use std::borrow::Cow;

use packds_format::{DType, Field, Polygons, Role, Scalar};
use packds_pixels::{Image, fill_rings};
use packds_reader::Pack;
use packds_report::Rgb;
use packds_system::to_usize;

use super::keypoints::Points;
use super::picture::color_of;

/// The boxes of a sample.
pub(super) struct Boxes<'a> {
    /// Left, top, right and bottom, in pixels of the stored image.
    sides: Vec<[f64; 4]>,
    /// The class of each box. Empty if boxes have no classes.
    labels: Vec<i64>,
    /// The field of the classes.
    pub(super) of: Option<&'a Field>,
    polygons: Polygons,
    points: Option<Points<'a>>,
}

impl<'a> Boxes<'a> {
    /// The boxes among the body items of a sample. `None` if the pack has none. The error says what is wrong with their
    /// polygons.
    pub(super) fn among(pack: &'a Pack, items: &[Cow<'_, [u8]>]) -> Result<Option<Self>, String> {
        let item = |role| {
            let mut body = pack.schema().body().map(|(_, field)| field).enumerate();
            let (position, field) = body.find(|(_, field)| field.role == Some(role))?;
            Some((field, items.get(position)?))
        };
        let Some((_, boxes)) = item(Role::Boxes) else { return Ok(None) };
        let numbers: Vec<f64> = Scalar::each(DType::F32, boxes).map(Scalar::nearest_f64).collect();
        let (of, labels) = item(Role::BoxLabels).unzip();
        let labels = labels.map_or(&[][..], |item| item);
        let labels = Scalar::each(DType::I64, labels).filter_map(Scalar::integer).collect();
        let sides = numbers.as_chunks::<4>().0.to_vec();
        let polygons = item(Role::Polygons).map_or(&[][..], |(_, item)| item);
        let polygons = Polygons::parse(polygons, sides.len()).map_err(|reason| format!("polygons: {reason}"))?;
        let points = item(Role::Keypoints).map(|(field, item)| Points::new(field, item));
        Ok(Some(Self { sides, labels, of, polygons, points }))
    }

    /// The classes that occur, by the id of their colour. Colour 0 is black, which class 0 of masks has.
    pub(super) fn classes(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.labels.iter().map(|label| (label.saturating_add(1), *label))
    }

    /// Draws the boxes over `shown`, a thumbnail of an image of `width` x `height` pixels.
    pub(super) fn draw(&self, (width, height): (u32, u32), shown: &mut Image) {
        let scale =
            [f64::from(shown.width) / f64::from(width.max(1)), f64::from(shown.height) / f64::from(height.max(1))];
        let colors = || self.classes().map(|(color, _)| color_of(color)).chain(std::iter::repeat(color_of(1)));
        for (of, color) in (0..self.sides.len()).zip(colors()) {
            self.fill(of, scale, color, shown);
        }
        for (of, (&[left, top, right, bottom], color)) in self.sides.iter().zip(colors()).enumerate() {
            let (x0, x1) = ends(left * scale[0], right * scale[0], shown.width);
            let (y0, y1) = ends(top * scale[1], bottom * scale[1], shown.height);
            for x in x0..=x1 {
                [y0, y1].into_iter().for_each(|y| put(shown, (x, y), color));
            }
            for y in y0..=y1 {
                [x0, x1].into_iter().for_each(|x| put(shown, (x, y), color));
            }
            if let Some(points) = &self.points {
                points.draw(of, scale, color, shown);
            }
        }
    }

    /// Fills the polygons of a box, half transparent within a line.
    #[expect(clippy::cast_possible_truncation, reason = "places in a thumbnail")]
    fn fill(&self, of: usize, scale: [f64; 2], color: Rgb, shown: &mut Image) {
        let [across, down] = scale.map(|factor| factor as f32);
        let scaled = |ring: &[[f32; 2]]| ring.iter().map(|[x, y]| [x * across, y * down]).collect();
        let rings: Vec<Vec<[f32; 2]>> = self.polygons.rings_of(of).map(scaled).collect();
        if rings.is_empty() {
            return;
        }
        let width = to_usize(shown.width);
        let mut mask = vec![0; width * to_usize(shown.height)];
        // Rings that are too long are not drawn.
        let is_filled = fill_rings(rings.iter().map(Vec::as_slice), (shown.width, shown.height), &mut mask).is_ok();
        if !is_filled {
            return;
        }
        let is_inside = |at: Option<usize>| at.and_then(|at| mask.get(at)).is_some_and(|value| *value > 0);
        for (at, pixel) in shown.data.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let near = [at.checked_sub(1), Some(at + 1), at.checked_sub(width), Some(at + width)];
            if !is_inside(Some(at)) {
                continue;
            }
            let is_line = !near.into_iter().all(is_inside);
            let blended = [0, 1, 2].map(|channel: usize| {
                let of_color = color.get(channel).copied().unwrap_or(0);
                pixel.get(channel).map_or(of_color, |value| value.midpoint(of_color))
            });
            *pixel = if is_line { color } else { blended };
        }
    }
}

/// The first and the last pixel of a side, within an image of `n` pixels.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited to the image")]
fn ends(start: f64, end: f64, n: u32) -> (u32, u32) {
    let last = f64::from(n.saturating_sub(1));
    // NaN becomes 0.
    (start.floor().clamp(0.0, last) as u32, (end.ceil() - 1.0).clamp(0.0, last) as u32)
}

pub(super) fn put(shown: &mut Image, (x, y): (u32, u32), color: [u8; 3]) {
    let start = (to_usize(y) * to_usize(shown.width) + to_usize(x)) * 3;
    if let Some(pixel) = shown.data.get_mut(start..start + 3) {
        pixel.copy_from_slice(&color);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sides: [f64; 4]) -> Vec<(u32, u32)> {
        let boxes =
            Boxes { sides: vec![sides], labels: vec![0], of: None, polygons: Polygons::default(), points: None };
        let mut shown = Image { width: 5, height: 4, channels: 3, data: vec![0; 60] };
        boxes.draw((10, 8), &mut shown);
        let pixels = shown.data.as_chunks::<3>().0.iter().zip(0..);
        pixels.filter(|(pixel, _)| **pixel == color_of(1)).map(|(_, at)| (at % 5, at / 5)).collect()
    }

    #[test]
    fn a_box_is_scaled_with_the_image() {
        let found = drawn([2.0, 2.0, 8.0, 8.0]);
        assert_eq!(found, [(1, 1), (2, 1), (3, 1), (1, 2), (3, 2), (1, 3), (2, 3), (3, 3)]);
    }

    #[test]
    fn a_polygon_is_half_transparent_within_its_line() {
        let mut polygons = Polygons::default();
        polygons.push_ring(0, [[0.0, 0.0], [12.0, 0.0], [12.0, 10.0], [0.0, 10.0]]);
        let boxes = Boxes { sides: vec![[0.0; 4]], labels: vec![0], of: None, polygons, points: None };
        let mut shown = Image { width: 8, height: 7, channels: 3, data: vec![0; 168] };
        boxes.fill(0, [0.5, 0.5], [200, 100, 0], &mut shown);
        let count = |color: [u8; 3]| shown.data.as_chunks::<3>().0.iter().filter(|pixel| **pixel == color).count();
        assert_eq!((count([200, 100, 0]), count([100, 50, 0])), (18, 12));
    }

    #[test]
    fn a_box_beyond_the_image_ends_at_its_edge() {
        assert_eq!(drawn([-5.0, -5.0, 99.0, 99.0]).len(), 14);
        assert_eq!(drawn([f64::NAN; 4]), [(0, 0)]);
    }
}
