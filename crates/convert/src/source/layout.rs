//! What the subfolders of a folder are: classes, images and their masks, or the parts of an annotated dataset.
//!
//! `image_folder` lists classes, `pairs` lists images with masks.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::mistaken::{as_classes, refuse_named};
use super::paths::{as_path, joined, lossy};
use super::split::{is_split_folder, is_split_name};
use crate::error::ConvertError;
use crate::opt::{FROM, IMAGES, MASKS};

/// Usual names of a folder of images beside a folder of masks. Case is ignored.
const IMAGE_FOLDERS: [&str; 14] = [
    "images",
    "image",
    "imgs",
    "img",
    "jpg",
    "jpeg",
    "png",
    "jpegimages",
    "leftimg8bit",
    "photos",
    "rgb",
    "original",
    "inputs",
    "input",
];
/// Usual names of a folder of masks. Case is ignored.
const MASK_FOLDERS: [&str; 16] = [
    "masks",
    "mask",
    "segmentation",
    "segmentations",
    "segmentationclass",
    "trimaps",
    "gtfine",
    "gt",
    "ground_truth",
    "groundtruth",
    "annotations",
    "annotation",
    "labels",
    "label",
    "targets",
    "1st_manual",
];
/// Suffixes of a split's name in the name of its folder of masks. Case is ignored.
const SPLIT_MASKS: [&str; 7] = ["annot", "annotations", "mask", "masks", "label", "labels", "gt"];
/// Maximum number of folders to inspect for the kind of their files.
const MAX_FOLDERS: usize = 64;
/// Maximum depth to which folders are searched for class folders.
const MAX_DEPTH: usize = 4;
/// Maximum number of subfolders to search for the only one with images. If there are more, they are classes.
const FEW_FOLDERS: usize = 8;

impl Pair {
    /// The same folders of one split.
    pub(super) fn inside(&self, split: &[u8]) -> Self {
        Self { images: joined(&self.images, split), masks: joined(&self.masks, split) }
    }
}

/// What a folder is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Class folders, or images without labels.
    Classes,
    /// Images and masks.
    Pairs(Pair),
    /// Folders that each have a folder of images and a folder of masks. The pair is relative to each.
    PairsInEach(Pair),
    /// Splits with a folder of masks beside each, such as `train` and `trainannot`. The images' folder is the split's name.
    SplitPairs(Vec<Pair>),
    /// Another folder around the data, such as `data/data`.
    Wrapper(Vec<u8>),
}

/// A folder of images and a folder of masks, relative to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) images: Vec<u8>,
    pub(super) masks: Vec<u8>,
}

impl Layout {
    /// The layout of a folder whose images or masks are in folders that the caller named.
    pub(super) fn named(
        root: &Path,
        top: &Directory,
        images: Option<&Path>,
        masks: Option<&Path>,
    ) -> Result<Self, ConvertError> {
        let named = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let Some(masks) = masks else {
            return Ok(images.map_or(Self::Classes, |images| Self::Wrapper(named(images))));
        };
        let found = || top.subdirectories.iter().filter(|name| is_one_of(name, &IMAGE_FOLDERS)).min().cloned();
        let images = images.map(named).or_else(found).ok_or_else(|| ConvertError::Options {
            reason: format!("{}: none of its folders has a usual name for images", root.display()),
            hint: format!("name the folder of images with {}", IMAGES.with("DIR")),
        })?;
        Ok(Self::Pairs(Pair { images, masks: named(masks) }))
    }

    /// Recognizes a folder.
    ///
    /// # Errors
    /// If it is an annotated dataset, whose annotations cannot be packed, or could be read in two ways.
    pub(super) fn of(root: &Path, top: &Directory, files: SampleFiles) -> Result<Self, ConvertError> {
        let mut folders: Vec<&[u8]> = top.subdirectories.iter().map(Vec::as_slice).collect();
        folders.retain(|name| !name.starts_with(b"."));
        folders.sort_unstable();
        refuse_annotated((root, files), top, &folders)?;
        refuse_named(root, &folders)?;
        if let ([only], None) = (folders.as_slice(), top.sample_names().next()) {
            return Ok(if is_wrapper((root, files), only)? { Self::Wrapper(only.to_vec()) } else { Self::Classes });
        }
        let images: Vec<&[u8]> = folders.iter().copied().filter(|name| is_one_of(name, &IMAGE_FOLDERS)).collect();
        let has_images = |name: &[u8]| Ok::<_, ConvertError>(Contents::below((root, files), name)?.images);
        let has_splits = folders.iter().any(|name| is_split_name(name));
        if let Some(pairs) = split_pairs((root, files), &folders)? {
            return Ok(Self::SplitPairs(pairs));
        }
        if let Some(pair) = pair_in_each((root, files), &folders)? {
            return Ok(Self::PairsInEach(pair));
        }
        if folders.len() <= FEW_FOLDERS && top.sample_names().next().is_none() {
            let mut filled = Vec::new();
            for folder in &folders {
                if has_images(folder)? {
                    filled.push(*folder);
                }
            }
            match filled.as_slice() {
                [only] if !has_splits && is_wrapper((root, files), only)? => return Ok(Self::Wrapper(only.to_vec())),
                // `train` and `train_masks`, `X_Input` and `X_GroundTruth`.
                [a, b] if is_mask_folder(a) != is_mask_folder(b) && images.is_empty() => {
                    let (images, masks) = if is_mask_folder(b) { (a, b) } else { (b, a) };
                    return Ok(Self::Pairs(Pair { images: images.to_vec(), masks: masks.to_vec() }));
                }
                _ => {}
            }
        }
        let [images] = images.as_slice() else {
            return Ok(Self::Classes);
        };
        let mut masks = Vec::new();
        for folder in folders.iter().filter(|name| is_one_of(name, &MASK_FOLDERS)) {
            masks.extend(masks_in((root, files), folder)?);
        }
        match masks.as_slice() {
            [] => Ok(Self::Classes),
            [masks] => Ok(Self::Pairs(Pair { images: images.to_vec(), masks: masks.clone() })),
            [first, .., last] => {
                let [first, last] = [first, last].map(|name| lossy(name));
                let reason = format!("there are two folders of masks: '{first}' and '{last}'");
                let hint = format!("choose with {}; {}", MASKS.with(first), as_classes());
                Err(ConvertError::contradictory(root, "", reason, hint))
            }
        }
    }
}

/// The folders of images and masks that all of these folders contain. Only the first folders are inspected.
fn pair_in_each((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Option<Pair>, ConvertError> {
    if folders.len() < 2 || folders.iter().any(|name| is_split_folder(name)) {
        return Ok(None);
    }
    let mut shared: Option<Pair> = None;
    for folder in folders.iter().take(MAX_FOLDERS) {
        let inner = Directory::scan(root, folder, files)?;
        let find = |known: &[&str]| inner.subdirectories.iter().filter(|name| is_one_of(name, known)).min().cloned();
        let (Some(images), Some(masks)) = (find(&IMAGE_FOLDERS), find(&MASK_FOLDERS)) else {
            if Contents::below((root, files), folder)?.images {
                return Ok(None);
            }
            continue;
        };
        let found = Pair { images, masks };
        if inner.sample_names().next().is_some() || shared.as_ref().is_some_and(|shared| *shared != found) {
            return Ok(None);
        }
        if shared.is_none() && !Contents::below((root, files), &joined(folder, &found.masks))?.images {
            return Ok(None);
        }
        shared = Some(found);
    }
    Ok(shared)
}

/// The splits with a folder of masks beside them, if there are at least two and no other splits.
fn split_pairs((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Option<Vec<Pair>>, ConvertError> {
    let (splits, others): (Vec<&[u8]>, Vec<&[u8]>) = folders.iter().partition(|name| is_split_folder(name));
    let of_split = |split: &[u8]| {
        let stem = split.strip_suffix(b"_images").unwrap_or(split);
        let is_mask = |name: &&&[u8]| {
            let mark = name.strip_prefix(stem).map(|mark| mark.strip_prefix(b"_").unwrap_or(mark));
            mark.is_some_and(|mark| is_one_of(mark, &SPLIT_MASKS))
        };
        others.iter().find(is_mask).map(|masks| Pair { images: split.to_vec(), masks: masks.to_vec() })
    };
    let pairs: Vec<Pair> = splits.iter().filter_map(|split| of_split(split)).collect();
    let (true, Some(first)) = (pairs.len() >= 2 && pairs.len() == splits.len(), pairs.first()) else { return Ok(None) };
    Ok(Contents::below((root, files), &first.masks)?.images.then_some(pairs))
}

/// Whether a folder has a usual name for masks, such as `masks` or `train_masks`.
pub(super) fn is_mask_folder(name: &[u8]) -> bool {
    let mut words = name.split(|byte| matches!(byte, b'_' | b'-' | b' '));
    is_one_of(name, &MASK_FOLDERS) || words.any(|word| is_one_of(word, &MASK_FOLDERS))
}

/// Whether a folder's name is one of these, in any case.
fn is_one_of(name: &[u8], known: &[&str]) -> bool {
    known.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether the only subfolder of a folder is not a class: it has class folders, or a usual name for images.
fn is_wrapper((root, files): (&Path, SampleFiles), only: &[u8]) -> Result<bool, ConvertError> {
    let inner = Directory::scan(root, only, files)?;
    let is_empty = inner.sample_names().next().is_none();
    if !is_empty {
        let word = only.split(|byte| matches!(byte, b'_' | b'-' | b' ')).next().unwrap_or(only);
        return Ok(is_one_of(only, &IMAGE_FOLDERS) || is_one_of(word, &IMAGE_FOLDERS));
    }
    for name in inner.subdirectories.iter().filter(|name| !name.starts_with(b".")) {
        if Contents::below((root, files), &joined(only, name))?.images {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The folder with the mask images of a folder named like masks: the folder itself, or a subfolder such as `annotations/trimaps`.
fn masks_in((root, files): (&Path, SampleFiles), folder: &[u8]) -> Result<Option<Vec<u8>>, ConvertError> {
    let directory = Directory::scan(root, folder, files)?;
    if let Some(inner) = directory.subdirectories.iter().find(|name| is_one_of(name, &MASK_FOLDERS)) {
        let path = joined(folder, inner);
        return Ok(Contents::below((root, files), &path)?.images.then_some(path));
    }
    Ok(Contents::below((root, files), folder)?.images.then(|| folder.to_vec()))
}

/// The kinds of files in a folder.
#[derive(Debug, Default)]
struct Contents {
    images: bool,
    texts: bool,
    xml: bool,
    json: bool,
}

impl Contents {
    /// Searches a folder and its subfolders for an image, up to a limit.
    fn below((root, files): (&Path, SampleFiles), folder: &[u8]) -> Result<Self, ConvertError> {
        let mut found = Self::default();
        let mut waiting = vec![folder.to_vec()];
        for _ in 0..MAX_FOLDERS {
            let Some(path) = waiting.pop() else { break };
            let directory = Directory::scan(root, &path, files)?;
            found.images |= directory.sample_names().next().is_some();
            if found.images {
                break;
            }
            found.texts |= directory.names().any(|name| name.ends_with(b".txt"));
            found.xml |= directory.names().any(|name| name.ends_with(b".xml"));
            found.json |= directory.names().any(|name| name.ends_with(b".json"));
            let mut below: Vec<Vec<u8>> = directory.subdirectories;
            below.sort_unstable_by(|a, b| b.cmp(a));
            waiting.extend(below.iter().map(|name| joined(&path, name)));
        }
        Ok(found)
    }
}

/// Refuses datasets with boxes or polygons. Only their images can be packed.
fn refuse_annotated(
    (root, files): (&Path, SampleFiles),
    top: &Directory,
    folders: &[&[u8]],
) -> Result<(), ConvertError> {
    let find = |known: &[&str]| folders.iter().copied().find(|name| is_one_of(name, known));
    let refused = |what: &str, images: &[u8], masks: Option<&[u8]>| {
        let alone = format!("pack only the images with {}", IMAGES.with(lossy(images)));
        let hint = match masks {
            Some(masks) => format!("{alone}, or with masks: add {}; {}", MASKS.with(lossy(masks)), as_classes()),
            None => format!("{alone}; {}", as_classes()),
        };
        Err(ConvertError::unsupported(root, "", format!("this is {what}, and packds cannot pack boxes yet"), hint))
    };
    if let (Some(images), Some(_)) = (find(&["jpegimages"]), find(&["annotations"])) {
        return refused("a Pascal VOC dataset with boxes in Annotations", images, find(&["segmentationclass"]));
    }
    let others = || folders.iter().copied().find(|name| !is_one_of(name, &["annotations", "labels"]));
    if let Some(annotations) = find(&["annotations"]) {
        let contents = Contents::below((root, files), annotations)?;
        let images = find(&IMAGE_FOLDERS).or_else(others);
        if let (Some(images), true) = (images, !contents.images && (contents.json || contents.xml)) {
            let what = if contents.json { "a COCO dataset with boxes" } else { "a dataset with boxes" };
            return refused(&format!("{what} in {}", String::from_utf8_lossy(annotations)), images, None);
        }
    }
    if let (Some(images), Some(labels)) = (find(&IMAGE_FOLDERS), find(&["labels"])) {
        let contents = Contents::below((root, files), labels)?;
        if contents.texts && !contents.images {
            return refused("a YOLO dataset with boxes in labels", images, None);
        }
    }
    if top.names().any(|name| name.ends_with(b"_annotations.coco.json")) {
        let from = FROM.with("image-folder");
        let reason = "this is a COCO dataset with boxes in _annotations.coco.json, and packds cannot pack boxes yet";
        return Err(ConvertError::unsupported(root, "", reason, format!("pack only the images with {from}")));
    }
    Ok(())
}

/// Whether a folder holds class folders or splits: two folders with images, or one folder that contains such folders.
pub(super) fn holds_class_folders(root: &Path) -> Result<bool, ConvertError> {
    let files = SampleFiles::Images;
    let mut folder = Vec::new();
    for _ in 0..MAX_DEPTH {
        let mut filled = Vec::new();
        for name in Directory::scan(root, &folder, files)?.subdirectories.iter().take(MAX_FOLDERS) {
            if !name.starts_with(b".") && Contents::below((root, files), &joined(&folder, name))?.images {
                filled.push(joined(&folder, name));
            }
        }
        match filled.as_slice() {
            [only] => folder.clone_from(only),
            found => return Ok(found.len() > 1),
        }
    }
    Ok(false)
}

/// The path of `folder` below `root`.
pub(super) fn inside(root: &Path, folder: &[u8]) -> PathBuf {
    root.join(as_path(folder))
}
