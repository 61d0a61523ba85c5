//! Warns about folders that may not be classes: the only folder, clips, numbered parts, and folders with images only in subfolders.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use packds_system::to_u64;

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::folder_labels::are_class_folders;
use super::folder_note::FolderNote;
use super::folder_tables::names_in;
use super::layout::{Layout, Pair, has_images_below, is_like_images, is_mask_folder};
use super::listing::Listing;
use super::look::{MAX_LOOKED, are_alike};
use super::mistaken::{FEW_FOLDERS, as_classes, as_pairs_in_each, as_pairs_in_splits, like_masks};
use super::name_words::table_of_names;
use super::pairs::{keys, matches, walked};
use super::paths::{PathTable, as_path, joined, lossy, stem};
use super::split::{is_split_folder, split_names};
use super::tally::Tally;
use super::versions::{Names, are_sure, roles};
use super::walk::Found;
use super::warning::Warning;
use crate::error::ConvertError;
use crate::opt::SPLIT;

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
    let has_several = direct.len() + inner.keys().filter(|class| !direct.contains(*class)).count() > 1;
    if !has_several {
        return None;
    }
    tally.warning(|count, first| {
        let folders = found.paths.n_directories();
        // In the list, folders of the same name would be different classes.
        let is_wanted = are_class_folders(folders, to_u64(found.paths.len())) && same_folders(found).is_none();
        let list = is_wanted.then(|| list_command(root, &found.paths)).flatten();
        Warning::NestedClasses { count, first, list }
    })
}

/// The warning about folders that all have the same few subfolders with images, which may be the classes: `patient1/0` and `patient1/1`
/// next to `patient2/0` and `patient2/1`.
pub(super) fn same_folders(found: &Found) -> Option<FolderNote> {
    let (mut outer, mut inner) = (BTreeSet::new(), BTreeMap::new());
    let mut last = None;
    for idx in 0..found.paths.len() {
        if last.replace(found.paths.directory_idx(idx)) == last {
            continue;
        }
        let mut parts = found.paths.directory(idx).split(|byte| *byte == b'/');
        let (class, folder, None) = (parts.next()?, parts.next()?, parts.next()) else { return None };
        outer.insert(class);
        *inner.entry(folder).or_insert(0_usize) += 1;
    }
    // Some patients may lack a class.
    let are_shared = inner.values().all(|n| 2 * n > outer.len());
    let mut names = inner.keys();
    let (one, other) = (names.next()?, names.next()?);
    let end = found.paths.name(0);
    let line = table_of_names("label", "p.parent.name", &format!("*/*/*{}", lossy(&end[stem(end).len()..])));
    let note = FolderNote::SameFolders { one: one.to_vec(), other: other.to_vec(), line };
    (outer.len() > 1 && are_shared).then_some(note)
}

/// The warning about folders that each contain only a folder of their own name with images: `scenes/scenes` next to `ships/ships`.
pub(super) fn doubled_folders(found: &Found) -> Option<FolderNote> {
    let mut outer = BTreeSet::new();
    for idx in 0..found.paths.len() {
        let mut parts = found.paths.directory(idx).split(|byte| *byte == b'/');
        let class = parts.next().filter(|class| parts.eq([*class]))?;
        outer.insert(class);
    }
    let mut classes = outer.into_iter();
    let (one, other) = (classes.next()?, classes.next()?);
    Some(FolderNote::DoubledFolders { one: one.to_vec(), other: other.to_vec() })
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
        let Some(other) = others.clone().next() else { break };
        let contains = |name: &&&Vec<u8>| root.join(as_path(folder)).join(as_path(name)).is_dir();
        // With only one other folder, a file of the same name must be in both places. A folder named like masks must have the same images.
        let has_file = || top.names().any(|name| root.join(as_path(folder)).join(as_path(name)).is_file());
        // Usually, the first name rules a folder out.
        if folders.len() > 1
            && others.all(|name| contains(&name))
            && (folders.len() > 2
                || has_file()
                || (is_mask_folder(folder) && is_copy((root, files), &joined(folder, other), other)?))
            && Directory::scan(root, folder, files)?.sample_names().next().is_none()
        {
            return Ok(Some(folder.to_vec()));
        }
    }
    Ok(None)
}

/// Whether two folders have images with the same paths and sizes.
fn is_copy((root, files): (&Path, SampleFiles), one: &[u8], other: &[u8]) -> Result<bool, ConvertError> {
    let (own, others) = (walked(root, one, files)?, walked(root, other, files)?);
    let is_same = own.paths.len() > 0 && own.bytes == others.bytes;
    Ok(is_same && keys(&own.paths, 0, one) == keys(&others.paths, 0, other))
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
    // The whole class may be a dataset that is read.
    let whole = listing.root().join(as_path(&class(&first.masks)));
    let top = Directory::scan(&whole, b"", SampleFiles::Images)?;
    let is_read = Layout::of(&whole, &top, SampleFiles::Images).is_ok_and(|layout| layout != Layout::Classes);
    let alone = if is_read { whole.join("") } else { listing.root().join(as_path(parent(&first.masks))) };
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

/// Refuses classes that all contain two versions of the same images: `scene1/blur` and `scene1/sharp` next to `scene2/blur` and
/// `scene2/sharp`.
pub(super) fn refuse_versions(listing: &Listing) -> Result<(), ConvertError> {
    let (mut inner, mut last) = (BTreeMap::<&[u8], BTreeSet<&[u8]>>::new(), None);
    for idx in 0..listing.paths.len() {
        let directory = listing.paths.directory_idx(idx);
        if last.replace(directory) == Some(directory) {
            continue;
        }
        let mut parts = listing.paths.directory(idx).split(|byte| *byte == b'/');
        let (Some(class), Some(folder)) = (parts.next(), parts.next()) else { return Ok(()) };
        inner.entry(class).or_default().insert(folder);
    }
    let Some(first) = inner.values().next().filter(|_| inner.len() > 1) else { return Ok(()) };
    let names: Vec<&[u8]> = first.iter().copied().collect();
    let all = names.iter().enumerate().flat_map(|(at, one)| names[at + 1..].iter().map(move |other| [*one, *other]));
    let are_in_all = |pair: &[&[u8]; 2]| inner.values().all(|own| pair.iter().all(|folder| own.contains(folder)));
    for (names, folders) in all.filter(are_in_all).filter_map(roles) {
        if !are_versions(listing, folders, are_sure(names)) {
            continue;
        }
        let [one, other] = folders.map(lossy);
        let n = inner.len();
        let reason = format!(
            "each of its {n} folders has two versions of each image, in '{one}' and '{other}', so the folders are not read as classes"
        );
        let hint = format!("{}{}", as_classes(), as_pairs_in_each(listing.root(), [&one, &other]));
        return Err(ConvertError::contradictory(listing.root(), "", reason, hint));
    }
    Ok(())
}

/// Refuses splits whose folders each have two versions of the same images: `train/clip1/blur` and `train/clip1/sharp`. The first folder
/// of each split decides. Unless the names are sure, the images must be alike, or a split has just one folder, which `twins` refuses.
pub(super) fn refuse_versions_in_splits(
    (root, files): (&Path, SampleFiles),
    splits: &[String],
) -> Result<(), ConvertError> {
    let (mut shared, mut is_certain) = (None, false);
    for split in splits {
        let top = Directory::scan(root, split.as_bytes(), files)?;
        let clips: Vec<&Vec<u8>> = top.subdirectories.iter().filter(|name| !name.starts_with(b".")).collect();
        let (Some(first), None) = (clips.iter().min(), top.sample_names().next()) else { return Ok(()) };
        let first = joined(split.as_bytes(), first);
        let inner = Directory::scan(root, &first, files)?;
        let Some((names, folders)) = versions_among(&inner) else { return Ok(()) };
        let [one, other] = [&folders[0], &folders[1]].map(|folder| walked(root, &joined(&first, folder), files));
        let [one, other] = [one?.paths, other?.paths];
        let keys_of = |paths: &PathTable, folder: &[u8]| keys(paths, 0, &joined(&first, folder));
        let are_same = one.len() > 0 && keys_of(&one, &folders[0]) == keys_of(&other, &folders[1]);
        if !are_same || shared.as_ref().is_some_and(|shared| *shared != folders) {
            return Ok(());
        }
        let path = |paths: &PathTable, idx: usize| root.join(as_path(&paths.path(idx)));
        let looked: Vec<_> = (0..one.len()).take(MAX_LOOKED).map(|idx| [path(&one, idx), path(&other, idx)]).collect();
        is_certain = is_certain || are_sure(names) || clips.len() == 1 || are_alike(&looked);
        shared = Some(folders);
    }
    let Some([one, other]) = shared.filter(|_| is_certain) else { return Ok(()) };
    let [one, other] = [one, other].map(|folder| lossy(&folder));
    let reason = format!(
        "each folder of its splits has two versions of each image, in '{one}' and '{other}', so the folders are not read as classes"
    );
    let hint = format!("{}{}", as_classes(), as_pairs_in_splits(root, [&one, &other]));
    Err(ConvertError::contradictory(root, "", reason, hint))
}

/// The first two of a folder's subfolders that are named like versions of the same images, and these names. `None` if the folder itself
/// has images.
fn versions_among(folder: &Directory) -> Option<(Names, [Vec<u8>; 2])> {
    let mut names: Vec<&[u8]> = folder.subdirectories.iter().map(Vec::as_slice).collect();
    names.sort_unstable();
    let mut all =
        names.iter().enumerate().flat_map(|(at, one)| names[at + 1..].iter().map(move |other| [*one, *other]));
    let found = all.find_map(roles).filter(|_| folder.sample_names().next().is_none());
    found.map(|(names, folders)| (names, folders.map(<[u8]>::to_vec)))
}

/// Whether nearly all files in one of two folders of each class have a file of the same name in the other. Unless this is sure, some of
/// the images must be alike.
fn are_versions(listing: &Listing, folders: [&[u8]; 2], is_sure: bool) -> bool {
    let (mut files, mut counts) = (BTreeMap::new(), [0, 0]);
    for idx in 0..listing.paths.len() {
        let path = listing.paths.path(idx);
        let mut parts = path.splitn(3, |byte| *byte == b'/');
        let (Some(class), Some(folder), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let Some(side) = folders.iter().position(|own| *own == folder) else { continue };
        counts[side] += 1;
        files.entry(joined(class, stem(rest))).or_insert([None; 2])[side] = Some(idx);
    }
    let pairs: Vec<[usize; 2]> = files.into_values().filter_map(|[one, other]| Some([one?, other?])).collect();
    let step = pairs.len().div_ceil(MAX_LOOKED).max(1);
    let looked: Vec<_> = pairs.iter().step_by(step).map(|pair| pair.map(|idx| listing.file_path(idx))).collect();
    !pairs.is_empty() && 10 * pairs.len() >= 9 * counts[0].max(counts[1]) && (is_sure || are_alike(&looked))
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
        let (folder, top) = unwrapped((listing.root(), files), class)?;
        let splits = split_names(&top);
        let tables = if folder == *class { Vec::new() } else { names_in(&top, |_| true) };
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

/// Refuses the only split of a folder if a folder next to it contains splits with images: `test` next to `plants/plants/train` and
/// `plants/plants/valid`.
pub(super) fn refuse_lone_split(
    (root, files): (&Path, SampleFiles),
    split: &str,
    others: &[String],
) -> Result<(), ConvertError> {
    for other in others.iter().take(FEW_FOLDERS).filter(|other| !is_mask_folder(other.as_bytes())) {
        let (folder, top) = unwrapped((root, files), other.as_bytes())?;
        let splits = split_names(&top);
        let [one, second, ..] = splits.as_slice() else { continue };
        if !has_images_below((root, files), &joined(&folder, one.as_bytes()))? {
            continue;
        }
        let reason = format!(
            "'{}' contains the splits '{one}' and '{second}', so '{split}' next to it is not read as the only split",
            lossy(&folder)
        );
        let alone = root.join(as_path(&folder));
        let hint = format!("convert '{}' alone; to pack only '{split}', add {}", alone.display(), SPLIT.with(split));
        return Err(ConvertError::contradictory(root, "", reason, hint));
    }
    Ok(())
}

/// A folder, or the folder of the same name in it if it has no samples of its own, such as `planet/planet`.
fn unwrapped((root, files): (&Path, SampleFiles), folder: &[u8]) -> Result<(Vec<u8>, Directory), ConvertError> {
    let top = Directory::scan(root, folder, files)?;
    let name = folder.to_ascii_lowercase();
    let is_same = |inner: &&Vec<u8>| inner.to_ascii_lowercase() == name;
    let inner = top.subdirectories.iter().filter(is_same).min().filter(|_| top.sample_names().next().is_none());
    let Some(inner) = inner.map(|inner| joined(folder, inner)) else { return Ok((folder.to_vec(), top)) };
    let top = Directory::scan(root, &inner, files)?;
    Ok((inner, top))
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
        &name[stem(name).len()..]
    };
    // Collecting would keep the end of every image in memory.
    let mut ends = BTreeSet::new();
    for idx in 0..images.len() {
        ends.insert(end(idx));
    }
    let names: Vec<String> = ends.into_iter().map(|end| format!("-name '*{}'", lossy(end))).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let root = root.display().to_string();
    let root = if root.chars().all(is_plain) { root } else { format!("'{}'", root.replace('\'', "'\\''")) };
    Some(format!("find {root} {} | sort > paths.txt", names.join(" -o ")))
}
