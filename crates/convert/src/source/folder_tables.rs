//! Finds and reads the tables and lists next to images, and limits their number.

use std::path::{Path, PathBuf};

use super::ListOptions;
use super::directory::Directory;
use super::image_folder::is_submission;
use super::listing::Listing;
use super::manifest;
use super::mask_colors;
use super::offers::named_file;
use super::paths::as_path;
use super::rows::RowForm;
use super::warning::Warning;
use crate::error::ConvertError;

/// Maximum number of tables in a folder to read.
pub(super) const MAX_TABLES: usize = 16;
/// Maximum number of tables and lists to read if a warning offers them as sources.
pub(super) const MAX_OFFERED: usize = 32;
/// Maximum number of rows to read to find out what a table lists.
pub(super) const FIRST_ROWS: u64 = 100;

/// The names of the tables in a folder, sorted. Sample submissions and tables of colours do not describe images.
pub(super) fn names_in(top: &Directory, is_form: impl Fn(RowForm) -> bool) -> Vec<Vec<u8>> {
    // Hugging Face calls a table of the files next to it `metadata`, in each of its formats.
    let form = |name: &[u8]| match name {
        b"metadata.parquet" => RowForm::of_source(as_path(name)),
        _ => RowForm::from_path(as_path(name)),
    };
    let is_table = |name: &&[u8]| form(name).is_some_and(&is_form);
    let tables = top.names().filter(is_table).filter(|name| !is_submission(name) && !mask_colors::is_table(name));
    let mut tables: Vec<Vec<u8>> = tables.map(<[u8]>::to_vec).collect();
    tables.sort_unstable();
    tables
}

/// The listing of a table. `None` if its name is not that of a table.
pub(super) fn list(table: &Path, options: &ListOptions) -> Option<Result<Listing, ConvertError>> {
    Some(manifest::list(table, RowForm::of_source(table)?, options))
}

/// The listing of a table whose files all exist. `None` if a file is missing, or if the table cannot be read.
pub(super) fn list_whole(table: &Path, options: &ListOptions) -> Option<Listing> {
    list(table, options)?.ok().filter(|listing| listing.faults.is_empty())
}

/// The files that a warning offers as sources, or names because they list no images.
pub(super) fn named_in(warning: &Warning) -> impl Iterator<Item = &Vec<u8>> {
    let named = match warning {
        Warning::ManifestUnread { file, others }
        | Warning::ListsUnread { file, others }
        | Warning::NoLists { file, others } => Some(std::iter::once(file).chain(others)),
        _ => None,
    };
    named.into_iter().flatten()
}

/// The tables that the warnings of a folder's listing offer as sources: their names and paths.
pub(super) fn offered(folder: &Path, listing: &Listing) -> Vec<(Vec<u8>, PathBuf)> {
    let tables = listing.warnings.iter().filter(|warning| matches!(warning, Warning::ManifestUnread { .. }));
    found(folder, listing, tables)
}

/// The tables and lists that the warnings of a folder's listing offer as sources: their names and paths.
pub(super) fn offered_with_lists(folder: &Path, listing: &Listing) -> Vec<(Vec<u8>, PathBuf)> {
    let is_offer = |warning: &&Warning| !matches!(warning, Warning::NoLists { .. });
    found(folder, listing, listing.warnings.iter().filter(is_offer))
}

fn found<'a>(folder: &Path, listing: &Listing, warnings: impl Iterator<Item = &'a Warning>) -> Vec<(Vec<u8>, PathBuf)> {
    let files = warnings.flat_map(named_in).take(MAX_OFFERED);
    files.filter_map(|file| Some((file.clone(), named_file(&[folder, listing.root()], file)?))).collect()
}
