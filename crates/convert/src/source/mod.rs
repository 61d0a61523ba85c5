//! Where samples come from: lists the files of a folder or a manifest, with labels, in a fixed
//! order.
//!
//! Not for decoding: an image is opened here only if its name does not say that it is one.
//!
//! A folder of class folders is read as torchvision's `ImageFolder` reads it: the classes are the
//! subfolders in name order, hidden ones and links to folders included, and a class's id is its
//! place in that order; within a class, folders come in the order of their whole paths and files
//! in name order within each. Names are compared byte by byte, which for UTF-8 is the order in
//! which Python sorts strings; where a name is not UTF-8, Python may order differently.
//!
//! Links are followed. A link from which a walk would come back to a folder it is in is an error.

mod candidate;
mod column;
mod csv_rows;
mod directory;
mod image_folder;
mod labels;
mod listing;
mod manifest;
mod paths;
mod root;
mod rows;
mod split;
mod values;
mod walk;
mod warning;

#[cfg(test)]
mod tests;

pub use self::{
    column::{ColumnValues, SourceColumn, TextArena},
    listing::{Listing, Sample, SourceKind},
    warning::Warning,
};

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::error::ConvertError;

/// What to list and how.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// List only this split, a subfolder of the source. Class ids are those of the classes of all
    /// splits together.
    pub split: Option<String>,
    /// The folder to which a manifest's paths are relative; the manifest's own folder if none.
    pub root: Option<PathBuf>,
    /// The manifest's column of image paths; found by its name if none.
    pub path_key: Option<String>,
    /// The manifest's column of labels; found by its name if none.
    pub label_key: Option<String>,
    /// The manifest's column of mask paths; found by its name if none.
    pub mask_key: Option<String>,
    /// How many threads list; 0 counts as 1. The listing does not depend on it.
    pub jobs: usize,
}

/// Lists the samples of a folder or a manifest.
///
/// # Errors
///
/// If the source is missing, empty, unreadable, has only splits and `options` chooses none, or, for
/// a manifest, if any row is malformed or names a file that is not there.
pub fn list(source: &Path, options: &ListOptions) -> Result<Listing, ConvertError> {
    let form = source_form(source)?;
    check_manifest_options(&form, options)?;
    match (form, &options.split) {
        (SourceForm::Folder, None) => image_folder::list_source(source, options.jobs),
        (SourceForm::Folder, Some(split)) => split::list_one(source, split, options.jobs),
        (SourceForm::Manifest(form), None) => manifest::list(source, form, options),
        (SourceForm::Manifest(_), Some(split)) => Err(no_splits(source, split)),
    }
}

/// Lists every split of a folder, in name order. The class list is the same in each: the sorted
/// names of the classes of all splits, so that ids agree. A split without class folders is listed
/// without labels.
///
/// # Errors
///
/// As [`list`], and if the source has no splits.
pub fn list_splits(
    source: &Path,
    options: &ListOptions,
) -> Result<Vec<(String, Listing)>, ConvertError> {
    let form = source_form(source)?;
    check_manifest_options(&form, options)?;
    match form {
        SourceForm::Folder => split::list_all(source, options.jobs),
        SourceForm::Manifest(_) => Err(no_splits(source, "all")),
    }
}

/// Refuses options that only a manifest has a use for.
fn check_manifest_options(form: &SourceForm, options: &ListOptions) -> Result<(), ConvertError> {
    let keys = [&options.path_key, &options.label_key, &options.mask_key];
    let given = options.root.is_some() || keys.iter().any(|key| key.is_some());
    if given && matches!(form, SourceForm::Folder) {
        return Err(ConvertError::Options {
            reason: "--root and the column names are for manifests, and the source is a folder"
                .to_owned(),
            hint: "leave them out, or name a .csv, .tsv or .jsonl manifest".to_owned(),
        });
    }
    Ok(())
}

enum SourceForm {
    Folder,
    Manifest(rows::RowForm),
}

fn source_form(source: &Path) -> Result<SourceForm, ConvertError> {
    let metadata = match std::fs::metadata(source) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(ConvertError::SourceMissing {
                path: source.to_owned(),
            });
        }
        Err(error) => {
            return Err(ConvertError::Io {
                path: source.to_owned(),
                source: error,
            });
        }
    };
    if metadata.is_dir() {
        return Ok(SourceForm::Folder);
    }
    match rows::RowForm::from_path(source) {
        Some(form) if metadata.is_file() => Ok(SourceForm::Manifest(form)),
        _ => Err(ConvertError::NotADirectoryOrManifest {
            path: source.to_owned(),
        }),
    }
}

fn no_splits(source: &Path, wanted: &str) -> ConvertError {
    ConvertError::SplitMissing {
        path: source.to_owned(),
        wanted: wanted.to_owned(),
        available: Vec::new(),
    }
}
