//! Warns about folders that may not be classes: the only folder, clips, numbered parts, and folders with images only in subfolders.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use packds_system::to_u64;

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::folder_labels::are_class_folders;
use super::folder_tables::names_in;
use super::layout::{Pair, is_like_images, is_mask_folder};
use super::listing::Listing;
use super::mistaken::{FEW_FOLDERS, as_classes, like_masks};
use super::pairs::matches;
use super::paths::{PathTable, as_path, joined, lossy, stem};
use super::split::{is_split_folder, split_names};
use super::tally::Tally;
use super::walk::Found;
use super::warning::Warning;
use crate::error::ConvertError;

/// Minimum number of digits in the name of a numbered part, such as `00000`. Shorter numbers, such as `0` to `100`, may be classes.
const MIN_DIGITS: usize = 4;

/// The warning about classes with images only in subfolders, if there are several classes.
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
    let folders = found.paths.n_directories();
    let list = list_command(root, &found.paths).filter(|_| are_class_folders(folders, to_u64(found.paths.len())));
    let has_several = direct.len() + inner.keys().filter(|class| !direct.contains(*class)).count() > 1;
    tally.warning(|count, first| Warning::NestedClasses { count, first, list }).filter(|_| has_several)
}

/// The warning about folders that may not be classes: the only folder, numbered parts of one dataset, clips, or single samples with
/// one file per band.
pub(super) fn find_parts(listing: &Listing) -> Option<Warning> {
    let classes = &listing.classes;
    let first = classes.first()?.clone();
    if classes.len() == 1 {
        return Some(Warning::OneClass { class: first });
    }
    if let Some([one, other]) = clips(classes) {
        return Some(Warning::ClipFolders { one: one.to_vec(), other: other.to_vec() });
    }
    let is_number = |name: &Vec<u8>| name.len() >= MIN_DIGITS && name.iter().all(u8::is_ascii_digit);
    if classes.len() > 1 && classes.iter().all(is_number) {
        return Some(Warning::NumberedFolders { first });
    }
    let ends = |class: &[u8]| -> Option<BTreeSet<Vec<u8>>> {
        let own = (0..listing.paths.len()).filter(|idx| listing.paths.directory(*idx) == class);
        own.map(|idx| listing.paths.name(idx).strip_prefix(class).map(<[u8]>::to_vec)).collect()
    };
    let (one, other) = (ends(&first)?, ends(classes.get(1)?)?);
    // Classes may number their files: `Forest/Forest_1.jpg`.
    let is_numbered = |end: &Vec<u8>| !stem(end).iter().any(u8::is_ascii_alphabetic);
    let are_parts = one.len() > 1 && one == other && !one.iter().all(is_numbered);
    are_parts.then_some(Warning::SampleFolders { first, count: to_u64(one.len()) })
}

/// The first two folders whose names differ only in their numbers. Each name must contain at least two numbers, as in
/// `v_Archery_g01_c01`, or begin with a word such as `patient`.
fn clips(classes: &[Vec<u8>]) -> Option<[&[u8]; 2]> {
    const WORDS: [&str; 12] = [
        "patient", "case", "scan", "study", "volume", "video", "clip", "scene", "seq", "sequence", "episode", "session",
    ];
    let mut seen: BTreeMap<String, &[u8]> = BTreeMap::new();
    for class in classes {
        let name = lossy(class);
        let letters = name.replace(|c: char| c.is_ascii_digit(), "");
        let n_numbers = name.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()).count();
        let has_word = || WORDS.contains(&letters.trim_end_matches(['_', '-', ' ']).to_ascii_lowercase().as_str());
        // A single number without such a word may number classes: `class_1`.
        if n_numbers < 2 && (n_numbers == 0 || !has_word()) {
            continue;
        }
        if let Some(one) = seen.insert(letters, class) {
            return Some([one, class]);
        }
    }
    None
}

/// The folder that looks like a copy of its siblings: it has no images of its own, and its subfolders include the names of all siblings.
pub(super) fn copy_of_others(
    root: &Path,
    top: &Directory,
    files: SampleFiles,
) -> Result<Option<Vec<u8>>, ConvertError> {
    let mut folders: Vec<&Vec<u8>> = top.subdirectories.iter().filter(|name| !name.starts_with(b".")).collect();
    folders.sort_unstable();
    for folder in &folders {
        let mut others = folders.iter().filter(|name| *name != folder);
        let contains = |name: &&&Vec<u8>| root.join(as_path(folder)).join(as_path(name)).is_dir();
        // With only one other folder, a file of the same name must be in both places.
        let has_file = || top.names().any(|name| root.join(as_path(folder)).join(as_path(name)).is_file());
        // Usually, the first name rules a folder out.
        if folders.len() > 1
            && others.all(|name| contains(&name))
            && (folders.len() > 2 || has_file())
            && Directory::scan(root, folder, files)?.sample_names().next().is_none()
        {
            return Ok(Some(folder.to_vec()));
        }
    }
    Ok(None)
}

/// Refuses classes that all contain image and mask folders: `TRAIN/TRAIN-Image` next to `TRAIN/TRAIN-Mask`.
pub(super) fn refuse_masks(listing: &Listing) -> Result<(), ConvertError> {
    let folders: BTreeSet<&[u8]> = (0..listing.paths.len()).map(|idx| listing.paths.directory(idx)).collect();
    let class = |folder: &[u8]| folder.split(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
    let all: BTreeSet<Vec<u8>> = folders.iter().map(|folder| class(folder)).collect();
    let pairs: Vec<Pair> = folders.iter().filter_map(|folder| pair_of(&folders, folder)).collect();
    let with_masks: BTreeSet<Vec<u8>> = pairs.iter().map(|pair| class(&pair.masks)).collect();
    let Some(first) = pairs.first() else { return Ok(()) };
    // If only some classes contain such folders, the names of the files decide.
    if with_masks != all && !matches((listing.root(), SampleFiles::Images), first)?.are_pairs() {
        return Ok(());
    }
    let alone = listing.root().join(as_path(parent(&first.masks)));
    let hint =
        format!("convert each folder of images and masks separately, such as '{}'; {}", alone.display(), as_classes());
    Err(ConvertError::contradictory(listing.root(), "", like_masks(first), hint))
}

/// Refuses classes that all contain splits: `bottle/train` and `bottle/test` next to `cable/train` and `cable/test`.
pub(super) fn refuse_splits(listing: &Listing) -> Result<(), ConvertError> {
    let (mut all, mut with_splits, mut first) = (BTreeSet::new(), BTreeSet::new(), None);
    let mut last = None;
    for idx in 0..listing.paths.len() {
        let directory = listing.paths.directory_idx(idx);
        if last.replace(directory) == Some(directory) {
            continue;
        }
        let mut parts = listing.paths.directory(idx).split(|byte| *byte == b'/');
        let class = parts.next().unwrap_or_default();
        all.insert(class);
        if let Some(split) = parts.next().filter(|name| is_split_folder(name)) {
            with_splits.insert(class);
            first = first.or_else(|| Some([class, b"/", split].concat()));
        }
    }
    let Some(first) = first.filter(|_| all.len() > 1 && with_splits == all) else { return Ok(()) };
    let alone = listing.root().join(as_path(first.split(|byte| *byte == b'/').next().unwrap_or_default()));
    let reason = format!(
        "each of its {} folders contains splits, such as '{}', so they are not read as classes",
        all.len(),
        lossy(&first)
    );
    let hint = format!("convert each folder separately, such as '{}'; {}", alone.display(), as_classes());
    Err(ConvertError::contradictory(listing.root(), "", reason, hint))
}

/// Refuses classes that are all named like image folders and have images only in subfolders: `images_background` next to `images_evaluation`.
pub(super) fn refuse_images(listing: &Listing) -> Result<(), ConvertError> {
    let list = listing.warnings.iter().find_map(|warning| match warning {
        Warning::NestedClasses { list, .. } => Some(list),
        _ => None,
    });
    let [first, second, ..] = listing.classes.as_slice() else { return Ok(()) };
    let (Some(list), true) = (list, listing.classes.iter().all(|class| is_like_images(class))) else { return Ok(()) };
    let reason = format!(
        "'{}' and '{}' look like image folders, not like classes: they have images only in subfolders",
        lossy(first),
        lossy(second)
    );
    let hint = match list {
        Some(list) => format!(
            "to read the innermost folders as classes, list the images with `{list}` and convert paths.txt; {}",
            as_classes()
        ),
        None => as_classes(),
    };
    Err(ConvertError::contradictory(listing.root(), "", reason, hint))
}

/// Refuses classes that all have images only in subfolders if one of them is a dataset of its own: `planet/planet/train-jpg` and
/// `planet/planet/test-jpg` next to `test-jpg-additional`.
pub(super) fn refuse_datasets(listing: &Listing, files: SampleFiles) -> Result<(), ConvertError> {
    let classes = &listing.classes;
    let is_nested = |warning: &Warning| match warning {
        Warning::NestedClasses { count, .. } => *count == to_u64(classes.len()),
        _ => false,
    };
    if classes.len() > FEW_FOLDERS || !listing.warnings.iter().any(is_nested) {
        return Ok(());
    }
    for class in classes {
        let mut folder = class.clone();
        let mut top = Directory::scan(listing.root(), &folder, files)?;
        let is_double = top.subdirectories.contains(class) && top.sample_names().next().is_none();
        if is_double {
            folder = joined(class, class);
            top = Directory::scan(listing.root(), &folder, files)?;
        }
        let splits = split_names(&top);
        let tables = if is_double { names_in(&top, |_| true) } else { Vec::new() };
        let what = match (splits.as_slice(), tables.first()) {
            ([one, other, ..], _) => format!("the splits '{one}' and '{other}'"),
            (_, Some(table)) => format!("the table '{}'", lossy(table)),
            _ => continue,
        };
        let reason = format!("'{}' contains {what}, so the folders are not read as classes", lossy(&folder));
        let alone = listing.root().join(as_path(&folder));
        let hint = format!("convert '{}' alone; {}", alone.display(), as_classes());
        return Err(ConvertError::contradictory(listing.root(), "", reason, hint));
    }
    Ok(())
}

/// The mask folder that is or contains this folder, and the image folder next to it. A class itself is not a mask folder.
fn pair_of(folders: &BTreeSet<&[u8]>, folder: &[u8]) -> Option<Pair> {
    let ends: Vec<usize> = (0..folder.len()).filter(|at| folder[*at] == b'/').chain([folder.len()]).collect();
    ends.windows(2).find_map(|ends| {
        let (parent, masks) = (&folder[..=ends[0]], &folder[..ends[1]]);
        if !is_mask_folder(&masks[parent.len()..]) {
            return None;
        }
        let is_in =
            |other: &[u8]| other.strip_prefix(masks).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
        let beside = folders.iter().find(|other| other.starts_with(parent) && !is_in(other))?;
        let name = beside[parent.len()..].split(|byte| *byte == b'/').next()?;
        Some(Pair { images: [parent, name].concat(), masks: masks.to_vec() })
    })
}

/// The path of the parent folder, with a trailing slash.
fn parent(folder: &[u8]) -> &[u8] {
    folder.iter().rposition(|byte| *byte == b'/').map_or(b"", |slash| &folder[..=slash])
}

/// The command that writes a list of all images. When packds reads such a list, the folders are the classes. `None` if
/// a path contains a space, because paths in the list end at a space.
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
