//! Finds the list with the labels of a split without class folders, such as `meta/val.txt` next to `train` and `val` (ImageNet). Each
//! line has an image and its label.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::super::candidate::SampleFiles;
use super::super::directory::Directory;
use super::super::listing::Listing;
use super::super::located::Named;
use super::super::paths::{as_path, joined, lossy, stem};
use super::super::table_note::TableNote;
use super::super::there::text_file;
use super::lists::image_of;
use super::{is_split_folder, split_and_rest};

/// Maximum number of folders next to the splits to search for lists.
const MAX_FOLDERS: usize = 16;

/// The class id of each image of a split, from the only list that has a label for each, and the note about the list. Lists may be in
/// the folder of the splits, which is the second of `folders`, and in the folders without images next to the splits. A label is the
/// name of a class, or the number that the list of another split gives to one class folder. A list with the same label for all images
/// is a placeholder, and not used.
pub(in crate::source) fn labels(
    listing: &Listing,
    folders: &[&Path],
    split: &str,
    classes: &[Vec<u8>],
) -> Option<(Vec<i64>, TableNote)> {
    let above = folders.get(1)?;
    let lists = lists_in(above);
    let named = Named::new(SampleFiles::Images);
    let labelled = |list: &List| {
        let text = text_file(&above.join(as_path(&list.file))).ok()??;
        let words = words_of(&text, listing, &named)?;
        let by_name = |word: &&str| classes.iter().position(|class| class == word.as_bytes());
        if let Some(ids) = words.iter().map(by_name).collect::<Option<Vec<usize>>>() {
            return Some((ids, None, list.file.clone()));
        }
        let is_other = |other: &&List| other.rest == list.rest && other.split != list.split;
        lists.iter().filter(is_other).find_map(|other| {
            let text = text_file(&above.join(as_path(&other.file))).ok()??;
            let numbers = numbers_in(&text, classes)?;
            let ids = words.iter().map(|word| numbers.get(word).copied()).collect::<Option<Vec<usize>>>()?;
            Some((ids, Some(other.file.clone()), list.file.clone()))
        })
    };
    let mut found = lists.iter().filter(|list| list.split == split).filter_map(labelled);
    let (Some((ids, numbers, file)), None) = (found.next(), found.next()) else { return None };
    if ids.len() > 1 && ids.iter().all(|id| *id == ids[0]) {
        return None;
    }
    let ids = ids.into_iter().map(|id| i64::try_from(id).ok()).collect::<Option<_>>()?;
    Some((ids, TableNote::SplitLabels { file, numbers }))
}

/// A list that is named like a split.
struct List {
    split: String,
    /// The folder, the other words of the name.
    rest: (Vec<u8>, Vec<String>),
    /// Its path.
    file: Vec<u8>,
}

/// The lists in a folder of splits, and in the folders without images in it.
fn lists_in(above: &Path) -> Vec<List> {
    let Ok(top) = Directory::scan(above, b"", SampleFiles::Images) else { return Vec::new() };
    let is_visible = |name: &&Vec<u8>| !name.starts_with(b".") && !is_split_folder(name);
    let mut inner: Vec<Vec<u8>> = top.subdirectories.iter().filter(is_visible).cloned().collect();
    inner.sort_unstable();
    inner.truncate(MAX_FOLDERS);
    let mut lists = Vec::new();
    for folder in [Vec::new()].into_iter().chain(inner) {
        let Ok(directory) = Directory::scan(above, &folder, SampleFiles::Images) else { continue };
        if !folder.is_empty() && directory.sample_names().next().is_some() {
            continue;
        }
        let mut names: Vec<&[u8]> = directory.names().filter(|name| name.ends_with(b".txt")).collect();
        names.sort_unstable();
        for name in names {
            if let Some((split, rest)) = split_and_rest(&lossy(stem(name))) {
                lists.push(List { split, rest: (folder.clone(), rest), file: joined(&folder, name) });
            }
        }
    }
    lists
}

/// The lines of a list: an image and its label each.
fn lines(text: &str) -> impl Iterator<Item = Option<(&str, &str)>> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.rsplit_once([' ', '\t', ',', ';']).map(|(image, label)| (image.trim_end(), label)))
}

/// The label of each image of a split. `None` if a line names no image of the split, or if the lines do not name each image once.
fn words_of<'a>(text: &'a str, listing: &Listing, named: &Named) -> Option<Vec<&'a str>> {
    let mut words: Vec<Option<&str>> = vec![None; listing.len()];
    for line in lines(text) {
        let (image, label) = line?;
        let place = image_of(image, listing, named).ok()?;
        if words.get_mut(place)?.replace(label).is_some() {
            return None;
        }
    }
    words.into_iter().collect()
}

/// The class that each label of a list stands for, by the class folders in its paths. `None` if a path has no class folder, or if a
/// label stands for several classes, or a class for several labels.
fn numbers_in<'a>(text: &'a str, classes: &[Vec<u8>]) -> Option<HashMap<&'a str, usize>> {
    let place_of: HashMap<&[u8], usize> =
        classes.iter().enumerate().map(|(idx, class)| (class.as_slice(), idx)).collect();
    let mut numbers = HashMap::new();
    for line in lines(text) {
        let (image, label) = line?;
        let (folder, _) = image.rsplit_once('/')?;
        let class = folder.split('/').find_map(|part| place_of.get(part.as_bytes()))?;
        if numbers.insert(label, *class).is_some_and(|other| other != *class) {
            return None;
        }
    }
    let different: HashSet<&usize> = numbers.values().collect();
    (different.len() == numbers.len()).then_some(numbers)
}
