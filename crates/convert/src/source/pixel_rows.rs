//! Reads tables that contain pixels: one column per pixel, like MNIST on Kaggle, or all pixels in one cell, like FER2013.
//!
//! `manifest` reads the other columns.

use std::ops::Range;
use std::sync::Arc;

use packds_format::DType;
use packds_system::to_u64;

use super::ListOptions;
use super::roles::IMAGE_PATH_NAMES;
use super::rows::{Cell, RowFile, RowForm, Rows};
use super::spool::Spool;
use super::store::{ArrayType, Store};
use crate::error::ConvertError;

/// Minimum number of columns of pixels. If there are fewer numbered columns, they are features.
const MIN_PIXELS: usize = 16;
/// Maximum number of pixels of a row.
const MAX_PIXELS: usize = 1 << 18;
/// The name of a column with all pixels of an image in each cell.
const CELL_NAME: &str = "pixels";

/// Where the pixels of a table are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pixels {
    /// One pixel in each of these columns. The names may give height and width.
    Columns { range: Range<usize>, size: Option<(usize, usize)> },
    /// All pixels in one cell, separated by spaces.
    Cell(usize),
}

impl Pixels {
    /// Finds the pixels by the names of the columns.
    pub(super) fn find(names: &[String], options: &ListOptions) -> Option<Self> {
        let is_cell = |name: &String| name.eq_ignore_ascii_case(CELL_NAME);
        let has_paths = names.iter().any(|name| IMAGE_PATH_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)));
        if let Some(key) = &options.image_key {
            return names.iter().position(|name| name == key && is_cell(name)).map(Self::Cell);
        }
        let found = Self::in_columns(names, has_paths);
        found.or_else(|| names.iter().position(is_cell).filter(|_| !has_paths).map(Self::Cell))
    }

    /// The column that is named like image paths but holds pixels, as in Kaggle's facial keypoints. The first row decides.
    pub(super) fn in_first_row(
        file: &RowFile,
        form: RowForm,
        options: &ListOptions,
    ) -> Result<Option<Self>, ConvertError> {
        let mut rows = Rows::open(file, form)?;
        if !rows.advance()? {
            return Ok(None);
        }
        let has_name = |column: &usize| {
            let name = &rows.columns[*column];
            let is_wanted = options.image_key.as_ref().is_none_or(|key| key == name);
            is_wanted && IMAGE_PATH_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
        };
        let has_pixels = |column: &usize| {
            let words = text_in(&rows, *column).unwrap_or_default().split_ascii_whitespace();
            words.clone().count() >= MIN_PIXELS && words.clone().all(|word| word.parse::<u8>().is_ok())
        };
        Ok((0..rows.columns.len()).filter(has_name).find(has_pixels).map(Self::Cell))
    }

    fn in_columns(names: &[String], has_paths: bool) -> Option<Self> {
        let start = names.iter().position(|name| matches!(pixel_number(name), Some(0 | 1)) || name == "1x1")?;
        if names[start] == "1x1" {
            let n = names[start..].iter().take_while(|name| size_in(name).is_some()).count();
            let size = size_in(&names[start + n - 1]).filter(|(height, width)| height.checked_mul(*width) == Some(n));
            return (n >= MIN_PIXELS).then_some(Self::Columns { range: start..start + n, size });
        }
        let first = pixel_number(&names[start])?;
        let is_next = |(n, name): &(usize, &String)| pixel_number(name) == Some(first + n);
        let n = names[start..].iter().enumerate().take_while(is_next).count();
        // Columns whose names are only numbers may be features.
        let is_bare = names[start].parse::<usize>().is_ok();
        let is_sure = !is_bare || (!has_paths && square(n).is_some());
        (n >= MIN_PIXELS && is_sure).then_some(Self::Columns { range: start..start + n, size: None })
    }

    /// The pixels of a table without a header. Its first column is the label.
    pub(super) fn without_header(names: &[String]) -> Option<Self> {
        let are_numbered = (1..).zip(names).all(|(n, name)| *name == format!("column_{n}"));
        let n = names.len().checked_sub(1).filter(|n| are_numbered && *n >= MIN_PIXELS)?;
        square(n).map(|_| Self::Columns { range: 1..names.len(), size: None })
    }

    /// Refuses columns that do not form an image, before any row is read.
    pub(super) fn check(&self, rows: &Rows<'_>) -> Result<(), ConvertError> {
        match self {
            Self::Columns { range, size } if size.is_none() || range.len() > MAX_PIXELS => {
                size_of(rows, range.len()).map(drop)
            }
            Self::Columns { .. } | Self::Cell(_) => Ok(()),
        }
    }

    /// Whether this column holds pixels.
    pub(super) fn has(&self, column: usize) -> bool {
        match self {
            Self::Columns { range, .. } => range.contains(&column),
            Self::Cell(own) => *own == column,
        }
    }

    /// Number of columns that hold pixels.
    pub(super) fn n_columns(&self) -> usize {
        match self {
            Self::Columns { range, .. } => range.len(),
            Self::Cell(_) => 1,
        }
    }
}

/// The number in a name such as `pixel12`.
fn pixel_number(name: &str) -> Option<usize> {
    let lower = name.to_ascii_lowercase();
    let rest = lower.strip_prefix("pixel").or_else(|| lower.strip_prefix("px")).unwrap_or(&lower);
    let digits = rest.trim_start_matches(['_', ' ', '.']);
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The height and width in a name such as `28x28`.
fn size_in(name: &str) -> Option<(usize, usize)> {
    let (height, width) = name.split_once('x')?;
    Some((height.parse().ok()?, width.parse().ok()?))
}

/// The side of a square of `n` pixels.
fn square(n: usize) -> Option<usize> {
    let side = n.isqrt();
    (n > 0 && side * side == n).then_some(side)
}

/// Collects the images row by row.
pub(super) struct PixelSpool {
    pixels: Pixels,
    spool: Spool,
    size: Option<(usize, usize)>,
    row: Vec<u8>,
    n_rows: usize,
}

impl PixelSpool {
    pub(super) fn create(pixels: &Pixels, options: &ListOptions) -> Result<Self, ConvertError> {
        let size = match pixels {
            Pixels::Columns { size, .. } => *size,
            Pixels::Cell(_) => None,
        };
        let spool = Spool::create(&options.spool_folder())?;
        Ok(Self { pixels: pixels.clone(), spool, size, row: Vec::new(), n_rows: 0 })
    }

    /// Appends the image of the current row.
    pub(super) fn push(&mut self, rows: &Rows<'_>) -> Result<(), ConvertError> {
        self.row.clear();
        match &self.pixels {
            Pixels::Columns { range, .. } => {
                for column in range.clone() {
                    self.row.push(pixel(rows, column, text_in(rows, column)?.trim())?);
                }
            }
            Pixels::Cell(column) => {
                for word in text_in(rows, *column)?.split_ascii_whitespace() {
                    self.row.push(pixel(rows, *column, word)?);
                }
            }
        }
        let found = self.row.len();
        let (height, width) = match self.size {
            Some(size) => size,
            None => *self.size.insert(size_of(rows, found)?),
        };
        if found != height * width {
            return Err(
                rows.malformed(format!("expected {height} x {width} pixels as in the first row, found {found}"))
            );
        }
        self.spool.append(&self.row)?;
        self.n_rows += 1;
        Ok(())
    }

    /// Height, width and the images.
    pub(super) fn finish(self, source: &std::path::Path) -> Result<([u64; 2], Arc<dyn Store>), ConvertError> {
        let (height, width) = self.size.unwrap_or((0, 0));
        let shape = [to_u64(height), to_u64(width)];
        let array = ArrayType { dtype: DType::U8, shape: shape.to_vec() };
        Ok((shape, self.spool.into_rows(source, array, self.n_rows)?))
    }
}

/// The height and width of images of `n` pixels. Refuses images that are not square.
fn size_of(rows: &Rows<'_>, n: usize) -> Result<(usize, usize), ConvertError> {
    if let Some(side) = square(n).filter(|_| n <= MAX_PIXELS) {
        return Ok((side, side));
    }
    let path = &rows.file.path;
    if let Some(side) = n.checked_div(3).filter(|_| n.is_multiple_of(3)).and_then(square) {
        let reason = format!(
            "the {n} pixels of each row may be {side} x {side} pixels of three channels, in two possible orders"
        );
        let hint = format!(
            "choose one in Python: numpy.savez('x.npz', x=pixels.reshape(-1, {side}, {side}, 3), y=labels), or reshape(-1, 3, {side}, {side}), with pixels of type uint8"
        );
        return Err(ConvertError::contradictory(path, "", reason, hint));
    }
    let reason = format!("expected rows with the pixels of a square image (at most {MAX_PIXELS}), found {n}");
    let hint = "write arrays in Python: numpy.savez('x.npz', x=pixels.reshape(-1, height, width), y=labels), with pixels of type uint8";
    Err(ConvertError::contradictory(path, "", reason, hint))
}

fn text_in<'a>(rows: &'a Rows<'_>, column: usize) -> Result<&'a str, ConvertError> {
    match rows.cell(column) {
        Cell::Text(text) => Ok(text),
        Cell::Json(serde_json::Value::String(text)) => Ok(text),
        _ => Err(wrong_pixel(rows, column, "no text")),
    }
}

fn pixel(rows: &Rows<'_>, column: usize, text: &str) -> Result<u8, ConvertError> {
    text.strip_suffix(".0").unwrap_or(text).parse().map_err(|_| {
        let shown: String = text.chars().take(20).collect();
        wrong_pixel(rows, column, &format!("'{shown}'"))
    })
}

fn wrong_pixel(rows: &Rows<'_>, column: usize, found: &str) -> ConvertError {
    let name = &rows.columns[column];
    rows.malformed(format!("column '{name}': expected a pixel from 0 to 255, found {found}"))
}
