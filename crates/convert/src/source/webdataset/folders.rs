//! Decides what the folders in tar files are: one sample each, the classes of images, or neither.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::names::key_and_extension;
use crate::error::ConvertError;
use crate::source::candidate::{is_image_name, is_system_folder};
use crate::source::found::{FoundLabels, LabelValues, Names};
use crate::source::layout::is_mask_folder;
use crate::source::pairs::are_beside;
use crate::source::paths::lossy;
use crate::source::split::is_split_folder;
use crate::source::tar::Member;
use crate::source::warning::Warning;

/// Maximum number of members to inspect.
const MAX_MEMBERS: usize = 1024;

/// Maximum number of members to inspect in a compressed tar file, where each must be unpacked.
pub(super) const MAX_PACKED: usize = 256;

/// Whether the members are files of another kind of source, not samples: no two members have the same key.
///
/// Also false for a plain tar file that can be read in place: its files are all images, all arrays or all tar files, and there are no
/// masks and no folders of splits.
pub(super) fn are_files(members: &[Member], is_plain: bool) -> bool {
    let visible = |member: &&Member| {
        let mut parts = member.name.split(|byte| *byte == b'/');
        !parts.any(|part| part.starts_with(b"._") || is_system_folder(part))
    };
    let visible: Vec<&Member> = members.iter().filter(visible).collect();
    let keys = visible.iter().filter_map(|member| key_of(&member.name));
    let mut known = BTreeSet::new();
    let of_one_sample = keys.into_iter().any(|key| !known.insert(key));
    if visible.is_empty() || of_one_sample || are_samples(members) {
        return false;
    }
    if !is_plain {
        return true;
    }
    let is_array = |name: &[u8]| name.to_ascii_lowercase().ends_with(b".npy");
    let all = |is_kind: &dyn Fn(&[u8]) -> bool| visible.iter().all(|member| is_kind(&member.name));
    let is_special = |part: &[u8]| is_split_folder(part) || is_mask_folder(part);
    let has_special = visible
        .iter()
        .filter_map(|member| in_folder(&member.name))
        .any(|(folder, _)| folder.split(|byte| *byte == b'/').any(is_special));
    has_special || are_beside(&known) || !(all(&is_image_name) || all(&is_array) || all(&is_tar_name))
}

/// The part of a name that all members of a sample share. `cat.1.jpg` and `cat.2.jpg` are two images; `cat.1.jpg` and `cat.1.cls`
/// are one sample.
fn key_of(name: &[u8]) -> Option<&[u8]> {
    let (key, extension) = key_and_extension(name)?;
    let number = extension.split(|byte| *byte == b'.').next().filter(|number| number.len() < extension.len());
    let number = number.unwrap_or_default();
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    if is_number { name.get(..key.len() + 1 + number.len()) } else { Some(key) }
}

/// Whether a member is itself a tar file.
pub(super) fn is_tar_name(name: &[u8]) -> bool {
    name.to_ascii_lowercase().ends_with(b".tar")
}

/// Whether each folder is a sample: all folders contain the same set of several file names, such as `image.npy` and `label.cls`.
/// Folders that contain only images are classes.
pub(super) fn are_samples(members: &[Member]) -> bool {
    let mut names: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
    for member in members.iter().take(MAX_MEMBERS) {
        let Some((folder, name)) = in_folder(&member.name) else { return false };
        // Folders of images and their masks have the same names, too.
        if folder.split(|byte| *byte == b'/').any(is_mask_folder) {
            return false;
        }
        names.entry(folder).or_default().insert(name);
    }
    if members.len() > MAX_MEMBERS {
        // The last folder may be incomplete.
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

/// The folder of a member, and the member's name in it.
pub(super) fn in_folder(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = name.iter().rposition(|byte| *byte == b'/')?;
    Some((name.get(..slash)?, name.get(slash + 1..)?))
}

/// The classes of images without other fields: the names of their folders or of their tar files.
///
/// `ends` has the number of samples up to the end of each tar file.
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
            let reason = format!("the tar file contains splits: {}", crate::error::quoted(&splits));
            let hint = "unpack it and pass the folder, or write a tar file for each split";
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
    // A tar name with digits is a numbered shard, unless the images' paths start with that name.
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

/// The class folder of each path: the first folder below the folders that all paths share. `None` if some path has no
/// such folder.
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
