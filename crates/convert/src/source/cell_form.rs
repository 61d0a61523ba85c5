//! Recognizes what the cells of a column contain: names of image files, boxes, or masks as run lengths.

use super::candidate::is_image_name;
use super::indicators::indicator;
use super::rows::{Cell, RowFile};
use super::run_masks::MaskOrder;
use crate::error::ConvertError;
use crate::opt::{LEAVE_OUT, MASK_ORDER};

/// Names of columns of run-length masks, in lower case. Their runs count the pixels from top to bottom, then from left
/// to right, as in most competitions on Kaggle.
const RUN_LENGTH_NAMES: [&str; 4] = ["encodedpixels", "encoded_pixels", "rle", "encoding"];
/// Names of columns of run-length masks with an unknown order of pixels: `rle_mask` counts down the columns in TGS Salt, and along
/// the rows in Carvana. Pairs of numbers in a column whose name is in neither list are labels.
const OTHER_RUN_LENGTH_NAMES: [&str; 6] = ["rle_mask", "mask_rle", "mask", "masks", "segmentation", "annotation"];

/// Which forms apply to all cells of a column.
#[derive(Debug, Default)]
pub(super) struct CellForm {
    files: Every,
    boxes: Every,
    run_lengths: Every,
    joined: Every,
    indicators: Every,
}

/// Tracks whether all observed cells have a form, and whether there was at least one.
#[derive(Debug, Default)]
struct Every {
    has_some: bool,
    has_others: bool,
}

impl Every {
    fn observe(&mut self, text: Option<&str>, has_form: impl Fn(&str) -> bool) {
        match text {
            _ if self.has_others => {}
            Some(text) if has_form(text) => self.has_some = true,
            _ => self.has_others = true,
        }
    }

    fn holds(&self) -> bool {
        self.has_some && !self.has_others
    }
}

impl CellForm {
    pub(super) fn observe(&mut self, cell: Cell<'_>) {
        // A missing cell counts here, because it is neither 0 nor 1.
        self.indicators.observe(Some(""), |_| indicator(cell).is_some());
        let text = match cell {
            Cell::Missing => return,
            Cell::Text(text) => Some(text),
            Cell::Json(value) => value.as_str(),
        };
        // The image at a web address is not a local file.
        self.files.observe(text, |text| is_image_name(text.as_bytes()) && !text.contains("://"));
        self.boxes.observe(text, are_boxes);
        self.joined.observe(text, |text| file_and_class(text).is_some());
        // -1 means that there is no mask.
        if text != Some("-1") {
            self.run_lengths.observe(text, are_run_lengths);
        }
    }

    /// Whether the cells are names of image files.
    pub(super) fn are_files(&self) -> bool {
        self.files.holds()
    }

    /// Whether the cells are names of image files, each joined with a class.
    pub(super) fn are_files_with_classes(&self) -> bool {
        self.joined.holds()
    }

    /// Whether each cell is 0 or 1.
    pub(super) fn are_indicators(&self) -> bool {
        self.indicators.holds()
    }

    /// Whether the cells are run-length masks that can be read, given the name of their column and the order of pixels that the
    /// caller chose.
    pub(super) fn are_masks(&self, name: &str, order: Option<MaskOrder>) -> bool {
        let name = name.to_ascii_lowercase();
        let is_named = RUN_LENGTH_NAMES.contains(&name.as_str());
        self.run_lengths.holds() && (is_named || (order.is_some() && OTHER_RUN_LENGTH_NAMES.contains(&name.as_str())))
    }

    /// Refuses columns of boxes, and of run-length masks whose order of pixels is unknown.
    pub(super) fn refuse(&self, file: &RowFile, name: &str, order: Option<MaskOrder>) -> Result<(), ConvertError> {
        let (reason, way_out) = if self.boxes.holds() {
            (
                format!("'{name}' holds classes with bounding boxes, which packds cannot pack yet"),
                format!(
                    "to keep only the class, run in Python: t = pandas.read_csv('x.csv'); t['label'] = t.pop('{name}').str.split().str[0]; t.to_csv('y.csv', index=False)"
                ),
            )
        } else if order.is_none()
            && self.run_lengths.holds()
            && OTHER_RUN_LENGTH_NAMES.contains(&name.to_ascii_lowercase().as_str())
        {
            let [columns, rows] = MaskOrder::ALL.map(|order| MASK_ORDER.with(order));
            (
                format!(
                    "'{name}' holds run-length encoded (RLE) masks, but its name does not say how pixels are counted"
                ),
                format!(
                    "if they are counted down the columns of the image (as in TGS Salt), add {columns}; if they are counted along the rows (as in Carvana), add {rows}"
                ),
            )
        } else {
            return Ok(());
        };
        let hint = format!("{way_out}; or leave the column out with {}", LEAVE_OUT.with(name));
        Err(ConvertError::unsupported(&file.path, "", reason, hint))
    }
}

/// The file and the class in a cell such as `0011165.jpg_Fish`, as in tables of masks on Kaggle. `None` for other
/// cells.
pub(super) fn file_and_class(text: &str) -> Option<(&str, &str)> {
    let split = |(at, _)| Some((text.get(..at)?, text.get(at + 1..)?));
    let parts = text.match_indices('_').filter_map(split);
    parts.filter(|(_, class)| !class.is_empty()).find(|(file, _)| is_image_name(file.as_bytes()))
}

/// Whether a string consists of pairs of non-negative integers.
fn are_run_lengths(text: &str) -> bool {
    let mut n_words = 0;
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    text.split_ascii_whitespace().inspect(|_| n_words += 1).all(is_number) && n_words > 0 && n_words % 2 == 0
}

/// Whether a string consists of class names, each followed by four numbers, as in ImageNet's `LOC_train_solution.csv`: `n01440764 240
/// 82 285 231`.
fn are_boxes(text: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let is_number = |word: &&str| word.parse::<f64>().is_ok();
    let is_box = |words: &[&str]| words.len() == 5 && !is_number(&words[0]) && words[1..].iter().all(is_number);
    !words.is_empty() && words.chunks(5).all(is_box)
}
