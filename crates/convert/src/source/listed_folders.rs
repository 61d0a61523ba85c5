//! Refuses folders that are clips, although they look like classes: they are named like clips or numbers, and a table lists them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::ListOptions;
use super::listing::Listing;
use super::mistaken::as_classes;
use super::offers::named_file;
use super::paths::lossy;
use super::rows::{RowFile, RowForm, Rows};
use super::values::text_of;
use super::warning::Warning;
use crate::error::ConvertError;

/// Maximum number of rows to read.
const FIRST_ROWS: usize = 100;

/// Refuses class folders that may be clips if most of a table's first rows begin with the name of one. `folder` is the source.
pub(super) fn refuse(folder: &Path, listing: &Listing, options: &ListOptions) -> Result<(), ConvertError> {
    let is_doubtful =
        |warning: &Warning| matches!(warning, Warning::NumberedFolders { .. } | Warning::ClipFolders { .. });
    if !listing.warnings.iter().any(is_doubtful) {
        return Ok(());
    }
    let names: HashSet<String> = listing.classes.iter().map(|class| lossy(class)).collect();
    let root = listing.root();
    for table in listing.warnings.iter().flat_map(|warning| tables_in([folder, root], warning)) {
        // A table that cannot be read says nothing about the folders.
        let Ok(Some(first)) = first_listed(&table, &names, options) else { continue };
        let reason = format!(
            "'{}' has a row for each folder, such as '{first}', so the folders are not read as classes",
            table.file_name().unwrap_or_default().display()
        );
        let hint =
            format!("to give each image the labels of its folder, convert '{}'; {}", table.display(), as_classes());
        return Err(ConvertError::contradictory(root, "", reason, hint));
    }
    Ok(())
}

/// The files that a warning names and one of the folders contains.
fn tables_in(folders: [&Path; 2], warning: &Warning) -> Vec<PathBuf> {
    let (Warning::ManifestUnread { file, others }
    | Warning::ListsUnread { file, others }
    | Warning::NoLists { file, others }) = warning
    else {
        return Vec::new();
    };
    std::iter::once(file).chain(others).filter_map(|file| named_file(&folders, file)).collect()
}

/// The first folder that a table lists. `None` if the table has just one column, or if most of its first rows do not begin with a folder.
fn first_listed(table: &Path, names: &HashSet<String>, options: &ListOptions) -> Result<Option<String>, ConvertError> {
    let Some(form) = RowForm::of_source(table) else { return Ok(None) };
    let file = RowFile::new(table, &options.spool_folder().path)?;
    let mut rows = Rows::open(&file, form)?;
    let (mut first, mut n_listed, mut n_rows) = (None, 0, 0);
    while n_rows < FIRST_ROWS && rows.advance()? {
        n_rows += 1;
        let cell = text_of(rows.cell(0)).into_owned();
        if names.contains(&cell) {
            n_listed += 1;
            first.get_or_insert(cell);
        }
    }
    Ok(first.filter(|_| rows.columns.len() > 1 && 2 * n_listed > n_rows))
}
