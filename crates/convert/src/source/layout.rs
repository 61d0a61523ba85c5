//! Decides what the subfolders of a folder are: classes, images and their masks, or the parts of an annotated dataset.
//!
//! `image_folder` lists classes, `pairs` lists images with masks.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::candidate::SampleFiles;
use super::captions::is_box;
use super::choice;
use super::directory::Directory;
use super::mistaken::{as_classes, refuse_named};
use super::paths::{as_path, joined, lossy, stem};
use super::split::{is_split_folder, is_split_name, split_names};
use super::there::text_file;
use super::versions::Versions;
use crate::data_format::DataFormat;
use crate::error::{ConvertError, quoted};
use crate::opt::{IMAGES, MASKS};

/// Common names of an image folder next to a mask folder. Case and separators are ignored.
pub(super) const IMAGE_FOLDERS: [&str; 17] = [
    "images",
    "image",
    "imgs",
    "img",
    "imgdir",
    "jpg",
    "jpeg",
    "png",
    "jpegimages",
    "leftimg8bit",
    "photos",
    "rgb",
    "original",
    "originals",
    "originalimages",
    "inputs",
    "input",
];
/// Common names of a mask folder. Case and separators are ignored.
const MASK_FOLDERS: [&str; 20] = [
    "masks",
    "mask",
    "segmentation",
    "segmentations",
    "segmentationclass",
    "trimaps",
    "gtfine",
    "gt",
    "gts",
    "groundtruth",
    "annotations",
    "annotation",
    "anndir",
    "labels",
    "label",
    "lbl",
    "lbls",
    "semantic",
    "targets",
    "1stmanual",
];
/// What may follow a split's name in the name of its mask folder. Case is ignored.
const SPLIT_MASKS: [&str; 8] = ["annot", "annotations", "mask", "masks", "label", "labels", "lab", "gt"];
/// Maximum number of subfolders to inspect for the kinds of their files.
const MAX_FOLDERS: usize = 64;
/// Maximum number of text files to inspect in a folder.
const MAX_TEXTS: usize = 8;
/// Maximum depth of the search for class folders, and for the folders that the caller named.
pub(super) const MAX_DEPTH: usize = 4;
/// Maximum number of subfolders to search for images, to find out whether only one has any. If there are more, they are classes.
const FEW_FOLDERS: usize = 8;

/// The class names of YOLO, which may be next to the text files with boxes.
pub(super) const YOLO_CLASSES: &str = "classes.txt";
/// The image folder of Pascal VOC.
const VOC_IMAGES: [&str; 1] = ["jpegimages"];
/// The mask folder of Pascal VOC. Only some of the images have masks.
pub(super) const VOC_MASKS: [&str; 1] = ["segmentationclass"];

impl Pair {
    /// Whether the folders are those of Pascal VOC.
    pub(super) fn is_voc(&self) -> bool {
        is_one_of(&self.images, &VOC_IMAGES) && is_one_of(&self.masks, &VOC_MASKS)
    }

    /// The same folders inside a split.
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
    /// Folders that each contain an image folder and a mask folder. The pair is relative to each outer folder.
    PairsInEach(Pair),
    /// Folders that each contain only a folder with one image. The image has the outer folder's name: `id/images/id.png`.
    ImageInEach,
    /// Splits with a mask folder next to each, such as `train` and `trainannot`. The image folder is named like the split.
    SplitPairs(Vec<Pair>),
    /// Two versions of the same images.
    Versions(Versions),
    /// Splits with two versions of the same images. A split is named like its image folder.
    SplitVersions(Vec<Versions>),
    /// Another folder around the data, such as `data/data`.
    Wrapper(Vec<u8>),
}

/// An image folder and a mask folder, relative to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) images: Vec<u8>,
    pub(super) masks: Vec<u8>,
}

impl Layout {
    /// The layout if the caller chose the image or mask folder.
    pub(super) fn named(
        root: &Path,
        top: &Directory,
        images: Option<&Path>,
        masks: Option<&Path>,
    ) -> Result<Self, ConvertError> {
        let named = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let folders: Vec<&Path> = images.into_iter().chain(masks).collect();
        if let Some(missing) = folders.iter().find(|folder| !root.join(folder).is_dir()) {
            return Err(no_folder(root, top, &folders, missing));
        }
        let Some(masks) = masks else {
            return Ok(images.map_or(Self::Classes, |images| Self::Wrapper(named(images))));
        };
        let found = || top.subdirectories.iter().filter(|name| is_one_of(name, &IMAGE_FOLDERS)).min().cloned();
        let images = images.map(named).or_else(found).ok_or_else(|| ConvertError::Options {
            reason: format!("{}: none of its folders has a name commonly used for images", root.display()),
            hint: format!("choose the image folder with {}", IMAGES.with("DIR")),
        })?;
        Ok(Self::Pairs(Pair { images, masks: named(masks) }))
    }

    /// Recognizes the layout of a folder.
    ///
    /// # Errors
    /// If it is a dataset with annotations that cannot be packed, or if it could be read in two ways.
    pub(super) fn of(root: &Path, top: &Directory, files: SampleFiles) -> Result<Self, ConvertError> {
        let mut folders: Vec<&[u8]> = top.subdirectories.iter().map(Vec::as_slice).collect();
        folders.retain(|name| !name.starts_with(b"."));
        folders.sort_unstable();
        refuse_annotated((root, files), top, &folders)?;
        if let Some(layout) = Self::of_versions((root, files), top, &folders)? {
            return Ok(layout);
        }
        refuse_named(root, &folders)?;
        if let (Some(images), None) = (of_kohya(&folders), top.sample_names().next()) {
            return Ok(Self::Wrapper(images.to_vec()));
        }
        if let ([only], None) = (folders.as_slice(), top.sample_names().next()) {
            return Ok(if is_wrapper((root, files), only)? { Self::Wrapper(only.to_vec()) } else { Self::Classes });
        }
        let images: Vec<&[u8]> = folders.iter().copied().filter(|name| is_one_of(name, &IMAGE_FOLDERS)).collect();
        if let Some(layout) = Self::of_several((root, files), &folders)? {
            return Ok(layout);
        }
        if folders.len() <= FEW_FOLDERS && top.sample_names().next().is_none() {
            let mut filled = Vec::new();
            for folder in &folders {
                if has_images_below((root, files), folder)? {
                    filled.push(*folder);
                }
            }
            if let [only] = filled.as_slice() {
                refuse_other_files((root, files), &folders, only)?;
            }
            match filled.as_slice() {
                [only]
                    if !is_split_name(only)
                        && (is_wrapper((root, files), only)? || others_have_files((root, files), &folders, only)?) =>
                {
                    return Ok(Self::Wrapper(only.to_vec()));
                }
                // `train` and `train_masks`, `X_Input` and `X_GroundTruth`.
                [a, b] if is_mask_folder(a) != is_mask_folder(b) && images.is_empty() => {
                    let (images, masks) = if is_mask_folder(b) { (a, b) } else { (b, a) };
                    let masks = match choice::folders_of_masks((root, files), masks)?.as_slice() {
                        [only] => only.clone(),
                        _ => {
                            choice::refuse(root, &folders, files)?;
                            masks.to_vec()
                        }
                    };
                    return Ok(Self::Pairs(Pair { images: images.to_vec(), masks }));
                }
                _ => {}
            }
        }
        let [images] = images.as_slice() else {
            return choice::only(root, &folders, files);
        };
        match all_masks_in((root, files), &folders)?.as_slice() {
            [] => {
                choice::refuse(root, &folders, files)?;
                Ok(Self::Classes)
            }
            [masks] => Ok(Self::Pairs(Pair { images: images.to_vec(), masks: masks.clone() })),
            [first, .., last] => {
                let [first, last] = [first, last].map(|name| lossy(name));
                let reason = format!("there are several mask folders, such as '{first}' and '{last}'");
                let hint = format!("choose with {}; {}", MASKS.with(first), as_classes());
                Err(ConvertError::contradictory(root, "", reason, hint))
            }
        }
    }
}

impl Layout {
    /// The folder of the images and that of their masks, if there is one of each.
    pub(super) fn pair(&self) -> Option<Pair> {
        match self {
            Self::Pairs(pair) => Some(pair.clone()),
            Self::Versions(versions) => versions.masks.as_ref().map(|masks| versions.pair(masks)),
            _ => None,
        }
    }

    /// The layout if the folders have two versions of the same images, and no images are next to them.
    fn of_versions(
        root: (&Path, SampleFiles),
        top: &Directory,
        folders: &[&[u8]],
    ) -> Result<Option<Self>, ConvertError> {
        if top.sample_names().next().is_some() {
            return Ok(None);
        }
        Ok(match Versions::of(root, folders)? {
            Some(versions) => Some(Self::Versions(versions)),
            None => Versions::of_splits(root, folders)?.map(Self::SplitVersions),
        })
    }

    /// The layout of the Medical Segmentation Decathlon and nnU-Net: `imagesTr` with `labelsTr`, and `imagesTs`, which may have `labelsTs`.
    fn decathlon(folders: &[&[u8]]) -> Option<Self> {
        let pair = |split: &str| {
            let pair = Pair { images: format!("images{split}").into(), masks: format!("labels{split}").into() };
            let is_there = |folder: &[u8]| folders.contains(&folder);
            (is_there(&pair.images) && is_there(&pair.masks)).then_some(pair)
        };
        match (pair("Tr"), pair("Ts")) {
            (Some(train), Some(test)) => Some(Self::SplitPairs(vec![train, test])),
            (train, test) => train.or(test).map(Self::Pairs),
        }
    }

    /// The layout if each folder is a sample, or if several folders have images and masks.
    fn of_several(root: (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Option<Self>, ConvertError> {
        if let Some(pairs) = split_pairs(root, folders)? {
            return Ok(Some(Self::SplitPairs(pairs)));
        }
        if let Some(layout) = Self::decathlon(folders) {
            return Ok(Some(layout));
        }
        if let Some(pair) = pair_in_each(root, folders)? {
            return Ok(Some(Self::PairsInEach(pair)));
        }
        Ok(has_image_in_each(root, folders)?.then_some(Self::ImageInEach))
    }
}

/// The folder of the images of kohya's scripts, next to one of regularization images.
fn of_kohya<'a>(folders: &[&'a [u8]]) -> Option<&'a [u8]> {
    let named = |known: &[u8]| folders.iter().copied().find(|name| name.eq_ignore_ascii_case(known));
    named(b"img").filter(|_| named(b"reg").is_some() && folders.len() <= FEW_FOLDERS)
}

/// The folders of masks: those with a known name, or else the only one that is named like masks.
fn all_masks_in(root: (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Vec<Vec<u8>>, ConvertError> {
    let mut masks = Vec::new();
    for folder in folders.iter().filter(|name| is_one_of(name, &MASK_FOLDERS)) {
        masks.extend(masks_in(root, folder)?);
    }
    let mut like = folders.iter().filter(|name| is_mask_folder(name));
    if let (true, Some(only), None) = (masks.is_empty(), like.next(), like.next()) {
        masks.extend(masks_in(root, only)?);
    }
    Ok(masks)
}

/// The error about a chosen folder that does not exist.
fn no_folder(root: &Path, top: &Directory, named: &[&Path], missing: &Path) -> ConvertError {
    let mut folders: Vec<String> = top.subdirectories.iter().map(|name| lossy(name)).collect();
    folders.sort_unstable();
    let has_all = |split: &str| named.iter().all(|folder| root.join(split).join(folder).is_dir());
    let known = split_names(top);
    let is_in = |split: &&String| known.contains(split) && has_all(split);
    let (splits, others): (Vec<String>, Vec<String>) = folders.iter().cloned().partition(|name| is_in(&name));
    if !splits.is_empty() {
        return ConvertError::OnlySplits { path: root.to_owned(), splits, others, tables: Vec::new() };
    }
    let hint = format!("the folders are {}", quoted(&folders));
    ConvertError::Options { reason: format!("{}: it has no folder '{}'", root.display(), missing.display()), hint }
}

/// The image and mask folders that all of these folders contain. Only the first few folders are inspected.
fn pair_in_each((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Option<Pair>, ConvertError> {
    if folders.len() < 2 || folders.iter().any(|name| is_split_folder(name)) {
        return Ok(None);
    }
    let mut shared: Option<Pair> = None;
    for folder in folders.iter().take(MAX_FOLDERS) {
        let inner = Directory::scan(root, folder, files)?;
        let names = &inner.subdirectories;
        let images = usual(names, &IMAGE_FOLDERS, is_image_folder);
        let (Some(images), Some(masks)) = (images, usual(names, &MASK_FOLDERS, is_mask_folder)) else {
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

/// Whether each of these folders contains only an inner folder with one image, and the image has the name of the outer folder. Only
/// the first few folders are inspected.
fn has_image_in_each((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<bool, ConvertError> {
    if folders.len() < 2 || folders.iter().any(|name| is_split_folder(name)) {
        return Ok(false);
    }
    for folder in folders.iter().take(MAX_FOLDERS) {
        let outer = Directory::scan(root, folder, files)?;
        let [images] = outer.subdirectories.as_slice() else { return Ok(false) };
        if !is_one_of(images, &IMAGE_FOLDERS) || outer.sample_names().next().is_some() {
            return Ok(false);
        }
        let inner = Directory::scan(root, &joined(folder, images), files)?;
        let names: Vec<&[u8]> = inner.sample_names().map(stem).collect();
        if names != [*folder] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first folder with a known name, or else the only one that `is_like` accepts.
fn usual(names: &[Vec<u8>], known: &[&str], is_like: fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let exact = names.iter().filter(|name| is_one_of(name, known)).min();
    let mut like = names.iter().filter(|name| is_like(name));
    let only = like.next().filter(|_| like.next().is_none());
    exact.or(only).cloned()
}

/// The splits and their mask folders. `None` unless there are at least two splits and each has a mask folder next to
/// it.
fn split_pairs((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Option<Vec<Pair>>, ConvertError> {
    let (splits, others): (Vec<&[u8]>, Vec<&[u8]>) = folders.iter().partition(|name| is_split_folder(name));
    let is_mask_word = |word: &[u8]| is_one_of(word, &MASK_FOLDERS) || is_one_of(word, &SPLIT_MASKS);
    let rest = |name: &[u8], is_known: &dyn Fn(&[u8]) -> bool| -> Vec<Vec<u8>> {
        words(name).filter(|word| !is_known(word)).map(<[u8]>::to_ascii_lowercase).collect()
    };
    let of_split = |split: &[u8]| {
        let is_mask = |name: &&&[u8]| {
            let is_joined = name.strip_prefix(split).is_some_and(|mark| is_one_of(mark, &SPLIT_MASKS));
            let has_word = words(name).any(is_mask_word);
            is_joined || (has_word && rest(name, &is_mask_word) == rest(split, &is_image_folder))
        };
        others.iter().find(is_mask).map(|masks| Pair { images: split.to_vec(), masks: masks.to_vec() })
    };
    let pairs: Vec<Pair> = splits.iter().filter_map(|split| of_split(split)).collect();
    let (true, Some(first)) = (pairs.len() >= 2 && pairs.len() == splits.len(), pairs.first()) else { return Ok(None) };
    Ok(Contents::below((root, files), &first.masks)?.images.then_some(pairs))
}

/// Whether a folder has a name commonly used for mask folders, such as `masks`, `train_masks` or `leftMask`.
pub(super) fn is_mask_folder(name: &[u8]) -> bool {
    let ends = |end: &[u8]| name.to_ascii_lowercase().ends_with(end);
    is_one_of(name, &MASK_FOLDERS)
        || words(name).any(|word| is_one_of(word, &MASK_FOLDERS))
        || ends(b"mask")
        || ends(b"masks")
}

/// Whether a folder's name contains a word commonly used for image folders, such as `image_2`.
pub(super) fn is_like_images(name: &[u8]) -> bool {
    words(name).any(|word| is_one_of(word, &IMAGE_FOLDERS))
}

/// Whether a folder has a name commonly used for image folders, such as `images` or `images_png`.
pub(super) fn is_image_folder(name: &[u8]) -> bool {
    is_one_of(name, &IMAGE_FOLDERS) || words(name).all(|word| is_one_of(word, &IMAGE_FOLDERS))
}

/// The words of a folder's name.
fn words(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| is_separator(*byte))
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'_' | b'-' | b' ')
}

/// Whether a folder's name is one of these. Case and separators are ignored.
pub(super) fn is_one_of(name: &[u8], known: &[&str]) -> bool {
    let letters = || name.iter().filter(|byte| !is_separator(**byte)).map(u8::to_ascii_lowercase);
    known.iter().any(|known| letters().eq(known.bytes()))
}

/// Whether the only subfolder of a folder is not a class: it contains class folders, or it has the name of the folder or a name
/// commonly used for images.
fn is_wrapper((root, files): (&Path, SampleFiles), only: &[u8]) -> Result<bool, ConvertError> {
    let inner = Directory::scan(root, only, files)?;
    let is_empty = inner.sample_names().next().is_none();
    if !is_empty {
        let word = words(only).next().unwrap_or(only);
        let is_double = root.file_name().is_some_and(|name| name.as_bytes() == only);
        return Ok(is_double || is_one_of(only, &IMAGE_FOLDERS) || is_one_of(word, &IMAGE_FOLDERS));
    }
    for name in inner.subdirectories.iter().filter(|name| !name.starts_with(b".")) {
        if Contents::below((root, files), &joined(only, name))?.images {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether there are other folders and all of them contain files that are not images. Such folders are not empty classes.
fn others_have_files(
    (root, files): (&Path, SampleFiles),
    folders: &[&[u8]],
    only: &[u8],
) -> Result<bool, ConvertError> {
    let others: Vec<&[u8]> = folders.iter().copied().filter(|name| *name != only).collect();
    for folder in &others {
        if Directory::scan(root, folder, files)?.n_others() == 0 {
            return Ok(false);
        }
    }
    Ok(!others.is_empty())
}

/// Refuses the only folder with images if the folders next to it have arrays of another format. Image files outside mask folders are
/// accepted.
fn refuse_other_files((root, files): (&Path, SampleFiles), folders: &[&[u8]], only: &[u8]) -> Result<(), ConvertError> {
    if files == SampleFiles::Images && !is_mask_folder(only) {
        return Ok(());
    }
    let format = |name: &[u8]| DataFormat::from_file_name(&lossy(name)).filter(|format| format.may_hold_one_sample());
    for folder in folders.iter().filter(|name| **name != only) {
        let Some(other) = Directory::scan(root, folder, files)?.names().find_map(format) else { continue };
        let [only, folder] = [only, folder].map(lossy);
        let reason = format!("'{folder}' has {other} files, but '{only}' has files of another format");
        let hint = format!(
            "save all files in one format, or convert a folder alone, such as '{}'",
            root.join(&folder).display()
        );
        return Err(ConvertError::contradictory(root, "", reason, hint));
    }
    Ok(())
}

/// The folder that contains the mask images: the folder itself, or a subfolder such as `annotations/trimaps`.
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
    /// The first text file.
    text: Option<Vec<u8>>,
    /// Whether all text files are empty or contain only numbers that describe boxes.
    boxes: bool,
    xml: bool,
    json: bool,
    /// The first file of arrays or annotations.
    data: Option<Vec<u8>>,
    mat: bool,
}

/// Extensions of files that each hold the array or annotation of one image.
const DATA: [&str; 6] = ["npy", "npz", "mat", "json", "pt", "h5"];

impl Contents {
    /// Whether there are MATLAB files and no images.
    fn is_matlab(&self) -> bool {
        self.mat && !self.images
    }

    /// The kinds of files in a folder and a limited number of its subfolders. Stops at the first folder with images.
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
            let is_text = |name: &&[u8]| name.ends_with(b".txt") && *name != YOLO_CLASSES.as_bytes();
            for name in directory.names().filter(is_text).take(MAX_TEXTS) {
                let text = text_file(&inside(root, &joined(&path, name)))?.unwrap_or_default();
                found.boxes = (found.boxes || found.text.is_none()) && text.lines().all(is_box);
                found.text.get_or_insert_with(|| joined(&path, name));
            }
            found.mat |= directory.names().any(|name| name.ends_with(b".mat"));
            found.xml |= directory.names().any(|name| name.ends_with(b".xml"));
            found.json |= directory.names().any(|name| name.ends_with(b".json"));
            let is_data = |name: &&[u8]| DATA.iter().any(|known| name.ends_with(format!(".{known}").as_bytes()));
            found.data = found.data.or_else(|| directory.names().filter(is_data).min().map(|name| joined(&path, name)));
            let mut below: Vec<Vec<u8>> = directory.subdirectories;
            below.sort_unstable_by(|a, b| b.cmp(a));
            waiting.extend(below.iter().map(|name| joined(&path, name)));
        }
        Ok(found)
    }
}

/// Whether a folder or one of its first subfolders contains an image.
pub(super) fn has_images_below(root: (&Path, SampleFiles), folder: &[u8]) -> Result<bool, ConvertError> {
    Ok(Contents::below(root, folder)?.images)
}

/// Whether a folder has text files, and the first of them have only boxes, as in YOLO.
pub(super) fn has_box_texts(root: &Path, folder: &[u8]) -> Result<bool, ConvertError> {
    let contents = Contents::below((root, SampleFiles::Images), folder)?;
    Ok(contents.boxes && contents.text.is_some() && !contents.images)
}

/// Advice for labels in a file that cannot be read.
pub(super) const WRITE_LABELS: &str = "write the labels to a CSV file with the columns 'path' and 'label' (scipy.io.loadmat reads .mat files), and convert that file";

/// Refuses datasets with boxes or polygons that `boxed` does not read, for example because they are in several folders. Pascal VOC is
/// read if it also has masks.
fn refuse_annotated(
    (root, files): (&Path, SampleFiles),
    top: &Directory,
    folders: &[&[u8]],
) -> Result<(), ConvertError> {
    let find = |known: &[&str]| folders.iter().copied().find(|name| is_one_of(name, known));
    let refused = |what: &str, images: &[u8]| {
        let hint = format!(
            "convert a folder that has only one dataset; to pack only the images, add {}; {}",
            IMAGES.with(lossy(images)),
            as_classes()
        );
        let reason = format!("this is {what}, and packds does not read boxes in this layout of folders");
        Err(ConvertError::unsupported(root, "", reason, hint))
    };
    if let (Some(images), Some(boxes)) = (find(&VOC_IMAGES), find(&["annotations"]))
        && Contents::below((root, files), boxes)?.xml
    {
        return match find(&VOC_MASKS) {
            Some(masks) if Contents::below((root, files), masks)?.images => Ok(()),
            _ => refused("a Pascal VOC dataset with boxes in 'Annotations'", images),
        };
    }
    let others = || folders.iter().copied().find(|name| !is_one_of(name, &["annotations", "labels"]));
    if let Some(annotations) = find(&["annotations"]) {
        let contents = Contents::below((root, files), annotations)?;
        let images = find(&IMAGE_FOLDERS).or_else(others);
        if let (Some(images), true) = (images, !contents.images && (contents.json || contents.xml)) {
            refuse_coco((root, files), folders, (annotations, images))?;
            return refused(&format!("a dataset with boxes in '{}'", lossy(annotations)), images);
        }
    }
    if let (Some(images), Some(labels)) = (find(&IMAGE_FOLDERS), find(&["labels", "annotations", "labeltxt"])) {
        let contents = Contents::below((root, files), labels)?;
        if let Some(text) = contents.text.filter(|_| !contents.images) {
            refuse_texts((root, files), images, labels, &text)?;
        }
    }
    refuse_devkit((root, files), folders)?;
    refuse_data((root, files), folders)?;
    if let Some(list) = top.names().find(|name| name.ends_with(b"_annotations.coco.json")) {
        let reason = "this is a COCO dataset with boxes in '_annotations.coco.json'";
        let list = inside(root, list);
        let hint = format!(
            "pass {} as the source; to pack only the images, move the files of that name out of the dataset",
            list.display()
        );
        return Err(ConvertError::unsupported(root, "", reason, hint));
    }
    Ok(())
}

/// Refuses COCO's annotations in files such as `instances_train2017.json` for the images in `train2017`. The error names the file to
/// pass: one with boxes, if there is any.
fn refuse_coco(
    (root, files): (&Path, SampleFiles),
    folders: &[&[u8]],
    (annotations, images): (&[u8], &[u8]),
) -> Result<(), ConvertError> {
    let directory = Directory::scan(root, annotations, files)?;
    let mut lists: Vec<&[u8]> = directory.names().filter(|name| name.ends_with(b".json")).collect();
    let has = |name: &[u8], word: &[u8]| name.windows(word.len()).any(|found| found == word);
    // Boxes come first, and then the training split.
    lists.sort_unstable_by_key(|name| (has(name, b"captions"), !has(name, b"instances"), !has(name, b"train"), *name));
    let Some(first) = lists.first() else { return Ok(()) };
    let what = if has(first, b"captions") { "captions" } else { "boxes" };
    let own = folders.iter().find(|folder| stem(first).ends_with(folder));
    let images = inside(root, own.unwrap_or(&images));
    let list = inside(root, &joined(annotations, first));
    let reason = format!("this is a COCO dataset with {what} in '{}'", lossy(annotations));
    let hint = format!("pass {} as the source; to pack only the images, pass {}", list.display(), images.display());
    Err(ConvertError::unsupported(root, "", reason, hint))
}

/// Refuses a folder with a text file for each image in the image folder. Other text files are lists.
fn refuse_texts(
    (root, files): (&Path, SampleFiles),
    images: &[u8],
    labels: &[u8],
    text: &[u8],
) -> Result<(), ConvertError> {
    let below = &text[labels.len() + 1..];
    let (folder, name) = below
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or((&b""[..], below), |slash| (&below[..slash], &below[slash + 1..]));
    let folder = if folder.is_empty() { images.to_vec() } else { joined(images, folder) };
    if !inside(root, &folder).is_dir() {
        return Ok(());
    }
    let beside = Directory::scan(root, &folder, files)?;
    if !beside.sample_names().any(|image| stem(image) == stem(name)) {
        return Ok(());
    }
    let reason = format!(
        "'{}' has a text file for each image in '{}', and packds reads text files only next to their images",
        lossy(labels),
        lossy(images)
    );
    let hint = format!(
        "{WRITE_LABELS}; to pack the text files as captions, move each next to its image; to pack only the images, add {}",
        IMAGES.with(lossy(images))
    );
    Err(ConvertError::unsupported(root, "", reason, hint))
}

/// Refuses a folder `devkit` with labels in MATLAB files.
fn refuse_devkit((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<(), ConvertError> {
    let Some(labels) = folders.iter().copied().find(|name| is_one_of(name, &["devkit"])) else { return Ok(()) };
    if !Contents::below((root, files), labels)?.is_matlab() {
        return Ok(());
    }
    let hint = match folders.iter().find(|name| **name != labels) {
        Some(images) => format!("{WRITE_LABELS}; to pack only the images, add {}", IMAGES.with(lossy(images))),
        None => WRITE_LABELS.to_owned(),
    };
    let reason = format!("the labels in '{}' are in MATLAB files, which packds does not read", lossy(labels));
    Err(ConvertError::unsupported(root, "", reason, hint))
}

/// Refuses a mask folder that is next to an image folder but has no image files.
fn refuse_data((root, files): (&Path, SampleFiles), folders: &[&[u8]]) -> Result<(), ConvertError> {
    let images = folders.iter().copied().find(|name| is_one_of(name, &IMAGE_FOLDERS));
    let masks = folders.iter().copied().find(|name| is_mask_folder(name) || is_one_of(name, &["ann"]));
    if let (Some(images), Some(masks), SampleFiles::Images) = (images, masks, files) {
        let (of_images, of_masks) = (Contents::below((root, files), images)?, Contents::below((root, files), masks)?);
        if let (true, false, Some(file)) = (of_images.images, of_masks.images, of_masks.data) {
            let reason = format!("'{}' is not an image file, so packds cannot read it as a mask", lossy(&file));
            let alone = IMAGES.with(lossy(images));
            let hint = format!(
                "save each mask as a PNG file of class numbers (for NumPy arrays in Python: Image.fromarray(numpy.load(f).astype(\"uint8\")).save(f.with_suffix(\".png\"))); to pack only the images, add {alone}"
            );
            return Err(ConvertError::unsupported(root, "", reason, hint));
        }
    }
    Ok(())
}

/// Whether a folder contains class folders or splits: at least two folders with images, possibly below outer folders in which no
/// other folder has images.
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

pub(super) fn inside(root: &Path, folder: &[u8]) -> PathBuf {
    root.join(as_path(folder))
}
