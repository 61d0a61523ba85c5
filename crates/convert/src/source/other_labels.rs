//! Finds tables next to class folders that give the images other classes than the folders do.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::ListOptions;
use super::folder_tables::{self, MAX_TABLES};
use super::labelled_table::file_key;
use super::listing::{Listing, SourceKind};
use super::paths::as_path;
use super::table_note::TableNote;
use super::unread::take_offered;
use super::warning::Warning;

/// Replaces the warning about an unread table if the labels of the table differ from the class folders. `folder` is the
/// source.
pub(super) fn note(folder: &Path, listing: &mut Listing, options: &ListOptions) {
    if listing.kind() != SourceKind::ImageFolder || listing.has_one_folder() || listing.metadata.is_some() {
        return;
    }
    for (file, table) in folder_tables::offered(folder, listing).into_iter().take(MAX_TABLES) {
        let other = folder_tables::list_whole(&table, options);
        let Some(n_table) = other.and_then(|other| other_classes(listing, &other)) else { continue };
        let n_folders = listing.classes().len();
        take_offered(&mut listing.warnings, std::slice::from_ref(&file));
        let note = TableNote::OtherLabels { file, n_folders, n_table, table: Some(table) };
        listing.warnings.push(Warning::Table(note));
    }
}

/// The number of classes in a table that divides the same images into other classes. `None` if the table and the
/// folders divide the images in the same way, or if the table lacks one of the images.
fn other_classes(listing: &Listing, table: &Listing) -> Option<usize> {
    if !table.has_labels() {
        return None;
    }
    let key = |listing: &Listing, idx: usize| file_key(&listing.root().join(as_path(&listing.paths.path(idx))));
    let labels: HashMap<_, _> = (0..table.len()).map(|idx| (key(table, idx), table.label(idx))).collect();
    let mut both = HashSet::new();
    for idx in 0..listing.len() {
        both.insert((listing.label(idx), *labels.get(&key(listing, idx))?));
    }
    let of_folders: HashSet<_> = both.iter().map(|(folder, _)| folder).collect();
    let of_table: HashSet<_> = both.iter().map(|(_, label)| label).collect();
    let are_same = both.len() == of_folders.len() && both.len() == of_table.len();
    (!are_same).then_some(of_table.len())
}
