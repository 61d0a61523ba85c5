//! Refuses a folder with several folders of images and masks. The caller has to choose two.

use std::path::Path;

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::layout::{Pair, is_like_images, is_mask_folder};
use super::mistaken::{FEW_FOLDERS, as_classes};
use super::pairs::matches;
use super::paths::{joined, lossy};
use crate::error::ConvertError;
use crate::opt::{IMAGES, MASKS};

/// Maximum number of choices to show.
const MAX_SHOWN: usize = 3;

/// Refuses folders if one has a usual name for masks and the same file names as a folder of images.
pub(super) fn refuse(root: &Path, folders: &[&[u8]], files: SampleFiles) -> Result<(), ConvertError> {
    if folders.len() > FEW_FOLDERS {
        return Ok(());
    }
    let mut masks = Vec::new();
    for folder in folders.iter().filter(|name| is_mask_folder(name)) {
        masks.extend(folders_of_masks((root, files), folder)?);
    }
    let mut choices = Vec::new();
    for masks in &masks {
        for images in folders.iter().filter(|name| !is_mask_folder(name)) {
            let pair = Pair { images: images.to_vec(), masks: masks.clone() };
            let found = matches((root, files), &pair)?;
            if found.matched > 0 && 2 * found.matched >= found.images.min(found.masks) {
                let doubts = (!is_like_images(images), !found.has_mask, found.has_mask_as_image);
                choices.push((doubts, pair));
            }
        }
    }
    choices.sort_by_key(|(doubts, _)| *doubts);
    let Some((_, Pair { images, masks })) = choices.first() else { return Ok(()) };
    let reason = format!("'{}' looks like the masks of '{}', not like a class", lossy(masks), lossy(images));
    let line = |pair: &Pair| format!("{} {}", IMAGES.with(lossy(&pair.images)), MASKS.with(lossy(&pair.masks)));
    let lines: Vec<String> = choices.iter().take(MAX_SHOWN).map(|(_, pair)| line(pair)).collect();
    let hint = format!("choose with {}; {}", lines.join(", or "), as_classes());
    Err(ConvertError::contradictory(root, "", reason, hint))
}

/// The subfolders with usual names for masks, or the folder itself if there are none.
pub(super) fn folders_of_masks(
    (root, files): (&Path, SampleFiles),
    folder: &[u8],
) -> Result<Vec<Vec<u8>>, ConvertError> {
    let directory = Directory::scan(root, folder, files)?;
    let mut inner: Vec<Vec<u8>> =
        directory.subdirectories.iter().filter(|name| is_mask_folder(name)).map(|name| joined(folder, name)).collect();
    inner.sort_unstable();
    Ok(if inner.is_empty() { vec![folder.to_vec()] } else { inner })
}
