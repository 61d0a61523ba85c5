//! A table beside images that have no labels of their own: `train.csv` beside `train/` and `test/`, `metadata.jsonl` in a split.

use std::path::{Path, PathBuf};

use super::ListOptions;
use super::image_folder::is_submission;
use super::listing::Listing;
use super::manifest;
use super::paths::as_path;
use super::rows::RowForm;
use super::warning::Warning;
use crate::error::ConvertError;

/// Reads the table instead of the folder, if the folder has no labels or only splits, and the table has labels for files that exist.
pub(super) fn instead(folder: &Path, found: &Result<Listing, ConvertError>, options: &ListOptions) -> Option<Listing> {
    let given = options.from.is_some() || options.images.is_some() || options.masks.is_some();
    let is_example = |table: &PathBuf| table.file_name().is_some_and(|name| is_submission(name.as_encoded_bytes()));
    let table = table_of(folder, found).filter(|table| !given && !is_example(table))?;
    let options = ListOptions { split: None, ..options.clone() };
    let mut listing = manifest::list(&table, RowForm::of_source(&table)?, &options).ok()?;
    let file = table.file_name()?.as_encoded_bytes().to_vec();
    // The name of Hugging Face's image folders says what the table is for.
    let is_meant = file.starts_with(b"metadata.") || listing.has_labels() || listing.has_label_lists();
    if !is_meant || !listing.faults.is_empty() {
        return None;
    }
    listing.warnings.insert(0, Warning::TableRead { file });
    Some(listing)
}

/// The table that the folder's listing or error names.
fn table_of(folder: &Path, found: &Result<Listing, ConvertError>) -> Option<PathBuf> {
    match found {
        Err(ConvertError::OnlySplits { path, manifest, .. }) => Some(path.join(manifest.as_ref()?)),
        Ok(listing) if !listing.has_labels() && !listing.has_masks() => {
            let unread = |warning: &Warning| match warning {
                Warning::ManifestUnread { file } => Some(file.clone()),
                _ => None,
            };
            let file = listing.warnings.iter().find_map(unread)?;
            let folders = [folder, listing.root()].into_iter();
            folders.map(|folder| folder.join(as_path(&file))).find(|table| table.is_file())
        }
        _ => None,
    }
}
