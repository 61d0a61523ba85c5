//! Text files next to images, such as `x.txt` next to `x.jpg`, as used to train image generators. Their contents become a column.

use std::io::{ErrorKind, Read};
use std::path::Path;

use packds_system::{open_regular, to_u64};

use super::column::{ColumnValues, SourceColumn, TextArena};
use super::listing::Listing;
use super::mistaken::as_classes;
use super::paths::{as_path, stem};
use super::unread::take_others;
use super::warning::Warning;
use crate::error::ConvertError;

/// The name of the column.
const NAME: &str = "caption";
/// Number of images to check first, so that folders without text files take little time.
pub(super) const MAX_FIRST: usize = 100;
/// Maximum size of a caption or a JSON object, in bytes.
const MAX_BYTES: u64 = 1 << 16;
/// Minimum count of numbers on a line that describes a box: class, centre and size.
const BOX_NUMBERS: usize = 5;

/// Adds the text files as a column if nearly all images have one. Boxes cause only a warning.
pub(super) fn add(listing: &mut Listing) -> Result<(), ConvertError> {
    let first: Vec<usize> = (0..listing.len().min(MAX_FIRST)).collect();
    let is_there = |idx: &usize| text_path(listing, *idx).is_file();
    if !are_nearly_all(first.iter().filter(|idx| is_there(idx)).count(), first.len()) {
        return Ok(());
    }
    let (mut texts, mut n_texts, mut n_boxes, mut n_other) = (TextArena::default(), 0, 0, 0);
    for idx in 0..listing.len() {
        let text = text_at(&text_path(listing, idx))?;
        n_texts += usize::from(text.is_some());
        let text = text.unwrap_or_default();
        match text.trim() {
            "" => {}
            text if text.lines().all(is_box) => n_boxes += 1,
            _ => n_other += 1,
        }
        texts.push(text.trim_start_matches('\u{feff}').trim());
    }
    if n_other == 0 && n_boxes > 0 {
        listing.warnings.push(Warning::BoxesUnread { count: to_u64(n_boxes) });
        take_others(&mut listing.warnings, "txt", to_u64(n_texts), |_| true);
    } else if n_other > 0 && are_nearly_all(n_texts, listing.len()) {
        listing.columns.push(SourceColumn { name: NAME.to_owned(), values: ColumnValues::Text(texts) });
        listing.ignored = listing.ignored.saturating_sub(to_u64(n_texts));
        take_others(&mut listing.warnings, "txt", to_u64(n_texts), |_| true);
        listing.warnings.push(Warning::Captions { missing: to_u64(listing.len() - n_texts) });
    }
    Ok(())
}

/// Whether `n` is nearly all of `all`, and not 0.
pub(super) fn are_nearly_all(n: usize, all: usize) -> bool {
    n > 0 && 10 * n >= 9 * all
}

/// The path of an image's text file.
fn text_path(listing: &Listing, idx: usize) -> std::path::PathBuf {
    let path = listing.file_path(idx);
    let name = [stem(listing.paths.name(idx)), b".txt"].concat();
    path.with_file_name(as_path(&name))
}

/// The content of a file. `None` if it does not exist or is too long.
pub(super) fn short_file(path: &Path) -> Result<Option<Vec<u8>>, ConvertError> {
    let mut bytes = Vec::new();
    match open_regular(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => return Ok(None),
        read => read.map_err(ConvertError::io(path))?,
    };
    Ok((to_u64(bytes.len()) <= MAX_BYTES).then_some(bytes))
}

/// The content of a text file. `None` if it does not exist or is too long.
fn text_at(path: &Path) -> Result<Option<String>, ConvertError> {
    let Some(bytes) = short_file(path)? else { return Ok(None) };
    let not_text = |_| {
        let hint = format!("save it as UTF-8, or ignore the text files: {}", as_classes());
        ConvertError::contradictory(path, "", "this caption is not UTF-8", hint)
    };
    String::from_utf8(bytes).map(Some).map_err(not_text)
}

/// Whether a line describes a box by numbers, as in YOLO.
pub(super) fn is_box(line: &str) -> bool {
    let words = line.split_whitespace();
    line.trim().is_empty()
        || (words.clone().count() >= BOX_NUMBERS && words.clone().all(|word| word.parse::<f64>().is_ok()))
}
