//! The points of a field with role `keypoints`: their names, how they swap in a mirrored image, and the skeleton. See
//! docs/reference/format.md, "Keypoints and polygons".

use packds_system::{counted, to_u64};
use serde::{Deserialize, Serialize};

use crate::limits::MAX_NAME_BYTES;

/// The words of the two sides in names. Each pair is written the same way.
const SIDES: [(&str, &str); 3] = [("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT")];
/// The letters of the two sides, before or after an underscore.
const LETTERS: [(&str, &str); 2] = [("l", "r"), ("L", "R")];

/// What the points of a field with role `keypoints` are, in the order in which each entry has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keypoints {
    /// The name of each point.
    pub names: Vec<String>,
    /// The index of the point that each point becomes when the image is mirrored. Its own index, if it has no side.
    pub swaps: Vec<u32>,
    /// The pairs of points that a line connects in a drawing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skeleton: Vec<[u32; 2]>,
}

impl Keypoints {
    /// Points with these names. Points whose names differ only in the side, such as `left_eye` and `right_eye`, or
    /// `l_knee` and `r_knee`, swap in a mirrored image.
    #[must_use]
    pub fn named(names: Vec<String>, skeleton: Vec<[u32; 2]>) -> Self {
        let index_of = |name: &str| names.iter().position(|other| other == name).and_then(|at| u32::try_from(at).ok());
        let swap = |(own, name): (u32, &String)| mirrored(name).and_then(|name| index_of(&name)).unwrap_or(own);
        let swaps = (0..).zip(&names).map(swap).collect();
        Self { names, swaps, skeleton }
    }

    /// Checks this against the shape of an entry.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn check(&self, shape: &[u64]) -> Result<(), String> {
        let n = shape.first().copied().unwrap_or(0);
        let counts = [to_u64(self.names.len()), to_u64(self.swaps.len())];
        if counts != [n, n] {
            let [names, swaps] = counts;
            let found = format!("{} and {}", counted(names, "name"), counted(swaps, "swap"));
            return Err(format!("keypoints must have a name and a swap for each of {n} points, found {found}"));
        }
        let mut seen = std::collections::BTreeSet::new();
        for name in &self.names {
            let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control);
            if !is_name || !seen.insert(name) {
                let found = name.escape_debug();
                return Err(format!(
                    "names of keypoints must differ, with 1 to {MAX_NAME_BYTES} bytes and no control characters, \
                     found '{found}'"
                ));
            }
        }
        let swap_of = |point: u32| usize::try_from(point).ok().and_then(|at| self.swaps.get(at));
        for (own, swap) in (0_u32..).zip(&self.swaps) {
            if swap_of(*swap) != Some(&own) {
                return Err(format!("keypoints must swap in pairs below {n}, found {swap} for point {own}"));
            }
        }
        let is_line = |[from, to]: &&[u32; 2]| from != to && u64::from(*from) < n && u64::from(*to) < n;
        match self.skeleton.iter().find(|line| !is_line(line)) {
            Some(line) => Err(format!("the skeleton must connect two different points below {n}, found {line:?}")),
            None => Ok(()),
        }
    }
}

/// The name of the same point of the other side. `None` if the name has no side.
fn mirrored(name: &str) -> Option<String> {
    let words = SIDES.iter().flat_map(|&(left, right)| [(left, right), (right, left)]);
    let word = words.clone().find(|(from, _)| name.contains(from)).map(|(from, to)| name.replace(from, to));
    let letters = || LETTERS.iter().flat_map(|&(left, right)| [(left, right), (right, left)]);
    let before = |(from, to): (&str, &str)| {
        let rest = name.strip_prefix(from).filter(|rest| rest.starts_with('_'))?;
        Some(format!("{to}{rest}"))
    };
    let after = |(from, to): (&str, &str)| {
        let rest = name.strip_suffix(from).filter(|rest| rest.ends_with('_'))?;
        Some(format!("{rest}{to}"))
    };
    word.or_else(|| letters().find_map(before)).or_else(|| letters().find_map(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn names_that_differ_in_their_side_swap() {
        let swaps = |list: &[&str]| Keypoints::named(names(list), Vec::new()).swaps;
        assert_eq!(swaps(&["nose", "left_eye", "right_eye", "left_ear"]), [0, 2, 1, 3]);
        assert_eq!(swaps(&["RightHand", "LeftHand"]), [1, 0]);
        assert_eq!(swaps(&["l_knee", "r_knee", "ankle_l", "ankle_r"]), [1, 0, 3, 2]);
        assert_eq!(swaps(&["upright", "l", "r", "lip", "rip"]), [0, 1, 2, 3, 4]);
        assert_eq!(swaps(&["HIP_L", "HIP_R", "R_TOE", "L_TOE", "LEFT", "RIGHT"]), [1, 0, 3, 2, 5, 4]);
    }

    #[test]
    fn derived_swaps_are_valid() {
        let points = Keypoints::named(names(&["nose", "left_eye", "right_eye"]), vec![[0, 1], [0, 2]]);
        points.check(&[3, 3]).unwrap();
    }

    #[test]
    fn points_that_do_not_agree_are_errors() {
        let good = Keypoints::named(names(&["nose", "left_eye", "right_eye"]), vec![[0, 1]]);
        let error = |change: fn(&mut Keypoints)| {
            let mut points = good.clone();
            change(&mut points);
            points.check(&[3, 3]).unwrap_err()
        };
        let count = "keypoints must have a name and a swap for each of 3 points, found";
        assert_eq!(error(|p| drop(p.names.pop())), format!("{count} 2 names and 3 swaps"));
        assert_eq!(error(|p| p.swaps.push(3)), format!("{count} 3 names and 4 swaps"));
        let name = "names of keypoints must differ, with 1 to 255 bytes and no control characters, found";
        assert_eq!(error(|p| p.names[1] = "nose".to_owned()), format!("{name} 'nose'"));
        assert_eq!(error(|p| p.names[1] = String::new()), format!("{name} ''"));
        assert_eq!(error(|p| p.names[1] = "a\nb".to_owned()), format!("{name} 'a\\nb'"));
        let pairs = "keypoints must swap in pairs below 3, found";
        assert_eq!(error(|p| p.swaps = vec![1, 2, 0]), format!("{pairs} 1 for point 0"));
        assert_eq!(error(|p| p.swaps[0] = u32::MAX), format!("{pairs} 4294967295 for point 0"));
        let line = "the skeleton must connect two different points below 3, found";
        assert_eq!(error(|p| p.skeleton[0] = [0, 3]), format!("{line} [0, 3]"));
        assert_eq!(error(|p| p.skeleton[0] = [1, 1]), format!("{line} [1, 1]"));
    }
}
