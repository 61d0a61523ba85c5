//! A line of a text file of YOLO: the class, and a box, an outline, or a box with keypoints, in parts of the width and height of the image.

use super::data_yaml::KeypointShape;
use super::fractions::is_fraction;

/// What a line says, in parts of the width and height of the image.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) class: i64,
    /// Left, top, right and bottom.
    pub(super) corners: [f64; 4],
    /// The points of the outline, if the line has one in place of a box.
    pub(super) outline: Vec<[f64; 2]>,
    /// The keypoints: x, y and visibility.
    pub(super) points: Vec<[f64; 3]>,
}

impl Line {
    /// Reads a line. `known` are the keypoints of all lines, if the data set says so.
    pub(super) fn parse(line: &str, known: Option<&KeypointShape>) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let numbers: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
        let (Some(class), Some(numbers)) = (class_of(first), numbers) else {
            return Err(format!("expected the number of a class and the numbers of a box, found '{line}'"));
        };
        let n = numbers.len();
        // Number of values of each keypoint.
        let per_point = match known {
            Some(shape) => {
                let per_point = if shape.has_visibility { 3 } else { 2 };
                Some(per_point).filter(|per_point| 4 + shape.n * per_point == n)
            }
            // An outline has an even number of values, and none is 2: that marks a visible keypoint.
            None => {
                let are_points = n > 4 && (n - 4) % 3 == 0;
                let is_visible = numbers.iter().skip(6).step_by(3).any(|mark| *mark > 1.5);
                (are_points && (n % 2 == 1 || is_visible)).then_some(3)
            }
        };
        let is_outline = per_point.is_none() && n >= 6 && n % 2 == 0;
        // Keypoints may be outside the image.
        let (own, rest) = if is_outline { (numbers.as_slice(), &[][..]) } else { numbers.split_at(n.min(4)) };
        if let Some(number) = own.iter().find(|number| !is_fraction(**number)) {
            return Err(format!("expected numbers from 0 to 1, found {number} in '{line}'"));
        }
        match *own {
            [x, y, width, height] if n == 4 || per_point.is_some() => {
                let corners = [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0];
                let points = rest.chunks(per_point.unwrap_or(3)).map(point).collect();
                Ok(Self { class, corners, points, ..Self::default() })
            }
            _ if is_outline => {
                let (outline, _) = own.as_chunks::<2>();
                Ok(Self { class, corners: super::around(outline), outline: outline.to_vec(), ..Self::default() })
            }
            _ => {
                let points = known.map(|shape| {
                    let (each, n) = (if shape.has_visibility { 3 } else { 2 }, shape.n);
                    format!(", or {} for the keypoints of 'kpt_shape: [{n}, {each}]'", 5 + n * each)
                });
                let points = points.unwrap_or_default();
                Err(format!("expected 5 numbers{points}, or the points of an outline, found {} in '{line}'", n + 1))
            }
        }
    }
}

/// A keypoint. Without a visibility, places below 0 are those of points that are not labelled, as Ultralytics reads them.
fn point(values: &[f64]) -> [f64; 3] {
    match *values {
        [x, y, mark] => [x, y, mark],
        [x, y] if x >= 0.0 && y >= 0.0 => [x, y, 2.0],
        _ => [0.0; 3],
    }
}

/// The number of a class. Some tools write it as a float.
fn class_of(word: &str) -> Option<i64> {
    word.strip_suffix(".0").unwrap_or(word).parse().ok()
}
