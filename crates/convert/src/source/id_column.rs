//! Finds the column of ids in a table without a column of paths: each id is the name of an image file without its extension.

use std::collections::HashSet;

use super::ListOptions;
use super::candidate::SampleFiles;
use super::column_roles::{Choices, Roles};
use super::directory::Identity;
use super::paths::stem;
use super::pixel_rows::Pixels;
use super::root::Root;
use super::rows::{RowFile, RowForm, Rows};
use super::values::text_of;
use super::walk::Found;
use super::warning::Warning;
use crate::error::ConvertError;

/// Number of rows whose ids are compared with the names of the files.
const MAX_FIRST: usize = 100;

/// The roles of the columns. If no column of paths is found, the column of ids is used. `kept` are the numbers of the columns to choose
/// from.
pub(super) fn roles(
    rows: (&RowFile, RowForm),
    kept: &[usize],
    choices: Choices<'_>,
    pixels: Option<&Pixels>,
    warnings: &mut Vec<Warning>,
) -> Result<Roles, ConvertError> {
    let roles = choices.roles(pixels, warnings);
    if !matches!(roles, Err(ConvertError::ManifestColumnMissing { .. })) || choices.options.image_key.is_some() {
        return roles;
    }
    let names: Vec<(usize, &String)> = kept.iter().copied().zip(choices.names).collect();
    let Some(field) = of_ids(rows, choices.options, &names)? else { return roles };
    let options = ListOptions { image_key: Some(field.clone()), ..choices.options.clone() };
    warnings.push(Warning::PathColumn { field });
    Choices { options: &options, ..choices }.roles(pixels, warnings)
}

/// The name of the column of ids. `None` if none or several of these columns name images below the folder of the table.
fn of_ids(
    (file, form): (&RowFile, RowForm),
    options: &ListOptions,
    names: &[(usize, &String)],
) -> Result<Option<String>, ConvertError> {
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
