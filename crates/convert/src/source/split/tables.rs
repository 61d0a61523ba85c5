//! Tables and lists next to images that divide a folder into splits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use packds_system::to_u64;

use super::super::ListOptions;
use super::super::candidate::SampleFiles;
use super::super::column::{ColumnValues, SourceColumn};
use super::super::directory::Directory;
use super::super::folder_tables::MAX_TABLES;
use super::super::image_folder;
use super::super::labelled_table::{self, Meant, has_columns, has_sure_labels, note_others, only_meant, tables_of};
use super::super::listing::{Labels, Listing, SourceKind};
use super::super::manifest;
use super::super::paths::{FileTable, as_path, lossy, stem};
use super::super::roles::{TEXT_NAME, are_texts};
use super::super::rows::RowForm;
use super::super::run_masks;
use super::super::split;
use super::super::table_note::TableNote;
use super::super::warning::Warning;
use super::{is_split_folder, split_and_rest, unite_classes};
use crate::error::ConvertError;

/// Finds the splits that these tables of a folder define. `has_only_files` says that the folder has no subfolders and no file
/// that may contain images.
pub(in crate::source) fn find(
    folder: &Path,
    tables: &[Vec<u8>],
    has_only_files: bool,
    options: &ListOptions,
) -> Option<Vec<(String, Listing)>> {
    let options = ListOptions { split: None, ..options.clone() };
    let splits = by_name(folder, tables, has_only_files, &options);
    let splits = splits.or_else(|| by_lists(folder, tables, &options));
    let splits = splits.or_else(|| with_unnamed(folder, tables, &options));
    splits.or_else(|| with_split_column(folder, tables, &options))
}

/// The tables that divide a folder into splits, such as `train.csv` and `val.csv`. All files that they name must exist. At least one
/// table must have labels or other columns, unless the folder has only files and none of them is an image.
fn by_name(
    folder: &Path,
    tables: &[Vec<u8>],
    has_only_files: bool,
    options: &ListOptions,
) -> Option<Vec<(String, Listing)>> {
    let (mut listings, files) = listed(folder, &named_like_splits(tables)?, options)?;
    label_alike(folder, &mut listings, &files, options);
    // The table of the test split may have nothing but the names of its images.
    let has_values = |listing: &Listing| listing.has_labels() || listing.has_label_lists() || has_columns(listing);
    // If only some tables have class names, the ids of the others may have another meaning.
    let are_named = |(_, listing): &(String, Listing)| {
        (listing.has_labels() || listing.has_label_lists()).then_some(!listing.classes.is_empty())
    };
    drop_lone_guess(&mut listings);
    let are_meant = has_only_files || listings.iter().any(|(_, listing)| has_values(listing));
    let mut are_named = listings.iter().filter_map(are_named);
    let is_first = are_named.next();
    if !are_meant || are_named.any(|is_named| Some(is_named) != is_first) {
        return None;
    }
    if let Some(texts) = Texts::among(&listings) {
        if !are_texts(texts.different, texts.count) {
            let label_key = Some(texts.field);
            return by_name(folder, tables, has_only_files, &ListOptions { label_key, ..options.clone() });
        }
        texts.replace_labels(&mut listings)?;
    }
    unite_classes(&mut listings);
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(as_path(file))).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut all: Vec<&mut Listing> = listings.iter_mut().map(|(_, listing)| listing).collect();
    let others = note_others(folder, &paths, &mut all).ok()?.tally();
    // Without images, the folder cannot be read in another way.
    if has_only_files {
        return Some(listings);
    }
    let is_inside = labelled_table::is_inside(folder, &image_folder::list_source(folder, options, SampleFiles::Images));
    for (listing, file) in all.into_iter().zip(files) {
        let (count, first) = (others.count, others.first.clone());
        listing.warnings.insert(0, Warning::TableRead { file, count, first, is_inside });
    }
    Some(listings)
}

/// Turns the guessed labels of a split into a column if the table of another split has other columns instead. Then the column is
/// probably no label.
fn drop_lone_guess(listings: &mut [(String, Listing)]) {
    let guessed = listings.iter().flat_map(|(_, listing)| &listing.warnings).find_map(|warning| match warning {
        Warning::OnlyOtherColumn { field } => Some(field.clone()),
        _ => None,
    });
    let Some(field) = guessed else { return };
    let lacks_it = |listing: &Listing| {
        let has_labels = listing.has_labels() || listing.has_label_lists();
        !has_labels && has_columns(listing) && listing.columns.iter().all(|column| column.name != field)
    };
    if !listings.iter().any(|(_, listing)| lacks_it(listing)) {
        return;
    }
    let is_guess = |warning: &Warning| matches!(warning, Warning::OnlyOtherColumn { field: other } if *other == field);
    for (_, listing) in listings.iter_mut().filter(|(_, listing)| listing.warnings.iter().any(is_guess)) {
        let all = 0..listing.len();
        let values = match listing.classes.is_empty() {
            true => ColumnValues::I64(all.filter_map(|idx| listing.label(idx)).collect()),
            false => {
                let texts: Vec<String> = all.filter_map(|idx| text_or_class(listing, idx)).map(lossy).collect();
                ColumnValues::Text(texts.iter().collect())
            }
        };
        if listing.has_labels() && values.len() == listing.len() {
            listing.columns.insert(0, SourceColumn { name: field.clone(), values });
            (listing.labels, listing.classes) = (Labels::None, Vec::new());
            listing.warnings.retain(|warning| !is_guess(warning));
        }
    }
}

/// The tables that are named like splits, each after its split. `None` unless there are at least two splits, and the names differ
/// only in the split.
fn named_like_splits(tables: &[Vec<u8>]) -> Option<Vec<(String, Vec<u8>)>> {
    let named = |table: &Vec<u8>| {
        let (split, rest) = split_of(table)?;
        Some((rest, (split, table.clone())))
    };
    let (rests, named): (Vec<_>, Vec<_>) = tables.iter().filter_map(named).unzip();
    let splits: BTreeSet<&String> = named.iter().map(|(split, _)| split).collect();
    let are_alike = rests.windows(2).all(|pair| pair[0] == pair[1]);
    (are_alike && splits.len() == named.len() && splits.len() > 1).then_some(named)
}

/// The split in the name of a table, and the other words of the name.
fn split_of(table: &[u8]) -> Option<(String, Vec<String>)> {
    let name = lossy(stem(table));
    split_and_rest(&name).or_else(|| split_and_rest(without_year(&name)?))
}

/// The listings of splits, and the table of each.
type Listed = (Vec<(String, Listing)>, Vec<Vec<u8>>);

/// Lists the splits. `None` if a table cannot be read, names a missing file, or has a split of
/// another table, or if no table has the label column that the caller chose.
fn listed(folder: &Path, named: &[(String, Vec<u8>)], options: &ListOptions) -> Option<Listed> {
    let without_label_key = ListOptions { label_key: None, ..options.clone() };
    let (mut listings, mut files, mut has_label_key) = (Vec::new(), Vec::new(), false);
    for (split, file) in named {
        let path = folder.join(as_path(file));
        // The table of the test split may lack the chosen label column.
        let own = match in_table(&path, split, options) {
            Err(_) if options.label_key.is_some() => in_table(&path, split, &without_label_key).ok()?,
            own => own.inspect(|_| has_label_key = true).ok()?,
        };
        if own.iter().any(|(_, listing)| !listing.faults.is_empty()) {
            return None;
        }
        files.extend(own.iter().map(|_| file.clone()));
        listings.extend(own);
    }
    let splits: BTreeSet<&String> = listings.iter().map(|(split, _)| split).collect();
    (has_label_key && splits.len() == listings.len()).then_some((listings, files))
}

/// Reads the labels of all splits from the same column, if the table of at least one split has too few rows to tell that this column
/// has labels.
fn label_alike(folder: &Path, listings: &mut [(String, Listing)], files: &[Vec<u8>], options: &ListOptions) {
    let mut chosen = listings.iter().flat_map(|(_, listing)| &listing.warnings).filter_map(|warning| match warning {
        Warning::LabelColumn { field } | Warning::OnlyOtherColumn { field } => Some((field.clone(), warning.clone())),
        _ => None,
    });
    let Some((field, told)) = chosen.next() else { return };
    let options = ListOptions { label_key: Some(field.clone()), ..options.clone() };
    for ((split, listing), file) in listings.iter_mut().zip(files) {
        let has_column = listing.columns.iter().any(|column| column.name == field);
        if listing.has_labels() || listing.has_label_lists() || !has_column {
            continue;
        }
        let Ok(Ok([(_, mut own)])) = in_table(&folder.join(as_path(file)), split, &options).map(<[_; 1]>::try_from)
        else {
            continue;
        };
        if own.has_labels() && own.faults.is_empty() {
            own.warnings.push(told.clone());
            *listing = own;
        }
    }
}

/// The listing of the table of a split, or the listings of its rows with false and with true in a column such as `is_valid`.
fn in_table(table: &Path, split: &str, options: &ListOptions) -> Result<Vec<(String, Listing)>, ConvertError> {
    let missing = || ConvertError::SourceMissing { path: table.to_owned() };
    let form = RowForm::of_source(table).ok_or_else(missing)?;
    match manifest::list(table, form, options) {
        Err(error @ ConvertError::SeveralSplits { .. }) => {
            let splits = manifest::list_splits(table, form, options)?;
            let is_flag = |warning: &Warning| matches!(warning, Warning::Table(TableNote::ValidFlags { .. }));
            let has_flags = splits.iter().any(|(_, listing)| listing.warnings.iter().any(is_flag));
            if has_flags { Ok(splits) } else { Err(error) }
        }
        listing => Ok(vec![(split.to_owned(), listing?)]),
    }
}

/// What the splits of tables have as labels, if at least one of them has texts instead.
struct Texts {
    /// The name of the labels.
    field: String,
    /// Number of different labels of all splits.
    different: u64,
    /// Number of labels of all splits.
    count: u64,
}

impl Texts {
    /// `None` if no split has texts in place of labels.
    fn among(listings: &[(String, Listing)]) -> Option<Self> {
        let field = listings.iter().flat_map(|(_, listing)| &listing.warnings).find_map(text_field)?.clone();
        let (mut different, mut count) = (BTreeSet::new(), 0);
        for (_, listing) in listings {
            for text in (0..listing.len()).filter_map(|idx| text_or_class(listing, idx)) {
                different.insert(text);
                count += 1;
            }
        }
        Some(Self { field, different: to_u64(different.len()), count })
    }

    /// Replaces the class names of the other splits with texts. `None` if a split has labels without names.
    fn replace_labels(self, listings: &mut [(String, Listing)]) -> Option<()> {
        let Self { field, different, count } = self;
        for (_, listing) in listings {
            if listing.has_labels() {
                let texts: Option<Vec<String>> =
                    (0..listing.len()).map(|idx| Some(lossy(text_or_class(listing, idx)?))).collect();
                let values = ColumnValues::Text(texts?.iter().collect());
                listing.columns.insert(0, SourceColumn { name: TEXT_NAME.to_owned(), values });
                (listing.labels, listing.classes) = (Labels::None, Vec::new());
            } else if text_or_class(listing, 0).is_none() {
                continue;
            }
            listing.warnings.retain(|warning| !matches!(warning, Warning::TextLabels { .. }));
            let field = field.clone();
            listing.warnings.push(Warning::TextLabels { field, different, count, are_texts: true });
        }
        Some(())
    }
}

/// The name of the labels that became texts, if this warning says so.
pub(in crate::source) fn text_field(warning: &Warning) -> Option<&String> {
    match warning {
        Warning::TextLabels { field, are_texts: true, .. } => Some(field),
        _ => None,
    }
}

/// The text of a sample, or the name of its class.
fn text_or_class(listing: &Listing, idx: usize) -> Option<&[u8]> {
    if let Some(label) = listing.label(idx) {
        return listing.classes.get(usize::try_from(label).ok()?).map(Vec::as_slice);
    }
    let column = listing.columns.iter().find(|column| column.name == TEXT_NAME)?;
    let ColumnValues::Text(texts) = &column.values else { return None };
    Some(texts.get(idx).as_bytes())
}

/// The lists that divide a folder without tables into splits, such as `rec_gt_train.txt` and `rec_gt_test.txt`. The folder itself
/// must have neither labels nor masks.
fn by_lists(folder: &Path, tables: &[Vec<u8>], options: &ListOptions) -> Option<Vec<(String, Listing)>> {
    if !tables.is_empty() {
        return None;
    }
    let top = Directory::scan(folder, b"", SampleFiles::Images).ok()?;
    let is_list = |name: &&[u8]| RowForm::of_source(as_path(name)) == Some(RowForm::Text);
    let mut lists: Vec<&[u8]> = top.names().filter(is_list).collect();
    lists.sort_unstable();
    // Some lists may name other files: `train_rawframes.txt` and `train_videos.txt`.
    let mut groups: BTreeMap<Vec<String>, Vec<Vec<u8>>> = BTreeMap::new();
    for list in lists.into_iter().take(MAX_TABLES) {
        if let Some((_, rest)) = split_of(list) {
            groups.entry(rest).or_default().push(list.to_vec());
        }
    }
    groups.retain(|_, lists| named_like_splits(lists).is_some());
    if groups.is_empty() {
        return None;
    }
    let has_none = |listing: &Listing| !has_sure_labels(listing) && !listing.has_masks();
    let is_free = match image_folder::list_source(folder, options, SampleFiles::Images) {
        Ok(listing) => has_none(&listing),
        Err(ConvertError::OnlySplits { .. }) => split::list_all(folder, options, SampleFiles::Images)
            .is_ok_and(|splits| splits.iter().all(|(_, listing)| has_none(listing))),
        Err(_) => false,
    };
    let mut found = groups.values().filter_map(|lists| by_name(folder, lists, false, options));
    let first = if is_free { found.next() } else { None };
    first.filter(|_| found.next().is_none())
}

/// Reads a folder of splits with a table. The images that the table names form one split. Splits without such images have no
/// labels. `None` if an image outside these splits has no row, unless the table draws masks: then the masks of such images of the split
/// that the table names are empty.
fn with_unnamed(folder: &Path, tables: &[Vec<u8>], options: &ListOptions) -> Option<Vec<(String, Listing)>> {
    let found = image_folder::refused_splits(folder, options).filter(|_| !tables.is_empty())?;
    let ConvertError::OnlySplits { splits, .. } = &found else { return None };
    let splits = splits.clone();
    let Meant { table, mut listing, .. } = only_meant(tables_of(folder, &Err(found)), options)?;
    let others = note_others(folder, &[&table], &mut [&mut listing]).ok()?;
    let is_split = |folder: &[u8]| splits.iter().any(|split| split.as_bytes() == folder);
    let named = match others.named.iter().filter(|folder| is_split(folder)).collect::<Vec<_>>().as_slice() {
        [] => "train".to_owned(),
        [only] => lossy(only),
        _ => return None,
    };
    let file = table.file_name()?.as_encoded_bytes().to_vec();
    let mut unnamed: BTreeMap<Vec<u8>, (FileTable, Vec<u64>)> = BTreeMap::new();
    let mut unmarked: Vec<(Vec<u8>, u64)> = Vec::new();
    for (idx, bytes) in others.bytes.iter().enumerate() {
        let path = others.paths.path(idx);
        let top = top_folder(&path);
        if lossy(top) == named && run_masks::may_add_empty(&listing) {
            unmarked.push((path, *bytes));
            continue;
        }
        if !is_split(top) || lossy(top) == named || others.named.contains(top) {
            return None;
        }
        let (files, sizes) = unnamed.entry(top.to_vec()).or_default();
        files.push(&path);
        sizes.push(*bytes);
    }
    let (count, first) = (0, Vec::new());
    run_masks::add_empty(&mut listing, &unmarked, &file);
    listing.warnings.insert(0, Warning::TableRead { file: file.clone(), count, first, is_inside: true });
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
    let is_inside = labelled_table::is_inside(folder, &own);
    for listing in all {
        let (count, first) = (others.count, others.first.clone());
        listing.warnings.insert(0, Warning::TableRead { file: file.clone(), count, first, is_inside });
    }
    Some(listings)
}

/// The first folder of a path; empty for a file in the root.
pub(in crate::source) fn top_folder(path: &[u8]) -> &[u8] {
    let slash = path.iter().position(|byte| *byte == b'/');
    path.get(..slash.unwrap_or(0)).unwrap_or_default()
}

/// The name without the year at its end, as in `train2018`.
fn without_year(name: &str) -> Option<&str> {
    let (name, year) = name.split_at_checked(name.len().checked_sub(4)?)?;
    year.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}
