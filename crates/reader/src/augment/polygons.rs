//! Moves polygons with the image, and fills them to masks.

use packds_format::Polygons;
use packds_pixels::fill_rings;
use packds_system::{to_u64, to_usize};

use super::augmenter::grow;
use super::boxes::ShownBox;
use super::error::AugmentError;
use super::movement::{Movement, moved};

/// Maximum size of the masks of one image in bytes. The number of boxes comes from the file.
const MAX_MASK_BYTES: u64 = 1 << 30;

/// The polygons in the bytes of a stored field, for an image with `n_boxes` boxes.
///
/// # Errors
/// `Polygons` if they are malformed.
pub fn stored_polygons(item: &[u8], n_boxes: usize) -> Result<Polygons, AugmentError> {
    Polygons::parse(item, n_boxes).map_err(|reason| AugmentError::Polygons { reason })
}

impl Movement {
    /// The polygons of the boxes that the view shows, in the view. Like the image, rings are cut at the edges of the view
    /// after each step. Rings outside the view are left out. In a mosaic, `n_before` boxes of other images come
    /// before these.
    pub fn polygons(&self, stored: &Polygons, shown: &[ShownBox], n_before: usize) -> Polygons {
        let mut polygons = Polygons::default();
        let edges = [self.view.width, self.view.height].map(f64::from);
        for (of, shown) in shown.iter().enumerate() {
            for ring in stored.rings_of(shown.index) {
                let mut ring: Vec<[f64; 2]> = ring.iter().map(|vertex| vertex.map(f64::from)).collect();
                for matrix in &self.matrices {
                    ring = ring.into_iter().map(|vertex| moved(vertex, matrix)).collect();
                    ring = cut(ring, edges);
                }
                if ring.len() > 2 {
                    polygons.push_ring(n_before + of, ring.into_iter().map(|vertex| self.delivered(vertex)));
                }
            }
        }
        polygons
    }
}

/// Writes a mask of `width` x `height` bytes for each of `n_boxes` boxes, one after another: 1 inside the object.
///
/// # Errors
/// `Polygons` if the masks have more than 1 GiB, and `Pixels` if a ring is too long.
pub fn fill_masks(
    polygons: &Polygons,
    n_boxes: usize,
    (width, height): (u32, u32),
    masks: &mut Vec<u8>,
) -> Result<(), AugmentError> {
    let one = u64::from(width).saturating_mul(height.into());
    let all = one.saturating_mul(to_u64(n_boxes));
    if all > MAX_MASK_BYTES {
        let reason =
            format!("expected at most 2^30 bytes of masks, found {n_boxes} boxes in {width} x {height} pixels");
        return Err(AugmentError::Polygons { reason });
    }
    masks.clear();
    grow(masks, to_usize(all))?;
    for (of, mask) in masks.chunks_exact_mut(to_usize(one.max(1))).enumerate() {
        fill_rings(polygons.rings_of(of), (width, height), mask)?;
    }
    Ok(())
}

/// The part of a ring inside an image of this size. It winds around the pixels of the image as the whole ring does.
fn cut(mut ring: Vec<[f64; 2]>, size: [f64; 2]) -> Vec<[f64; 2]> {
    for (axis, end) in size.into_iter().enumerate() {
        for (bound, side) in [(0.0, 1.0), (end, -1.0)] {
            let place = |[x, y]: &[f64; 2]| if axis == 0 { *x } else { *y };
            let is_inside = |vertex: &[f64; 2]| (place(vertex) - bound) * side >= 0.0;
            if ring.iter().all(is_inside) {
                continue;
            }
            let mut inside = Vec::with_capacity(ring.len() + 1);
            for (from, to) in ring.iter().zip(ring.iter().cycle().skip(1)) {
                if is_inside(from) {
                    inside.push(*from);
                }
                if is_inside(from) != is_inside(to) {
                    let share = (bound - place(from)) / (place(to) - place(from));
                    let [x, y] = [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])];
                    inside.push(if axis == 0 { [bound, y] } else { [x, bound] });
                }
            }
            ring = inside;
        }
    }
    ring
}
