//! Finds the column of ids in a table without a column of paths: each id is the name of an image file without its extension.

use std::collections::HashSet;

use super::ListOptions;
use super::candidate::SampleFiles;
use super::column_roles::Roles;
use super::directory::Identity;
use super::paths::stem;
use super::root::Root;
use super::rows::{RowFile, RowForm, Rows};
use super::values::text_of;
use super::walk::Found;
use crate::error::ConvertError;

/// Number of rows whose ids are compared with the names of the files.
const MAX_FIRST: usize = 100;

/// The name of the column of ids, if no column of paths was found. `names` are the columns to choose from, with their numbers. `None`
/// if none or several of them name images below the folder of the table.
pub(super) fn instead(
    (file, form, options): (&RowFile, RowForm, &ListOptions),
    names: &[(usize, &String)],
    roles: &Result<Roles, ConvertError>,
) -> Result<Option<String>, ConvertError> {
    if !matches!(roles, Err(ConvertError::ManifestColumnMissing { .. })) || options.image_key.is_some() {
        return Ok(None);
    }
    let root = Root::open(&file.path, options)?;
    let mut images = Found::default();
    images.add_class((&root.path, Identity::default()), b"", 0, SampleFiles::Images)?;
    let paths = &images.paths;
    let stems: HashSet<&[u8]> = (0..paths.len()).map(|idx| stem(paths.name(idx))).collect();
    let mut left: Vec<(usize, &String, HashSet<Vec<u8>>)> =
        names.iter().map(|(column, name)| (*column, *name, HashSet::new())).collect();
    let mut rows = Rows::open(file, form)?;
    for _ in 0..MAX_FIRST {
        if !rows.advance()? {
            break;
        }
        left.retain_mut(|(column, _, seen)| {
            let id = text_of(rows.cell(*column)).trim().as_bytes().to_vec();
            stems.contains(id.as_slice()) && seen.insert(id)
        });
    }
    // A single id may name an image by chance.
    left.retain(|(.., seen)| seen.len() > 1);
    let [(_, only, _)] = left.as_slice() else { return Ok(None) };
    Ok(Some((*only).clone()))
}
