//! Reads a table of labels next to unlabelled images: `train.csv` next to `train/` and `test/`, or `metadata.jsonl` in a split.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf, absolute};

use packds_system::to_u64;

use super::ListOptions;
use super::candidate::SampleFiles;
use super::coco::{self, CAPTIONS};
use super::directory::Directory;
use super::directory::Identity;
use super::folder_tables::{self, MAX_TABLES};
use super::image_folder::is_archive;
use super::listing::{Images, Listing};
use super::manifest;
use super::masks_beside;
use super::numbered_labels;
use super::paths::{FileTable, PathTable, as_path, lossy, stem};
use super::roles::is_caption_name;
use super::root::without_dots;
use super::rows::RowForm;
use super::split::split_and_rest;
use super::split::tables::{self, top_folder};
use super::table_join;
use super::table_note::TableNote;
use super::tally::Tally;
use super::unread::{Unread, UnreadFiles, is_note};
use super::walk::Found;
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::formats::Input;

/// The listing of a table that is read instead of the folder. `None` if the folder itself is read.
///
/// The folder must have no certain labels. The table must have labels, targets, captions or masks for files that exist.
/// If several tables have them, the first is read only if its name shows that it is meant. Other tables with a row for
/// each image are joined to it. If no table is chosen like this, several tables with a row for each image are joined,
/// or the only list of all images is read.
pub(super) fn instead(
    folder: &Path,
    found: &Result<Listing, ConvertError>,
    options: &ListOptions,
) -> Option<Result<Listing, ConvertError>> {
    if options.from.is_some() || options.images.is_some() || options.masks.is_some() {
        return None;
    }
    let options = ListOptions { split: None, ..options.clone() };
    let tables = tables_of(folder, found);
    let (mut listing, read) = match only_meant(tables.clone(), &options) {
        Some(Meant { table, mut listing, .. }) => {
            let mut read = vec![table];
            table_join::join(&mut listing, &mut read, &tables, &options);
            (listing, read)
        }
        None => match table_join::all(&tables, found.as_ref().ok()?.len(), &options) {
            Some(Err(error)) => return Some(Err(error)),
            Some(Ok(joined)) => joined,
            None => only_complete(folder, found.as_ref().ok()?, &options)?,
        },
    };
    let has_labels = |listing: &Listing| listing.has_labels() && !listing.has_one_folder();
    // Numbered folders are no classes if the table names all their images.
    let is_numbered = |found: &Listing| {
        let mut warnings = found.warnings.iter();
        warnings.any(|warning| matches!(warning, Warning::NumberedFolders { .. })) && listing.len() == found.len()
    };
    let has_classes = found.as_ref().is_ok_and(|found| has_labels(found) && !is_numbered(found));
    if has_classes && !listing.has_labels() && !listing.has_label_lists() {
        return None;
    }
    let paths: Vec<&Path> = read.iter().map(PathBuf::as_path).collect();
    let others = note_others(folder, &paths, &mut [&mut listing]).ok()?.tally();
    let table = read.first()?;
    let file = table.strip_prefix(folder).unwrap_or(table).as_os_str().as_encoded_bytes().to_vec();
    let is_inside = is_inside(folder, found);
    listing.warnings.insert(0, Warning::TableRead { file, count: others.count, first: others.first, is_inside });
    masks_beside::note(&mut listing, &options);
    Some(Ok(listing))
}

/// The listing and the path of the only table or list that has all images of a folder and a value for each. `None` if no file or
/// several files do, or if the folder has several classes, masks or other fields.
fn only_complete(folder: &Path, found: &Listing, options: &ListOptions) -> Option<(Listing, Vec<PathBuf>)> {
    let is_one_class = found.has_one_folder() && !found.has_masks() && found.columns.is_empty();
    if !found.has_only_images() && !is_one_class {
        return None;
    }
    let complete = |(_, list): (Vec<u8>, PathBuf)| {
        let listing = with_files(folder_tables::list(&list, options)?.ok()?, &list)?;
        let has_all = listing.len() == found.len() && listing.paths.is_unique();
        let has_values = listing.has_labels() || listing.has_label_lists() || has_columns(&listing);
        (has_all && has_values).then(|| (listing, vec![list]))
    };
    let mut complete = folder_tables::offered_with_lists(folder, found).into_iter().filter_map(complete);
    complete.next().filter(|_| complete.next().is_none())
}

/// A listing without the captions of missing images. `None` if a file is missing that has other values.
fn with_files(mut listing: Listing, list: &Path) -> Option<Listing> {
    let mut missing = Tally::default();
    listing.faults.keys().for_each(|idx| missing.add(&listing.paths.path(*idx)));
    if missing.count > 0 {
        if listing.has_labels() || listing.columns.iter().any(|column| column.name != CAPTIONS) {
            return None;
        }
        let places: Vec<usize> = (0..listing.len()).filter(|idx| !listing.faults.contains_key(idx)).collect();
        listing = listing.picked(&places);
        let (Tally { count, first }, file) = (missing, list.file_name()?.as_encoded_bytes().to_vec());
        listing.warnings.push(Warning::Table(TableNote::MissingImages { file, count, first }));
    }
    Some(listing)
}

/// The only table that describes images, or the first if its name shows its purpose.
pub(super) fn only_meant(tables: Vec<PathBuf>, options: &ListOptions) -> Option<Meant> {
    let mut meant = tables.into_iter().take(MAX_TABLES).filter_map(|table| meant(table, options));
    let first = meant.next()?;
    (first.is_named || meant.next().is_none()).then_some(first)
}

/// A table that describes images.
pub(super) struct Meant {
    pub(super) table: PathBuf,
    pub(super) listing: Listing,
    /// Whether it is named like Hugging Face's `metadata` files, or like training data.
    is_named: bool,
}

/// The listing of a table, if it has labels, targets, captions or masks for files that exist.
fn meant(table: PathBuf, options: &ListOptions) -> Option<Meant> {
    let name = table.file_name()?.as_encoded_bytes().to_ascii_lowercase();
    let form = RowForm::of_source(&table)?;
    let listing = folder_tables::list_whole(&table, options)?;
    let split = split_and_rest(&lossy(stem(&name)));
    let is_train = name.starts_with(b"train") || split.is_some_and(|(split, _)| split.starts_with("train"));
    let is_captions = name.windows(7).any(|word| word == b"caption")
        || listing.columns.iter().any(|column| is_caption_name(&column.name));
    // The second word of each line of a list may be a string that is different for each image.
    let n_classes = listing.classes.len();
    let has_labels =
        listing.has_label_lists() || (listing.has_labels() && (form != RowForm::Text || n_classes < listing.len()));
    let is_metadata = name.starts_with(b"metadata.");
    let is_meant =
        is_metadata || ((is_train || is_captions) && has_columns(&listing)) || has_labels || listing.has_masks();
    is_meant.then_some(Meant { table, listing, is_named: is_train || is_metadata })
}

/// The tables that are read instead of a folder.
pub(super) enum Tables {
    /// The only table of a folder without images and without other folders.
    Only(OnlyTable),
    /// The listings of the splits, if tables or MATLAB files divide the folder.
    Splits(Vec<(String, Listing)>),
}

/// The tables that are read instead of this folder: its only table, or the tables or MATLAB files that divide it into
/// splits. `None` if it has no such files.
pub(super) fn of_folder(folder: &Path, input: &Input, options: &ListOptions) -> Option<Tables> {
    if !matches!(input, Input::Folder) {
        return None;
    }
    if let Some(splits) = numbered_labels::splits(folder, options) {
        return Some(Tables::Splits(splits));
    }
    let (tables, has_only_files) = tables_in(folder, options)?;
    match tables.as_slice() {
        [table] if has_only_files => {
            let table = folder.join(as_path(table));
            Some(Tables::Only(OnlyTable { form: RowForm::of_source(&table)?, folder: folder.to_owned(), table }))
        }
        tables => {
            let mut splits = tables::find(folder, tables, has_only_files, options)?;
            splits.iter_mut().for_each(|(_, listing)| masks_beside::note(listing, options));
            Some(Tables::Splits(splits))
        }
    }
}

/// The only table of a folder.
pub(super) struct OnlyTable {
    folder: PathBuf,
    table: PathBuf,
    form: RowForm,
}

impl OnlyTable {
    pub(super) fn list(&self, options: &ListOptions) -> Result<Listing, ConvertError> {
        let mut listing = manifest::list(&self.table, self.form, options)?;
        note_others(&self.folder, &[&self.table], &mut [&mut listing])?;
        Ok(listing)
    }

    pub(super) fn list_splits(&self, options: &ListOptions) -> Result<Vec<(String, Listing)>, ConvertError> {
        let mut listings = manifest::list_splits(&self.table, self.form, options)?;
        let mut all: Vec<&mut Listing> = listings.iter_mut().map(|(_, listing)| listing).collect();
        note_others(&self.folder, &[&self.table], &mut all)?;
        Ok(listings)
    }
}

pub(super) fn has_columns(listing: &Listing) -> bool {
    !listing.columns.is_empty() || !listing.fields.is_empty()
}

/// The tables in a folder, sorted, and whether the folder has only files, none of which may contain images. `None` if options
/// determine how the folder is read.
fn tables_in(folder: &Path, options: &ListOptions) -> Option<(Vec<Vec<u8>>, bool)> {
    if options.from.is_some() || options.images.is_some() || options.masks.is_some() {
        return None;
    }
    let top = Directory::scan(folder, b"", SampleFiles::Images).ok()?;
    let mut tables = folder_tables::names_in(&top, |form| form == RowForm::Csv);
    // The images may be in archives, or in arrays that are not read.
    let has_images = |name: &[u8]| {
        is_archive(&lossy(name).to_ascii_lowercase()) || Unread::of_name(name).is_some_and(Unread::is_array)
    };
    let has_others = top.names().any(has_images);
    let has_only_files = top.subdirectories.is_empty() && top.sample_names().next().is_none() && !has_others;
    if tables.is_empty() && !has_only_files {
        tables = coco::files_in(folder, &top);
    }
    if tables.is_empty() && !has_only_files {
        let is_json =
            |name: &&[u8]| RowForm::of_source(&folder.join(as_path(name))) == Some(RowForm::Json) && !is_note(name);
        let json: Vec<&[u8]> = top.names().filter(is_json).collect();
        if let [only] = json.as_slice() {
            tables.push(only.to_vec());
        }
    }
    Some((tables, has_only_files))
}

/// Images that no table names.
#[derive(Default)]
pub(super) struct Unnamed {
    pub(super) paths: PathTable,
    pub(super) bytes: Vec<u64>,
    /// The subfolders with images that a table names.
    pub(super) named: BTreeSet<Vec<u8>>,
}

impl Unnamed {
    pub(super) fn tally(&self) -> Tally {
        let first = if self.bytes.is_empty() { Vec::new() } else { self.paths.path(0) };
        Tally { count: to_u64(self.bytes.len()), first }
    }
}

/// A path that can be compared with paths of other roots.
pub(super) fn file_key(path: &Path) -> Option<Vec<u8>> {
    without_dots(&absolute(path).ok()?)
}

/// Finds the images of the folder that no table names. Also finds the other files of the folder, which the first listing reports.
pub(super) fn note_others(
    folder: &Path,
    tables: &[&Path],
    listings: &mut [&mut Listing],
) -> Result<Unnamed, ConvertError> {
    let read = tables.iter().filter_map(|table| table.strip_prefix(folder).ok());
    let mut read: Vec<Vec<u8>> = read.map(|table| table.as_os_str().as_encoded_bytes().to_vec()).collect();
    read.extend(listings.iter().flat_map(|listing| &listing.warnings).filter_map(|warning| match warning {
        Warning::ClassNamesRead { file } => Some(file.clone()),
        _ => None,
    }));
    read.sort_unstable();
    read.dedup();
    let n_read = to_u64(read.len());
    let mut found = Found::default();
    found.oddities.unread = UnreadFiles::except(read);
    // The folder itself is walked, so nothing is above it.
    found.add_class((folder, Identity::default()), b"", 0, sample_files(listings))?;
    let mut named: HashSet<Option<Vec<u8>>> = HashSet::new();
    let mut path = Vec::new();
    for listing in listings.iter() {
        let file = |path: &[u8]| file_key(&listing.root().join(as_path(path)));
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
    let (mut others, mut files) = (Unnamed::default(), FileTable::default());
    for (idx, bytes) in found.bytes.iter().enumerate() {
        let path = found.paths.path(idx);
        if named.contains(&file_key(&folder.join(as_path(&path)))) {
            others.named.insert(top_folder(&path).to_vec());
        } else {
            files.push(&path);
            others.bytes.push(*bytes);
        }
    }
    others.paths = files.paths;
    let Some(listing) = listings.first_mut() else { return Ok(others) };
    listing.warnings.extend(found.oddities.into_warnings());
    listing.ignored += found.ignored.saturating_sub(n_read);
    Ok(others)
}

/// The kind of files that the tables list: images, or arrays with one sample per file.
fn sample_files(listings: &[&mut Listing]) -> SampleFiles {
    let arrays = listings.first().filter(|listing| !listing.is_empty() && !matches!(listing.images, Images::Files));
    let format = arrays.and_then(|listing| DataFormat::from_file_name(&lossy(listing.paths.name(0))));
    format.map_or(SampleFiles::Images, SampleFiles::Of)
}

/// Whether a folder's labels come from folders that are certainly classes.
pub(super) fn has_sure_labels(listing: &Listing) -> bool {
    let is_doubt = |warning: &Warning| {
        matches!(warning, Warning::NestedClasses { .. } | Warning::NumberedFolders { .. } | Warning::ClipFolders { .. })
    };
    listing.has_labels() && !listing.has_one_folder() && !listing.warnings.iter().any(is_doubt)
}

/// Whether the folder itself cannot be read well without a table, but a folder inside it can: a split, or the folder of the images.
pub(super) fn is_inside(folder: &Path, found: &Result<Listing, ConvertError>) -> bool {
    match found {
        Ok(listing) => listing.root() != folder || listing.has_one_folder(),
        Err(error) => !matches!(error, ConvertError::Parts { .. }),
    }
}

/// The tables that the folder's listing or error names.
pub(super) fn tables_of(folder: &Path, found: &Result<Listing, ConvertError>) -> Vec<PathBuf> {
    match found {
        Err(ConvertError::OnlySplits { path, tables, .. }) => tables.iter().map(|table| path.join(table)).collect(),
        Err(ConvertError::Parts { table, .. }) => vec![table.clone()],
        Ok(listing) if !listing.has_masks() && !has_sure_labels(listing) => {
            folder_tables::offered(folder, listing).into_iter().map(|(_, table)| table).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_above_the_working_folder_have_different_keys() {
        let key = |path: &str| file_key(Path::new(path)).unwrap();
        assert_ne!(key("../a/1.png"), key("../a/2.png"));
        assert_eq!(key("../a/x/../1.png"), key("./../a/1.png"));
    }
}
