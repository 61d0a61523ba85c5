//! Outlines in a COCO file: `segmentation` has polygons, or the run lengths of a mask, which are traced.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, from_str, value::RawValue};

use super::coco_rle;
use super::rings::{MAX_RINGS, NoRing, Ring, outer, trace};

/// The outlines of the boxes of an image, as the JSON of the field of polygons.
#[derive(Default)]
pub(super) struct Outlines {
    json: String,
}

/// Run lengths: a text or numbers, and the height and width of the mask.
#[derive(Deserialize)]
struct Runs {
    size: [u64; 2],
    counts: Counts,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Counts {
    Text(String),
    Numbers(Vec<u64>),
}

/// The rings of an annotation.
#[derive(Debug, Default)]
pub(super) struct Rings {
    pub(super) rings: Vec<Ring>,
    /// Number of polygons that are not rings, which are left out.
    pub(super) n_empty: u64,
}

impl Rings {
    /// Reads the value of `segmentation` of an image of this width and height.
    pub(super) fn of(value: &RawValue, size: Option<(f64, f64)>) -> Result<Self, String> {
        let text = value.get();
        if text.starts_with('{') {
            return Self::of_runs(text, size);
        }
        let polygons: Vec<Vec<f64>> = match from_str(text) {
            Ok(Value::Null) => return Ok(Self::default()),
            _ => from_str(text).map_err(|_| {
                "expected polygons ([[x, y, x, y, ..], ..]) or run lengths in 'segmentation'".to_owned()
            })?,
        };
        let mut found = Self::default();
        for numbers in polygons {
            let (points, rest) = numbers.as_chunks::<2>();
            if !rest.is_empty() {
                return Err(format!("expected pairs of x and y in a polygon, found {} numbers", numbers.len()));
            }
            match outer(points) {
                Ok(ring) => found.rings.push(ring),
                Err(NoRing::Empty) => found.n_empty += 1,
                Err(NoRing::TooFar) => return Err("a point of a polygon is too far away".to_owned()),
            }
        }
        Ok(found)
    }

    fn of_runs(text: &str, size: Option<(f64, f64)>) -> Result<Self, String> {
        let Runs { size: [height, width], counts } =
            from_str(text).map_err(|error| format!("expected run lengths ('size' and 'counts'): {error}"))?;
        #[expect(clippy::cast_precision_loss, reason = "a size that is not exact differs from that of an image")]
        let differs = |(w, h): &(f64, f64)| (width as f64, height as f64) != (*w, *h);
        if let Some((w, h)) = size.filter(differs) {
            return Err(format!(
                "expected run lengths of the image's height and width ({h} x {w}), found {height} x {width}"
            ));
        }
        let lengths = match counts {
            Counts::Text(text) => coco_rle::lengths(&text)?,
            Counts::Numbers(numbers) => numbers,
        };
        Ok(Self { rings: trace(&coco_rle::runs(&lengths, [height, width])?), n_empty: 0 })
    }
}

impl Outlines {
    /// Adds the rings of the box with this number.
    pub(super) fn add(&mut self, number: usize, rings: &[Ring]) -> Result<(), String> {
        if number > MAX_RINGS || rings.len() > MAX_RINGS {
            return Err(format!("expected at most {MAX_RINGS} boxes and outlines, found more"));
        }
        for (ring, points) in rings.iter().enumerate() {
            for [x, y] in points {
                let comma = if self.json.is_empty() { "" } else { "," };
                // Writing to a text cannot fail.
                let _ = write!(self.json, "{comma}[{number},{ring},{x},{y}]");
            }
        }
        Ok(())
    }

    /// The list of vertices.
    pub(super) fn json(&self) -> String {
        format!("[{}]", self.json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rings, String> {
        let value: Box<RawValue> = from_str(text).unwrap();
        Rings::of(&value, Some((4.0, 3.0)))
    }

    #[test]
    fn polygons_are_outer_rings_and_those_without_area_are_counted() {
        let found = read("[[0,0,0,2,3,2],[1,1,2,2],[0.5,0,1.5,0,1,1e1]]").unwrap();
        assert_eq!(found.n_empty, 1);
        assert_eq!(found.rings, [vec![[0.0, 0.0], [3.0, 2.0], [0.0, 2.0]], vec![[0.5, 0.0], [1.5, 0.0], [1.0, 10.0]]]);
        assert!(read("[]").unwrap().rings.is_empty() && read("null").unwrap().rings.is_empty());
    }

    #[test]
    fn run_lengths_as_numbers_and_as_text_are_the_same() {
        let numbers = read(r#"{"size": [3, 4], "counts": [4, 1, 2, 1, 4]}"#).unwrap();
        let text = read(r#"{"size": [3, 4], "counts": "41202"}"#).unwrap();
        assert_eq!(numbers.rings, [vec![[1.0, 1.0], [3.0, 1.0], [3.0, 2.0], [1.0, 2.0]]]);
        assert_eq!(text.rings, numbers.rings);
        assert!(read(r#"{"size": [3, 4], "counts": [12]}"#).unwrap().rings.is_empty());
    }

    #[test]
    fn the_rings_of_a_box_are_vertices_with_its_number() {
        let mut outlines = Outlines::default();
        assert_eq!(outlines.json(), "[]");
        outlines.add(0, &read("[[0,0,1,0,1,1.1]]").unwrap().rings).unwrap();
        outlines.add(2, &[]).unwrap();
        outlines.add(3, &[vec![[1.0, 2.0]], vec![[3.0, 4.5]]]).unwrap();
        assert_eq!(outlines.json(), "[[0,0,0,0],[0,0,1,0],[0,0,1,1.1],[3,0,1,2],[3,1,3,4.5]]");
        assert!(outlines.add(MAX_RINGS + 1, &[]).is_err());
    }

    #[test]
    fn other_outlines_are_refused() {
        for (text, words) in [
            ("[[1,2,3]]", "expected pairs of x and y in a polygon, found 3 numbers"),
            ("[1,2,3,4,5,6]", "expected polygons"),
            ("7", "expected polygons"),
            ("[[0,0,1e39,0,1,1]]", "too far away"),
            (r#"{"size": [4, 3], "counts": [12]}"#, "the image's height and width (3 x 4), found 4 x 3"),
            (r#"{"size": [3, 4], "counts": [11]}"#, "expected run lengths that sum to 12 pixels (3 x 4), found 11"),
            (r#"{"size": [3, 4], "counts": "41202222"}"#, "expected run lengths that sum to 12 pixels"),
            (r#"{"size": [3, 4], "counts": "4 "}"#, "the text of run lengths has ' '"),
            (r#"{"size": [3, 4], "counts": [-1]}"#, "expected run lengths ('size' and 'counts')"),
            (r#"{"size": [3, 4]}"#, "missing field `counts`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
