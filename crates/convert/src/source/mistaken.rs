//! Refuses folders that look like class folders, but have names with another meaning, such as domains.
//!
//! `layout` decides what a folder is. `twins` compares the names of the files in the folders.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use packds_system::{counted, to_u64};

use super::candidate::{SampleFiles, is_image_name};
use super::detect::{data_sets_in, head_of};
use super::directory::Directory;
use super::folder_note::FolderNote;
use super::layout::{Pair, is_one_of};
use super::listing::Listing;
use super::pairs::walked;
use super::paths::{as_path, joined, lossy, stem};
use super::split::split_and_rest;
use super::warning::Warning;
use crate::error::{ConvertError, quoted};
use crate::literal::{python, shell};
use crate::opt::{FROM, IMAGES};

/// Maximum number of folders whose names are checked. More folders are always classes, because names such as HR and LR may be country codes.
pub(super) const FEW_FOLDERS: usize = 8;
/// Names of folders that are no classes if they contain no images. Case and separators are ignored.
const NO_CLASSES: [&str; 20] = [
    "log",
    "logs",
    "model",
    "models",
    "output",
    "outputs",
    "tmp",
    "temp",
    "runs",
    "wandb",
    "checkpoint",
    "checkpoints",
    "weights",
    "list",
    "lists",
    "imagelist",
    "imagelists",
    "filelist",
    "filelists",
    "splits",
];
/// The file in which StyleGAN's tools describe images.
pub(super) const DATASET: &str = "dataset.json";
/// Advice for folders that do not look like classes: pack one of them, or read all as classes.
pub(super) fn way_out(folder: &str) -> String {
    format!("to pack only one folder, add {}; {}", IMAGES.with(folder), as_classes())
}

/// Advice on how to read folders as classes.
pub(super) fn as_classes() -> String {
    format!("{} reads every folder as a class", FROM.with("image-folder"))
}

/// The reason in an error about a mask folder among class folders.
pub(super) fn like_masks(pair: &Pair) -> String {
    format!("'{}' looks like the masks of '{}', not like a class", lossy(&pair.masks), lossy(&pair.images))
}

/// Refuses folders whose names are typical of datasets without classes.
pub(super) fn refuse_named(root: &Path, folders: &[&[u8]]) -> Result<(), ConvertError> {
    if folders.len() > FEW_FOLDERS {
        return Ok(());
    }
    let find = |is: &dyn Fn(&str) -> bool| folders.iter().map(|name| lossy(name)).find(|name| is(name));
    let named = |known: &'static str| find(&|name| name.eq_ignore_ascii_case(known));
    let with_word = |known: &str| {
        let is_word =
            |word: &str| word.to_ascii_lowercase().trim_end_matches(|c: char| c == 'x' || c.is_ascii_digit()) == known;
        find(&|name| name.split(['_', '-', ' ', '.']).any(is_word))
    };
    // If there is also `testA`, each folder is a split.
    let domain = named("trainA").filter(|_| named("testA").is_none());
    let found = [
        (domain, named("trainB"), "two domains of unpaired images (as for CycleGAN)"),
        (named("query"), named("gallery"), "the parts of a re-identification dataset"),
        (named("bounding_box_train"), named("bounding_box_test"), "the parts of a re-identification dataset"),
        (with_word("hr"), with_word("lr"), "the same images in two sizes (as for super-resolution)"),
    ];
    for (one, other, what) in found {
        if let (Some(one), Some(other)) = (one, other) {
            let reason = format!("'{one}' and '{other}' are not read as classes, because they look like {what}");
            let more = match one.as_str() {
                "bounding_box_train" => ids_in_names(root, folders, &one),
                _ if what.contains("two sizes") => sizes(root, folders, (&one, &other))?,
                _ => String::new(),
            };
            return Err(ConvertError::contradictory(root, "", reason, format!("{}{more}", way_out(&one))));
        }
    }
    Ok(())
}

/// Advice on how to pack images in two sizes: `one` with high resolution and `other` with low resolution, or such folders of each split.
fn sizes(root: &Path, folders: &[&[u8]], (one, other): (&str, &str)) -> Result<String, ConvertError> {
    let mut splits: BTreeMap<String, [Option<String>; 2]> = BTreeMap::new();
    for folder in folders.iter().map(|folder| lossy(folder)) {
        let Some((split, words)) = split_and_rest(&folder) else { continue };
        let Some(side) = ["lr", "hr"].iter().position(|known| words.iter().any(|word| word == known)) else { continue };
        splits.entry(split).or_default()[side] = Some(folder);
    }
    let whole: Vec<_> = splits.into_iter().filter_map(|(split, [low, high])| Some((split, low?, high?))).collect();
    let [_, _, ..] = whole.as_slice() else {
        return Ok(as_pairs(root, [("LR", &scale_in(root, other)?), ("HR", one)]));
    };
    let root_path = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let (mut commands, mut scale) = (Vec::new(), String::new());
    for (split, low, high) in whole {
        let inner = scale_in(root, &low)?;
        scale = inner.strip_prefix(&format!("{low}/")).map(str::to_owned).unwrap_or_default();
        let link = |folder: &str, name| format!("ln -s '{}' pairs/{split}/{name}", root_path.join(folder).display());
        commands.push(format!("mkdir -p pairs/{split}; {}; {}", link(&inner, "LR"), link(&high, "HR")));
    }
    let scale = if scale.is_empty() { String::new() } else { format!(" (here those in '{scale}')") };
    Ok(format!("; to pack two versions of each image{scale}, run: {}; and convert pairs", commands.join("; ")))
}

/// Advice on how to pack two of several versions of each image: their names in a new folder, and their folders.
pub(super) fn as_pairs(root: &Path, folders: [(&str, &str); 2]) -> String {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let link = |(name, folder): (&str, &str)| format!("ln -s {} pairs/{name}", shell(&root.join(folder)));
    let [one, other] = folders.map(link);
    format!("; to pack two versions of each image, run: mkdir pairs; {one}; {other}; and convert pairs")
}

/// Like [`as_pairs`], for two folders in each subfolder.
pub(super) fn as_pairs_in_each(root: &Path, folders: [&str; 2]) -> String {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let [one, other] = folders.map(|folder| format!("\"$d\"{}", shell(Path::new(folder))));
    format!(
        "; to pack two versions of each image, run: mkdir -p pairs/input pairs/target; for d in {}/*/; do n=$(basename \"$d\"); ln -s {one} \"pairs/input/$n\"; ln -s {other} \"pairs/target/$n\"; done; and convert pairs",
        shell(&root)
    )
}

/// Like [`as_pairs`], for two folders in each folder of each split.
pub(super) fn as_pairs_in_splits(root: &Path, folders: [&str; 2]) -> String {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let [one, other] = folders.map(|folder| format!("\"$d\"'{folder}'"));
    format!(
        "; to pack two versions of each image, run: for d in '{}'/*/*/; do s=pairs/$(basename \"$(dirname \"$d\")\"); n=$(basename \"$d\"); mkdir -p \"$s/input\" \"$s/target\"; ln -s {one} \"$s/input/$n\"; ln -s {other} \"$s/target/$n\"; done; and convert pairs",
        root.display()
    )
}

/// The first folder of images of low resolution in a folder, such as `X2`, or the folder itself.
fn scale_in(root: &Path, folder: &str) -> Result<String, ConvertError> {
    let inner = Directory::scan(root, folder.as_bytes(), SampleFiles::Images)?.subdirectories;
    let first = inner.iter().filter(|name| !name.starts_with(b".")).min();
    Ok(first.map_or_else(|| folder.to_owned(), |first| format!("{folder}/{}", lossy(first))))
}

/// Advice on how to read the identities in the file names of a folder, as in `0002_c1s1_000451_03.jpg`.
fn ids_in_names(root: &Path, folders: &[&[u8]], folder: &str) -> String {
    let images = Directory::scan(root, folder.as_bytes(), SampleFiles::Images).ok();
    let first = images.and_then(|images| images.sample_names().min().map(<[u8]>::to_vec));
    let Some(first) = first.filter(|first| first.contains(&b'_')) else { return String::new() };
    let end = lossy(&first[stem(&first).len()..]);
    let parts = ["bounding_box_train", "query", "bounding_box_test"];
    let parts: Vec<&str> = parts.into_iter().filter(|part| folders.contains(&part.as_bytes())).collect();
    // Images without a person have the id -1.
    format!(
        "; to use the ids in the file names as labels, without the images of nobody (-1), run this Python in '{}', and convert {}: import csv, pathlib; [csv.writer(open(f\"{{d}}.csv\", \"w\")).writerows([(\"path\", \"label\")] + [(p, p.name.split(\"_\")[0]) for p in sorted(pathlib.Path(d).glob(\"[0-9]*{end}\"))]) for d in {parts:?}]",
        root.display(),
        quoted(&parts.iter().map(|part| format!("{part}.csv")).collect::<Vec<_>>())
    )
}

/// The subfolders without images whose names are those of other things than classes, such as logs and lists. Also returns the number
/// of files in them.
pub(super) fn without_images(
    (root, files): (&Path, SampleFiles),
    top: &Directory,
) -> Result<(Vec<Vec<u8>>, u64), ConvertError> {
    let (mut found, mut ignored) = (Vec::new(), 0);
    for folder in top.subdirectories.iter().filter(|name| is_one_of(name, &NO_CLASSES)) {
        let below = walked(root, folder, files)?;
        if below.paths.len() == 0 {
            found.push(folder.clone());
            ignored += below.ignored;
        }
    }
    found.sort_unstable();
    Ok((found, ignored))
}

/// The warning about folders that are parts of one dataset: next to each folder is a file with its name, such as `00000.parquet` or
/// `00000_stats.json` next to `00000`, as written by img2dataset.
pub(super) fn numbered_parts(top: &Directory) -> Option<Warning> {
    let names: HashSet<&[u8]> = top.names().collect();
    let is_part = |folder: &&Vec<u8>| {
        let beside = |end: &str| names.contains([folder, end.as_bytes()].concat().as_slice());
        folder.iter().all(u8::is_ascii_digit) && (beside(".parquet") || beside("_stats.json"))
    };
    let first = top.subdirectories.iter().min()?.clone();
    let count = to_u64(top.subdirectories.len());
    top.subdirectories.iter().all(|folder| is_part(&folder)).then_some(Warning::NumberedParts { count, first })
}

/// The warning about numbered folders that `dataset.json` next to them describes without labels, as StyleGAN's `dataset_tool.py` writes
/// them: `00000/img00000000.png`, and `{"labels": null}`.
pub(super) fn unlabelled_folders(root: &Path, top: &Directory) -> Option<Warning> {
    let is_number = |name: &Vec<u8>| name.iter().all(u8::is_ascii_digit);
    let first = top.subdirectories.iter().min()?.clone();
    if !top.subdirectories.iter().all(is_number) || !top.names().any(|name| name == DATASET.as_bytes()) {
        return None;
    }
    let head = lossy(&head_of(&root.join(DATASET)).ok()?);
    let value = head.split_once("\"labels\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    value.starts_with("null").then_some(Warning::Folders(FolderNote::UnlabelledFolders { first }))
}

/// The warning about folders that divide files by the first digits of their hashes: `0/7/a`, or `0` with `07a1b2c3.png`. Folders of
/// classes such as `0` to `9` contain images with other names.
pub(super) fn hash_folders(root: &Path, top: &Directory, files: SampleFiles) -> Result<Option<Warning>, ConvertError> {
    if top.subdirectories.len() < 2 || !are_digits(&top.subdirectories) {
        return Ok(None);
    }
    let (mut first, mut has_several) = (None, false);
    for folder in &top.subdirectories {
        let inner = Directory::scan(root, folder, files)?;
        let mut names = inner.sample_names().peekable();
        if names.peek().is_some() {
            if !inner.subdirectories.is_empty() || !names.all(|name| is_hash_of(folder, stem(name))) {
                return Ok(None);
            }
            has_several = true;
            first = first.or_else(|| Some(folder.clone()));
        } else {
            if !are_digits(&inner.subdirectories) {
                return Ok(None);
            }
            has_several |= inner.subdirectories.len() > 1;
            first = first.or_else(|| Some(joined(folder, inner.subdirectories.iter().min()?)));
        }
    }
    Ok(first.filter(|_| has_several).map(|first| Warning::Folders(FolderNote::HashFolders { first })))
}

/// Whether all names are one or two hexadecimal digits, and equally long.
fn are_digits(folders: &[Vec<u8>]) -> bool {
    let len = folders.first().map_or(0, Vec::len);
    let is_one = |name: &Vec<u8>| name.len() == len && name.iter().all(u8::is_ascii_hexdigit);
    (1..=2).contains(&len) && folders.iter().all(is_one)
}

/// Whether a name is a hash that begins with the name of its folder.
fn is_hash_of(folder: &[u8], name: &[u8]) -> bool {
    const MIN_DIGITS: usize = 8;
    name.len() >= MIN_DIGITS && name.starts_with(folder) && name.iter().all(u8::is_ascii_hexdigit)
}

/// Refuses numbered folders that each contain a JSON file of their name with values for each image: `part-000001/part-000001.json`, as in
/// DiffusionDB.
pub(super) fn refuse_described(root: &Path, folders: &[Vec<u8>]) -> Result<(), ConvertError> {
    let table = |folder: &Vec<u8>| root.join(as_path(folder)).join(as_path(&[folder, &b".json"[..]].concat()));
    let is_described = |folder: &Vec<u8>| {
        folder.iter().any(u8::is_ascii_digit) && head_of(&table(folder)).is_ok_and(|head| is_keyed(&lossy(&head)))
    };
    let Some(first) = folders.iter().min().filter(|_| folders.iter().all(is_described)) else { return Ok(()) };
    let (first, file) = (lossy(first), table(first));
    let reason = format!(
        "each folder has a file with values for its images, such as '{first}/{first}.json', so the folders are not read as classes"
    );
    let (folder, literal) = (root.display(), python(root));
    let hint = format!(
        "convert one such file, here '{}'; to join the files of all folders, run in Python: import json, pathlib; r = pathlib.Path({literal}); json.dump({{f\"{{d.name}}/{{k}}\": v for d in sorted(r.iterdir()) if d.is_dir() for k, v in json.load(open(d / f\"{{d.name}}.json\")).items()}}, open(r / \"all.json\", \"w\")); and convert '{folder}/all.json'; {}",
        file.display(),
        as_classes()
    );
    Err(ConvertError::contradictory(root, "", reason, hint))
}

/// Whether a text begins like a JSON object with an object for each image: `{"1.png": {`.
pub(super) fn is_keyed(head: &str) -> bool {
    let key = head.trim_start().strip_prefix('{').and_then(|rest| rest.trim_start().strip_prefix('"'));
    key.and_then(|key| key.split_once('"')).is_some_and(|(key, rest)| {
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        is_image_name(key.as_bytes()) && value.is_some_and(|value| value.starts_with('{'))
    })
}

/// Maximum number of images that may be pictures about a dataset next to them.
const FEW_PICTURES: usize = 8;

/// Refuses a few images next to datasets of another format that are larger, such as pictures for a README.
pub(super) fn refuse_pictures(listing: &Listing) -> Result<(), ConvertError> {
    if listing.len() > FEW_PICTURES {
        return Ok(());
    }
    let sets: Vec<_> = data_sets_in(listing.root()).collect();
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let bytes = |(data, _): &(PathBuf, _)| match std::fs::read_dir(data) {
        Ok(files) => files.flatten().map(|file| size(&file.path())).sum(),
        Err(_) => size(data),
    };
    let larger = sets.iter().map(bytes).fold(0, u64::saturating_add);
    let Some((data, format)) = sets.first().filter(|_| larger > listing.bytes.iter().sum()) else { return Ok(()) };
    let image = lossy(listing.paths.name(0));
    let (images, them) = match listing.len() {
        1 => (format!("the only image is '{image}'"), "the image"),
        n => (format!("the only images are '{image}' and {}", counted(to_u64(n - 1), "other")), "the images"),
    };
    let name = data.file_name().unwrap_or_default().display();
    let reason = match sets.len() {
        1 => format!("{images}, but '{name}' looks like {format} and is larger"),
        n => format!("{images}, but '{name}' looks like {format}, and all {n} such files or folders are larger"),
    };
    let hint = match sets.as_slice() {
        [(file, _)] if !file.is_dir() => format!("pass {}", file.display()),
        _ => format!("move {them} to another folder"),
    };
    let hint = format!("{hint}; {} reads {them}", FROM.with("image-folder"));
    Err(ConvertError::contradictory(listing.root(), "", reason, hint))
}

/// Refuses folders next to a table if their names differ only in a number, such as `images_001` and `images_002`.
pub(super) fn refuse_parts(root: &Path, folders: &[Vec<u8>], table: &[u8]) -> Result<(), ConvertError> {
    const WORDS: [&str; 6] = ["part", "images", "image", "batch", "shard", "folder"];
    let letters = |name: &[u8]| lossy(name).replace(|c: char| c.is_ascii_digit(), "").to_ascii_lowercase();
    let (Some(first), Some(last)) = (folders.iter().min(), folders.iter().max()) else { return Ok(()) };
    let are_alike = folders.len() > 1 && folders.iter().all(|name| letters(name) == letters(first));
    let has_word = letters(first).split(['_', '-', ' ']).any(|word| WORDS.contains(&word));
    let table = root.join(as_path(table));
    if !are_alike || !has_word || !table.is_file() {
        return Ok(());
    }
    let [first, last] = [first, last].map(|name| lossy(name));
    Err(ConvertError::Parts { path: root.to_owned(), first, last, table })
}
