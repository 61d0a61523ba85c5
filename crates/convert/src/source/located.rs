//! Finds the files of a manifest whose paths lack the folder or the extension: `id01` for `train_images/id01.png`.
//!
//! `root` uses the paths as written. If the paths in the first rows lead to no file, this module searches everything below the root
//! once.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::candidate::SampleFiles;
use super::directory::Identity;
use super::layout::is_mask_folder;
use super::paths::{PathTable, lossy, stem};
use super::split::is_split_folder;
use super::walk::Found;
use crate::error::ConvertError;
use crate::opt::ROOT;

/// The files of one column.
#[derive(Debug)]
pub(super) struct Located {
    paths: PathTable,
    /// The files in the folder that contains most of the first files, by relative path, with and without extension.
    in_folder: Option<HashMap<Vec<u8>, File>>,
    /// All files by name, with and without extension.
    by_name: HashMap<Vec<u8>, File>,
    /// Whether the folder that contains most of the first files has a name for masks.
    is_in_masks: bool,
}

#[derive(Debug, Clone, Copy)]
struct File {
    idx: usize,
    /// Another file with the same name or path.
    other: Option<usize>,
}

impl Located {
    /// Searches `root` for the files of a column that starts with the paths `first`. `None` if they are not there.
    ///
    /// # Errors
    /// If a folder cannot be read, or several folders have files of these names.
    pub(super) fn find(
        root: &Path,
        manifest: &Path,
        first: &[Vec<u8>],
        (files, is_mask): (SampleFiles, bool),
    ) -> Result<Option<Self>, ConvertError> {
        let mut found = Found::default();
        // The walk starts at the root itself, so there is no parent to check for loops.
        found.add_class((root, Identity::default()), b"", 0, files)?;
        let paths = &found.paths;
        let mut by_name = by_key(paths, files, |idx| paths.name(idx).to_vec());
        let is_known = |path: &Vec<u8>| by_name.contains_key(last(path));
        let end = if first.iter().any(is_known) { Vec::new() } else { common_end(paths) };
        if !end.is_empty() {
            by_name = by_key(paths, files, |idx| without_end(paths.name(idx), &end));
        }
        let mut folders: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for path in first {
            for idx in by_name.get(last(path)).into_iter().flatten() {
                if let Some(folder) = folder_of(paths, *idx, path) {
                    *folders.entry(folder.to_vec()).or_default() += 1;
                }
            }
        }
        let most = folders.values().max().copied().unwrap_or(0);
        let mut best: Vec<Vec<u8>> =
            folders.into_iter().filter(|(_, n)| *n == most).map(|(folder, _)| folder).collect();
        narrow(&mut best, |folder| is_mask_folder(last(folder)) == is_mask);
        let split = manifest.file_stem().map(|stem| stem.as_encoded_bytes().to_ascii_lowercase()).unwrap_or_default();
        narrow(&mut best, |folder| starts_alike(last(folder), &split));
        // `copy/images` next to `images` may be a copy, as on Kaggle.
        let bytes = |folder: &[u8], path: &Vec<u8>| {
            let all = by_name.get(last(path)).into_iter().flatten();
            let mut own = all.filter(|idx| folder_of(paths, **idx, path) == Some(folder));
            own.next().map(|idx| found.bytes[*idx])
        };
        let is_copy = |folder: &Vec<u8>, other: &Vec<u8>| {
            let ends = folder.strip_suffix(other.as_slice()).is_some_and(|rest| rest.ends_with(b"/"));
            ends && first.iter().all(|path| bytes(folder, path) == bytes(other, path))
        };
        let copies: Vec<bool> =
            best.iter().map(|folder| best.iter().any(|other| !other.is_empty() && is_copy(folder, other))).collect();
        let mut copies = copies.into_iter();
        best.retain(|_| copies.next() != Some(true));
        let is_in_masks = best.first().is_some_and(|folder| is_mask_folder(last(folder)));
        // If no folder has most of the files, as with one folder per class, files are found by their names alone.
        let has_folder = 2 * most > first.len();
        let in_folder = match best.as_slice() {
            [] => return refuse_several(paths, manifest, first).map(|()| None),
            _ if !has_folder => None,
            [folder] => Some(within(paths, files, (folder, &end))),
            [one, other, ..] => {
                let reason = format!("'{}' and '{}' both have files with the listed names", lossy(one), lossy(other));
                // If one folder is inside the other, suggest the inner one. With the outer one, the same error would recur.
                let chosen = if below_folder(other, one).is_some() { other } else { one };
                let hint = format!("choose with {}", ROOT.with(root.join(lossy(chosen)).display()));
                return Err(ConvertError::contradictory(manifest, "", reason, hint));
            }
        };
        // Kaggle's HAM10000 has each folder twice: `HAM10000_images_part_1` and `ham10000_images_part_1`.
        let is_case_copy = |idx: usize, of: usize| {
            idx != of && found.bytes[idx] == found.bytes[of] && paths.path(idx).eq_ignore_ascii_case(&paths.path(of))
        };
        let file = |mut all: Vec<usize>| {
            let first = *all.first()?;
            all.retain(|idx| !is_case_copy(*idx, first));
            file_of(&all)
        };
        let by_name = by_name.into_iter().filter_map(|(key, all)| Some((key, file(all)?))).collect();
        Ok(Some(Self { paths: found.paths, in_folder, by_name, is_in_masks }))
    }

    /// The file that `path` refers to, as a path relative to the root. `None` if there is none.
    ///
    /// # Errors
    /// If the path may refer to several files, returns the first two.
    pub(super) fn path(&self, path: &[u8]) -> Result<Option<Vec<u8>>, [Vec<u8>; 2]> {
        let full = |idx: usize| self.paths.path(idx);
        let leads_to = |file: &&File| folder_of(&self.paths, file.idx, path).is_some();
        let elsewhere = || self.by_name.get(last(path)).filter(leads_to);
        let file = match &self.in_folder {
            // A file that is missing in one split is not taken from another split.
            Some(files) => files.get(path).or_else(|| elsewhere().filter(|file| !self.is_in_split(file.idx))),
            None => elsewhere(),
        };
        match file {
            None => Ok(None),
            Some(File { idx, other: None }) => Ok(Some(full(*idx))),
            Some(File { idx, other: Some(other) }) => Err([full(*idx), full(*other)]),
        }
    }
}

impl Located {
    /// Whether the files are in a folder that is named like masks.
    pub(super) fn is_in_masks(&self) -> bool {
        self.is_in_masks
    }

    fn is_in_split(&self, idx: usize) -> bool {
        self.paths.directory(idx).split(|byte| *byte == b'/').any(is_split_folder)
    }
}

/// Refuses ids that each match several files, such as one file per channel.
fn refuse_several(paths: &PathTable, manifest: &Path, first: &[Vec<u8>]) -> Result<(), ConvertError> {
    let Some(id) = first.first().map(|path| last(path)).filter(|id| !id.is_empty()) else { return Ok(()) };
    let is_own =
        |name: &[u8]| name.strip_prefix(id).is_some_and(|rest| rest.starts_with(b"_") || rest.starts_with(b"-"));
    let own: Vec<usize> = (0..paths.len()).filter(|idx| is_own(paths.name(*idx))).collect();
    let [one, .., other] = own.as_slice() else { return Ok(()) };
    let [one, other] = [one, other].map(|idx| lossy(&paths.path(*idx)));
    let reason = format!("'{}' matches {} files, such as '{one}' and '{other}'", lossy(id), own.len());
    let hint = "merge the files of each id into one image, or list one file in each row";
    Err(ConvertError::contradictory(manifest, "", reason, hint))
}

/// Finds files of a path table by name, with and without extension. Sorts them when the first one is wanted, because most
/// folders have no lists, and a source may have 100 million files.
pub(super) struct Named {
    files: SampleFiles,
    /// The indices of the files, sorted by name.
    sorted: OnceCell<Vec<usize>>,
}

impl Named {
    pub(super) fn new(files: SampleFiles) -> Self {
        Self { files, sorted: OnceCell::new() }
    }

    /// The files whose name is the last part of a path, in ascending order. All calls must pass the same table.
    pub(super) fn get(&self, paths: &PathTable, path: &[u8]) -> impl Iterator<Item = usize> {
        let sorted = self.sorted.get_or_init(|| {
            let mut all: Vec<usize> = (0..paths.len()).collect();
            all.sort_unstable_by_key(|idx| paths.name(*idx));
            all
        });
        let starting_with = |start: &[u8]| {
            let first = sorted.partition_point(|idx| paths.name(*idx) < start);
            let last = first + sorted[first..].partition_point(|idx| paths.name(*idx).starts_with(start));
            &sorted[first..last]
        };
        let wanted = last(path);
        let whole = starting_with(wanted).iter().take_while(|idx| paths.name(**idx) == wanted);
        let longer = starting_with(&[wanted, b"."].concat()).iter().filter(|idx| {
            let name = paths.name(**idx);
            stem(name) == wanted && self.files.is_named(name)
        });
        let mut found: Vec<usize> = whole.chain(longer).copied().collect();
        found.sort_unstable();
        found.into_iter()
    }
}

/// Whether `path` may lead to this file from another folder: the folders of one of the two paths end with those of the
/// other.
pub(super) fn leads_to(paths: &PathTable, idx: usize, path: &[u8]) -> bool {
    let own = &path[..path.len() - last(path).len()];
    let own = own.strip_suffix(b"/").unwrap_or(own);
    let is_below = |rest: &[u8]| rest.is_empty() || rest.ends_with(b"/");
    let directory = paths.directory(idx);
    let is_longer = || directory.is_empty() || own.strip_suffix(directory).is_some_and(is_below);
    folder_of(paths, idx, path).is_some() || is_longer()
}

/// The indices of all files by their key, with and without extension.
fn by_key(paths: &PathTable, sample: SampleFiles, key: impl Fn(usize) -> Vec<u8>) -> HashMap<Vec<u8>, Vec<usize>> {
    let mut files: HashMap<Vec<u8>, Vec<usize>> = HashMap::with_capacity(2 * paths.len());
    for idx in 0..paths.len() {
        let key = key(idx);
        // Only one extension is removed: `1.5.png` becomes `1.5`, not `1`.
        if sample.is_named(&key) {
            files.entry(stem(&key).to_vec()).or_default().push(idx);
        }
        files.entry(key).or_default().push(idx);
    }
    files
}

fn file_of(all: &[usize]) -> Option<File> {
    all.split_first().map(|(idx, others)| File { idx: *idx, other: others.first().copied() })
}

/// The end that all names share before their extensions, from a separator on, such as `_aligned` in `1_aligned.jpg`. Empty if there
/// is none, or fewer than two files.
fn common_end(paths: &PathTable) -> Vec<u8> {
    let mut stems = (0..paths.len()).map(|idx| stem(paths.name(idx)));
    let (Some(first), Some(second)) = (stems.next(), stems.next()) else { return Vec::new() };
    let mut end = first;
    for name in [second].into_iter().chain(stems) {
        let n = end.iter().rev().zip(name.iter().rev()).take_while(|(one, other)| one == other).count();
        end = &end[end.len() - n..];
    }
    let start = end.iter().position(|byte| matches!(byte, b'_' | b'-'));
    start.map_or(Vec::new(), |start| end[start..].to_vec())
}

/// A name without the end before its extension.
fn without_end(name: &[u8], end: &[u8]) -> Vec<u8> {
    let own = stem(name);
    let extension = &name[own.len()..];
    [own.strip_suffix(end).unwrap_or(own), extension].concat()
}

/// The files below a folder by their relative path, with and without extension. The names lack the end `end`.
fn within(paths: &PathTable, sample: SampleFiles, (folder, end): (&[u8], &[u8])) -> HashMap<Vec<u8>, File> {
    let mut below = Found::default().paths;
    let mut indexes = Vec::new();
    let top = below.push_directory(b"");
    let mut path = Vec::new();
    for idx in 0..paths.len() {
        path.clear();
        paths.path_into(idx, &mut path);
        if let Some(rest) = below_folder(&path, folder) {
            below.push(top, &without_end(rest, end));
            indexes.push(idx);
        }
    }
    let files = by_key(&below, sample, |idx| below.name(idx).to_vec());
    let original = |all: Vec<usize>| file_of(&all.iter().map(|idx| indexes[*idx]).collect::<Vec<_>>());
    files.into_iter().filter_map(|(key, all)| Some((key, original(all)?))).collect()
}

/// A path relative to a folder above it.
fn below_folder<'a>(path: &'a [u8], folder: &[u8]) -> Option<&'a [u8]> {
    match folder {
        [] => Some(path),
        _ => path.strip_prefix(folder)?.strip_prefix(b"/"),
    }
}

/// The folder from which `path` leads to this file. `None` if it leads elsewhere.
fn folder_of<'a>(paths: &'a PathTable, idx: usize, path: &[u8]) -> Option<&'a [u8]> {
    let directory = paths.directory(idx);
    let own = &path[..path.len() - last(path).len()];
    match own.strip_suffix(b"/") {
        None => Some(directory),
        Some(own) => {
            let above = directory.strip_suffix(own)?;
            if above.is_empty() { Some(above) } else { above.strip_suffix(b"/") }
        }
    }
}

/// Keeps only the folders for which `holds` is true, or all if it is true for none.
fn narrow(folders: &mut Vec<Vec<u8>>, holds: impl Fn(&[u8]) -> bool) {
    if folders.iter().any(|folder| holds(folder)) {
        folders.retain(|folder| holds(folder));
    }
}

/// Whether a folder and a manifest have the same first word: `train_images` and `train.csv` or `train_labels.csv`.
fn starts_alike(folder: &[u8], manifest: &[u8]) -> bool {
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric();
    let word: Vec<u8> = manifest.iter().take_while(is_letter).copied().collect();
    !word.is_empty() && folder.to_ascii_lowercase().starts_with(&word)
}

/// The last part of a path.
fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
