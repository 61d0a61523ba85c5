//! Warns about lists in folders next to the image folder. They are not read, but may contain labels, splits or boxes.

use std::collections::HashSet;
use std::path::Path;

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::image_folder::{is_list, is_submission};
use super::paths::{joined, lossy, stem};
use super::warning::Warning;
use crate::error::ConvertError;

/// Maximum number of folders to search.
const MAX_FOLDERS: usize = 16;
/// Maximum number of text files in a folder to compare with the names of the images.
const MAX_TEXTS: usize = 4;
/// In a folder with more lists than this, each list may belong to one image.
const FEW_LISTS: usize = 10;
const LISTS: [&str; 5] = [".txt", ".csv", ".tsv", ".json", ".jsonl"];

/// Files in the folders next to the images.
#[derive(Default)]
struct Beside {
    /// Lists, each after its three sort keys: whether its folder has more than `FEW_LISTS` lists, whether its name
    /// lacks `train`, and whether its name lacks a word for labels.
    lists: Vec<(bool, bool, bool, Vec<u8>)>,
    /// Files of labels that cannot be read as lists.
    others: Vec<Vec<u8>>,
    /// Folders with a text file for each image.
    texts: Vec<Vec<u8>>,
}

/// The warnings about files in folders other than those in `read`, of which the first holds the images. If there are tables next to
/// the images, lists cause no warning.
pub(super) fn find(
    (root, files): (&Path, SampleFiles),
    top: &Directory,
    read: &[&[u8]],
    has_tables: bool,
) -> Result<Vec<Warning>, ConvertError> {
    let Some(images) = read.first() else { return Ok(Vec::new()) };
    let mut waiting: Vec<Vec<u8>> = top.subdirectories.clone();
    waiting.retain(|name| !name.starts_with(b".") && !read.contains(&name.as_slice()));
    waiting.sort_unstable_by(|a, b| b.cmp(a));
    let (mut beside, mut of_images) = (Beside::default(), None);
    for _ in 0..MAX_FOLDERS {
        let Some(folder) = waiting.pop() else { break };
        let directory = Directory::scan(root, &folder, files)?;
        if first_texts(&directory).len() > 1 && of_images.is_none() {
            of_images = Some(stems(&Directory::scan(root, images, files)?));
        }
        beside.add(&folder, &directory, of_images.as_ref());
        // Lists may be one level deeper, as in `ImageSets/Main`. Folders of images are not searched.
        if !folder.contains(&b'/') && directory.sample_names().next().is_none() {
            let mut inner: Vec<Vec<u8>> = directory.subdirectories.iter().map(|name| joined(&folder, name)).collect();
            inner.retain(|path| !read.iter().any(|read| path.starts_with(read)));
            inner.sort_unstable_by(|a, b| b.cmp(a));
            waiting.extend(inner);
        }
    }
    let Beside { mut lists, others, texts } = beside;
    let mut warnings = Vec::new();
    if !texts.is_empty() {
        warnings.push(Warning::TextsUnread { folders: texts, images: images.to_vec() });
    }
    lists.sort_unstable();
    let mut lists = lists.into_iter().map(|(.., file)| file).filter(|_| !has_tables);
    match (lists.next(), others.into_iter().min()) {
        (Some(file), _) => warnings.push(Warning::ListsUnread { file, others: lists.collect() }),
        (None, Some(file)) if !has_tables => warnings.push(Warning::LabelsUnread { file }),
        _ => {}
    }
    Ok(warnings)
}

impl Beside {
    /// Adds the files of a folder. `of_images` has the names of the images without extensions.
    fn add(&mut self, folder: &[u8], directory: &Directory, of_images: Option<&HashSet<Vec<u8>>>) {
        const OTHERS: [&str; 3] = [".mat", ".xml", ".npy"];
        const NO_LISTS: [&str; 4] = ["readme", "license", "licence", "changelog"];
        let first = first_texts(directory);
        let is_of_image = |name: &&[u8]| of_images.is_some_and(|images| images.contains(stem(name)));
        let has_texts = first.len() > 1 && first.iter().all(is_of_image);
        if has_texts {
            self.texts.push(folder.to_vec());
        }
        let is_list_name = |name: &&[u8]| LISTS.iter().any(|end| lossy(name).to_ascii_lowercase().ends_with(end));
        let has_many = directory.names().filter(is_list_name).count() > FEW_LISTS;
        for name in directory.names() {
            let lower = lossy(name).to_ascii_lowercase();
            let ends = |ends: &[&str]| ends.iter().any(|end| lower.ends_with(end));
            let is_text = has_texts && ends(&[".txt"]);
            if is_text
                || is_submission(name)
                || lower.starts_with('.')
                || NO_LISTS.iter().any(|start| lower.starts_with(start))
            {
                continue;
            }
            if ends(&LISTS) {
                // Lists for training come first.
                self.lists.push((has_many, !lower.contains("train"), !is_list(name, &LISTS), joined(folder, name)));
            } else if ends(&OTHERS) {
                self.others.push(joined(folder, name));
            }
        }
    }
}

/// The first text files of a folder.
fn first_texts(directory: &Directory) -> Vec<&[u8]> {
    let mut texts: Vec<&[u8]> = directory.names().filter(|name| name.ends_with(b".txt")).collect();
    texts.sort_unstable();
    texts.truncate(MAX_TEXTS);
    texts
}

fn stems(directory: &Directory) -> HashSet<Vec<u8>> {
    directory.sample_names().map(|name| stem(name).to_vec()).collect()
}

/// The warning about a file named like boxes in these folders, which are next to splits.
pub(super) fn boxes_in(
    (root, files): (&Path, SampleFiles),
    folders: &[&Vec<u8>],
) -> Result<Option<Warning>, ConvertError> {
    for folder in folders.iter().take(MAX_FOLDERS) {
        let directory = Directory::scan(root, folder, files)?;
        let is_one = |name: &&[u8]| {
            let lower = lossy(name).to_ascii_lowercase();
            LISTS.iter().chain(&[".mat"]).any(|end| lower.ends_with(end)) && has_boxes(&lower)
        };
        let mut found: Vec<&[u8]> = directory.names().filter(is_one).collect();
        found.sort_unstable_by_key(|name| (!name.windows(5).any(|word| word == b"train"), *name));
        if let Some(name) = found.first() {
            return Ok(Some(Warning::BoxFile { file: joined(folder, name) }));
        }
    }
    Ok(None)
}

/// Whether a file contains boxes, judged by its name in lower case.
pub(super) fn has_boxes(name: &str) -> bool {
    ["bbox", "bbx", "boxes", "bounding"].iter().any(|word| name.contains(word))
}
