//! Draws the outlines of boxes over a thumbnail.

use std::borrow::Cow;

use packds_format::{DType, Field, Role, Scalar};
use packds_pixels::Image;
use packds_reader::Pack;
use packds_system::to_usize;

use super::picture::color_of;

/// The boxes of a sample.
pub(super) struct Boxes<'a> {
    /// Left, top, right and bottom, in pixels of the stored image.
    sides: Vec<[f64; 4]>,
    /// The class of each box. Empty if boxes have no classes.
    labels: Vec<i64>,
    /// The field of the classes.
    pub(super) of: Option<&'a Field>,
}

impl<'a> Boxes<'a> {
    /// The boxes among the body items of a sample. `None` if the pack has none.
    pub(super) fn among(pack: &'a Pack, items: &[Cow<'_, [u8]>]) -> Option<Self> {
        let item = |role| {
            let mut body = pack.schema().body().map(|(_, field)| field).enumerate();
            let (position, field) = body.find(|(_, field)| field.role == Some(role))?;
            Some((field, items.get(position)?))
        };
        let (_, boxes) = item(Role::Boxes)?;
        let numbers: Vec<f64> = Scalar::each(DType::F32, boxes).map(Scalar::nearest_f64).collect();
        let (of, labels) = item(Role::BoxLabels).unzip();
        let labels = labels.map_or(&[][..], |item| item);
        let labels = Scalar::each(DType::I64, labels).filter_map(Scalar::integer).collect();
        Some(Self { sides: numbers.as_chunks::<4>().0.to_vec(), labels, of })
    }

    /// The classes that occur, by the id of their colour. Colour 0 is black, which class 0 of masks has.
    pub(super) fn classes(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.labels.iter().map(|label| (label.saturating_add(1), *label))
    }

    /// Draws the boxes over `shown`, a thumbnail of an image of `width` x `height` pixels.
    pub(super) fn draw(&self, (width, height): (u32, u32), shown: &mut Image) {
        let scale =
            [f64::from(shown.width) / f64::from(width.max(1)), f64::from(shown.height) / f64::from(height.max(1))];
        let mut colors = self.classes().map(|(color, _)| color_of(color));
        for &[left, top, right, bottom] in &self.sides {
            let color = colors.next().unwrap_or_else(|| color_of(1));
            let (x0, x1) = ends(left * scale[0], right * scale[0], shown.width);
            let (y0, y1) = ends(top * scale[1], bottom * scale[1], shown.height);
            for x in x0..=x1 {
                [y0, y1].into_iter().for_each(|y| put(shown, (x, y), color));
            }
            for y in y0..=y1 {
                [x0, x1].into_iter().for_each(|x| put(shown, (x, y), color));
            }
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

fn put(shown: &mut Image, (x, y): (u32, u32), color: [u8; 3]) {
    let start = (to_usize(y) * to_usize(shown.width) + to_usize(x)) * 3;
    if let Some(pixel) = shown.data.get_mut(start..start + 3) {
        pixel.copy_from_slice(&color);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sides: [f64; 4]) -> Vec<(u32, u32)> {
        let boxes = Boxes { sides: vec![sides], labels: vec![0], of: None };
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
    fn a_box_beyond_the_image_ends_at_its_edge() {
        assert_eq!(drawn([-5.0, -5.0, 99.0, 99.0]).len(), 14);
        assert_eq!(drawn([f64::NAN; 4]), [(0, 0)]);
    }
}
