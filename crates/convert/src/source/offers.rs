//! Checks the files that warnings suggest as sources. A table is suggested only if most of its first rows name existing images, or if
//! reading it fails with an error that says what to do.
//!
//! `image_folder`, `lists` and `class_names` find the files by their names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::ListOptions;
use super::folder_tables::{FIRST_ROWS, MAX_OFFERED, named_in};
use super::listed_folders;
use super::listing::Listing;
use super::manifest;
use super::other_labels;
use super::paths::as_path;
use super::rows::RowForm;
use super::table_note::TableNote;
use super::warning::Warning;
use crate::error::ConvertError;

/// Checks the warnings of a folder's listings. Those that suggest files which cannot be sources are replaced.
///
/// # Errors
/// If one of the files lists the folders that were read as classes.
pub(super) fn check<'a>(
    folder: &Path,
    listings: impl Iterator<Item = &'a mut Listing>,
    options: &ListOptions,
) -> Result<(), ConvertError> {
    let options = ListOptions { split: None, images: None, masks: None, from: None, ..options.clone() };
    let mut tries = Tries { options, known: HashMap::new() };
    for listing in listings {
        let folders = [folder.to_owned(), listing.root().to_owned()];
        for warning in &mut listing.warnings {
            if let Some(checked) = tries.checked(&folders, warning) {
                *warning = checked;
            }
        }
        listed_folders::refuse(folder, listing, &tries.options)?;
        other_labels::note(folder, listing, &tries.options);
    }
    Ok(())
}

/// The file that a warning names. Its path is relative to one of `folders`: the source, or the folder that is read in
/// place of the source. `None` if neither has the file.
pub(super) fn named_file(folders: &[&Path; 2], file: &[u8]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(as_path(file))).find(|path| path.is_file())
}

struct Tries {
    options: ListOptions,
    known: HashMap<PathBuf, bool>,
}

impl Tries {
    /// The warning to give instead of this one. `None` to keep this one.
    fn checked(&mut self, folders: &[PathBuf; 2], warning: &Warning) -> Option<Warning> {
        match warning {
            Warning::ManifestUnread { .. } => {
                let (sources, rest) = self.partition(folders, named_in(warning).cloned().collect());
                match (sources.as_slice(), self.bad_row(folders, &sources)) {
                    (_, Some(bad_row)) => Some(bad_row),
                    ([], None) => Warning::no_lists(rest),
                    _ => Warning::manifests_unread(sources),
                }
            }
            Warning::ListsUnread { .. } => {
                let (mut sources, rest) = self.partition(folders, named_in(warning).cloned().collect());
                if sources.is_empty() {
                    return Warning::no_lists(rest);
                }
                sources.extend(rest);
                let file = sources.remove(0);
                Some(Warning::ListsUnread { file, others: sources })
            }
            Warning::ClassNamesUnread { file, of_ids: false } => {
                let lists = self.partition(folders, vec![file.clone()]).0;
                let is_table = RowForm::of_source(as_path(file)).is_some();
                Warning::manifests_unread(lists).filter(|_| is_table)
            }
            _ => None,
        }
    }

    /// The files that can be sources, and the others. Of many files, only the first are tried and returned.
    fn partition(&mut self, folders: &[PathBuf; 2], files: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        files.into_iter().take(MAX_OFFERED).partition(|file| {
            let path = named_file(&[&folders[0], &folders[1]], file);
            path.is_none_or(|path| self.is_source(path))
        })
    }

    /// The warning about the first malformed row below the header, if there is only one table.
    fn bad_row(&self, folders: &[PathBuf; 2], tables: &[Vec<u8>]) -> Option<Warning> {
        let [file] = tables else { return None };
        let path = named_file(&[&folders[0], &folders[1]], file)?;
        let form = RowForm::of_source(&path).filter(|form| matches!(form, RowForm::Csv | RowForm::Tab))?;
        match manifest::list(&path, form, &self.options) {
            Err(ConvertError::ManifestMalformed { line: line @ 2.., reason, .. }) => {
                Some(Warning::Table(TableNote::BadRow { file: file.clone(), line, reason }))
            }
            _ => None,
        }
    }

    fn is_source(&mut self, path: PathBuf) -> bool {
        if let Some(known) = self.known.get(&path) {
            return *known;
        }
        let is_source = RowForm::of_source(&path).is_none_or(|form| {
            match manifest::list_first(&path, form, FIRST_ROWS, &self.options) {
                Ok(listing) => 2 * listing.faults.len() < listing.len(),
                Err(ConvertError::SeveralSplits { .. } | ConvertError::SourceUnsupported { .. }) => true,
                // A malformed line below the header can be corrected.
                Err(ConvertError::ManifestMalformed { line: 2.., .. }) => matches!(form, RowForm::Csv | RowForm::Tab),
                // The error about an unknown form of JSON does not mean that the file has labels.
                Err(ConvertError::SourceMalformed { hint: Some(_), .. }) => form != RowForm::Json,
                Err(_) => false,
            }
        });
        self.known.insert(path, is_source);
        is_source
    }
}
