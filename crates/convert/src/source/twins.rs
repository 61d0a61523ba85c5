//! Detects folders that contain the same file names and therefore may not be classes: versions of the same images, images and their
//! masks, or folders that each hold one sample.
//!
//! `layout` decides what a folder is. This module refuses folders that are certainly not classes, and warns in case of doubt.

use std::collections::{BTreeMap, BTreeSet};

use packds_system::{read_regular, to_u64};

use super::folder_note::FolderNote;
use super::layout::{is_like_images, is_mask_folder};
use super::listing::Listing;
use super::look::{Look, MAX_LOOKED, MIN_FILES, are_alike, has_few_levels, look_at};
use super::mistaken::{FEW_FOLDERS, as_classes, as_pairs, way_out};
use super::paths::{as_path, lossy, stem};
use super::split::split_and_rest;
use super::versions::roles;
use super::warning::Warning;
use crate::error::ConvertError;
use crate::literal::python;
use crate::opt::{IMAGES, MASKS};

/// Maximum number of files in a folder that holds one sample.
const MAX_PARTS: usize = 16;
/// Maximum number of files of a class to compare with those of other classes. Their names take about 100 bytes each.
const MAX_COMPARED: usize = 1 << 18;
/// Names of two folders with the same images in two formats. Classes may have the same names, so the files decide.
const FORMATS: [[&str; 2]; 3] = [["png", "tif"], ["png", "jpg"], ["jpg", "tif"]];

/// Looks for class folders with the same file names.
///
/// # Errors
/// If their names or their files show that they are not classes.
pub(super) fn find(listing: &Listing) -> Result<Option<Warning>, ConvertError> {
    if listing.classes.len() < 2 {
        return Ok(None);
    }
    if listing.len() <= MAX_PARTS * listing.classes.len() {
        refuse_samples(listing, &all_keys(listing))?;
    }
    if listing.classes.len() > FEW_FOLDERS {
        return Ok(None);
    }
    let keys = all_keys(listing);
    let mut pairs: Vec<[usize; 2]> =
        (0..keys.len()).flat_map(|one| (one + 1..keys.len()).map(move |other| [one, other])).collect();
    // An error names the image folder, if there is one.
    pairs.sort_by_key(|pair| !pair.iter().any(|class| is_like_images(&listing.classes[*class])));
    let mut told = None;
    for pair in pairs {
        told = told.or(compare(listing, &keys, pair)?);
    }
    Ok(told)
}

/// Compares two classes.
fn compare(listing: &Listing, keys: &[Keys], pair: [usize; 2]) -> Result<Option<Warning>, ConvertError> {
    let [one, other] = pair.map(|class| &keys[class]);
    let shared: Vec<[usize; 2]> = one.iter().filter_map(|(key, idx)| Some([*idx, *other.get(key)?])).collect();
    let most = one.len().max(other.len());
    let names = pair.map(|class| listing.classes[class].as_slice());
    let is_named = roles(names).is_some() || FORMATS.iter().any(|known| is_pair(names, known));
    if shared.len() < MIN_FILES {
        return Ok(None);
    }
    if 2 * shared.len() <= most {
        let are_same = shared.iter().take(MAX_LOOKED).all(|pair| have_same_bytes(listing, *pair));
        let count = to_u64(shared.len());
        let told = || FolderNote::SameFiles { one: names[0].to_vec(), other: names[1].to_vec(), count };
        return Ok(are_same.then(|| Warning::Folders(told())));
    }
    let looks: Vec<[Look; 2]> = shared
        .iter()
        .take(MAX_LOOKED)
        .filter_map(|pair| Some([look(listing, pair[0])?, look(listing, pair[1])?]))
        .collect();
    let may_be_masks =
        |of: usize| !looks.is_empty() && looks.iter().all(|look| look[of].is_mask && !look[1 - of].is_mask);
    let masks = (0..2).find(|of| may_be_masks(*of));
    let is_most = 10 * shared.len() >= 9 * most;
    if is_named || (is_most && masks.is_some()) {
        // One channel alone does not prove that an image is a mask: a gray photo has only one too.
        let is_sure = |of: &usize| is_mask_folder(names[*of]) || has_few_levels(&listing.file_path(shared[0][*of]));
        return Err(refused(listing, names, shared.len(), masks.filter(is_sure)));
    }
    let looked: Vec<[_; 2]> =
        shared.iter().take(MAX_LOOKED).map(|pair| pair.map(|idx| listing.file_path(idx))).collect();
    // If the names are numbered, different classes may share them by chance, so the images must also be alike.
    let is_numbered = |key: &Vec<u8>| key.iter().any(u8::is_ascii_digit);
    let is_doubt = is_most && (!one.keys().all(is_numbered) || are_alike(&looked));
    // The same folders in both, as `color/rust/1.jpg` and `grayscale/rust/1.jpg`: the classes are inside the versions.
    let folder = |[idx, _]: &[usize; 2]| listing.paths.directory_idx(*idx);
    let folders: BTreeSet<usize> = shared.iter().map(folder).collect();
    if is_doubt && folders.len() > 1 {
        return Err(refused(listing, names, shared.len(), None));
    }
    let told = || FolderNote::SameNames { one: names[0].to_vec(), other: names[1].to_vec() };
    Ok(is_doubt.then(|| Warning::Folders(told())))
}

/// The error about two folders with the same files. `masks` is the one that looks like masks, if any.
fn refused(listing: &Listing, names: [&[u8]; 2], shared: usize, masks: Option<usize>) -> ConvertError {
    let root = &listing.root;
    let [one, other] = names.map(lossy);
    let what = if masks.is_some() { "images and their masks" } else { "two versions of each image" };
    let reason = format!("'{one}' and '{other}' have {shared} files with the same names, so they look like {what}");
    let hint = match masks {
        None => format!("{}{}", way_out(&one), versions_in(listing)),
        Some(masks) => {
            let [images, masks] = [names[1 - masks], names[masks]].map(lossy);
            format!("to pack pairs, add {} {}; {}", IMAGES.with(&images), MASKS.with(masks), way_out(&images))
        }
    };
    ConvertError::contradictory(root, "", reason, hint)
}

/// Advice on how to pack two of three or more folders, if these are called like two versions of each image, such as `input` and `target`.
fn versions_in(listing: &Listing) -> String {
    let names: Vec<&[u8]> = listing.classes.iter().map(Vec::as_slice).collect();
    let pairs = names.iter().enumerate().flat_map(|(at, one)| names[at + 1..].iter().map(|other| [*one, *other]));
    let found = pairs.filter(|_| names.len() > 2).find_map(|pair| roles(pair));
    found.map_or_else(String::new, |(_, folders)| {
        let [one, other] = folders.map(lossy);
        as_pairs(&listing.root, [("input", &one), ("target", &other)])
    })
}

/// Whether two folders have these names, in any case and order.
fn is_pair(names: [&[u8]; 2], known: &[&str; 2]) -> bool {
    let is = |name: &[u8], known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    (is(names[0], known[0]) && is(names[1], known[1])) || (is(names[0], known[1]) && is(names[1], known[0]))
}

/// Refuses folders that hold one sample each: all folders have files with the same few names, and some of these names are not numbers.
/// If there are only a few folders, one of the names must be a common name for masks.
fn refuse_samples(listing: &Listing, keys: &[Keys]) -> Result<(), ConvertError> {
    let Some((first, rest)) = keys.split_first() else { return Ok(()) };
    let are_alike = rest.iter().all(|keys| keys.keys().eq(first.keys()));
    let mask = first.keys().find(|key| is_mask_folder(key) || key.eq_ignore_ascii_case(b"seg"));
    let is_few = listing.classes.len() <= FEW_FOLDERS;
    let is_nested = |key: &Vec<u8>| key.contains(&b'/');
    if first.len() < 2
        || !are_alike
        || first.keys().any(is_nested)
        || first.keys().all(|key| is_number(key))
        || (is_few && mask.is_none())
    {
        return Ok(());
    }
    // `brightness/train_images.npy` next to `brightness/test_images.npy`, as in MNIST-C.
    let splits: BTreeSet<String> = first.keys().filter_map(|key| Some(split_and_rest(&lossy(key))?.0)).collect();
    if splits.len() > 1 {
        let n = listing.classes.len();
        let reason = format!("its {n} folders all contain the same splits, so they are not read as classes");
        let alone = listing.root.join(as_path(&listing.classes[0]));
        let hint = format!("convert each folder separately, such as '{}'; {}", alone.display(), as_classes());
        return Err(ConvertError::contradictory(&listing.root, "", reason, hint));
    }
    let file = |key: &[u8]| first.get(key).map_or(String::new(), |idx| lossy(listing.paths.name(*idx)));
    let image = first.keys().find(|key| Some(*key) != mask).map_or(String::new(), |key| file(key));
    let (folder, n) = (lossy(&listing.classes[0]), first.len());
    let reason = format!(
        "the {} folders all have files with the same {n} names, such as '{folder}/{image}': each folder looks like one sample, not like a class",
        listing.classes.len()
    );
    let field = |name: &str, file: &str| format!("\"{name}\": f\"{{p.parent.name}}/{file}\"");
    let fields = match mask {
        Some(mask) => format!("{}, {}", field("image", &image), field("mask", &file(mask))),
        None => field("image", &image),
    };
    let root = python(&listing.root);
    let hint = format!(
        "{}; otherwise, list the samples in a table and convert the table; to write the table, run in Python: import pandas, pathlib; r = pathlib.Path({root}); pandas.DataFrame([{{{fields}}} for p in sorted(r.glob(\"*/{image}\"))]).to_csv(r / \"samples.csv\", index=False)",
        as_classes()
    );
    Err(ConvertError::contradictory(&listing.root, "", reason, hint))
}

/// The files of a class by their path below its folder. Each path lacks the extension and the class name at its end,
/// because `aligned/1_aligned.jpg` may be a version of `original/1.jpg`.
type Keys = BTreeMap<Vec<u8>, usize>;

fn all_keys(listing: &Listing) -> Vec<Keys> {
    let mut keys = vec![Keys::new(); listing.classes.len()];
    for idx in 0..listing.len() {
        let class = listing.label(idx).and_then(|label| usize::try_from(label).ok());
        let Some((keys, class)) = class.and_then(|class| Some((keys.get_mut(class)?, &listing.classes[class]))) else {
            continue;
        };
        if keys.len() == MAX_COMPARED {
            continue;
        }
        let path = listing.paths.path(idx);
        let below = path.get(class.len() + 1..).unwrap_or_default();
        keys.insert(without_class(stem(below), class).to_vec(), idx);
    }
    keys
}

/// The stem without the name of the class at its end.
fn without_class<'a>(stem: &'a [u8], class: &[u8]) -> &'a [u8] {
    let own = stem.strip_suffix(class).and_then(|rest| rest.strip_suffix(b"_").or_else(|| rest.strip_suffix(b"-")));
    own.unwrap_or(stem)
}

fn have_same_bytes(listing: &Listing, pair: [usize; 2]) -> bool {
    let [one, other] = pair.map(|idx| listing.file_path(idx));
    listing.bytes[pair[0]] == listing.bytes[pair[1]]
        && read_regular(&one).is_ok_and(|bytes| read_regular(&other).is_ok_and(|others| others == bytes))
}

fn look(listing: &Listing, idx: usize) -> Option<Look> {
    look_at(&listing.file_path(idx))
}

/// Whether a file name consists of numbers, possibly after letters, as in `img_001` or `00001_00002`.
fn is_number(key: &[u8]) -> bool {
    let name = key.rsplit(|byte| *byte == b'/').next().unwrap_or(key);
    let letters = name.iter().take_while(|byte| !byte.is_ascii_digit()).count();
    letters < name.len() && name[letters..].iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
}
