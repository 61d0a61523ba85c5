//! Reads a table of labels beside unlabelled images: `train.csv` beside `train/` and `test/`, or `metadata.jsonl` in a split.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::ListOptions;
use super::candidate::SampleFiles;
use super::directory::Directory;
use super::directory::Identity;
use super::image_folder::{is_archive, is_submission};
use super::listing::Listing;
use super::manifest;
use super::mask_colors::is_table;
use super::paths::{as_path, lossy, stem};
use super::root::without_dots;
use super::rows::RowForm;
use super::split::{split_and_rest, unite_classes};
use super::unread::take_others;
use super::walk::Found;
use super::warning::{Tally, Warning};
use crate::error::ConvertError;

/// Reads the table instead of the folder, if the folder has no labels, only one class or only splits, and the table has labels for files that exist.
pub(super) fn instead(folder: &Path, found: &Result<Listing, ConvertError>, options: &ListOptions) -> Option<Listing> {
    let given = options.from.is_some() || options.images.is_some() || options.masks.is_some();
    let is_example = |table: &PathBuf| table.file_name().is_some_and(|name| is_submission(name.as_encoded_bytes()));
    let table = table_of(folder, found).filter(|table| !given && !is_example(table))?;
    let options = ListOptions { split: None, ..options.clone() };
    let mut listing = manifest::list(&table, RowForm::of_source(&table)?, &options).ok()?;
    let file = table.file_name()?.as_encoded_bytes().to_vec();
    let lower = file.to_ascii_lowercase();
    // The names of some tables show their purpose: Hugging Face's `metadata`, Kaggle's `train`, and captions.
    let is_named = lower.starts_with(b"train") || lower.windows(7).any(|word| word == b"caption");
    let is_meant = lower.starts_with(b"metadata.")
        || (is_named && has_columns(&listing))
        || listing.has_labels()
        || listing.has_label_lists();
    let has_labels = |listing: &Listing| listing.has_labels() && !listing.has_one_folder();
    let loses_labels = found.as_ref().is_ok_and(has_labels) && !listing.has_labels();
    if !is_meant || loses_labels || !listing.faults.is_empty() {
        return None;
    }
    let others = note_others(folder, &[&table], &mut [&mut listing]).ok()?;
    listing.warnings.insert(0, Warning::TableRead { file, count: others.count, first: others.first });
    Some(listing)
}

/// The tables that divide a folder into splits, such as `train.csv` and `val.csv`. Each has labels or other columns for files that
/// exist. If the folder has no images, the tables have them, and need no labels.
pub(super) fn splits(folder: &Path, options: &ListOptions) -> Option<Vec<(String, Listing)>> {
    let (tables, has_only_files) = tables_in(folder, options)?;
    let split_of = |table: &Vec<u8>| split_and_rest(&lossy(stem(table))).map(|found| (found, table.clone()));
    let named: Vec<_> = tables.iter().filter_map(split_of).collect();
    let ((first, rest), _) = named.first()?;
    if named.iter().any(|((_, other), _)| other != rest) || named.iter().all(|((split, _), _)| split == first) {
        return None;
    }
    let options = ListOptions { split: None, ..options.clone() };
    let mut listings = Vec::new();
    for ((split, _), table) in &named {
        let path = folder.join(as_path(table));
        let listing = manifest::list(&path, RowForm::of_source(&path)?, &options).ok()?;
        let is_meant = has_only_files || listing.has_labels() || listing.has_label_lists() || has_columns(&listing);
        if !is_meant || !listing.faults.is_empty() {
            return None;
        }
        listings.push((split.clone(), listing));
    }
    unite_classes(&mut listings);
    let paths: Vec<PathBuf> = named.iter().map(|(_, table)| folder.join(as_path(table))).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut all: Vec<&mut Listing> = listings.iter_mut().map(|(_, listing)| listing).collect();
    let others = note_others(folder, &paths, &mut all).ok()?;
    for (listing, (_, table)) in all.into_iter().zip(&named) {
        let (count, first) = (others.count, others.first.clone());
        listing.warnings.insert(0, Warning::TableRead { file: table.clone(), count, first });
    }
    Some(listings)
}

fn has_columns(listing: &Listing) -> bool {
    !listing.columns.is_empty() || !listing.fields.is_empty()
}

/// The only table of a folder without images and without other folders.
pub(super) fn only(folder: &Path, options: &ListOptions) -> Option<PathBuf> {
    let (tables, has_only_files) = tables_in(folder, options)?;
    let [table] = tables.as_slice() else { return None };
    has_only_files.then(|| folder.join(as_path(table)))
}

/// The tables in a folder, sorted, and whether it has nothing but files that are neither images nor archives. None if options choose
/// how it is read.
fn tables_in(folder: &Path, options: &ListOptions) -> Option<(Vec<Vec<u8>>, bool)> {
    if options.from.is_some() || options.images.is_some() || options.masks.is_some() {
        return None;
    }
    let top = Directory::scan(folder, b"", SampleFiles::Images).ok()?;
    let is_delimited = |name: &&[u8]| matches!(RowForm::from_path(as_path(name)), Some(RowForm::Csv));
    let tables = top.names().filter(is_delimited).filter(|name| !is_submission(name) && !is_table(name));
    let mut tables: Vec<Vec<u8>> = tables.map(<[u8]>::to_vec).collect();
    tables.sort_unstable();
    // The images may be in archives.
    let has_archives = top.names().any(|name| is_archive(&lossy(name).to_ascii_lowercase()));
    let has_only_files = top.subdirectories.is_empty() && top.sample_names().next().is_none() && !has_archives;
    Some((tables, has_only_files))
}

/// Counts the images of the folder that no table names, and its other files, which the first listing reports.
fn note_others(folder: &Path, tables: &[&Path], listings: &mut [&mut Listing]) -> Result<Tally, ConvertError> {
    let mut found = Found::default();
    // The folder itself is walked, so nothing is above it.
    found.add_class((folder, Identity::default()), b"", 0, SampleFiles::Images)?;
    let mut named: HashSet<Option<Vec<u8>>> = HashSet::new();
    let mut path = Vec::new();
    for listing in listings.iter() {
        let file = |path: &[u8]| without_dots(&listing.root().join(as_path(path)));
        for idx in 0..listing.len() {
            path.clear();
            listing.path_into(idx, &mut path);
            named.insert(file(&path));
            path.clear();
            if listing.mask_path_into(idx, &mut path).is_some() {
                named.insert(file(&path));
            }
        }
    }
    let mut others = Tally::default();
    for idx in 0..found.paths.len() {
        let path = found.paths.path(idx);
        if !named.contains(&without_dots(&folder.join(as_path(&path)))) {
            others.add(&path);
        }
    }
    let Some(listing) = listings.first_mut() else { return Ok(others) };
    listing.warnings.extend(found.oddities.into_warnings());
    listing.ignored += found.ignored;
    for table in tables.iter().filter(|table| table.parent() == Some(folder)) {
        listing.ignored = listing.ignored.saturating_sub(1);
        let extension = table.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        take_others(&mut listing.warnings, &extension, 1);
    }
    Ok(others)
}

/// Whether a folder's labels come from folders that are certainly classes.
fn has_sure_labels(listing: &Listing) -> bool {
    let are_nested = || listing.warnings.iter().any(|warning| matches!(warning, Warning::NestedClasses { .. }));
    listing.has_labels() && !listing.has_one_folder() && !are_nested()
}

/// The table that the folder's listing or error names.
fn table_of(folder: &Path, found: &Result<Listing, ConvertError>) -> Option<PathBuf> {
    match found {
        Err(ConvertError::OnlySplits { path, manifest, .. }) => Some(path.join(manifest.as_ref()?)),
        Err(ConvertError::Parts { table, .. }) => Some(table.clone()),
        Ok(listing) if !listing.has_masks() && !has_sure_labels(listing) => {
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
