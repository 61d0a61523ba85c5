//! Lists splits: subfolders named `train`, `val`, `test` and so on. Each is a separate source, and all share one class list.
//!
//! `image_folder` lists a split's files.

pub(super) mod class_ids;
pub(super) mod column;
mod list_columns;
mod list_labels;
pub(super) mod lists;
mod lone;
mod table_labels;
pub(super) mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use packds_system::to_u64;

use self::tables::text_field;
use super::ListOptions;
use super::candidate::SampleFiles;
use super::coco;
use super::directory::Directory;
use super::folder_note::FolderNote;
use super::image_folder::{Opened, list_opened, manifests_in, only_with};
use super::labelled_table;
use super::layout::{Layout, Pair, inside, is_mask_folder};
use super::listing::{Labels, Listing, SourceKind};
use super::lists::boxes_in;
use super::mistaken;
use super::nested;
use super::paths::{lossy, stem};
use super::table_note::TableNote;
use super::tally::Tally;
use super::unread::{join_other_files, take_offered};
use super::versions::Versions;
use super::warning::Warning;
use crate::error::ConvertError;

const SPLIT_NAMES: [&str; 13] = [
    "train",
    "training",
    "val",
    "valid",
    "validation",
    "validate",
    "test",
    "testing",
    "publictest",
    "privatetest",
    "eval",
    "dev",
    "restval",
];
/// Words that a split folder's name may contain in addition to the split: `training_set`, `seg_train`, `train_images`.
const OTHER_WORDS: [&str; 13] =
    ["stage", "final", "set", "data", "dataset", "images", "imgs", "image", "img", "seg", "folder", "split", "mini"];

/// True if a part with this name is a split. Case is ignored.
pub(super) fn is_split_name(name: &[u8]) -> bool {
    SPLIT_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// True if a folder with this name is a split: `train`, `training_set`, `seg_train`, `train2017`, `train_val`.
pub(super) fn is_split_folder(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let words = name.split(['_', '-', ' ', '.']).map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    let words = words.map(|word| without_set(word).unwrap_or(word));
    let (splits, others): (Vec<&str>, Vec<&str>) = words.partition(|word| is_split_name(word.as_bytes()));
    let is_other = |word: &&str| word.is_empty() || OTHER_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
    let is_one = matches!(splits.as_slice(), [_] | ["train", "val"]);
    is_one && others.iter().all(is_other)
}

/// The split in a word such as `TrainDataset` or `testset`.
fn without_set(word: &str) -> Option<&str> {
    let split = |set: &str| {
        let (split, end) = word.split_at_checked(word.len().checked_sub(set.len())?)?;
        (end.eq_ignore_ascii_case(set) && is_split_name(split.as_bytes())).then_some(split)
    };
    ["dataset", "data", "set"].into_iter().find_map(split)
}

/// Returns an error if the subfolders are splits instead of classes. They are splits if all of them, or at least two,
/// are named like splits. They are also splits if one is named like a split, and it or a folder next to it contains
/// class folders.
pub(super) fn reject_splits((root, files): (&Path, SampleFiles), top: &Directory) -> Result<(), ConvertError> {
    let splits = split_names(top);
    let visible = top.subdirectories.iter().filter(|name| !name.starts_with(b".")).map(|name| lossy(name));
    let mut others: Vec<String> = visible.filter(|name| !splits.contains(name)).collect();
    others.sort_unstable();
    let has_classes = |split: &String| Ok::<_, ConvertError>(!folders_in(root, split)?.is_empty());
    let has_images = |split: &String| {
        let directory = Directory::scan(root, split.as_bytes(), files)?;
        Ok::<_, ConvertError>(directory.sample_names().next().is_some())
    };
    let are_splits = match (splits.as_slice(), others.as_slice()) {
        ([], _) => false,
        (_, []) | ([_, _, ..], _) => true,
        // A folder that contains folders, such as `data_256` with `a/airfield` next to `val_256`, is not a class.
        ([one], others) => {
            let beside = others.iter().map(has_classes).collect::<Result<Vec<_>, _>>()?;
            has_classes(one)? || (beside.contains(&true) && has_images(one)?)
        }
    };
    // Without images, an error about the types of the files is more helpful than one about the splits.
    if !are_splits || !have_images((root, files), &splits)? {
        return Ok(());
    }
    if let [split] = splits.as_slice() {
        nested::refuse_lone_split((root, files), split, &others)?;
    }
    // Splits with class folders have labels. If a split has only one folder, it may just repeat the name of the split.
    let mut tables = manifests_in(top);
    if tables.is_empty() {
        tables = coco::files_in(root, top);
    }
    if has_classes_in_any(root, &splits)? {
        tables.clear();
    }
    let tables = tables.iter().map(|table| lossy(table)).collect();
    Err(ConvertError::OnlySplits { path: root.to_owned(), splits, others, tables })
}

/// Whether a split has an image or a folder. True for splits that are inside image and mask folders.
fn have_images((root, files): (&Path, SampleFiles), splits: &[String]) -> Result<bool, ConvertError> {
    for split in splits {
        if !root.join(split).is_dir() {
            return Ok(true);
        }
        let directory = Directory::scan(root, split.as_bytes(), files)?;
        if directory.sample_names().next().is_some() || !directory.subdirectories.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_classes_in_any(root: &Path, splits: &[String]) -> Result<bool, ConvertError> {
    for split in splits {
        if folders_in(root, split)?.len() > 1 && !has_hash_folders(&root.join(split))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_hash_folders(split: &Path) -> Result<bool, ConvertError> {
    let files = SampleFiles::Images;
    Ok(mistaken::hash_folders(split, &Directory::scan(split, b"", files)?, files)?.is_some())
}

fn folders_in(root: &Path, split: &str) -> Result<Vec<Vec<u8>>, ConvertError> {
    // If images and masks have separate folders, the splits are inside these folders, not here.
    if !root.join(split).is_dir() {
        return Ok(Vec::new());
    }
    Ok(Directory::scan(root, split.as_bytes(), SampleFiles::Images)?.subdirectories)
}

/// Lists one split. It may have any name if another folder is a known split.
pub(super) fn list_one(
    source: &Path,
    wanted: &str,
    options: &ListOptions,
    files: SampleFiles,
) -> Result<Listing, ConvertError> {
    let splits = Splits::of(source, options, files)?;
    let missing = || super::no_split(source, wanted, splits.names.clone());
    let mut names = splits.names.clone();
    if !names.iter().any(|split| split == wanted) {
        if names.is_empty() || !splits.folders.iter().any(|name| name == wanted.as_bytes()) {
            return Err(missing());
        }
        names.push(wanted.to_owned());
    }
    let mut opened = splits.opened(&names, options).or_else(|error| splits.alone(wanted, options).ok_or(error))?;
    let classes = class_union(&opened);
    let last = opened.iter().position(|(name, _)| name == wanted).ok_or_else(missing)?;
    let mut listing =
        list_split((source, &splits.root), &splits.root.join(wanted), opened.swap_remove(last).1, &classes, options)?;
    if listing.kind == SourceKind::Manifest {
        // Tables share their class ids with the tables of all other splits.
        let all = list_all(source, &ListOptions { split: None, ..options.clone() }, files)?;
        return all.into_iter().find(|(name, _)| name == wanted).map(|(_, listing)| listing).ok_or_else(missing);
    }
    splits.warn(&mut listing, &names, !classes.is_empty());
    let read: Vec<Vec<u8>> = tables_of(&listing).collect();
    take_offered(&mut listing.warnings, &read);
    Ok(listing)
}

/// Lists every split with a known name.
pub(super) fn list_all(
    source: &Path,
    options: &ListOptions,
    files: SampleFiles,
) -> Result<Vec<(String, Listing)>, ConvertError> {
    let splits = Splits::of(source, options, files)?;
    if splits.names.is_empty() {
        return Err(super::no_split(source, "all", Vec::new()));
    }
    let opened = splits.opened(&splits.names, options)?;
    let classes = class_union(&opened);
    let listed = |(split, opened)| {
        Ok((list_split((source, &splits.root), &splits.root.join(&split), opened, &classes, options)?, split))
    };
    let listings = opened.into_iter().map(listed).collect::<Result<Vec<_>, ConvertError>>()?;
    // Folders of one sample each are not classes.
    let have_classes = listings.iter().any(|(listing, _)| listing.has_labels());
    let mut listings: Vec<(String, Listing)> = listings
        .into_iter()
        .map(|(mut listing, split)| {
            splits.warn(&mut listing, &splits.names, have_classes);
            (split, listing)
        })
        .collect();
    let read: Vec<Vec<u8>> = listings.iter().flat_map(|(_, listing)| tables_of(listing)).collect();
    listings.iter_mut().for_each(|(_, listing)| take_offered(&mut listing.warnings, &read));
    unite_classes(&mut listings);
    Ok(listings)
}

/// The tables next to the splits that supplied the labels of this split.
fn tables_of(listing: &Listing) -> impl Iterator<Item = Vec<u8>> {
    listing.warnings.iter().filter_map(|warning| match warning {
        Warning::Table(TableNote::SplitLabels { file, .. }) => Some(file.clone()),
        _ => None,
    })
}

/// Lists a split, or the table in its folder. If the split has no labels, a table may supply them. It may be in the
/// source, in `above` (the folder of all splits) or in the folder of the split.
fn list_split(
    (source, above): (&Path, &Path),
    folder: &Path,
    opened: Opened,
    classes: &[Vec<u8>],
    options: &ListOptions,
) -> Result<Listing, ConvertError> {
    let mut found = list_opened(opened, Some(classes), options);
    if let Ok(listing) = &mut found
        && !listing.has_labels()
    {
        table_labels::label(listing, &[source, above, folder], classes, options);
        if listing.has_labels() {
            return found;
        }
    }
    match labelled_table::instead(folder, &found, options) {
        Some(Ok(table)) => Ok(with_classes(folder, &found, table, classes, options)),
        table => table.unwrap_or(found),
    }
}

/// Reads the labels of the table in the folder of a split as class names if they became texts, but all of them are classes of other splits.
fn with_classes(
    folder: &Path,
    found: &Result<Listing, ConvertError>,
    table: Listing,
    classes: &[Vec<u8>],
    options: &ListOptions,
) -> Listing {
    let Some(field) = table.warnings.iter().find_map(text_field) else { return table };
    let options = ListOptions { label_key: Some(field.clone()), ..options.clone() };
    let named = labelled_table::instead(folder, found, &options).and_then(Result::ok);
    let is_class = |name: &Vec<u8>| classes.binary_search(name).is_ok();
    named.filter(|own| own.has_labels() && own.classes.iter().all(is_class)).unwrap_or(table)
}

/// Where the splits of a folder are.
struct Splits {
    root: PathBuf,
    files: SampleFiles,
    /// The image and mask folders, if these contain the splits.
    layout: Layout,
    /// The splits' names, sorted.
    names: Vec<String>,
    /// The names of the folders, including the splits.
    folders: Vec<Vec<u8>>,
    /// Warnings about files next to the splits.
    beside: Vec<Warning>,
    /// Whether the folders that the caller named are inside each split. Otherwise, these folders contain the splits.
    has_named: bool,
}

impl Splits {
    fn of(source: &Path, options: &ListOptions, files: SampleFiles) -> Result<Self, ConvertError> {
        let inner = only_with(source, options, files)?;
        let source = inner.as_deref().unwrap_or(source);
        // If the folders that the caller named are not here, they must be in each split.
        let mut named = options.images.iter().chain(&options.masks);
        let has_named = !named.all(|folder| source.join(folder).exists());
        let own = ListOptions { images: None, masks: None, ..options.clone() };
        let opened = Opened::at(source, if has_named { &own } else { options }, files)?;
        let Opened { root, top, layout, mut beside, manifests, .. } = opened;
        beside.extend(Warning::manifests_unread(manifests));
        let top = match &layout {
            Layout::Pairs(pair) => Directory::scan(&root, &pair.images, files)?,
            _ => top,
        };
        let mut names = match &layout {
            Layout::SplitPairs(pairs) => {
                let mut names: Vec<String> = pairs.iter().map(|pair| lossy(&pair.images)).collect();
                names.sort_unstable();
                names
            }
            Layout::SplitVersions(splits) => splits.iter().map(|own| lossy(own.split())).collect(),
            _ => {
                let mut names = split_names(&top);
                // `our485` next to `eval15`, as in LOL.
                if let ([only], None) = (names.as_slice(), top.sample_names().next()) {
                    names.extend(Versions::of_same((&root, files), only, &top.subdirectories)?);
                    names.sort_unstable();
                }
                names
            }
        };
        if matches!(layout, Layout::Classes) && options.from.is_none() && !has_named {
            nested::refuse_versions_in_splits((&root, files), &names)?;
        }
        if has_named {
            // The folders that the caller named may be in only some of the splits.
            let has_all = |split: &&String| {
                let folder = root.join(split);
                options.images.iter().chain(&options.masks).all(|named| folder.join(named).is_dir())
            };
            let with_all: Vec<String> = names.iter().filter(has_all).cloned().collect();
            if !with_all.is_empty() {
                names = with_all;
            }
        }
        beside.extend(top.other_files());
        let mut others: Vec<&Vec<u8>> = top.subdirectories.iter().collect();
        others.retain(|name| !name.starts_with(b".") && !names.iter().any(|split| split.as_bytes() == name.as_slice()));
        others.sort_unstable();
        let above = match &layout {
            Layout::Pairs(pair) => inside(&root, &pair.images),
            _ => root.clone(),
        };
        beside.extend(boxes_in((&above, files), &others)?);
        beside.extend(versions_beside((&above, files), &names, &others)?.map(Warning::Folders));
        let mut folders = top.subdirectories;
        if let Layout::SplitPairs(pairs) = &layout {
            folders.retain(|name| !pairs.iter().any(|pair| pair.masks == *name));
        }
        if let Layout::SplitVersions(_) = &layout {
            folders.clear();
        }
        Ok(Self { names, root, files, layout, folders, beside, has_named })
    }

    /// Opens one split alone, because another one cannot be opened. `None` if the split has classes, whose ids depend on the other splits, or
    /// masks that the caller did not choose, which may be of another kind.
    fn alone(&self, split: &str, options: &ListOptions) -> Option<Vec<(String, Opened)>> {
        let opened = self.opened(&[split.to_owned()], options).ok()?;
        let has_masks = options.masks.is_none() && opened.iter().any(|(_, opened)| opened.layout.pair().is_some());
        (class_union(&opened).is_empty() && !has_masks).then_some(opened)
    }

    /// Warns about a split without labels next to splits with classes, and about folders and files that belong to no split.
    fn warn(&self, listing: &mut Listing, names: &[String], have_classes: bool) {
        if have_classes && !listing.has_labels() {
            listing.warnings.push(Warning::SplitUnlabelled);
        }
        let mut others: Vec<&Vec<u8>> = self.folders.iter().filter(|name| !name.starts_with(b".")).collect();
        others.retain(|name| !names.iter().any(|split| split.as_bytes() == name.as_slice()));
        if let Some(first) = others.iter().min() {
            let (count, first) = (to_u64(others.len()), first.to_vec());
            listing.warnings.push(Warning::FoldersBesideSplits { count, first });
        }
        let new = self.beside.iter().filter(|warning| !listing.warnings.contains(warning)).cloned().collect::<Vec<_>>();
        listing.warnings.extend(new);
        join_other_files(&mut listing.warnings);
    }

    /// The folders of these splits.
    fn opened(&self, names: &[String], options: &ListOptions) -> Result<Vec<(String, Opened)>, ConvertError> {
        let own = ListOptions { images: None, masks: None, ..options.clone() };
        let options = if self.has_named { options } else { &own };
        let open = |name: &String| {
            let layout = match &self.layout {
                Layout::Pairs(pair) => Some(Layout::Pairs(pair.inside(name.as_bytes()))),
                Layout::SplitPairs(pairs) => {
                    pairs.iter().find(|pair| pair.images == name.as_bytes()).cloned().map(Layout::Pairs)
                }
                Layout::SplitVersions(splits) => {
                    splits.iter().find(|own| own.split() == name.as_bytes()).cloned().map(Layout::Versions)
                }
                _ => None,
            };
            let Some(layout) = layout else { return Opened::at(&self.root.join(name), options, self.files) };
            // Scans only the split's own image folder: the rest of the root belongs to other splits.
            let images = match &layout {
                Layout::Pairs(Pair { images, .. }) | Layout::Versions(Versions { images, .. }) => images.as_slice(),
                _ => b"",
            };
            let top = Directory::scan(&self.root, images, self.files)?;
            Ok(Opened {
                root: self.root.clone(),
                files: self.files,
                top,
                layout,
                wrapper: None,
                beside_it: 0,
                hidden: Tally::default(),
                beside: Vec::new(),
                manifests: Vec::new(),
            })
        };
        let mut opened: Vec<(String, Opened)> =
            names.iter().map(|name| Ok((name.clone(), open(name)?))).collect::<Result<_, ConvertError>>()?;
        // A split with few images has the layout of the others.
        let versions = opened.iter().find_map(|(_, opened)| match &opened.layout {
            Layout::Versions(versions) => Some(versions.clone()),
            _ => None,
        });
        let Some(versions) = versions else { return Ok(opened) };
        let same = opened.iter_mut().filter(|(_, opened)| versions.are_in(&opened.top.subdirectories));
        same.for_each(|(_, opened)| opened.layout = Layout::Versions(versions.clone()));
        Ok(opened)
    }
}

/// The note about a folder with the images of a split in another version, such as `train_cleaned` next to `train`.
fn versions_beside(
    (root, files): (&Path, SampleFiles),
    splits: &[String],
    others: &[&Vec<u8>],
) -> Result<Option<FolderNote>, ConvertError> {
    let images = |folder: &[u8]| -> Result<BTreeSet<Vec<u8>>, ConvertError> {
        Ok(Directory::scan(root, folder, files)?.sample_names().map(|name| stem(name).to_vec()).collect())
    };
    for folder in others.iter().filter(|name| !is_mask_folder(name)) {
        let is_of = |split: &&String| {
            folder.strip_prefix(split.as_bytes()).is_some_and(|rest| matches!(rest.first(), Some(b'_' | b'-' | b' ')))
        };
        let Some(split) = splits.iter().find(is_of).filter(|split| root.join(split).is_dir()) else { continue };
        let own = images(folder)?;
        if !own.is_empty() && own == images(split.as_bytes())? {
            return Ok(Some(FolderNote::VersionsBesideSplit { split: split.clone(), folder: folder.to_vec() }));
        }
    }
    Ok(None)
}

/// The split subfolders, sorted.
pub(super) fn split_names(top: &Directory) -> Vec<String> {
    let splits = top.subdirectories.iter().filter(|name| is_split_folder(name));
    let mut names: Vec<String> = splits.map(|name| lossy(name)).collect();
    if names.is_empty() {
        names = related_splits(top);
    }
    names.sort_unstable();
    names
}

/// The folders that form splits together: their names differ only in the split, such as `cars_train` and `cars_test`, or all are
/// folds.
fn related_splits(top: &Directory) -> Vec<String> {
    let visible: Vec<String> =
        top.subdirectories.iter().filter(|name| !name.starts_with(b".")).map(|name| lossy(name)).collect();
    let is_fold = |name: &String| {
        let word = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['_', '-', ' ']);
        word.len() < name.len() && word.eq_ignore_ascii_case("fold")
    };
    if visible.len() > 1 && visible.iter().all(is_fold) {
        return visible;
    }
    let mut groups: BTreeMap<Vec<String>, Vec<(String, &String)>> = BTreeMap::new();
    for name in &visible {
        if let Some((split, rest)) = split_and_rest(name) {
            groups.entry(rest).or_default().push((split, name));
        }
    }
    let differ =
        |group: &Vec<(String, &String)>| group.iter().any(|(split, _)| Some(split) != group.first().map(|(s, _)| s));
    let of_groups: Vec<String> = groups.into_values().filter(differ).flatten().map(|(_, name)| name.clone()).collect();
    if of_groups.is_empty() { short_splits(&visible) } else { of_groups }
}

/// The folders whose names differ only in `TR` and `TE`, as in `DUTS-TR` and `DUTS-TE`.
fn short_splits(folders: &[String]) -> Vec<String> {
    let named = |short: &'static str| {
        folders.iter().filter_map(move |name| {
            let (own, rest): (Vec<String>, Vec<String>) = words(name).into_iter().partition(|word| word == short);
            (own.len() == 1 && !rest.is_empty()).then_some((rest, name))
        })
    };
    let train: BTreeMap<Vec<String>, &String> = named("tr").collect();
    let pairs = named("te").filter_map(|(rest, test)| Some([(*train.get(&rest)?).clone(), test.clone()]));
    pairs.flatten().collect()
}

/// The words in the name of a folder, in lower case. `trainA` has the words `train` and `a`, because it is the split of a domain, as for
/// CycleGAN.
pub(super) fn words(name: &str) -> Vec<String> {
    let domain =
        |word: &str| word.strip_suffix(['A', 'B']).filter(|split| is_split_name(split.as_bytes())).map(str::len);
    let parts = name.split(['_', '-', ' ', '.']).map(|word| word.split_at(domain(word).unwrap_or(word.len())));
    parts.flat_map(|(word, end)| [word, end]).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
}

/// The only split in a folder's name, and its other words.
pub(super) fn split_and_rest(name: &str) -> Option<(String, Vec<String>)> {
    let is_split = |word: &String| is_split_name(without_set(word).unwrap_or(word).as_bytes());
    let (splits, rest): (Vec<String>, Vec<String>) = words(name).into_iter().partition(is_split);
    match splits.as_slice() {
        [split] => Some((split.clone(), rest)),
        // `test-dev` is the test split of challenges such as COCO and VisDrone.
        [split, dev] if split == "test" && dev == "dev" => Some((split.clone(), rest)),
        _ => None,
    }
}

/// The class folder names of all splits, sorted and unique.
fn class_union(splits: &[(String, Opened)]) -> Vec<Vec<u8>> {
    let with_classes =
        splits.iter().filter(|(_, opened)| matches!(opened.layout, Layout::Classes | Layout::PairsInEach(_)));
    let classes: BTreeSet<&Vec<u8>> = with_classes.flat_map(|(_, opened)| &opened.top.subdirectories).collect();
    classes.into_iter().cloned().collect()
}

/// Gives the listings of all splits one class list, so that ids agree.
pub(super) fn unite_classes(listings: &mut [(String, Listing)]) {
    let mut own = listings.iter().map(|(_, listing)| &listing.classes).filter(|classes| !classes.is_empty());
    let Some(first) = own.next().cloned() else { return };
    if own.all(|classes| *classes == first) {
        listings.iter_mut().for_each(|(_, listing)| listing.classes.clone_from(&first));
        return;
    }
    let all = listings.iter().flat_map(|(_, listing)| &listing.classes);
    let all: Vec<Vec<u8>> = all.cloned().collect::<BTreeSet<_>>().into_iter().collect();
    listings.iter_mut().for_each(|(_, listing)| give_classes(listing, &all));
}

/// Gives a listing a class list that contains its own classes, in order, and changes the ids accordingly.
fn give_classes(listing: &mut Listing, all: &[Vec<u8>]) {
    let place = |class: &Vec<u8>| all.binary_search(class).ok();
    let new: Vec<Option<i64>> = listing.classes.iter().map(|class| i64::try_from(place(class)?).ok()).collect();
    let new_id = |id: &mut i64| {
        let found = usize::try_from(*id).ok().and_then(|id| new.get(id).copied());
        *id = found.flatten().unwrap_or(*id);
    };
    match &mut listing.labels {
        Labels::PerSample(ids) => ids.iter_mut().for_each(new_id),
        Labels::Lists(lists) => lists.renumber(new_id),
        Labels::None | Labels::ByDirectory(_) => {}
    }
    listing.classes = all.to_vec();
}
