//! Finds images that have no row in a manifest, but are in the folders of images that have one.

use std::collections::{HashMap, HashSet};

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::listing::{Images, Listing, Masks};
use super::mask_files::MaskFiles;
use super::paths::joined;
use super::table_note::TableNote;
use super::tally::Tally;
use super::warning::Warning;

/// Maximum number of folders to list.
const MAX_FOLDERS: usize = 4096;

/// Adds the warning about images next to the images of a manifest. Another version of each image may be in the same folder, so there is
/// no warning next to such versions.
pub(super) fn note(listing: &mut Listing) {
    let has_versions =
        listing.warnings.iter().any(|warning| matches!(warning, Warning::Table(TableNote::Versions { .. })));
    if !matches!(listing.images, Images::Files) || listing.metadata.is_some() || has_versions {
        return;
    }
    let mut named: HashMap<&[u8], HashSet<&[u8]>> = HashMap::new();
    for idx in 0..listing.paths.len() {
        named.entry(listing.paths.directory(idx)).or_default().insert(listing.paths.name(idx));
    }
    if let Some(Masks::Files(MaskFiles { paths, .. })) = &listing.masks {
        for idx in 0..paths.len() {
            if let Some(names) = named.get_mut(paths.directory(idx)) {
                names.insert(paths.name(idx));
            }
        }
    }
    let mut folders: Vec<(&[u8], HashSet<&[u8]>)> = named.into_iter().collect();
    folders.sort_unstable_by_key(|(folder, _)| *folder);
    let mut others = Tally::default();
    for (folder, names) in folders.into_iter().take(MAX_FOLDERS) {
        // A folder that cannot be listed is reported when its images are read.
        let Ok(directory) = Directory::scan(&listing.root, folder, SampleFiles::Images) else { continue };
        let mut unlisted: Vec<&[u8]> = directory.sample_names().filter(|name| !names.contains(name)).collect();
        unlisted.sort_unstable();
        unlisted.into_iter().for_each(|name| others.add(&joined(folder, name)));
    }
    listing.warnings.extend(others.warning(|count, first| Warning::Unlisted { count, first }));
}
