//! Keypoints in a COCO file: `keypoints` of an annotation has x, y and visibility of each point, and those of a category have the names and
//! the skeleton.

use std::collections::BTreeMap;

use packds_format::Keypoints;
use serde_json::{from_str, value::RawValue};

use super::json_rows::File;
use super::keypoints::{MAX_POINTS, Points, of_point, padded};
use crate::error::ConvertError;

/// The key of annotations and categories.
pub(super) const KEYPOINTS: &str = "keypoints";
const SKELETON: &str = "skeleton";

/// The points of the categories.
#[derive(Default)]
pub(super) struct Skeletons {
    /// Number of points of a box in the category with this id.
    n_of: BTreeMap<i64, usize>,
    /// The names and the skeleton of the first category that has them.
    named: Option<(Vec<String>, Vec<[u32; 2]>)>,
    /// Whether categories have different names or skeletons.
    differ: bool,
    /// The largest number of points of a box so far.
    n: usize,
}

impl Skeletons {
    /// Reads the points of the categories.
    pub(super) fn of(file: &File<'_>, categories: &[&RawValue]) -> Result<Self, ConvertError> {
        let mut found = Self::default();
        for category in categories {
            let keys = file.members(category)?;
            let find = |wanted: &str| keys.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.get());
            let Some(names) = find(KEYPOINTS).filter(|names| *names != "null") else { continue };
            let names: Vec<String> = from_str(names).map_err(|_| {
                file.wrong(category, "expected a list of names in 'keypoints' of the category".to_owned())
            })?;
            let lines: Option<Vec<[u32; 2]>> =
                find(SKELETON).filter(|lines| *lines != "null").map_or(Ok(None), from_str).map_err(|_| {
                    file.wrong(category, "expected pairs of points in 'skeleton' of the category".to_owned())
                })?;
            if names.is_empty() {
                continue;
            }
            if names.len() > MAX_POINTS {
                return Err(file.wrong(category, format!("expected at most {MAX_POINTS} keypoints, found more")));
            }
            // Points are counted from 1.
            let n = u32::try_from(names.len()).unwrap_or(u32::MAX);
            let line = |line: [u32; 2]| {
                let [from, to] = line.map(|point| point.checked_sub(1).filter(|point| *point < n));
                from.zip(to).filter(|(from, to)| from != to).map(|(from, to)| [from, to])
            };
            let lines: Option<Vec<[u32; 2]>> = lines.unwrap_or_default().into_iter().map(line).collect();
            let Some(lines) = lines else {
                let reason = format!("expected two different points from 1 to {n} in each line of 'skeleton'");
                return Err(file.wrong(category, reason));
            };
            let mut sorted: Vec<&String> = names.iter().collect();
            sorted.sort_unstable();
            if let Some([twice, ..]) = sorted.windows(2).find(|pair| pair.first() == pair.last()) {
                return Err(file.wrong(category, format!("two keypoints have the name '{twice}'")));
            }
            let id = find("id").and_then(|id| id.parse().ok());
            found.n_of.extend(id.map(|id: i64| (id, names.len())));
            found.n = found.n.max(names.len());
            match &found.named {
                Some(named) => found.differ |= *named != (names, lines),
                None => found.named = Some((names, lines)),
            }
        }
        Ok(found)
    }

    /// The points of an annotation of a category. Empty if it has none.
    pub(super) fn points(&mut self, value: Option<&RawValue>, category: &RawValue) -> Result<Points, String> {
        let Some(value) = value.map(RawValue::get).filter(|value| *value != "null") else { return Ok(Points::new()) };
        let numbers: Vec<f64> = from_str(value).map_err(|_| "expected a list of numbers in 'keypoints'".to_owned())?;
        let (points, rest) = numbers.as_chunks::<3>();
        let known = category.get().parse().ok().and_then(|id: i64| self.n_of.get(&id).copied());
        let is_wrong = known.is_some_and(|n| !points.is_empty() && n != points.len());
        if !rest.is_empty() || is_wrong || points.len() > MAX_POINTS {
            let expected =
                known.map_or_else(|| "x, y and visibility".to_owned(), |n| format!("{n} times x, y and visibility"));
            return Err(format!("expected {expected} in 'keypoints', found {} numbers", numbers.len()));
        }
        self.n = self.n.max(points.len());
        points.iter().map(|point| of_point(*point)).collect()
    }

    /// Number of points of each box.
    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// The names and the skeleton, if all categories with points have the same.
    pub(super) fn keypoints(self) -> Option<Keypoints> {
        let (names, lines) = self.named.filter(|(names, _)| !self.differ && names.len() == self.n)?;
        Some(Keypoints::named(names, lines))
    }

    /// What to tell about categories with different points.
    pub(super) fn note(&self) -> Option<&'static str> {
        self.differ.then_some("keypoints have no names, because categories have different ones, and boxes with fewer points end with zeros")
    }
}

/// The points of a box as JSON, with zeros up to `n` points.
pub(super) fn json(points: &Points, n: usize) -> String {
    let all: Vec<String> = padded(points, n).map(|[x, y, mark]| format!("[{x},{y},{mark}]")).collect();
    format!("[{}]", all.join(","))
}
