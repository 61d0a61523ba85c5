//! Gives a split without class folders the labels of a table next to the splits. The labels must be classes of another
//! split.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::super::ListOptions;
use super::super::candidate::SampleFiles;
use super::super::directory::Directory;
use super::super::folder_tables::{self, MAX_TABLES};
use super::super::listing::{Labels, Listing};
use super::super::paths::{as_path, lossy, stem};
use super::super::roles::is_label_column_name;
use super::super::table_note::TableNote;
use super::super::warning::Warning;
use super::list_labels;
use super::split_and_rest;
use super::tables::text_field;

/// Gives an unlabelled split the labels of a table in `folders`. The last of these is the folder of the split. The
/// table must be named like the split, and must have a label for each of its images. Each label must be the name or the
/// number of one of `classes`. If several tables qualify, none is used.
pub(in crate::source) fn label(listing: &mut Listing, folders: &[&Path], classes: &[Vec<u8>], options: &ListOptions) {
    if classes.is_empty() || !listing.has_only_images() || listing.metadata.is_some() {
        return;
    }
    let options = ListOptions { split: None, root: Some(listing.root().to_owned()), ..options.clone() };
    let Some(split) = folders.last().and_then(|folder| split_in(folder)) else { return };
    let mut tables: Vec<PathBuf> = folders.iter().flat_map(|folder| tables_in(folder)).collect();
    tables.retain(|table| split_in(table).as_ref() == Some(&split));
    tables.sort_unstable();
    tables.dedup();
    let labelled = |table: &PathBuf| Some((table.clone(), labels_in(listing, table, classes, &options)?));
    let mut found = tables.iter().filter_map(labelled);
    let (labels, note) = match (found.next(), found.next()) {
        (Some((table, labels)), None) => {
            let file = table.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
            (labels, TableNote::SplitLabels { file, numbers: None })
        }
        (None, _) => match list_labels::labels(listing, folders, &split, classes) {
            Some(found) => found,
            None => return,
        },
        _ => return,
    };
    listing.labels = Labels::PerSample(labels);
    listing.classes = classes.to_vec();
    listing.warnings.push(Warning::Table(note));
}

/// The split in the name of a folder or table. `None` if the name has no split, or several.
fn split_in(path: &Path) -> Option<String> {
    let name = path.file_name()?.as_encoded_bytes();
    split_and_rest(&lossy(if path.is_dir() { name } else { stem(name) })).map(|(split, _)| split)
}

fn tables_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(directory) = Directory::scan(folder, b"", SampleFiles::Images) else { return Vec::new() };
    let tables = folder_tables::names_in(&directory, |_| true);
    tables.iter().take(MAX_TABLES).map(|name| folder.join(as_path(name))).collect()
}

/// The class id of each image of a split, from the labels of a table. If it has none, for example because it has few rows, they are
/// those of its only column that is named like labels, or of its texts.
fn labels_in(listing: &Listing, table: &Path, classes: &[Vec<u8>], options: &ListOptions) -> Option<Vec<i64>> {
    let found = folder_tables::list_whole(table, options)?;
    if found.has_labels() || found.has_label_lists() || options.label_key.is_some() {
        return labels_of(listing, &found, classes);
    }
    let named = found.columns.iter().map(|column| &column.name).filter(|name| is_label_column_name(name));
    let texts = found.warnings.iter().filter_map(text_field);
    let keys: BTreeSet<&String> = named.chain(texts).collect();
    let labels = |key: &String| {
        let options = ListOptions { label_key: Some(key.clone()), ..options.clone() };
        labels_of(listing, &folder_tables::list_whole(table, &options)?, classes)
    };
    let mut labels = keys.into_iter().filter_map(labels);
    labels.next().filter(|_| labels.next().is_none())
}

/// The class id of each image of a split, from the listing of a table. `None` if the table does not have one of
/// `classes` for each image, or if it has other images.
fn labels_of(listing: &Listing, table: &Listing, classes: &[Vec<u8>]) -> Option<Vec<i64>> {
    if !table.has_labels() || table.len() != listing.len() {
        return None;
    }
    let place: HashMap<Vec<u8>, usize> = (0..table.len()).map(|idx| (table.paths.path(idx), idx)).collect();
    let numbers: Option<Vec<i64>> = classes.iter().map(|class| lossy(class).parse().ok()).collect();
    let class_of = |idx: usize| {
        let label = table.label(*place.get(&listing.paths.path(idx))?)?;
        let name = usize::try_from(label).ok().and_then(|label| table.classes.get(label));
        let class = match name {
            Some(name) => classes.iter().position(|class| class == name),
            None => numbers.as_ref()?.iter().position(|number| *number == label),
        };
        i64::try_from(class?).ok()
    };
    let are_different = numbers.as_ref().is_none_or(|numbers| numbers.windows(2).all(|pair| pair[0] != pair[1]));
    if !are_different || place.len() != listing.len() {
        return None;
    }
    (0..listing.len()).map(class_of).collect()
}
