//! Refuses a folder that contains several candidates for the image and mask folders. The caller has to choose a pair.

use std::collections::HashSet;
use std::path::Path;

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::layout::{Layout, Pair, has_images_below, is_like_images, is_mask_folder, is_one_of};
use super::mistaken::{FEW_FOLDERS, as_classes, like_masks};
use super::pairs::matches;
use super::paths::{joined, lossy};
use super::split::{is_split_folder, split_and_rest};
use crate::error::ConvertError;
use crate::opt::{IMAGES, MASKS};

/// Maximum number of choices to show.
const MAX_SHOWN: usize = 3;

/// Decides how to read folders if some are named like masks: as classes, as one pair (such as `train` and `train_masks` next
/// to `test`), or as a pair for each split.
///
/// # Errors
/// If there are pairs, but it is not clear which one to use.
pub(super) fn only(root: &Path, folders: &[&[u8]], files: SampleFiles) -> Result<Layout, ConvertError> {
    match choices((root, files), folders)?.as_slice() {
        [] => {
            refuse_named_masks((root, files), folders)?;
            refuse_masks_of_all((root, files), folders)?;
            Ok(Layout::Classes)
        }
        [pair] if are_splits(folders, pair) => Ok(Layout::Pairs(pair.clone())),
        [pair] if has_masks_of_some_classes((root, files), folders, pair)? => Ok(Layout::Classes),
        choices if are_of_splits(choices) => Ok(Layout::SplitPairs(choices.to_vec())),
        choices @ [best, ..] => Err(several(root, best, choices)),
    }
}

/// Refuses classes if one folder is named like the masks of another, such as `01_GT` next to `01`, and contains images.
fn refuse_named_masks((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<(), ConvertError> {
    // If there are more folders, `choices` does not compare their files. They may be classes, such as `face` and
    // `face_mask`.
    if folders.len() > FEW_FOLDERS {
        return Ok(());
    }
    let is_of = |masks: &[u8], images: &[u8]| {
        let rest = masks.strip_prefix(images).filter(|rest| matches!(rest.first(), Some(b'_' | b'-' | b' ')));
        rest.is_some_and(is_mask_folder)
    };
    for masks in folders {
        let Some(images) = folders.iter().find(|images| is_of(masks, images)) else { continue };
        if !has_images_below((root, files), masks)? {
            continue;
        }
        // As in the Cell Tracking Challenge: `01_GT/SEG`.
        let inner = Directory::scan(root, masks, files)?.subdirectories;
        let inner = inner.iter().find(|name| is_one_of(name, &["seg"]));
        let inner = inner.map_or_else(|| masks.to_vec(), |inner| joined(masks, inner));
        let [images, masks, inner] = [images, *masks, &inner].map(lossy);
        let reason = format!("'{masks}' looks like the masks of '{images}', but its files have different names");
        let hint = format!(
            "give the masks the names of their images, and convert each pair with {} {}; {}",
            IMAGES.with(&images),
            MASKS.with(&inner),
            as_classes()
        );
        return Err(ConvertError::contradictory(root, "", reason, hint));
    }
    Ok(())
}

/// Refuses classes if one folder is named like masks and contains masks for several of the others: `labels/scene1` and `labels/scene2` next to
/// `scene1` and `scene2`, as in CULane.
fn refuse_masks_of_all((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<(), ConvertError> {
    if folders.len() > FEW_FOLDERS {
        return Ok(());
    }
    for masks in folders.iter().filter(|name| is_mask_folder(name)) {
        let inner = Directory::scan(root, masks, files)?.subdirectories;
        let mut of_masks = folders.iter().filter(|name| inner.iter().any(|inner| inner == *name));
        let (Some(images), Some(_)) = (of_masks.next(), of_masks.next()) else { continue };
        let pair = Pair { images: images.to_vec(), masks: joined(masks, images) };
        if !matches((root, files), &pair)?.are_pairs() {
            continue;
        }
        let masks = lossy(masks);
        let hint = format!(
            "to pack pairs, move the folders of images into a folder 'images', and add {} {}; {}",
            IMAGES.with("images"),
            MASKS.with(&masks),
            as_classes()
        );
        return Err(ConvertError::contradictory(root, "", like_masks(&pair), hint));
    }
    Ok(())
}

/// Whether the folder names show that each pair belongs to a different split, as in `Training_Input` with `Training_GroundTruth`, and
/// `Test_Input` with `Test_GroundTruth`.
fn are_of_splits(pairs: &[Pair]) -> bool {
    let split = |folder: &[u8]| split_and_rest(&lossy(folder));
    let of_pair =
        |pair: &Pair| split(&pair.images).filter(|(own, _)| split(&pair.masks).is_some_and(|(of, _)| of == *own));
    let Some(splits) = pairs.iter().map(of_pair).collect::<Option<Vec<_>>>() else { return false };
    let names: HashSet<&String> = splits.iter().map(|(split, _)| split).collect();
    names.len() > 1 && names.len() == splits.len() && splits.windows(2).all(|pair| pair[0].1 == pair[1].1)
}

/// Returns an error if a folder has a name commonly used for masks and contains the same file names as an image folder.
pub(super) fn refuse(root: &Path, folders: &[&[u8]], files: SampleFiles) -> Result<(), ConvertError> {
    match choices((root, files), folders)?.as_slice() {
        [] => Ok(()),
        choices @ [best, ..] => Err(several(root, best, choices)),
    }
}

/// Whether the mask folder is named after the image folder, and all other folders are splits.
fn are_splits(folders: &[&[u8]], pair: &Pair) -> bool {
    let others = folders.iter().filter(|name| ![&pair.images[..], &pair.masks[..]].contains(name));
    pair.masks.starts_with(&pair.images) && others.into_iter().all(|name| is_split_folder(name))
}

/// Whether all folders except the mask folder are splits, and the mask folder lacks some class folders of the images. MVTec AD,
/// for example, has masks only of defects. The splits are then read without masks.
fn has_masks_of_some_classes(
    (root, files): (&Path, SampleFiles),
    folders: &[&[u8]],
    pair: &Pair,
) -> Result<bool, ConvertError> {
    let others: Vec<&&[u8]> = folders.iter().filter(|name| **name != pair.masks).collect();
    if others.len() < 2 || !others.iter().all(|name| is_split_folder(name)) {
        return Ok(false);
    }
    let classes = Directory::scan(root, &pair.images, files)?.subdirectories;
    let masks = Directory::scan(root, &pair.masks, files)?.subdirectories;
    Ok(!masks.is_empty() && !classes.iter().all(|class| masks.contains(class)))
}

/// All pairs of an image folder and a mask folder, the most likely first.
fn choices((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Vec<Pair>, ConvertError> {
    if folders.len() > FEW_FOLDERS {
        return Ok(Vec::new());
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
            if found.are_pairs() {
                let doubts = (!is_like_images(images), !found.has_mask, found.has_mask_as_image);
                choices.push((doubts, pair));
            }
        }
    }
    choices.sort_by_key(|(doubts, _)| *doubts);
    Ok(choices.into_iter().map(|(_, pair)| pair).collect())
}

/// The error that names the most likely pair and lists the choices.
fn several(root: &Path, best: &Pair, choices: &[Pair]) -> ConvertError {
    let line = |pair: &Pair| format!("{} {}", IMAGES.with(lossy(&pair.images)), MASKS.with(lossy(&pair.masks)));
    let lines: Vec<String> = choices.iter().take(MAX_SHOWN).map(line).collect();
    let hint = format!("choose with {}; {}", lines.join(", or "), as_classes());
    ConvertError::contradictory(root, "", like_masks(best), hint)
}

/// The subfolders with names commonly used for masks, or the folder itself if there are none.
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
