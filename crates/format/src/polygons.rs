//! The items of a field with role `polygons`: the rings around the objects in the boxes. See docs/reference/format.md,
//! "Keypoints and polygons".

use std::ops::Range;

/// Indexes in a field of `f32` are exact up to this number.
const MAX_INDEX: f32 = 16_777_216.0;

/// The rings of all boxes of a sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Polygons {
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

impl Polygons {
    /// The polygons in an item of a sample with `n_boxes` boxes.
    ///
    /// # Errors
    /// A sentence that says which vertex is not finite, has an index that is not one of a box or of a ring, or does not
    /// follow the one before it.
    pub fn parse(item: &[u8], n_boxes: usize) -> Result<Self, String> {
        let mut polygons = Self::default();
        let mut last = None;
        for (number, vertex) in item.as_chunks::<16>().0.iter().enumerate() {
            let bad = |what: &str, expected: &str, found: String| {
                Err(format!("{what} of vertex {number}: expected {expected}, found {found}"))
            };
            let (numbers, _) = vertex.as_chunks();
            let [of, ring, x, y] =
                [0, 1, 2, 3].map(|place| numbers.get(place).copied().map_or(f32::NAN, f32::from_le_bytes));
            if !(x.is_finite() && y.is_finite()) {
                return bad("the place", "finite numbers", format!("{x}, {y}"));
            }
            let Some(index) = index_of(of).filter(|index| *index < n_boxes) else {
                return bad("the box", &format!("an index below {n_boxes}"), of.to_string());
            };
            let Some(ring_index) = index_of(ring) else {
                return bad("the ring", "an index from 0 to 2^24", ring.to_string());
            };
            let own = Some((index, ring_index));
            if own < last {
                return bad("the box and the ring", "them to ascend", format!("{of} and {ring}"));
            }
            if own > last {
                polygons.begin(index);
            }
            last = own;
            polygons.push([x, y]);
        }
        Ok(polygons)
    }

    /// Adds a ring of a box. Boxes must ascend.
    pub fn push_ring(&mut self, of: usize, vertices: impl IntoIterator<Item = [f32; 2]>) {
        self.begin(of);
        vertices.into_iter().for_each(|vertex| self.push(vertex));
    }

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

    /// The rings of a box. The last vertex of a ring is connected to the first.
    pub fn rings_of(&self, of: usize) -> impl Iterator<Item = &[[f32; 2]]> {
        let start = self.rings.partition_point(|ring| ring.of < of);
        let rings = self.rings.iter().skip(start).take_while(move |ring| ring.of == of);
        rings.filter_map(|ring| self.vertices.get(ring.vertices.clone()))
    }

    /// The item of a field with these polygons. Rings of each box are numbered from 0.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.vertices.len().saturating_mul(16));
        let (mut of, mut number) = (None, 0.0);
        for ring in &self.rings {
            number = if of == Some(ring.of) { number + 1.0 } else { 0.0 };
            of = Some(ring.of);
            let vertices = self.vertices.get(ring.vertices.clone()).unwrap_or_default();
            let vertices = vertices.iter().flat_map(|[x, y]| [number_of(ring.of), number, *x, *y]);
            bytes.extend(vertices.flat_map(f32::to_le_bytes));
        }
        bytes
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in the range of indexes")]
fn index_of(number: f32) -> Option<usize> {
    ((0.0..=MAX_INDEX).contains(&number) && number.fract() == 0.0).then_some(number as usize)
}

#[expect(clippy::cast_precision_loss, reason = "indexes in a field are at most 2^24")]
fn number_of(index: usize) -> f32 {
    index as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(vertices: &[[f32; 4]]) -> Vec<u8> {
        vertices.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn rings_are_found_by_their_box() {
        let vertices = [
            [0.0, 0.0, 1.0, 2.0],
            [0.0, 0.0, 3.0, 2.0],
            [2.0, 0.0, 5.0, 6.0],
            [2.0, 1.0, 7.0, 8.0],
            [2.0, 1.0, 9.0, 8.0],
        ];
        let polygons = Polygons::parse(&item(&vertices), 3).unwrap();
        let rings = |of: usize| polygons.rings_of(of).map(<[_]>::to_vec).collect::<Vec<_>>();
        assert_eq!(rings(0), [[[1.0, 2.0], [3.0, 2.0]]]);
        assert!(rings(1).is_empty() && rings(3).is_empty());
        assert_eq!(rings(2), [vec![[5.0, 6.0]], vec![[7.0, 8.0], [9.0, 8.0]]]);
        assert_eq!(polygons.to_bytes(), item(&vertices));
    }

    #[test]
    fn malformed_items_are_errors() {
        let error = |vertices: &[[f32; 4]]| Polygons::parse(&item(vertices), 2).unwrap_err();
        let fine = [0.0, 1.0, 5.0, 5.0];
        let of = |of| error(&[fine, [of, 1.0, 5.0, 5.0]]);
        assert_eq!(of(2.0), "the box of vertex 1: expected an index below 2, found 2");
        assert_eq!(of(0.5), "the box of vertex 1: expected an index below 2, found 0.5");
        assert_eq!(of(-1.0), "the box of vertex 1: expected an index below 2, found -1");
        assert_eq!(of(f32::NAN), "the box of vertex 1: expected an index below 2, found NaN");
        let ring = error(&[[0.0, 1e30, 5.0, 5.0]]);
        assert!(ring.starts_with("the ring of vertex 0: expected an index from 0 to 2^24, found 1000"), "{ring}");
        let ascending = "the box and the ring of vertex 1: expected them to ascend, found 0 and 0";
        assert_eq!(error(&[fine, [0.0, 0.0, 5.0, 5.0]]), ascending);
        let finite = "the place of vertex 0: expected finite numbers, found inf, 5";
        assert_eq!(error(&[[0.0, 0.0, f32::INFINITY, 5.0]]), finite);
    }

    proptest! {
        #[test]
        fn any_bytes_are_polygons_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), n in 0..5_usize) {
            if let Ok(polygons) = Polygons::parse(&bytes, n) {
                prop_assert_eq!(polygons.to_bytes().len(), bytes.len() / 16 * 16);
            }
        }
    }
}
