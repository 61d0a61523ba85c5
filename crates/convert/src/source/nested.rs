//! Warns about classes with images only in subfolders. The subfolders may be the real classes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use packds_system::to_u64;

use super::layout::{Pair, is_mask_folder};
use super::listing::Listing;
use super::mistaken::{as_classes, like_masks};
use super::paths::{PathTable, as_path, lossy, stem};
use super::walk::Found;
use super::warning::{Tally, Warning};
use crate::error::ConvertError;

/// Minimum number of digits in the name of a numbered part, such as `00000`. Shorter numbers, such as `0` to `100`, may be classes.
const MIN_DIGITS: usize = 4;

/// The warning about classes with images only in subfolders, if at least two classes have subfolders.
pub(super) fn find(root: &Path, found: &Found) -> Option<Warning> {
    let (mut direct, mut inner) = (BTreeSet::new(), BTreeMap::new());
    for idx in 0..found.paths.len() {
        let directory = found.paths.directory(idx);
        let class = directory.split(|byte| *byte == b'/').next().unwrap_or_default();
        if class.len() == directory.len() {
            direct.insert(class);
        } else {
            inner.entry(class).or_insert(directory);
        }
    }
    let mut tally = Tally::default();
    inner.iter().filter(|(class, _)| !direct.contains(*class)).for_each(|(_, directory)| tally.add(directory));
    let list = list_command(root, &found.paths);
    tally.warning(|count, first| Warning::NestedClasses { count, first, list }).filter(|_| inner.len() > 1)
}

/// The warning about folders that may not be classes, but numbered parts of one dataset, or single samples with one file per band.
pub(super) fn find_parts(listing: &Listing) -> Option<Warning> {
    let classes = &listing.classes;
    let first = classes.first()?.clone();
    let is_number = |name: &Vec<u8>| name.len() >= MIN_DIGITS && name.iter().all(u8::is_ascii_digit);
    if classes.len() > 1 && classes.iter().all(|name| is_number(name) && name.len() == first.len()) {
        return Some(Warning::NumberedFolders { first });
    }
    let ends = |class: &[u8]| -> Option<BTreeSet<Vec<u8>>> {
        let own = (0..listing.paths.len()).filter(|idx| listing.paths.directory(*idx) == class);
        own.map(|idx| listing.paths.name(idx).strip_prefix(class).map(<[u8]>::to_vec)).collect()
    };
    let (one, other) = (ends(&first)?, ends(classes.get(1)?)?);
    (one.len() > 1 && one == other).then_some(Warning::SampleFolders { first, count: to_u64(one.len()) })
}

/// Refuses classes that all contain folders of images and masks: `TRAIN/TRAIN-Image` beside `TRAIN/TRAIN-Mask`.
pub(super) fn refuse_masks(listing: &Listing) -> Result<(), ConvertError> {
    let folders: BTreeSet<&[u8]> = (0..listing.paths.len()).map(|idx| listing.paths.directory(idx)).collect();
    let class = |folder: &[u8]| folder.split(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
    let all: BTreeSet<Vec<u8>> = folders.iter().map(|folder| class(folder)).collect();
    let pair = |masks: &&[u8]| Some(Pair { images: images_beside(&folders, masks)?.to_vec(), masks: masks.to_vec() });
    let pairs: Vec<Pair> = folders.iter().filter_map(pair).collect();
    let with_masks: BTreeSet<Vec<u8>> = pairs.iter().map(|pair| class(&pair.masks)).collect();
    let Some(first) = pairs.first().filter(|_| with_masks == all) else { return Ok(()) };
    let alone = listing.root().join(as_path(parent(&first.masks)));
    let hint =
        format!("convert each folder of images and masks alone, such as '{}'; {}", alone.display(), as_classes());
    Err(ConvertError::contradictory(listing.root(), "", like_masks(first), hint))
}

/// The folder of images beside a folder of masks.
fn images_beside<'a>(folders: &BTreeSet<&'a [u8]>, masks: &[u8]) -> Option<&'a [u8]> {
    let parent = parent(masks);
    if parent.is_empty() || !is_mask_folder(&masks[parent.len()..]) {
        return None;
    }
    folders.iter().copied().find(|folder| *folder != masks && folder.starts_with(parent))
}

/// The path of the folder above, with its slash.
fn parent(folder: &[u8]) -> &[u8] {
    folder.iter().rposition(|byte| *byte == b'/').map_or(b"", |slash| &folder[..=slash])
}

/// The command that writes a list of all images, which is read with their folders as classes. None if a path contains a space,
/// because paths in the list end at a space.
fn list_command(root: &Path, images: &PathTable) -> Option<String> {
    let has_space = |text: &[u8]| text.iter().any(u8::is_ascii_whitespace);
    if has_space(root.as_os_str().as_bytes()) || (0..images.len()).any(|idx| has_space(&images.path(idx))) {
        return None;
    }
    let end = |idx: usize| {
        let name = images.name(idx);
        lossy(&name[stem(name).len()..])
    };
    let ends: BTreeSet<String> = (0..images.len()).map(end).collect();
    let names: Vec<String> = ends.iter().map(|end| format!("-name '*{end}'")).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let root = root.display().to_string();
    let root = if root.chars().all(is_plain) { root } else { format!("'{}'", root.replace('\'', "'\\''")) };
    Some(format!("find {root} {} | sort > paths.txt", names.join(" -o ")))
}
