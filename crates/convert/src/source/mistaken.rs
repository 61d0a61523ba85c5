//! Folders that look like class folders but hold something else: domains, versions of the same images, or one sample each.
//!
//! `layout` decides what a folder is. This module refuses folders that are certainly not classes, and warns about doubtful ones.

use std::collections::HashSet;
use std::path::Path;

use super::listing::Listing;
use super::paths::{lossy, stem};
use super::warning::Warning;
use crate::error::ConvertError;
use crate::opt::{FROM, IMAGES};

/// More folders than this are classes, whatever the names of two of them. Classes may be country codes, such as HR and LR.
const FEW_FOLDERS: usize = 8;
/// With fewer files in a folder, equal names prove nothing.
const MIN_TWINS: usize = 3;
/// Names of two folders that hold two versions of each image. They are usual names of classes too, so the files decide.
const VERSIONS: [[&str; 2]; 9] = [
    ["A", "B"],
    ["left", "right"],
    ["clean", "noisy"],
    ["input", "target"],
    ["source", "target"],
    ["low", "high"],
    ["sharp", "blur"],
    ["clear", "hazy"],
    ["photo", "sketch"],
];

/// What to do with folders that may not be classes: pack one, or read them as classes.
pub(super) fn way_out(folder: &str) -> String {
    format!("pack one folder with {}; {}", IMAGES.with(folder), as_classes())
}

/// How to read folders as classes.
pub(super) fn as_classes() -> String {
    format!("{} reads every folder as a class", FROM.with("image-folder"))
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
    let found = [
        (named("trainA"), named("trainB"), "two domains of unpaired images (as for CycleGAN)"),
        (named("query"), named("gallery"), "the parts of a re-identification dataset"),
        (named("bounding_box_train"), named("bounding_box_test"), "the parts of a re-identification dataset"),
        (with_word("hr"), with_word("lr"), "the same images in two sizes (as for super-resolution)"),
    ];
    for (one, other, what) in found {
        if let (Some(one), Some(other)) = (one, other) {
            let reason = format!("'{one}' and '{other}' are not read as classes, because they look like {what}");
            return Err(ConvertError::contradictory(root, "", reason, way_out(&one)));
        }
    }
    Ok(())
}

/// Looks for two class folders with the same file names. They may hold two versions of each image.
///
/// # Errors
/// If their names say so, too.
pub(super) fn twins(listing: &Listing) -> Result<Option<Warning>, ConvertError> {
    let find = |name: &&str| listing.classes.iter().position(|class| class.eq_ignore_ascii_case(name.as_bytes()));
    for names in VERSIONS {
        let [Some(one), Some(other)] = names.each_ref().map(find) else { continue };
        let (keys, others) = (keys(listing, one), keys(listing, other));
        let shared = keys.intersection(&others).count();
        if shared >= MIN_TWINS && 2 * shared > keys.len().max(others.len()) {
            let [one, other] = [one, other].map(|class| lossy(&listing.classes[class]));
            let reason = format!(
                "'{one}' and '{other}' have {shared} files with the same names, so they look like two versions of each image"
            );
            return Err(ConvertError::contradictory(&listing.root, "", reason, way_out(&one)));
        }
    }
    let ([one, other], Some(half)) = (listing.classes.as_slice(), half(listing)) else { return Ok(None) };
    let (keys, others) = (keys(listing, 0), keys(listing, 1));
    let is_doubt = half >= MIN_TWINS && keys == others && !keys.iter().all(|key| is_number(key));
    Ok(is_doubt.then(|| Warning::SameNames { one: one.clone(), other: other.clone() }))
}

/// Half of the samples, if the first class has that many.
fn half(listing: &Listing) -> Option<usize> {
    let first = (0..listing.len()).filter(|idx| listing.label(*idx) == Some(0)).count();
    (2 * first == listing.len()).then_some(first)
}

/// The paths of a class's files below its folder, without extension.
fn keys(listing: &Listing, class: usize) -> HashSet<Vec<u8>> {
    let is_own = |idx: &usize| listing.label(*idx).and_then(|label| usize::try_from(label).ok()) == Some(class);
    let own = (0..listing.len()).filter(is_own);
    let folder = listing.classes[class].len();
    own.map(|idx| stem(&listing.paths.path(idx)[folder..]).to_vec()).collect()
}

/// Whether a file's name is a number after letters, such as `img_001`. Every class may have such files.
fn is_number(key: &[u8]) -> bool {
    let name = key.rsplit(|byte| *byte == b'/').next().unwrap_or(key);
    let letters = name.iter().take_while(|byte| !byte.is_ascii_digit()).count();
    letters < name.len() && name[letters..].iter().all(u8::is_ascii_digit)
}
