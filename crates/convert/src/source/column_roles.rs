//! Decides which columns of a manifest contain image paths, masks and labels.

use std::path::Path;

use super::ListOptions;
use super::listing::Listing;
use super::look::look_at;
use super::paths::{as_path, lossy};
use super::pixel_rows::Pixels;
use super::roles::{IMAGE_PATH_NAMES, LABEL_LIST_NAME, LABEL_NAMES, MASK_PATH_NAMES, is_label_name};
use super::rows::malformed;
use super::table_note::TableNote;
use super::versions;
use super::warning::Warning;
use crate::error::ConvertError;
use crate::opt::{LABEL_KEY, LEAVE_OUT};

/// Words in the names of mask columns.
const MASK_WORDS: [&str; 8] = ["mask", "masks", "seg", "segmentation", "annotation", "annot", "gt", "trimap"];

/// The columns of paths, masks and labels.
pub(super) struct Roles {
    /// The column of image paths. `None` if the table contains pixels.
    pub(super) path: Option<usize>,
    pub(super) mask: Option<usize>,
    pub(super) label: Option<usize>,
}

/// The columns to choose from.
pub(super) struct Choices<'a> {
    pub(super) source: &'a Path,
    pub(super) names: &'a [String],
    /// For each column, whether all its cells are names of image files.
    pub(super) are_files: Vec<bool>,
    pub(super) options: &'a ListOptions,
}

impl Choices<'_> {
    pub(super) fn roles(&self, pixels: Option<&Pixels>, warnings: &mut Vec<Warning>) -> Result<Roles, ConvertError> {
        let Self { source, names, options, .. } = self;
        let (path, mut mask) = match pixels {
            Some(_) => (None, None),
            None => (Some(self.path(warnings)?), self.find(options.mask_key.as_ref(), &MASK_PATH_NAMES)?),
        };
        let is_known = mask.is_some();
        let label = self.label()?.filter(|label| options.label_key.is_some() || Some(*label) != mask);
        if mask.is_none() && pixels.is_none() {
            mask = self.unnamed_mask(path, label);
        }
        // A column that was chosen for masks because of its cells is not also the label column.
        let label = label.filter(|label| Some(*label) != mask || is_known);
        if let (Some(column), false) = (mask, is_known) {
            warnings.push(Warning::MaskColumn { field: names[column].clone() });
        }
        if path.is_some_and(|path| Some(path) == mask || Some(path) == label) || (mask.is_some() && mask == label) {
            let reason = "one column cannot have two roles (path, label or mask)".to_owned();
            return Err(malformed(source, 1, reason));
        }
        Ok(Roles { path, mask, label })
    }

    /// Finds the column of image paths: the one with a recognized name, or else the only one that contains names of image files.
    fn path(&self, warnings: &mut Vec<Warning>) -> Result<usize, ConvertError> {
        if let Some(chosen) = self.find(self.options.image_key.as_ref(), &[])? {
            return Ok(chosen);
        }
        // Several columns may have a recognized name: one with ids, for example, and one with file names.
        let mut named = IMAGE_PATH_NAMES.iter().filter_map(|known| find_known(self.names, &[known])).peekable();
        let known = named.peek().copied();
        if let Some(files) = named.find(|column| self.are_files[*column]) {
            return Ok(files);
        }
        let key = self.options.mask_key.as_ref();
        let is_other = |column: &usize| {
            let name = &self.names[*column];
            is_mask_word(name) || is_label_name(name) || key == Some(name)
        };
        let files: Vec<usize> = self.files().filter(|column| !is_other(column)).collect();
        match (files.as_slice(), known) {
            ([only], _) => {
                warnings.push(Warning::PathColumn { field: self.names[*only].clone() });
                Ok(*only)
            }
            (_, Some(known)) => Ok(known),
            (_, None) => Err(self.missing(format!("of image paths ({}, ...)", IMAGE_PATH_NAMES[..6].join(", ")))),
        }
    }

    /// Finds the mask column if no column has a recognized name for masks: the only column of image files besides the paths. It
    /// must be named like masks or labels, or the table must have just two columns.
    fn unnamed_mask(&self, path: Option<usize>, label: Option<usize>) -> Option<usize> {
        if self.options.label_key.is_some() && label.is_some_and(|label| self.are_files[label]) {
            return None;
        }
        let others: Vec<usize> = self.files().filter(|column| Some(*column) != path).collect();
        match others.as_slice() {
            [only] if Some(*only) == label || is_mask_word(&self.names[*only]) || self.names.len() == 2 => Some(*only),
            _ => None,
        }
    }

    fn label(&self) -> Result<Option<usize>, ConvertError> {
        let Self { source, names, options, .. } = self;
        let single_names = LABEL_NAMES.map(|name| match name {
            LABEL_LIST_NAME => "",
            name => name,
        });
        let single = self.find(options.label_key.as_ref(), &single_names)?;
        let list = find_known(names, &[LABEL_LIST_NAME]);
        if let (Some(single), Some(list), None) = (single, list, &options.label_key) {
            let names = format!("'{}' and '{}'", names[single], names[list]);
            let reason = format!("{names} may both be the label column");
            return Err(ConvertError::contradictory(source, "", reason, format!("choose one with {LABEL_KEY}")));
        }
        Ok(if options.label_key.is_some() { single } else { single.or(list) })
    }

    fn files(&self) -> impl Iterator<Item = usize> {
        (0..self.names.len()).filter(|column| self.are_files[*column])
    }

    fn find(&self, key: Option<&String>, known: &[&str]) -> Result<Option<usize>, ConvertError> {
        let Some(key) = key else { return Ok(find_known(self.names, known)) };
        let column = self.names.iter().position(|name| name == key);
        column.map(Some).ok_or_else(|| self.missing(format!("'{key}'")))
    }

    fn missing(&self, wanted: String) -> ConvertError {
        ConvertError::ManifestColumnMissing { path: self.source.to_owned(), wanted, found: self.names.to_vec() }
    }
}

/// Refuses a mask column that was chosen because of its cells, if its first file is not a mask. If the names of this column and of the
/// column of images are those of two versions of the same images (ControlNet), the files of the former become a field.
pub(super) fn check_mask(
    (source, image): (&Path, Option<&String>),
    listing: &mut Listing,
    warnings: &mut [Warning],
) -> Result<(), ConvertError> {
    let chosen = warnings.iter().position(|warning| matches!(warning, Warning::MaskColumn { .. }));
    let chosen = chosen.and_then(|at| match &warnings[at] {
        Warning::MaskColumn { field } => Some((at, field.clone())),
        _ => None,
    });
    let mut mask = Vec::new();
    let first = listing.mask_path_into(0, &mut mask);
    let (Some((at, field)), Some(_), None) = (chosen, first, &listing.mask_colors) else {
        return Ok(());
    };
    if look_at(&listing.root().join(as_path(&mask))).is_none_or(|look| look.is_mask) {
        return Ok(());
    }
    if let Some(image) = image.filter(|image| versions::roles([image.as_bytes(), field.as_bytes()]).is_some()) {
        warnings[at] = Warning::Table(TableNote::Versions { image: image.clone(), other: field.clone() });
        return versions::take_masks(listing, field);
    }
    let reason = format!(
        "'{field}' holds names of image files, but '{}' is not a mask: expected one channel of at most 8 bits",
        lossy(&mask)
    );
    let hint = format!(
        "leave the column out with {}; if the colours are classes, save the class numbers as one channel",
        LEAVE_OUT.with(&field)
    );
    Err(ConvertError::contradictory(source, "", reason, hint))
}

fn is_mask_word(name: &str) -> bool {
    let is_word = |word: &str| MASK_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word));
    name.split(['_', '-', ' ', '.']).any(is_word)
}

/// The column with the first of these names that is there, ignoring case.
pub(super) fn find_known(names: &[String], known: &[&str]) -> Option<usize> {
    known.iter().find_map(|known| names.iter().position(|name| name.eq_ignore_ascii_case(known)))
}
