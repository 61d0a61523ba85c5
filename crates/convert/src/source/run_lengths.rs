//! Columns of masks as run lengths: `1 3 10 5` marks 3 pixels from the first on, and 5 from the tenth on.

use super::rows::{Cell, RowFile};
use crate::error::ConvertError;
use crate::opt::LEAVE_OUT;

/// Usual names of such columns, in lower case. Pairs of numbers in other columns are labels.
const NAMES: [&str; 10] = [
    "encodedpixels",
    "encoded_pixels",
    "rle",
    "rle_mask",
    "mask_rle",
    "encoding",
    "mask",
    "masks",
    "segmentation",
    "annotation",
];

/// What the cells of a column show.
#[derive(Debug, Default)]
pub(super) struct RunLengths {
    has_some: bool,
    has_others: bool,
}

impl RunLengths {
    pub(super) fn observe(&mut self, cell: Cell<'_>) {
        if self.has_others {
            return;
        }
        match cell {
            Cell::Text(text) if is_run_lengths(text) => self.has_some = true,
            // No mask.
            Cell::Missing | Cell::Text("-1") => {}
            _ => self.has_others = true,
        }
    }

    /// Refuses the column if it has masks.
    pub(super) fn refuse(&self, file: &RowFile, name: &str) -> Result<(), ConvertError> {
        if self.has_others || !self.has_some || !NAMES.contains(&name.to_ascii_lowercase().as_str()) {
            return Ok(());
        }
        let hint = format!(
            "write each as a PNG file and name it in a column 'mask', in Python: r = list(map(int, text.split())); m = numpy.zeros(height * width, 'uint8'); [m[s - 1 : s - 1 + n].fill(1) for s, n in zip(r[::2], r[1::2])]; Image.fromarray(m.reshape(height, width, order='F')).save('1.png'); or leave the column out with {}",
            LEAVE_OUT.with(name)
        );
        let reason = format!("'{name}' has masks as run lengths (RLE), which packds does not decode");
        Err(ConvertError::unsupported(&file.path, "", reason, hint))
    }
}

/// Whether a text is pairs of whole numbers.
fn is_run_lengths(text: &str) -> bool {
    let mut n_words = 0;
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    text.split_ascii_whitespace().inspect(|_| n_words += 1).all(is_number) && n_words > 0 && n_words % 2 == 0
}
