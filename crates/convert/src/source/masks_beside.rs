//! Finds masks next to the images of a list or table that names no masks.

use std::path::{Path, absolute};

use super::ListOptions;
use super::candidate::SampleFiles;
use super::directory::Directory;
use super::folder_tables;
use super::layout::{Layout, Pair, is_mask_folder};
use super::listing::{Images, Listing};
use super::pairs;
use super::paths::as_path;
use super::root::without_dots;
use super::table_note::TableNote;
use super::warning::Warning;

/// Maximum number of folders above the images in which to search for mask folders.
const MAX_ABOVE: usize = 3;

/// Adds a warning if there are masks in a folder next to the folder of the first image, or next to one of its parent
/// folders.
pub(super) fn note(listing: &mut Listing, options: &ListOptions) {
    let has_files = matches!(listing.images, Images::Files) && !listing.is_empty();
    if !has_files || listing.has_masks() || listing.metadata.is_some() || options.mask_key.is_some() {
        return;
    }
    let images = listing.root().join(as_path(listing.paths.directory(0)));
    let Some(images) = absolute(images).ok().and_then(|images| without_dots(&images)) else { return };
    let found = Path::new("/").join(as_path(&images)).ancestors().take(MAX_ABOVE).find_map(masks_of);
    listing.warnings.extend(found.map(Warning::Table));
}

/// The warning about masks in a folder next to the folder `images`. `None` if no such folder has masks for the images.
fn masks_of(images: &Path) -> Option<TableNote> {
    let (folder, files) = (images.parent()?, SampleFiles::Images);
    let images = images.file_name()?.as_encoded_bytes();
    let top = Directory::scan(folder, b"", files).ok()?;
    let mut masks: Vec<&Vec<u8>> = top.subdirectories.iter().filter(|name| is_mask_folder(name)).collect();
    masks.retain(|name| name.as_slice() != images);
    masks.sort_unstable();
    let pair = |masks: &Vec<u8>| Pair { images: images.to_vec(), masks: masks.clone() };
    let are_pairs = |pair: &Pair| pairs::matches((folder, files), pair).is_ok_and(|matches| matches.are_pairs());
    let pair = masks.into_iter().map(pair).find(are_pairs)?;
    // A table in the folder may be read in place of the folders.
    let has_tables = !folder_tables::names_in(&top, |_| true).is_empty();
    let is_found =
        !has_tables && Layout::of(folder, &top, files).is_ok_and(|layout| layout == Layout::Pairs(pair.clone()));
    let Pair { images, masks } = pair;
    Some(TableNote::MasksUnread { folder: Some(folder.to_owned()), images, masks, is_found })
}
