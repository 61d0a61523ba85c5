//! The values in masks, which determine the class numbers in a training loop.

use packds_system::counted;

/// Maximum change of the mask values 0 and 255 that is still attributed to JPEG.
const NEAR: usize = 48;
/// Maximum number of values or value ranges to list.
const MAX_SHOWN: usize = 12;

/// A set of mask values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaskValues([bool; 256]);

impl Default for MaskValues {
    fn default() -> Self {
        Self([false; 256])
    }
}

impl MaskValues {
    /// Adds the values of a mask.
    pub(crate) fn add(&mut self, mask: &[u8]) {
        mask.iter().for_each(|value| self.0[usize::from(*value)] = true);
    }

    /// Adds the values of another set.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own |= other);
    }

    /// A note if the values are not class numbers that count up from 0: for example, if they are 0 and 255. If there
    /// are at least two other values, 255 is assumed to mark pixels to ignore.
    pub(crate) fn note(&self) -> Option<String> {
        let values: Vec<usize> = (0..256).filter(|value| self.0[*value]).collect();
        let classes = values.strip_suffix(&[255]).filter(|classes| classes.len() > 1).unwrap_or(&values);
        let has_gaps = *classes.first()? != 0 || *classes.last()? >= 2 * classes.len();
        let is_near = |value: &usize| *value < NEAR || *value > 255 - NEAR;
        // A value of exactly 255 is no sign of JPEG, because it may mark pixels to ignore.
        if values.iter().all(is_near) && values.iter().any(|value| (256 - NEAR..255).contains(value)) {
            return Some("the masks contain values near 0 and 255, as is typical of JPEG; they are packed unchanged; to get two classes, save the masks again as PNG, in Python: (mask > 127).astype(\"uint8\")".to_owned());
        }
        has_gaps.then(|| {
            format!(
                "the masks contain the values {}, which are packed unchanged, so a model needs {}; to number the values from 0, save the masks again, in Python: numpy.searchsorted({}, mask).astype(\"uint8\")",
                ranges(&values),
                counted(values.last().map_or(0, |last| last + 1), "class"),
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
            (&[7, 8, 11, 255], "7 to 8, 11, 255", 256),
        ] {
            let note = note(values).unwrap();
            assert!(note.starts_with(&format!("the masks contain the values {shown}, which are packed")), "{note}");
            assert!(note.contains(&format!("needs {n} classes")), "{note}");
        }
        let spread: Vec<u8> = (0..=255).step_by(3).collect();
        let note = note(&spread).unwrap();
        assert!(
            note.contains("27, 30, 33, ..., which are packed") && note.contains("numpy.unique(all_masks)"),
            "{note}"
        );
    }
}
