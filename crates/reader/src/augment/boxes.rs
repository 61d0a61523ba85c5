//! Moves boxes with the image: where each one is in a view, and which of them remain.

use super::geometry::Matrix;
use super::movement::{Movement, moved};
use super::op::Size;

/// The left, top, right and bottom side of a box, in pixels. 0, 0 is the upper left corner of the image.
pub type BoundingBox = [f32; 4];

/// Boxes with a shorter side are left out by default. This is the default of torchvision's `SanitizeBoundingBoxes`.
pub(super) const MIN_SIDE: f64 = 1.0;

/// Which boxes remain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MinBox {
    /// The shortest side, in pixels of the view.
    pub(super) side: f64,
    /// The smallest part of the box that the view shows, from 0 to 1.
    pub(super) visible: f64,
}

/// A box that a view shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShownBox {
    /// Its index among the boxes of the stored image.
    pub index: usize,
    /// Its sides in the view.
    pub sides: BoundingBox,
}

/// The boxes in the bytes of a stored field.
pub fn stored_boxes(item: &[u8]) -> Vec<BoundingBox> {
    let (boxes, _) = item.as_chunks::<16>();
    let sides = |sides: &[u8; 16]| {
        let (sides, _) = sides.as_chunks();
        [0, 1, 2, 3].map(|side| sides.get(side).copied().map_or(f32::NAN, f32::from_le_bytes))
    };
    boxes.iter().map(sides).collect()
}

impl Movement {
    /// The boxes that the view shows. A box is clipped after the crop and after each rotation or affine transform, which
    /// make it the rectangle around its corners. This is how torchvision's transforms move boxes. Boxes that become
    /// smaller than the limits of the plan are left out.
    pub fn boxes(&self, boxes: &[BoundingBox]) -> Vec<ShownBox> {
        let candidates = boxes.iter().enumerate().filter(|(_, sides)| self.frame.keeps(sides));
        let shown = candidates.filter_map(|(index, sides)| {
            let sides = remaining(sides.map(f64::from), &self.matrices, self.view, self.limits)?;
            Some(ShownBox { index, sides })
        });
        shown.collect()
    }
}

/// Moves a box by each matrix. `None` if too little of it remains, or if it is not a box.
#[expect(clippy::cast_possible_truncation, reason = "sides are stored as f32")]
fn remaining(mut sides: [f64; 4], matrices: &[Matrix], view: Size, limits: MinBox) -> Option<BoundingBox> {
    let [left, top, right, bottom] = sides;
    if right < left || bottom < top {
        return None;
    }
    let mut visible = 1.0;
    for matrix in matrices {
        let whole = around(sides, matrix);
        sides = clipped(whole, view);
        visible *= area(sides) / area(whole);
    }
    let [left, top, right, bottom] = sides;
    // A comparison with a number that is not finite is false, so such boxes are left out.
    let remains = right - left >= limits.side && bottom - top >= limits.side && visible >= limits.visible;
    remains.then(|| sides.map(|side| side as f32))
}

/// The rectangle around the corners of a box after the transform.
fn around([left, top, right, bottom]: [f64; 4], matrix: &Matrix) -> [f64; 4] {
    let corners = [[left, top], [right, top], [right, bottom], [left, bottom]].map(|corner| moved(corner, matrix));
    let (xs, ys) = (corners.map(|[x, _]| x), corners.map(|[_, y]| y));
    let least = |values: [f64; 4]| values.into_iter().fold(f64::INFINITY, f64::min);
    let most = |values: [f64; 4]| values.into_iter().fold(f64::NEG_INFINITY, f64::max);
    [least(xs), least(ys), most(xs), most(ys)]
}

fn clipped([left, top, right, bottom]: [f64; 4], view: Size) -> [f64; 4] {
    let (width, height) = (f64::from(view.width), f64::from(view.height));
    [left.clamp(0.0, width), top.clamp(0.0, height), right.clamp(0.0, width), bottom.clamp(0.0, height)]
}

fn area([left, top, right, bottom]: [f64; 4]) -> f64 {
    (right - left) * (bottom - top)
}
