//! Warns about lists in folders next to the image folder. They are not read, but may contain labels or splits.

use std::path::Path;

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::image_folder::is_list;
use super::paths::{joined, lossy};
use super::walk::count;
use super::warning::Warning;
use crate::error::ConvertError;

/// Maximum number of folders to search.
const MAX_FOLDERS: usize = 16;

/// The warning about lists in folders other than those in `read`.
pub(super) fn find(
    (root, files): (&Path, SampleFiles),
    top: &Directory,
    read: &[&[u8]],
) -> Result<Option<Warning>, ConvertError> {
    const LISTS: [&str; 5] = [".txt", ".csv", ".tsv", ".json", ".jsonl"];
    const OTHERS: [&str; 3] = [".mat", ".xml", ".npy"];
    const NO_LISTS: [&str; 4] = ["readme", "license", "licence", "changelog"];
    let mut folders: Vec<&Vec<u8>> = top.subdirectories.iter().collect();
    folders.retain(|name| !name.starts_with(b".") && !read.contains(&name.as_slice()));
    folders.sort_unstable();
    let (mut lists, mut others) = (Vec::new(), Vec::new());
    for folder in folders.into_iter().take(MAX_FOLDERS) {
        for name in Directory::scan(root, folder, files)?.names() {
            let lower = lossy(name).to_ascii_lowercase();
            let ends = |ends: &[&str]| ends.iter().any(|end| lower.ends_with(end));
            if lower.starts_with('.') || NO_LISTS.iter().any(|start| lower.starts_with(start)) {
                continue;
            }
            if ends(&LISTS) {
                // Lists for training come first.
                lists.push((!lower.contains("train"), !is_list(name, &LISTS), joined(folder, name)));
            } else if ends(&OTHERS) {
                others.push(joined(folder, name));
            }
        }
    }
    let n = lists.len() + others.len();
    let list = lists.into_iter().min().map(|(.., file)| Warning::ListsUnread { file, others: count(n - 1) });
    Ok(list.or_else(|| others.into_iter().min().map(|file| Warning::LabelsUnread { file })))
}
