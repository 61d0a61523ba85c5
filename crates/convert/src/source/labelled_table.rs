//! Reads a table of labels next to unlabelled images: `train.csv` next to `train/` and `test/`, or `metadata.jsonl` in a split.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf, absolute};

use packds_system::to_u64;

use super::ListOptions;
use super::candidate::SampleFiles;
use super::coco;
use super::directory::Directory;
use super::directory::Identity;
use super::folder_tables::{self, MAX_TABLES};
use super::image_folder::{self, is_archive, is_submission};
use super::listing::{Images, Listing, SourceKind};
use super::manifest;
use super::numbered_labels;
use super::paths::{FileTable, PathTable, as_path, lossy, stem};
use super::roles::is_caption_name;
use super::root::without_dots;
use super::rows::RowForm;
use super::split::{is_split_folder, split_and_rest, unite_classes};
use super::table_join;
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
    if found.as_ref().is_ok_and(has_labels) && !listing.has_labels() && !listing.has_label_lists() {
        return None;
    }
    let paths: Vec<&Path> = read.iter().map(PathBuf::as_path).collect();
    let others = note_others(folder, &paths, &mut [&mut listing]).ok()?.tally();
    let table = read.first()?;
    let file = table.strip_prefix(folder).unwrap_or(table).as_os_str().as_encoded_bytes().to_vec();
    let in_splits = matches!(found, Err(ConvertError::OnlySplits { .. }));
    listing.warnings.insert(0, Warning::TableRead { file, count: others.count, first: others.first, in_splits });
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
        let listing = folder_tables::list_whole(&list, options)?;
        let has_all = listing.len() == found.len() && listing.paths.is_unique();
        let has_values = listing.has_labels() || listing.has_label_lists() || has_columns(&listing);
        (has_all && has_values).then(|| (listing, vec![list]))
    };
    let mut complete = folder_tables::offered_with_lists(folder, found).into_iter().filter_map(complete);
    complete.next().filter(|_| complete.next().is_none())
}

/// The only table that describes images, or the first if its name shows its purpose.
fn only_meant(tables: Vec<PathBuf>, options: &ListOptions) -> Option<Meant> {
    let mut meant = tables.into_iter().take(MAX_TABLES).filter_map(|table| meant(table, options));
    let first = meant.next()?;
    (first.is_named || meant.next().is_none()).then_some(first)
}

/// A table that describes images.
struct Meant {
    table: PathBuf,
    listing: Listing,
    /// Whether it is named like Hugging Face's `metadata` files, or like training data.
    is_named: bool,
}

/// The listing of a table, if it has labels, targets, captions or masks for files that exist.
fn meant(table: PathBuf, options: &ListOptions) -> Option<Meant> {
    let name = table.file_name()?.as_encoded_bytes().to_ascii_lowercase();
    if is_submission(&name) {
        return None;
    }
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
            let splits = splits(folder, tables, has_only_files, options);
            let splits = splits.or_else(|| with_unnamed(folder, tables, options));
            splits.or_else(|| with_split_column(folder, tables, options)).map(Tables::Splits)
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

/// The tables that divide a folder into splits, such as `train.csv` and `val.csv`. All files that they name must exist. At least one
/// table must have labels or other columns, unless the folder has only files and none of them is an image.
fn splits(
    folder: &Path,
    tables: &[Vec<u8>],
    has_only_files: bool,
    options: &ListOptions,
) -> Option<Vec<(String, Listing)>> {
    let split_of = |table: &Vec<u8>| {
        let name = lossy(stem(table));
        let found = split_and_rest(&name).or_else(|| split_and_rest(without_year(&name)?));
        found.map(|found| (found, table.clone()))
    };
    let named: Vec<_> = tables.iter().filter_map(split_of).collect();
    let ((_, rest), _) = named.first()?;
    let splits: BTreeSet<&String> = named.iter().map(|((split, _), _)| split).collect();
    if named.iter().any(|((_, other), _)| other != rest) || splits.len() < named.len() || splits.len() < 2 {
        return None;
    }
    let options = ListOptions { split: None, ..options.clone() };
    let without_label_key = ListOptions { label_key: None, ..options.clone() };
    let (mut listings, mut are_meant, mut has_label_key) = (Vec::new(), false, false);
    for ((split, _), table) in &named {
        let path = folder.join(as_path(table));
        // The table of the test split may lack the chosen label column.
        let listing = folder_tables::list(&path, &options)?.inspect(|_| has_label_key = true);
        let listing = match listing {
            Err(_) if options.label_key.is_some() => folder_tables::list(&path, &without_label_key)?.ok()?,
            listing => listing.ok()?,
        };
        // The table of the test split may have nothing but the names of its images.
        are_meant |= has_only_files || listing.has_labels() || listing.has_label_lists() || has_columns(&listing);
        if !listing.faults.is_empty() {
            return None;
        }
        listings.push((split.clone(), listing));
    }
    // If only some tables have class names, the ids of the others may have another meaning.
    let are_named = |(_, listing): &(String, Listing)| {
        (listing.has_labels() || listing.has_label_lists()).then_some(!listing.classes.is_empty())
    };
    let mut are_named = listings.iter().filter_map(are_named);
    let is_first = are_named.next();
    if !are_meant || !has_label_key || are_named.any(|is_named| Some(is_named) != is_first) {
        return None;
    }
    unite_classes(&mut listings);
    let paths: Vec<PathBuf> = named.iter().map(|(_, table)| folder.join(as_path(table))).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut all: Vec<&mut Listing> = listings.iter_mut().map(|(_, listing)| listing).collect();
    let others = note_others(folder, &paths, &mut all).ok()?.tally();
    let in_splits = image_folder::refused_splits(folder, &options).is_some();
    // Without images, the folder cannot be read in another way.
    for (listing, (_, table)) in all.into_iter().zip(&named).filter(|_| !has_only_files) {
        let (count, first) = (others.count, others.first.clone());
        listing.warnings.insert(0, Warning::TableRead { file: table.clone(), count, first, in_splits });
    }
    Some(listings)
}

/// Reads a folder of splits with a table. The images that the table names form one split. Splits without such images have no
/// labels. `None` if an image outside these splits has no row.
fn with_unnamed(folder: &Path, tables: &[Vec<u8>], options: &ListOptions) -> Option<Vec<(String, Listing)>> {
    let options = ListOptions { split: None, ..options.clone() };
    let found = image_folder::refused_splits(folder, &options).filter(|_| !tables.is_empty())?;
    let ConvertError::OnlySplits { splits, .. } = &found else { return None };
    let splits = splits.clone();
    let Meant { table, mut listing, .. } = only_meant(tables_of(folder, &Err(found)), &options)?;
    let others = note_others(folder, &[&table], &mut [&mut listing]).ok()?;
    let is_split = |folder: &[u8]| splits.iter().any(|split| split.as_bytes() == folder);
    let named = match others.named.iter().filter(|folder| is_split(folder)).collect::<Vec<_>>().as_slice() {
        [] => "train".to_owned(),
        [only] => lossy(only),
        _ => return None,
    };
    let file = table.file_name()?.as_encoded_bytes().to_vec();
    let mut unnamed: BTreeMap<Vec<u8>, (FileTable, Vec<u64>)> = BTreeMap::new();
    for (idx, bytes) in others.bytes.iter().enumerate() {
        let path = others.paths.path(idx);
        let top = top_folder(&path);
        if !is_split(top) || lossy(top) == named || others.named.contains(top) {
            return None;
        }
        let (files, sizes) = unnamed.entry(top.to_vec()).or_default();
        files.push(&path);
        sizes.push(*bytes);
    }
    let (count, first) = (0, Vec::new());
    listing.warnings.insert(0, Warning::TableRead { file: file.clone(), count, first, in_splits: true });
    let mut listings: Vec<(String, Listing)> = unnamed
        .into_iter()
        .map(|(split, (files, bytes))| {
            let mut listing = Listing::of_files(SourceKind::FlatFolder, folder, files.paths, bytes);
            listing.warnings.push(Warning::NotInTable { folder: split.clone(), table: file.clone() });
            (lossy(&split), listing)
        })
        .collect();
    if listings.is_empty() {
        return None;
    }
    listings.push((named, listing));
    listings.sort_by(|(one, _), (other, _)| one.cmp(other));
    unite_classes(&mut listings);
    Some(listings)
}

/// Reads the only table with a column of splits, such as `train` and `test`, if the folder has no labels of its own.
fn with_split_column(folder: &Path, tables: &[Vec<u8>], options: &ListOptions) -> Option<Vec<(String, Listing)>> {
    let options = ListOptions { split: None, ..options.clone() };
    let listed = |file: &Vec<u8>| {
        let table = folder.join(as_path(file));
        let listings = manifest::list_splits(&table, RowForm::of_source(&table)?, &options).ok()?;
        let is_split =
            |(split, listing): &(String, Listing)| is_split_folder(split.as_bytes()) && listing.faults.is_empty();
        (listings.len() > 1 && listings.iter().all(is_split)).then(|| (file.clone(), table, listings))
    };
    let mut found = tables.iter().take(MAX_TABLES).filter_map(listed);
    let (file, table, mut listings) = found.next().filter(|_| found.next().is_none())?;
    let is_labelled =
        |(_, listing): &(String, Listing)| listing.has_labels() || listing.has_label_lists() || has_columns(listing);
    let own = image_folder::list_source(folder, &options, SampleFiles::Images);
    if !listings.iter().any(is_labelled) || !tables_of(folder, &own).contains(&table) {
        return None;
    }
    let mut all: Vec<&mut Listing> = listings.iter_mut().map(|(_, listing)| listing).collect();
    let others = note_others(folder, &[&table], &mut all).ok()?.tally();
    for listing in all {
        let (count, first) = (others.count, others.first.clone());
        listing.warnings.insert(0, Warning::TableRead { file: file.clone(), count, first, in_splits: false });
    }
    Some(listings)
}

/// The first folder of a path; empty for a file in the root.
fn top_folder(path: &[u8]) -> &[u8] {
    let slash = path.iter().position(|byte| *byte == b'/');
    path.get(..slash.unwrap_or(0)).unwrap_or_default()
}

/// The name without the year at its end, as in `train2018`.
fn without_year(name: &str) -> Option<&str> {
    let (name, year) = name.split_at_checked(name.len().checked_sub(4)?)?;
    year.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

fn has_columns(listing: &Listing) -> bool {
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
struct Unnamed {
    paths: PathTable,
    bytes: Vec<u64>,
    /// The subfolders with images that a table names.
    named: BTreeSet<Vec<u8>>,
}

impl Unnamed {
    fn tally(&self) -> Tally {
        let first = if self.bytes.is_empty() { Vec::new() } else { self.paths.path(0) };
        Tally { count: to_u64(self.bytes.len()), first }
    }
}

/// A path that can be compared with paths of other roots.
pub(super) fn file_key(path: &Path) -> Option<Vec<u8>> {
    without_dots(&absolute(path).ok()?)
}

/// Finds the images of the folder that no table names. Also finds the other files of the folder, which the first listing reports.
fn note_others(folder: &Path, tables: &[&Path], listings: &mut [&mut Listing]) -> Result<Unnamed, ConvertError> {
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
fn has_sure_labels(listing: &Listing) -> bool {
    let is_doubt = |warning: &Warning| {
        matches!(warning, Warning::NestedClasses { .. } | Warning::NumberedFolders { .. } | Warning::ClipFolders { .. })
    };
    listing.has_labels() && !listing.has_one_folder() && !listing.warnings.iter().any(is_doubt)
}

/// The tables that the folder's listing or error names.
fn tables_of(folder: &Path, found: &Result<Listing, ConvertError>) -> Vec<PathBuf> {
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
