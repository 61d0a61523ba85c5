//! Reads a table of labels beside unlabelled images: `train.csv` beside `train/` and `test/`, or `metadata.jsonl` in a split.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::ListOptions;
use super::candidate::SampleFiles;
use super::directory::Identity;
use super::image_folder::is_submission;
use super::listing::Listing;
use super::manifest;
use super::paths::as_path;
use super::root::without_dots;
use super::rows::RowForm;
use super::unread::take_others;
use super::walk::Found;
use super::warning::{Tally, Warning};
use crate::error::ConvertError;

/// Reads the table instead of the folder, if the folder has no labels or only splits, and the table has labels for files that exist.
pub(super) fn instead(folder: &Path, found: &Result<Listing, ConvertError>, options: &ListOptions) -> Option<Listing> {
    let given = options.from.is_some() || options.images.is_some() || options.masks.is_some();
    let is_example = |table: &PathBuf| table.file_name().is_some_and(|name| is_submission(name.as_encoded_bytes()));
    let table = table_of(folder, found).filter(|table| !given && !is_example(table))?;
    let options = ListOptions { split: None, ..options.clone() };
    let mut listing = manifest::list(&table, RowForm::of_source(&table)?, &options).ok()?;
    let file = table.file_name()?.as_encoded_bytes().to_vec();
    let lower = file.to_ascii_lowercase();
    let has_columns = !listing.columns.is_empty() || !listing.fields.is_empty();
    // The names of some tables show their purpose: Hugging Face's `metadata`, Kaggle's `train`, and captions.
    let is_named = lower.starts_with(b"train") || lower.windows(7).any(|word| word == b"caption");
    let is_meant = lower.starts_with(b"metadata.")
        || (is_named && has_columns)
        || listing.has_labels()
        || listing.has_label_lists();
    if !is_meant || !listing.faults.is_empty() {
        return None;
    }
    let others = note_others(folder, &table, &mut listing).ok()?;
    listing.warnings.insert(0, Warning::TableRead { file, count: others.count, first: others.first });
    Some(listing)
}

/// Counts the images of the folder that the table does not name, and its other files.
fn note_others(folder: &Path, table: &Path, listing: &mut Listing) -> Result<Tally, ConvertError> {
    let mut found = Found::default();
    // The walk starts at the folder itself, so there is no parent to check for loops.
    found.add_class((folder, Identity::default()), b"", 0, SampleFiles::Images)?;
    let file = |path: &[u8]| without_dots(&listing.root().join(as_path(path)));
    let mut named: HashSet<Option<Vec<u8>>> = HashSet::with_capacity(listing.len());
    let mut path = Vec::new();
    for idx in 0..listing.len() {
        path.clear();
        listing.path_into(idx, &mut path);
        named.insert(file(&path));
        path.clear();
        if listing.mask_path_into(idx, &mut path).is_some() {
            named.insert(file(&path));
        }
    }
    let mut others = Tally::default();
    for idx in 0..found.paths.len() {
        let path = found.paths.path(idx);
        if !named.contains(&without_dots(&folder.join(as_path(&path)))) {
            others.add(&path);
        }
    }
    listing.warnings.extend(found.oddities.into_warnings());
    if let (true, Some(extension)) = (table.parent() == Some(folder), table.extension()) {
        take_others(&mut listing.warnings, &extension.to_string_lossy().to_lowercase(), 1);
    }
    listing.ignored += found.ignored - u64::from(found.ignored > 0 && table.parent() == Some(folder));
    Ok(others)
}

/// The table that the folder's listing or error names.
fn table_of(folder: &Path, found: &Result<Listing, ConvertError>) -> Option<PathBuf> {
    match found {
        Err(ConvertError::OnlySplits { path, manifest, .. }) => Some(path.join(manifest.as_ref()?)),
        Err(ConvertError::Parts { table, .. }) => Some(table.clone()),
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
