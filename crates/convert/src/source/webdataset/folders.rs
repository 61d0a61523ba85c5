//! What folders in tar files mean: a sample each, or the classes of images that were packed with their folders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::names::key_and_extension;
use crate::error::ConvertError;
use crate::source::candidate::is_image_name;
use crate::source::found::{FoundLabels, LabelValues, Names};
use crate::source::paths::lossy;
use crate::source::split::is_split_folder;
use crate::source::tar::Member;
use crate::source::warning::Warning;

/// Most members to look at.
const MAX_MEMBERS: usize = 1024;

/// Whether each folder is a sample: all have files of the same several names, such as `image.npy` and `label.cls`. Folders of images
/// alone are classes.
pub(super) fn are_samples(members: &[Member]) -> bool {
    let mut names: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
    for member in members.iter().take(MAX_MEMBERS) {
        let Some((folder, name)) = in_folder(&member.name) else { return false };
        names.entry(folder).or_default().insert(name);
    }
    if members.len() > MAX_MEMBERS {
        // The last folder may go on.
        names.pop_last();
    }
    let mut sets = names.into_values();
    let first = sets.next().unwrap_or_default();
    let stems: BTreeSet<_> = first.iter().filter_map(|name| key_and_extension(name)).map(|(stem, _)| stem).collect();
    if first.iter().all(|name| is_image_name(name)) {
        return false;
    }
    let mut n_same = 0;
    stems.len() > 1
        && sets.all(|set| {
            n_same += 1;
            set == first
        })
        && n_same > 0
}

/// The folder of a member, and its name there.
pub(super) fn in_folder(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = name.iter().rposition(|byte| *byte == b'/')?;
    Some((name.get(..slash)?, name.get(slash + 1..)?))
}

/// The classes of images without any other field: their folders, or the tar files that they are in.
///
/// `ends` is the number of samples up to the end of each tar file.
pub(super) fn classes(
    source: &Path,
    names: &Names,
    files: &[PathBuf],
    ends: &[usize],
) -> Result<Option<(FoundLabels, Warning)>, ConvertError> {
    let Names::Paths(paths) = names else { return Ok(None) };
    let of_folder = folders(paths);
    let distinct: BTreeSet<&[u8]> = of_folder.iter().flatten().copied().collect();
    if let (Some(folders), true) = (&of_folder, distinct.len() > 1) {
        let splits: Vec<String> =
            distinct.iter().filter(|folder| is_split_folder(folder)).map(|folder| lossy(folder)).collect();
        if !splits.is_empty() {
            let reason = format!("there are splits in the tar file: {}", crate::error::quoted(&splits));
            let hint = "unpack it, and name the folder; or write a tar file for each split";
            return Err(ConvertError::unsupported(source, "", reason, hint));
        }
        let warning = Warning::FoldersInTar {
            count: packds_system::to_u64(distinct.len()),
            first: distinct.first().map(|f| f.to_vec()).unwrap_or_default(),
        };
        return Ok(Some((labels(folders.iter().map(|folder| lossy(folder))), warning)));
    }
    let stems: Vec<String> = files.iter().map(|file| stem(file)).collect();
    let distinct: BTreeSet<&String> = stems.iter().collect();
    let file_of = |idx: usize| ends.partition_point(|end| *end <= idx);
    // Numbers count shards, unless the images have them in their names.
    let is_class = |idx: usize, path: &[u8]| {
        let stem = stems.get(file_of(idx));
        stem.is_some_and(|stem| !stem.bytes().any(|b| b.is_ascii_digit()) || path.starts_with(stem.as_bytes()))
    };
    let are_classes = distinct.len() > 1
        && distinct.len() == stems.len()
        && paths.iter().enumerate().all(|(idx, path)| is_class(idx, path));
    if !are_classes {
        return Ok(None);
    }
    let warning = Warning::TarClasses {
        count: packds_system::to_u64(stems.len()),
        first: stems.first().cloned().unwrap_or_default().into_bytes(),
    };
    let of_file = |idx: usize| stems.get(file_of(idx)).cloned().unwrap_or_default();
    Ok(Some((labels((0..paths.len()).map(of_file)), warning)))
}

/// The class folder of each path: the first folder below those that all share. None if some path has none.
fn folders(paths: &[Vec<u8>]) -> Option<Vec<&[u8]>> {
    let mut shared: Option<Vec<&[u8]>> = None;
    for path in paths {
        let (folder, _) = in_folder(path)?;
        let parts: Vec<&[u8]> = folder.split(|byte| *byte == b'/').collect();
        shared = Some(match shared {
            None => parts,
            Some(shared) => shared.into_iter().zip(parts).take_while(|(a, b)| a == b).map(|(a, _)| a).collect(),
        });
    }
    let n = shared?.len();
    paths.iter().map(|path| in_folder(path)?.0.split(|byte| *byte == b'/').nth(n)).collect()
}

fn labels(names: impl Iterator<Item = String>) -> FoundLabels {
    FoundLabels::without_classes("label", LabelValues::Names(names.collect()))
}

/// A file's name before its first dot.
fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}
