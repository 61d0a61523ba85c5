//! The outlines of objects: read from a field with role polygons, moved with the image, and filled to masks.

use std::ops::Range;

use packds_pixels::fill_rings;
use packds_system::{to_u64, to_usize};

use super::augmenter::grow;
use super::boxes::ShownBox;
use super::error::AugmentError;
use super::movement::{Movement, moved};

/// Maximum size of the masks of one image in bytes. The number of boxes comes from the file.
const MAX_MASK_BYTES: u64 = 1 << 30;
/// Indexes in a field of `f32` are exact up to this number.
const MAX_INDEX: f32 = 16_777_216.0;

/// The rings of all boxes of an image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outlines {
    /// x and y in pixels. 0, 0 is the upper left corner of the image.
    vertices: Vec<[f32; 2]>,
    /// Ascending by box.
    rings: Vec<Ring>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ring {
    /// The index of its box.
    of: usize,
    vertices: Range<usize>,
}

impl Outlines {
    /// The outlines in the bytes of a stored field, for an image with `n_boxes` boxes.
    ///
    /// # Errors
    /// `Polygons` if a vertex is not finite, if an index is not one of a box or of a ring, or if they do not ascend.
    pub fn stored(item: &[u8], n_boxes: usize) -> Result<Self, AugmentError> {
        let mut outlines = Self::default();
        let mut last: Option<[f32; 2]> = None;
        for (number, vertex) in item.as_chunks::<16>().0.iter().enumerate() {
            let bad = |what, expected: String, found: String| {
                Err(AugmentError::Polygons { what: format!("{what} of vertex {number}"), expected, found })
            };
            let [of, ring, x, y] = floats(vertex);
            if !(x.is_finite() && y.is_finite()) {
                return bad("the place", "finite numbers".to_owned(), format!("{x}, {y}"));
            }
            let is_index = |index: f32| index.fract() == 0.0 && (0.0..=MAX_INDEX).contains(&index);
            let Some(index) = index_of(of).filter(|index| is_index(of) && *index < n_boxes) else {
                return bad("the box", format!("an index below {n_boxes}"), of.to_string());
            };
            if !is_index(ring) {
                return bad("the ring", "an index from 0 to 2^24".to_owned(), ring.to_string());
            }
            if last.is_some_and(|last| [of, ring] < last) {
                return bad("the box and the ring", "them to ascend".to_owned(), format!("{of} and {ring}"));
            }
            if last != Some([of, ring]) {
                outlines.begin(index);
            }
            last = Some([of, ring]);
            outlines.push([x, y]);
        }
        Ok(outlines)
    }

    /// Begins a ring of a box.
    fn begin(&mut self, of: usize) {
        let start = self.vertices.len();
        self.rings.push(Ring { of, vertices: start..start });
    }

    fn push(&mut self, vertex: [f32; 2]) {
        self.vertices.push(vertex);
        if let Some(ring) = self.rings.last_mut() {
            ring.vertices.end = self.vertices.len();
        }
    }

    /// The outlines of the boxes that a view shows, in the view. Like the image, rings are cut at the edges of the view
    /// after each step. Rings of which nothing is left are left out.
    #[expect(clippy::cast_possible_truncation, reason = "places are stored as f32")]
    #[must_use]
    pub fn moved(&self, movement: &Movement, shown: &[ShownBox]) -> Self {
        let mut outlines = Self::default();
        let edges = [movement.view.width, movement.view.height].map(f64::from);
        for (of, shown) in shown.iter().enumerate() {
            for ring in self.rings_of(shown.index) {
                let mut ring: Vec<[f64; 2]> = ring.iter().map(|vertex| vertex.map(f64::from)).collect();
                for matrix in &movement.matrices {
                    ring = ring.into_iter().map(|vertex| moved(vertex, matrix)).collect();
                    ring = cut(ring, edges);
                }
                if ring.len() > 2 {
                    outlines.begin(of);
                    ring.into_iter().for_each(|vertex| outlines.push(vertex.map(|place| place as f32)));
                }
            }
        }
        outlines
    }

    /// The same outlines in an image that is resized by these factors.
    #[must_use]
    pub fn scaled(mut self, [across, down]: [f32; 2]) -> Self {
        self.vertices.iter_mut().for_each(|[x, y]| (*x, *y) = (*x * across, *y * down));
        self
    }

    /// The rings of a box.
    pub fn rings_of(&self, of: usize) -> impl Iterator<Item = &[[f32; 2]]> {
        let start = self.rings.partition_point(|ring| ring.of < of);
        let rings = self.rings.iter().skip(start).take_while(move |ring| ring.of == of);
        rings.filter_map(|ring| self.vertices.get(ring.vertices.clone()))
    }

    /// The bytes of a field with these outlines.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.vertices.len().saturating_mul(16));
        let (mut of, mut number) = (None, 0.0);
        for ring in &self.rings {
            number = if of == Some(ring.of) { number + 1.0 } else { 0.0 };
            of = Some(ring.of);
            let vertices = self.vertices.get(ring.vertices.clone()).unwrap_or_default();
            let vertices = vertices.iter().flat_map(|[x, y]| [index(ring.of), number, *x, *y]);
            bytes.extend(vertices.flat_map(f32::to_le_bytes));
        }
        bytes
    }

    /// Writes a mask of `width` x `height` bytes for each of `n_boxes` boxes, one after another: 1 inside the object.
    ///
    /// # Errors
    /// `Polygons` if the masks have more than 1 GiB, and `Pixels` if an outline is too long.
    pub fn masks(&self, n_boxes: usize, (width, height): (u32, u32), masks: &mut Vec<u8>) -> Result<(), AugmentError> {
        let one = u64::from(width).saturating_mul(height.into());
        let all = one.saturating_mul(to_u64(n_boxes));
        if all > MAX_MASK_BYTES {
            return Err(AugmentError::Polygons {
                what: format!("the masks of {n_boxes} boxes"),
                expected: "at most 2^30 bytes".to_owned(),
                found: format!("{all} bytes, {width} x {height} for each box"),
            });
        }
        masks.clear();
        grow(masks, to_usize(all))?;
        for (of, mask) in masks.chunks_exact_mut(to_usize(one.max(1))).enumerate() {
            fill_rings(self.rings_of(of), (width, height), mask)?;
        }
        Ok(())
    }
}

/// The four numbers of an entry.
fn floats(entry: &[u8; 16]) -> [f32; 4] {
    let (numbers, _) = entry.as_chunks();
    [0, 1, 2, 3].map(|place| numbers.get(place).copied().map_or(f32::NAN, f32::from_le_bytes))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in the range of indexes")]
fn index_of(number: f32) -> Option<usize> {
    (0.0..=MAX_INDEX).contains(&number).then_some(number as usize)
}

#[expect(clippy::cast_precision_loss, reason = "stored indexes are at most 2^24, and a view has no more boxes")]
fn index(of: usize) -> f32 {
    of as f32
}

/// The part of a ring inside an image of this size. It winds around the pixels of the image as the whole ring does.
fn cut(mut ring: Vec<[f64; 2]>, size: [f64; 2]) -> Vec<[f64; 2]> {
    for (axis, end) in size.into_iter().enumerate() {
        for (bound, side) in [(0.0, 1.0), (end, -1.0)] {
            let place = |vertex: &[f64; 2]| vertex.get(axis).copied().unwrap_or(0.0);
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
                    let [x, y] = [0, 1].map(|axis| between(from, to, axis, share));
                    inside.push(if axis == 0 { [bound, y] } else { [x, bound] });
                }
            }
            ring = inside;
        }
    }
    ring
}

fn between(from: &[f64; 2], to: &[f64; 2], axis: usize, share: f64) -> f64 {
    let place = |vertex: &[f64; 2]| vertex.get(axis).copied().unwrap_or(0.0);
    place(from) + share * (place(to) - place(from))
}
