//! Refuses folders that are clips, although they look like classes: they are named like clips or numbers, and a table lists them.

use std::collections::HashSet;
use std::path::Path;

use super::ListOptions;
use super::folder_tables::{FIRST_ROWS, named_in};
use super::listing::Listing;
use super::mistaken::as_classes;
use super::offers::named_file;
use super::paths::lossy;
use super::rows::{RowFile, RowForm, Rows};
use super::values::text_of;
use super::warning::Warning;
use crate::error::ConvertError;

/// Refuses class folders that may be clips if most of a table's first rows begin with the name of one. `folder` is the source.
pub(super) fn refuse(folder: &Path, listing: &Listing, options: &ListOptions) -> Result<(), ConvertError> {
    let is_doubtful =
        |warning: &Warning| matches!(warning, Warning::NumberedFolders { .. } | Warning::ClipFolders { .. });
    if !listing.warnings.iter().any(is_doubtful) {
        return Ok(());
    }
    let names: HashSet<String> = listing.classes.iter().map(|class| lossy(class)).collect();
    let root = listing.root();
    let files = listing.warnings.iter().flat_map(named_in);
    for table in files.filter_map(|file| named_file(&[folder, root], file)) {
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
