//! Finds lists of images that divide a folder into splits, such as `train.txt` and `val.txt`. The lists are next to the
//! images, or in a folder such as `splits`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::super::candidate::SampleFiles;
use super::super::directory::Directory;
use super::super::listing::{Images, Listing, SourceKind};
use super::super::located::{Named, leads_to};
use super::super::paths::{as_path, joined, lossy, stem};
use super::super::root::{parts, with_slashes};
use super::super::table_note::TableNote;
use super::super::tally::Tally;
use super::super::there::text_file;
use super::super::unread::{take_offered, take_others};
use super::super::warning::Warning;
use super::{list_columns, lone, split_and_rest};
use crate::error::ConvertError;

/// Maximum number of folders to search for lists.
const MAX_FOLDERS: usize = 32;
/// The file that marks the splits of CUB-200-2011 and NABirds. Each line has the id of an image, then 1 for training or
/// 0 for test.
const FLAGS: &str = "train_test_split.txt";
/// Maximum number of lists to read.
const MAX_LISTS: usize = 128;
/// What separates the columns of a list.
const BETWEEN: [char; 5] = [' ', ',', ';', '\t', '|'];
/// Words in the name of a list that say nothing about its split.
const OTHER_WORDS: [&str; 14] = [
    "list",
    "lists",
    "image",
    "images",
    "img",
    "imgs",
    "file",
    "files",
    "filenames",
    "names",
    "paths",
    "ids",
    "split",
    "splits",
];

/// The splits of a listing: the positions of the samples of each split.
pub(in crate::source) struct Division {
    splits: BTreeMap<String, Vec<usize>>,
}

impl Division {
    pub(in crate::source) fn new(splits: BTreeMap<String, Vec<usize>>) -> Self {
        Self { splits }
    }

    /// One listing for each split. All splits have the classes of the folder.
    pub(in crate::source) fn divide(self, listing: &Listing) -> Vec<(String, Listing)> {
        self.splits.into_iter().map(|(split, places)| (split, listing.picked(&places))).collect()
    }
}

/// Finds the lists that divide the images of a folder, and replaces the warnings about these lists. `None` if there are
/// no such lists.
pub(in crate::source) fn find(folder: &Path, listing: &mut Listing) -> Result<Option<Division>, ConvertError> {
    let is_folder =
        !matches!(listing.kind, SourceKind::Container(_) | SourceKind::Program | SourceKind::SampleFiles(_));
    if !is_folder || listing.metadata.is_some() || !matches!(listing.images, Images::Files) {
        return Ok(None);
    }
    let named = Named::new(SampleFiles::Images);
    // The folder that is read may be far below the source, as in `VOCdevkit/VOC2012`.
    let root = listing.root().to_owned();
    let (mut valid, mut wrong) = Lists::below(&root, listing, &named)?;
    if valid.is_empty() && root != folder {
        let outer = Lists::below(folder, listing, &named)?;
        (valid, wrong) = (outer.0, wrong.or(outer.1));
    }
    // Pascal VOC has other lists for other tasks.
    let of_masks = |lists: &Lists| folder_name(&lists.files[0]).eq_ignore_ascii_case(b"segmentation");
    if listing.masks.is_some() && valid.iter().any(of_masks) {
        valid.retain(of_masks);
    }
    // The other lists of this folder have a column that says whether an object of one class is in the image.
    let of_boxes = |lists: &Lists| folder_name(&lists.files[0]).eq_ignore_ascii_case(b"main") && !lists.has_columns;
    if listing.boxes().is_some() && valid.iter().any(of_boxes) {
        valid.retain(of_boxes);
    }
    let mut valid = valid.into_iter();
    let Some(first) = valid.next() else {
        if let Some(Wrong { files, reason }) = wrong {
            note(listing, &files, TableNote::NotSplits { files: files.clone(), reason });
        } else if let Some((file, told)) = lone::find(&root, listing, &named)? {
            note(listing, &[file], told);
        }
        return Ok(None);
    };
    let others: Vec<Lists> = valid.filter(|lists| lists.splits != first.splits).collect();
    if let Some(other) = others.first() {
        let files = vec![first.files[0].clone(), other.files[0].clone()];
        let n = 1 + others.len();
        let reason = format!(
            "the lists divide the images in {n} ways; to use one way, move the other lists elsewhere, or pass each list as a source"
        );
        note(listing, &files, TableNote::NotSplits { files: files.clone(), reason });
        return Ok(None);
    }
    let mut is_listed = vec![false; listing.len()];
    first.splits.values().flatten().for_each(|place| is_listed[*place] = true);
    let mut others = Tally::default();
    for idx in (0..listing.len()).filter(|idx| !is_listed[*idx]) {
        others.add(&listing.paths.path(idx));
    }
    let Lists { splits, files, repeated, has_columns, has_flags, numbers } = first;
    let labels = list_columns::add(listing, &numbers);
    let has_columns = has_columns && labels.is_none();
    listing.warnings.extend(labels.map(Warning::Table));
    let read: Vec<Vec<u8>> = files.iter().chain(&repeated).cloned().collect();
    let (count, first) = (others.count, others.first);
    note(listing, &read, TableNote::Splits { files, repeated, has_columns, has_flags, count, first });
    Ok(Some(Division { splits }))
}

/// Adds a warning about lists, and removes these lists from the other warnings.
fn note(listing: &mut Listing, files: &[Vec<u8>], note: TableNote) {
    take_offered(&mut listing.warnings, files);
    for file in files.iter().filter(|file| !file.contains(&b'/')) {
        let extension = lossy(file.get(stem(file).len() + 1..).unwrap_or_default()).to_ascii_lowercase();
        take_others(&mut listing.warnings, &extension, 1, |first| first == file);
        listing.ignored = listing.ignored.saturating_sub(1);
    }
    listing.warnings.insert(0, Warning::Table(note));
}

/// The name of the folder of a list.
fn folder_name(list: &[u8]) -> &[u8] {
    list.rsplit(|byte| *byte == b'/').nth(1).unwrap_or_default()
}

/// Lists that may belong together: the split and the path of each list.
type Group = Vec<(String, Vec<u8>)>;

impl Lists {
    /// The lists in the folder and below it that divide the images, and the first that do not.
    fn below(folder: &Path, listing: &Listing, named: &Named) -> Result<(Vec<Self>, Option<Wrong>), ConvertError> {
        let (mut valid, mut wrong): (Vec<Self>, Option<Wrong>) = (Vec::new(), None);
        for files in Self::groups(folder, listing).into_iter().filter(|lists| lists.len() > 1) {
            match Self::read(folder, listing, named, files)? {
                Ok(lists) => valid.push(lists),
                Err(found) => wrong = wrong.or(found),
            }
        }
        valid.extend(by_flags(folder, listing, named)?);
        Ok((valid, wrong))
    }

    /// Groups the lists in the folder, and in the folders without images below it. Lists belong together if they are in
    /// one folder, and their names differ only in the split. A group may have only one list.
    pub(super) fn groups(folder: &Path, listing: &Listing) -> Vec<Group> {
        let mut groups: BTreeMap<_, Group> = BTreeMap::new();
        let mut waiting = vec![Vec::new()];
        let folders: HashSet<&[u8]> = (0..listing.len()).map(|idx| listing.paths.directory(idx)).collect();
        let folders: HashSet<PathBuf> = folders.into_iter().map(|path| listing.root().join(as_path(path))).collect();
        let (mut n_folders, mut n_lists) = (0, 0);
        while let Some(path) = waiting.pop().filter(|_| n_folders < MAX_FOLDERS) {
            n_folders += 1;
            // A folder that cannot be read has no images of the listing, so it is skipped.
            let Ok(directory) = Directory::scan(folder, &path, SampleFiles::Images) else { continue };
            if !path.is_empty() && directory.sample_names().next().is_some() {
                continue;
            }
            let mut names: Vec<&[u8]> = directory.names().collect();
            names.sort_unstable();
            for name in names {
                if let Some((split, rest)) = split_of(name).filter(|_| n_lists < MAX_LISTS) {
                    n_lists += 1;
                    groups.entry((path.clone(), rest)).or_default().push((split, joined(&path, name)));
                }
            }
            // Lists may be up to three levels deeper, as in `ImageSets/Main` and in cross-validation.
            if path.iter().filter(|byte| **byte == b'/').count() < 2 {
                let visible = directory.subdirectories.iter().filter(|name| !name.starts_with(b"."));
                let mut inner: Vec<Vec<u8>> = visible.map(|name| joined(&path, name)).collect();
                inner.retain(|inner| !folders.contains(&folder.join(as_path(inner))));
                inner.sort_unstable_by(|a, b| b.cmp(a));
                waiting.extend(inner);
            }
        }
        let is_group =
            |lists: &Group| lists.iter().enumerate().all(|(n, (split, _))| lists[..n].iter().all(|(s, _)| s != split));
        groups.into_values().filter(is_group).collect()
    }
}

/// The split in the name of a list, and the rest of the name: the other words and the extension. `None` if the name is
/// not that of a list.
fn split_of(name: &[u8]) -> Option<(String, Vec<String>)> {
    let lower = apart(&lossy(name)).to_ascii_lowercase();
    let (stem, extension) = lower.rsplit_once('.').filter(|(_, end)| ["txt", "csv", "tsv", "lst"].contains(end))?;
    let words = stem.split(['_', '-', ' ', '.']).filter(|word| !OTHER_WORDS.contains(word));
    let name = words.collect::<Vec<_>>().join("_");
    let (split, mut rest) = match ["trainval", "train_val"].into_iter().find(|both| *both == name) {
        Some(both) => (both.to_owned(), Vec::new()),
        None => split_and_rest(&name)?,
    };
    rest.push(extension.to_owned());
    Some((split, rest))
}

/// The name with its words apart: `train_Images` for `trainImages`.
fn apart(name: &str) -> String {
    let mut words = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && words.ends_with(|last: char| last.is_ascii_lowercase()) {
            words.push('_');
        }
        words.push(letter);
    }
    words
}

/// Lists that divide the images.
pub(super) struct Lists {
    splits: BTreeMap<String, Vec<usize>>,
    files: Vec<Vec<u8>>,
    /// Lists that only repeat the images of others.
    repeated: Vec<Vec<u8>>,
    /// Whether lines have further columns after the image.
    has_columns: bool,
    /// Whether there is one list with 1 for the training split and 0 for the test split.
    has_flags: bool,
    /// The whole numbers after the name of each image. Empty if other words follow.
    numbers: BTreeMap<usize, Vec<i64>>,
}

/// Lists that do not divide the images, and the reason.
struct Wrong {
    files: Vec<Vec<u8>>,
    reason: String,
}

impl Lists {
    /// Reads a group of lists. The inner error says why they do not divide the images. It is `None` if they are not
    /// lists of the images, or if their other columns may be the labels.
    fn read(
        folder: &Path,
        listing: &Listing,
        named: &Named,
        lists: Group,
    ) -> Result<Result<Self, Option<Wrong>>, ConvertError> {
        let mut reason = None;
        let (mut read, mut has_columns, mut numbers) = (Vec::new(), false, BTreeMap::new());
        let files: Vec<Vec<u8>> = lists.iter().map(|(_, file)| file.clone()).collect();
        for (split, file) in lists {
            let text = text_file(&folder.join(as_path(&file)))?.unwrap_or_default();
            let list = List::read(&text, listing, named, file.ends_with(b".csv") || file.ends_with(b".tsv"));
            if 2 * list.places.len() <= list.n_wrong {
                return Ok(Err(None));
            }
            has_columns |= list.has_columns;
            reason = reason.or(list.wrong.map(|wrong| format!("'{}' lists {wrong}", lossy(&file))));
            let mut places = list.places;
            numbers.extend(places.iter().copied().zip(list.numbers));
            places.sort_unstable();
            if let Some(pair) = places.windows(2).find(|pair| pair[0] == pair[1]) {
                let image = lossy(&listing.paths.path(pair[0]));
                reason = reason.or(Some(format!("'{}' lists '{image}' twice", lossy(&file))));
            }
            read.push(Part { split, file, places });
        }
        // The labels may be in the other columns.
        if has_columns && listing.has_only_images() {
            return Ok(Err(None));
        }
        let repeated = take_repeated(&mut read);
        let mut list_of: HashMap<usize, &Vec<u8>> = HashMap::new();
        for Part { file, places, .. } in &read {
            for place in places {
                if let Some(other) = list_of.insert(*place, file).filter(|other| *other != file) {
                    let image = lossy(&listing.paths.path(*place));
                    let text = format!("'{}' and '{}' both list '{image}'", lossy(other), lossy(file));
                    reason.get_or_insert(text);
                }
            }
        }
        if let Some(reason) = reason {
            return Ok(Err(Some(Wrong { files, reason })));
        }
        let files = read.iter().map(|part| part.file.clone()).collect();
        let splits = read.into_iter().map(|part| (part.split, part.places)).collect();
        Ok(Ok(Self { splits, files, repeated, has_columns, has_flags: false, numbers }))
    }
}

/// A list: its split, its path, and the sorted positions of its images.
struct Part {
    split: String,
    file: Vec<u8>,
    places: Vec<usize>,
}

/// Removes each list that has exactly the images of several other lists, such as `trainval.txt`. Returns the paths of
/// the removed lists.
fn take_repeated(lists: &mut Vec<Part>) -> Vec<Vec<u8>> {
    let is_repeated = |list: &&Part| {
        let is_in = |place: &usize| list.places.binary_search(place).is_ok();
        let is_part = |other: &&Part| other.split != list.split && other.places.iter().all(is_in);
        let parts: Vec<&Part> = lists.iter().filter(is_part).collect();
        parts.len() > 1 && parts.iter().map(|part| part.places.len()).sum::<usize>() == list.places.len()
    };
    let repeated: Vec<Vec<u8>> = lists.iter().filter(is_repeated).map(|list| list.file.clone()).collect();
    lists.retain(|list| !repeated.contains(&list.file));
    repeated
}

/// The splits of CUB-200-2011 and NABirds. Each line of `images.txt` has an id and a path. Each line of
/// `train_test_split.txt` has an id, and 1 for the training split or 0 for the test split. `None` if a file is missing,
/// if a line names no image, if two lines name the same image, or if a split is empty.
fn by_flags(folder: &Path, listing: &Listing, named: &Named) -> Result<Option<Lists>, ConvertError> {
    let (Some(images), Some(flags)) = (text_file(&folder.join("images.txt"))?, text_file(&folder.join(FLAGS))?) else {
        return Ok(None);
    };
    let images: HashMap<&str, &str> = images.lines().filter_map(|line| line.trim().split_once(' ')).collect();
    let mut splits: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for line in flags.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let named_image = line.split_once(' ').and_then(|(id, flag)| {
            let split = ["test", "train"].into_iter().zip(["0", "1"]).find(|(_, known)| *known == flag.trim())?.0;
            Some((split, image_of(images.get(id)?, listing, named).ok()?))
        });
        let Some((split, place)) = named_image else { return Ok(None) };
        splits.entry(split.to_owned()).or_default().push(place);
    }
    let mut all: Vec<usize> = splits.values().flatten().copied().collect();
    all.sort_unstable();
    splits.values_mut().for_each(|places| places.sort_unstable());
    let are_different = splits.len() == 2 && all.windows(2).all(|pair| pair[0] != pair[1]);
    let files = vec![FLAGS.as_bytes().to_vec()];
    let numbers = BTreeMap::new();
    let lists = Lists { splits, files, repeated: Vec::new(), has_columns: false, has_flags: true, numbers };
    Ok(are_different.then_some(lists))
}

/// One list.
#[derive(Default)]
pub(super) struct List {
    /// The positions of the images that it names.
    pub(super) places: Vec<usize>,
    /// The whole numbers after the name of each image. Empty if there are none, or something else.
    numbers: Vec<Vec<i64>>,
    /// Number of lines that do not name exactly one image.
    pub(super) n_wrong: usize,
    /// What the first such line names instead.
    wrong: Option<String>,
    has_columns: bool,
}

impl List {
    /// Reads the lines. If the list is a table, its first line may be a header.
    pub(super) fn read(text: &str, listing: &Listing, named: &Named, is_table: bool) -> Self {
        let mut list = Self::default();
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
        for (number, line) in lines.filter(|line| !line.is_empty() && !line.starts_with('#')).enumerate() {
            let mut words = line.split(BETWEEN);
            let first = words.next().unwrap_or(line);
            let mut numbers = Vec::new();
            match image_of(line, listing, named).or_else(|_| {
                list.has_columns |= first != line;
                let words = words.filter(|word| !word.is_empty()).map(|word| word.parse().ok());
                numbers = words.collect::<Option<Vec<i64>>>().unwrap_or_default();
                image_of(first, listing, named)
            }) {
                Ok(place) => {
                    list.places.push(place);
                    list.numbers.push(numbers);
                }
                Err(_) if is_table && number == 0 => {}
                Err(wrong) => {
                    list.n_wrong += 1;
                    list.wrong.get_or_insert(wrong);
                }
            }
        }
        list
    }
}

/// The position of the image that an entry of a list names.
///
/// # Errors
/// Says why the entry does not name exactly one valid sample.
pub(in crate::source) fn image_of(entry: &str, listing: &Listing, named: &Named) -> Result<usize, String> {
    let entry = entry.trim_matches('"');
    let path = parts(&with_slashes(entry.into())).unwrap_or_default().join("/");
    let found: Vec<usize> = named
        .get(&listing.paths, path.as_bytes())
        .filter(|idx| leads_to(&listing.paths, *idx, path.as_bytes()))
        .collect();
    match found.as_slice() {
        [] if listing.has_masks() => Err(format!("'{entry}', which is not an image with a mask")),
        [] => Err(format!("'{entry}', which is not an image of the folder")),
        [only] if listing.faults.contains_key(only) => match listing.masks {
            Some(_) => Err(format!("'{entry}', which has no mask")),
            None => Err(format!("'{entry}', which is a bad sample")),
        },
        [only] => Ok(*only),
        [one, other, ..] => {
            let [one, other] = [one, other].map(|idx| lossy(&listing.paths.path(*idx)));
            Err(format!("'{entry}', which may be '{one}' or '{other}'"))
        }
    }
}
