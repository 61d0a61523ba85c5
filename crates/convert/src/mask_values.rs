//! The values in masks, which determine the class numbers in a training loop.

use packds_system::counted;

/// Maximum change of the mask values 0 and 255 that is still attributed to JPEG.
const NEAR: usize = 48;
/// Next to values from this one on, 255 may be an ordinary value, as in masks of several gray levels.
const MAX_CLASSES: usize = 100;
/// Maximum number of values or value ranges to list.
const MAX_SHOWN: usize = 12;

/// A set of mask values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaskValues {
    seen: [bool; 256],
    /// Whether some masks have more than 8 bits, so that their values were scaled.
    pub(crate) is_scaled: bool,
}

impl Default for MaskValues {
    fn default() -> Self {
        Self { seen: [false; 256], is_scaled: false }
    }
}

impl MaskValues {
    /// Adds the values of a mask.
    pub(crate) fn add(&mut self, mask: &[u8]) {
        mask.iter().for_each(|value| self.seen[usize::from(*value)] = true);
    }

    /// Adds the values of another set.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.seen.iter_mut().zip(other.seen).for_each(|(own, other)| *own |= other);
        self.is_scaled |= other.is_scaled;
    }

    /// A note if the values are not class numbers that count up from 0: for example, if they are 0 and 255. If there
    /// are at least two other values, 255 is assumed to mark pixels to ignore.
    pub(crate) fn note(&self) -> Option<String> {
        let values: Vec<usize> = (0..256).filter(|value| self.seen[*value]).collect();
        let classes = values.strip_suffix(&[255]).filter(|classes| classes.len() > 1).unwrap_or(&values);
        let has_gaps = *classes.first()? != 0 || *classes.last()? >= 2 * classes.len();
        let is_near = |value: &usize| *value < NEAR || *value > 255 - NEAR;
        // A value of exactly 255 is no sign of JPEG, because it may mark pixels to ignore.
        if values.iter().all(is_near) && values.iter().any(|value| (256 - NEAR..255).contains(value)) {
            return Some("the masks contain values near 0 and 255, as is typical of JPEG; they are packed unchanged; to get two classes, save the masks again as PNG, in Python: (mask > 127).astype(\"uint8\")".to_owned());
        }
        let how = if self.is_scaled { "after scaling to 8 bits" } else { "unchanged" };
        let all = format!("the masks contain the values {}, which are packed {how}", ranges(&values));
        // To number the values again, 255 would have to be left out.
        let needs = |values: &[usize]| counted(values.last().map_or(0, |last| last + 1), "class");
        if has_gaps && classes.len() < values.len() && classes.last().is_some_and(|last| *last < MAX_CLASSES) {
            return Some(format!(
                "{all}; 255 usually marks pixels to ignore (in PyTorch, ignore_index=255), so a model needs {}",
                needs(classes)
            ));
        }
        has_gaps.then(|| {
            format!(
                "{all}, so a model needs {}; to number the values from 0, save the masks again, in Python: numpy.searchsorted({}, mask).astype(\"uint8\")",
                needs(&values),
                match values.len() {
                    0..=MAX_SHOWN => format!("{values:?}"),
                    _ => "numpy.unique(all_masks)".to_owned(),
                }
            )
        })
    }
}

/// The values as text, such as `0, 5 to 7, 255`.
fn ranges(values: &[usize]) -> String {
    let runs: Vec<&[usize]> = values.chunk_by(|a, b| a + 1 == *b).collect();
    let run = |run: &&[usize]| match **run {
        [first, .., last] => format!("{first} to {last}"),
        [one] => one.to_string(),
        [] => String::new(),
    };
    let shown: Vec<String> = runs.iter().take(MAX_SHOWN).map(run).collect();
    let more = if runs.len() > MAX_SHOWN { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(values: &[u8]) -> Option<String> {
        let mut all = MaskValues::default();
        all.add(values);
        all.note()
    }

    #[test]
    fn values_that_jpeg_left_near_two_are_noted() {
        let jpeg = note(&[0, 1, 2, 5, 250, 254, 255]).unwrap();
        assert!(jpeg.contains("near 0 and 255") && jpeg.contains("mask > 127"), "{jpeg}");
        let classes: Vec<u8> = (0..=20).chain([255]).collect();
        assert_eq!(note(&classes), None);
    }

    #[test]
    fn values_that_do_not_count_from_zero_are_noted() {
        for plain in [&[][..], &[0], &[0, 1], &[0, 1, 2, 255], &[0, 1, 3, 4], &[1, 0, 255]] {
            assert_eq!(note(plain), None, "{plain:?}");
        }
        for (values, shown, n) in [
            (&[0_u8, 255][..], "0, 255", 256),
            (&[0, 128, 255], "0, 128, 255", 256),
            (&[3, 2, 1], "1 to 3", 4),
            (&[7, 8, 11, 255], "7 to 8, 11, 255", 12),
        ] {
            let note = note(values).unwrap();
            assert!(note.starts_with(&format!("the masks contain the values {shown}, which are packed")), "{note}");
            assert!(note.contains(&format!("needs {n} classes")), "{note}");
            assert_eq!(note.contains("ignore_index=255"), n == 12, "{note}");
        }
        let spread: Vec<u8> = (0..=255).step_by(3).collect();
        let note = note(&spread).unwrap();
        assert!(
            note.contains("27, 30, 33, ..., which are packed") && note.contains("numpy.unique(all_masks)"),
            "{note}"
        );
    }
}
