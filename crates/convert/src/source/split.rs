//! Splits: subfolders named `train`, `val`, `test` and so on. Each is a source of its own, and all share one class list.
//!
//! `image_folder` lists a split's files.

use std::{collections::BTreeSet, path::Path};

use super::{
    directory::Directory,
    image_folder::list_folder,
    listing::{Labels, Listing},
    paths::as_path,
};
use crate::error::ConvertError;

const SPLIT_NAMES: [&str; 9] = [
    "train",
    "training",
    "val",
    "valid",
    "validation",
    "test",
    "testing",
    "eval",
    "dev",
];

/// True if a folder with this name is a split. Case is ignored.
pub(super) fn is_split_name(name: &[u8]) -> bool {
    SPLIT_NAMES
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// An error if every visible subfolder has a split's name and one of them has subfolders: those are the classes.
pub(super) fn reject_only_splits(root: &Path, top: &Directory) -> Result<(), ConvertError> {
    let mut visible = top
        .subdirectories
        .iter()
        .filter(|name| !name.starts_with(b"."));
    if !visible.all(|name| is_split_name(name)) {
        return Ok(());
    }
    let splits = split_names(top);
    for split in &splits {
        if !Directory::scan(root, split.as_bytes())?
            .subdirectories
            .is_empty()
        {
            return Err(ConvertError::OnlySplits {
                path: root.to_owned(),
                splits,
            });
        }
    }
    Ok(())
}

/// Lists one split. It may have any name if another folder is a known split.
pub(super) fn list_one(source: &Path, wanted: &str, jobs: usize) -> Result<Listing, ConvertError> {
    let top = Directory::scan(source, b"")?;
    let mut splits = split_names(&top);
    if !splits.iter().any(|split| split == wanted) {
        let known = top
            .subdirectories
            .iter()
            .any(|name| name == wanted.as_bytes());
        if !known || splits.is_empty() {
            return Err(ConvertError::SplitMissing {
                path: source.to_owned(),
                wanted: wanted.to_owned(),
                available: splits,
            });
        }
        splits.push(wanted.to_owned());
    }
    let classes = class_union(source, &splits)?;
    list_folder(&source.join(wanted), Some(&classes), jobs)
}

/// Lists every split with a known name.
pub(super) fn list_all(source: &Path, jobs: usize) -> Result<Vec<(String, Listing)>, ConvertError> {
    let splits = split_names(&Directory::scan(source, b"")?);
    if splits.is_empty() {
        return Err(ConvertError::SplitMissing {
            path: source.to_owned(),
            wanted: "all".to_owned(),
            available: splits,
        });
    }
    let classes = class_union(source, &splits)?;
    splits
        .into_iter()
        .map(|split| {
            let listing = list_folder(&source.join(&split), Some(&classes), jobs)?;
            Ok((split, listing))
        })
        .collect()
}

/// The split subfolders, sorted.
fn split_names(top: &Directory) -> Vec<String> {
    let mut names: Vec<String> = top
        .subdirectories
        .iter()
        .filter(|name| is_split_name(name))
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    names.sort_unstable();
    names
}

/// The class folder names of all splits, sorted and unique.
fn class_union(source: &Path, splits: &[String]) -> Result<Vec<Vec<u8>>, ConvertError> {
    let mut classes = BTreeSet::new();
    for split in splits {
        let root = source.join(as_path(split.as_bytes()));
        classes.extend(Directory::scan(&root, b"")?.subdirectories);
    }
    Ok(classes.into_iter().collect())
}

/// Gives the listings of all splits one class list, so that ids agree.
pub(super) fn unite_classes(listings: &mut [(String, Listing)]) {
    let alike = listings
        .windows(2)
        .all(|pair| matches!(pair, [(_, a), (_, b)] if a.classes == b.classes));
    if alike {
        return;
    }
    let all = listings.iter().flat_map(|(_, listing)| &listing.classes);
    let all: Vec<Vec<u8>> = all.cloned().collect::<BTreeSet<_>>().into_iter().collect();
    for (_, listing) in listings {
        let place = |class: &Vec<u8>| all.binary_search(class).ok();
        let new: Vec<Option<i64>> = listing
            .classes
            .iter()
            .map(|class| i64::try_from(place(class)?).ok())
            .collect();
        let new_id = |id: &mut i64| {
            let found = usize::try_from(*id)
                .ok()
                .and_then(|id| new.get(id).copied());
            *id = found.flatten().unwrap_or(*id);
        };
        if let Labels::PerSample(ids) = &mut listing.labels {
            ids.iter_mut().for_each(new_id);
        }
        listing.classes.clone_from(&all);
    }
}
