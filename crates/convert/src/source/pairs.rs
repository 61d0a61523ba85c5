//! Matches images and masks by their names, in two folders or in the same folder.
//!
//! `layout` finds the folders.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::candidate::SampleFiles;
use super::directory::{Directory, Identity};
use super::doubles::{Doubles, marked};
use super::folder_note::FolderNote;
use super::image_folder::known_metadata;
use super::layout::{Pair, inside, is_one_of};
use super::listing::{Fault, Faults, Labels, Listing, Masks, SourceKind};
use super::look::{MAX_LOOKED, look_at};
use super::mask_files::MaskFiles;
use super::mistaken::way_out;
use super::paths::{FileTable, PathTable, joined, lossy, stem};
use super::tally::Tally;
use super::walk::{Found, count};
use super::warning::Warning;
use crate::error::ConvertError;
use crate::literal::python;
use crate::opt::{FROM, IMAGES, MASKS};

/// Usual suffixes of a mask's name after the name of its image.
const MASK_SUFFIXES: [&[u8]; 22] = [
    b"_mask",
    b"_masks",
    b"-mask",
    b"_seg",
    b"_segmentation",
    b"_segm",
    b"_gt",
    b"_groundtruth",
    b"_label",
    b"_labels",
    b"_annotation",
    b"_gtFine_labelIds",
    b"_gtFine_labelTrainIds",
    b"_labelTrainIds",
    b"_instance_color_RGB",
    b"_instance_id_RGB",
    b"_manual1",
    b"_1stHO",
    b"_2ndHO",
    b"_L",
    b"_P",
    b"_lab",
];
/// Prefixes of a mask's name that replace the image's prefix.
const MASK_PREFIXES: [&[u8]; 6] = [b"mask_", b"mask", b"man_seg", b"seg_", b"label_", b"gt_"];
/// Parts of an image's name that its mask's name lacks.
const IMAGE_SUFFIXES: [&[u8]; 8] =
    [b"_leftImg8bit", b"_image", b"_img", b"_rgb", b"_sat", b"_training", b"_test", FIRST_CHANNEL];
/// What nnU-Net adds to the names of images with one channel.
const FIRST_CHANNEL: &[u8] = b"_0000";
const IMAGE_PREFIXES: [&[u8]; 6] = [b"image_", b"image", b"img_", b"img", b"im_", b"t"];

/// How well the images of one folder match the masks of another.
pub(super) struct Matches {
    pub(super) images: usize,
    pub(super) masks: usize,
    /// Images that have a mask.
    pub(super) matched: usize,
    /// Whether the first file in the folder of masks looks like a mask.
    pub(super) has_mask: bool,
    /// Whether the first file in the folder of images looks like a mask.
    pub(super) has_mask_as_image: bool,
}

impl Matches {
    /// Whether the folders hold images and their masks: at least half of the files in the smaller folder have a partner.
    pub(super) fn are_pairs(&self) -> bool {
        self.matched > 0 && 2 * self.matched >= self.images.min(self.masks)
    }
}

/// Counts the images of a folder that have a mask in another folder.
pub(super) fn matches((root, files): (&Path, SampleFiles), pair: &Pair) -> Result<Matches, ConvertError> {
    let (images, masks) = (walked(root, &pair.images, files)?.paths, walked(root, &pair.masks, files)?.paths);
    let (image_keys, mask_keys) = (keys(&images, 0, &pair.images), keys(&masks, 0, &pair.masks));
    // If two images have the same name, no image is treated as matched.
    let matched = Matched::of(root, &images, &image_keys, &mask_keys);
    let matched = matched.map_or(0, |matched| matched.of_image.iter().flatten().count());
    let is_mask = |paths: &PathTable| {
        let look = (paths.len() > 0).then(|| look_at(&inside(root, &paths.path(0)))).flatten();
        look.is_some_and(|look| look.is_mask)
    };
    let (has_mask, has_mask_as_image) = (is_mask(&masks), is_mask(&images));
    Ok(Matches { images: images.len(), masks: masks.len(), matched, has_mask, has_mask_as_image })
}

/// Lists the images of a folder with the masks of another.
pub(super) fn list(root: &Path, pair: &Pair, files: SampleFiles) -> Result<Listing, ConvertError> {
    let images = filled(root, &pair.images, files)?;
    let below = |idx: usize| images.paths.directory(idx) != pair.images;
    let subfolders = (0..images.paths.len()).filter(|idx| below(*idx)).map(|idx| images.paths.directory(idx));
    let subfolders: BTreeSet<&[u8]> = subfolders.collect();
    let told = subfolders
        .first()
        .map(|first| Warning::FoldersInImages { count: count(subfolders.len()), first: first.to_vec() });
    // Of the splits in the folders, some may have no masks.
    if !inside(root, &pair.masks).is_dir() {
        let mut listing = images_of(root, images);
        let note = FolderNote::NoMaskFolder { folder: pair.masks.clone() };
        listing.warnings.extend(std::iter::once(Warning::Folders(note)).chain(told));
        return Ok(listing);
    }
    let masks = filled(root, &pair.masks, files)?;
    let (image_keys, mask_keys) = (keys(&images.paths, 0, &pair.images), keys(&masks.paths, 0, &pair.masks));
    let mut listing = Both { images, masks, image_keys, mask_keys, several: Vec::new() }.listing(root, pair)?;
    listing.warnings.extend(told);
    Ok(listing)
}

/// A listing of the images that have a mask, with a warning about the others.
pub(super) fn with_masks(listing: Listing, pair: &Pair) -> Listing {
    let lacks_mask = |idx: &usize| matches!(listing.faults.get(idx), Some(Fault::NoMask { .. }));
    let (without, with): (Vec<usize>, Vec<usize>) = (0..listing.len()).partition(lacks_mask);
    let mut tally = Tally::default();
    without.iter().for_each(|idx| tally.add(&listing.paths.path(*idx)));
    let mut listing = listing.picked(&with);
    listing.ignored += tally.count;
    let [images, masks] = [&pair.images, &pair.masks].map(Clone::clone);
    let told = tally.warning(|count, first| Warning::Folders(FolderNote::Unmasked { count, first, images, masks }));
    listing.warnings.extend(told);
    listing
}

/// Everything below a folder that must have images.
fn filled(root: &Path, folder: &[u8], files: SampleFiles) -> Result<Found, ConvertError> {
    let found = walked(root, folder, files)?;
    if found.paths.len() == 0 {
        let path = inside(root, folder);
        let error = found.oddities.unread.error(&path);
        return Err(error.unwrap_or(ConvertError::EmptySource { path, ignored: found.ignored, holds: None }));
    }
    Ok(found)
}

/// The listing of the images of a folder without their masks.
pub(super) fn images_of(root: &Path, found: Found) -> Listing {
    let Found { paths, bytes, oddities, ignored, .. } = found;
    let listing = Listing::of_files(SourceKind::PairedFolders, root, paths, bytes);
    Listing { warnings: oddities.into_warnings(), ignored, ..listing }
}

/// Lists folders that each contain a folder of images and one of masks. If any of them has several images, the folders are classes,
/// and their ids are their positions in `classes`.
pub(super) fn list_each(
    (root, files): (&Path, SampleFiles),
    top: &Directory,
    pair: &Pair,
    classes: &[Vec<u8>],
) -> Result<Listing, ConvertError> {
    let mut both = Both::default();
    let (mut has_several, mut alone, mut unread) = (false, Tally::default(), Vec::new());
    let mut words = HashSet::new();
    unread.extend(top.other_files());
    let mut folders: Vec<&Vec<u8>> = top.subdirectories.iter().filter(|name| !name.starts_with(b".")).collect();
    folders.sort_unstable();
    for folder in folders {
        let directory = Directory::scan(root, folder, files)?;
        unread.extend(directory.other_files());
        let inner = directory.subdirectories;
        if !inner.contains(&pair.images) {
            alone.add(folder);
            continue;
        }
        let label = classes.binary_search(folder).ok().and_then(|class| i64::try_from(class).ok()).unwrap_or(-1);
        let (n_images, n_masks) = both.add((root, top.identity), folder, pair, (label, files))?;
        has_several |= n_images > 1;
        // If there is one mask per object, mask names need not contain the name of the image.
        let own_masks = both.mask_keys.len() - n_masks..both.mask_keys.len();
        let is_named = both.image_keys.last().is_some_and(|key| both.mask_keys[own_masks.clone()].contains(key));
        if n_images == 1 && n_masks > 1 && !is_named {
            let mut names = own_masks.clone().map(|mask| stem(both.masks.paths.name(mask)));
            // Names of objects are numbers or hashes. A word that is also used in another folder is a kind of mask, such as `vessels`.
            let is_kind = |name: &[u8]| !name.iter().any(u8::is_ascii_digit) && !words.insert(name.to_vec());
            if names.any(is_kind) {
                let reason =
                    format!("'{}' has one image and {n_masks} masks: expected one mask for each image", lossy(folder));
                return Err(ConvertError::contradictory(root, "", reason, MERGE_MASKS));
            }
            both.several.push((both.image_keys.len() - 1, own_masks));
        }
    }
    let labels = Labels::ByDirectory(both.images.directory_labels.clone());
    let mut listing = both.listing(root, pair)?;
    listing.warnings.extend(alone.warning(|count, first| Warning::FoldersWithoutImages { count, first }));
    listing.warnings.extend(unread);
    if has_several {
        (listing.labels, listing.classes) = (labels, classes.to_vec());
    }
    Ok(listing)
}

/// Refuses masks that were recognized by the names of their folder or files, but are colour images. `pair` has the folders, if any.
pub(super) fn refuse_colors(listing: &Listing, pair: Option<&Pair>) -> Result<(), ConvertError> {
    let mask = |idx| {
        let mut path = Vec::new();
        listing.mask_path_into(idx, &mut path).map(|_| path)
    };
    let with_mask = (0..listing.len()).filter(|idx| !listing.faults.contains_key(idx));
    let masks: Vec<Vec<u8>> = with_mask.take(MAX_LOOKED).filter_map(mask).collect();
    let is_color = |mask: &Vec<u8>| look_at(&inside(&listing.root, mask)).is_some_and(|look| look.is_color);
    let (Some(first), true) = (masks.first(), masks.iter().all(is_color)) else { return Ok(()) };
    let reason = format!("'{}' is named like a mask, but is a colour image: a mask has one channel", lossy(first));
    let alone = match pair {
        Some(pair) => way_out(&lossy(pair.images.split(|byte| *byte == b'/').next().unwrap_or_default())),
        None => format!("{} reads every file as an image", FROM.with("image-folder")),
    };
    let hint = format!(
        "if its colours are classes, write a table 'class_dict.csv' with the columns name,r,g,b next to the masks; {alone}"
    );
    Err(ConvertError::contradictory(&listing.root, "", reason, hint))
}

/// Advice for images with several masks.
const MERGE_MASKS: &str = "merge the masks of each image into one file; to merge them in Python, run: Image.fromarray(numpy.max([numpy.array(Image.open(m)) for m in masks], axis=0)).save(merged)";

/// Advice for images with a mask for each part.
const JOIN_PARTS: &str = "write one mask of class numbers for each image, with the name of the image; in Python, where parts are the paths of its masks and names are the names of all parts, run: m = numpy.zeros(Image.open(parts[0]).size[::-1], numpy.uint8); [numpy.putmask(m, numpy.array(Image.open(p).convert(\"L\")) > 0, 1 + names.index(p.stem.split(\"_\", 1)[1])) for p in parts]; Image.fromarray(m).save(name)";

/// Images and masks with the keys by which they match.
#[derive(Default)]
struct Both {
    images: Found,
    masks: Found,
    image_keys: Vec<Vec<u8>>,
    mask_keys: Vec<Vec<u8>>,
    /// Images with one mask per object, each with the range of its masks. The names of these masks do not matter.
    several: Vec<(usize, Range<usize>)>,
}

impl Both {
    /// Adds the images and masks of one folder. A single image and a single mask belong together, regardless of their names. Returns
    /// the numbers of images and masks.
    fn add(
        &mut self,
        (root, identity): (&Path, Identity),
        folder: &[u8],
        pair: &Pair,
        (label, files): (i64, SampleFiles),
    ) -> Result<(usize, usize), ConvertError> {
        let pair = Pair { images: joined(folder, &pair.images), masks: joined(folder, &pair.masks) };
        self.images.add_class((root, identity), &pair.images, label, files)?;
        if inside(root, &pair.masks).exists() {
            self.masks.add_class((root, identity), &pair.masks, label, files)?;
        }
        let in_folder = |keys: Vec<Vec<u8>>| keys.into_iter().map(|key| joined(folder, &key)).collect::<Vec<_>>();
        let images = in_folder(keys(&self.images.paths, self.image_keys.len(), &pair.images));
        let mut masks = in_folder(keys(&self.masks.paths, self.mask_keys.len(), &pair.masks));
        let counts = (images.len(), masks.len());
        if counts == (1, 1) {
            masks.clone_from(&images);
        }
        self.image_keys.extend(images);
        self.mask_keys.extend(masks);
        Ok(counts)
    }

    /// The error if no image has a mask.
    fn unmatched(&self, root: &Path, pair: &Pair) -> ConvertError {
        let [images, masks] = [&pair.images, &pair.masks].map(|folder| lossy(folder));
        let mut reason = format!("no mask in '{masks}' has the same name as an image in '{images}'");
        // As in CelebAMask-HQ: `0/00000_hair.png` and `0/00000_skin.png` are parts of the mask of `0.jpg`.
        let number = |key: &Vec<u8>| -> Option<u64> {
            let digits = key.rsplit(|byte| *byte == b'/').next()?.split(|byte| *byte == b'_').next()?;
            std::str::from_utf8(digits).ok()?.parse().ok()
        };
        let numbers: HashSet<u64> = self.image_keys.iter().filter_map(number).collect();
        let parts: HashSet<u64> = self.mask_keys.iter().filter_map(number).collect();
        let are_parts =
            !parts.is_empty() && parts.len() < self.mask_keys.len() && parts.iter().all(|n| numbers.contains(n));
        let advice = if are_parts {
            let one = lossy(&self.masks.paths.path(0));
            reason.push_str(&format!(", and several masks have the number of one image, such as '{one}'"));
            JOIN_PARTS.to_owned()
        } else {
            format!("choose the folders with {IMAGES} and {MASKS}, and give the masks the names of their images")
        };
        ConvertError::contradictory(root, "", reason, format!("{advice}; {}", way_out(&images)))
    }

    fn listing(mut self, root: &Path, pair: &Pair) -> Result<Listing, ConvertError> {
        let mut matched = Matched::of(root, &self.images.paths, &self.image_keys, &self.mask_keys)?;
        for (image, masks) in &self.several {
            matched.of_image[*image] = Some(masks.start);
            matched.used[masks.clone()].fill(true);
        }
        if matched.of_image.iter().all(Option::is_none) {
            return Err(self.unmatched(root, pair));
        }
        let mut warnings = std::mem::take(&mut self.images.oddities).into_warnings();
        warnings.extend(std::mem::take(&mut self.masks.oddities).into_warnings());
        warnings.extend(matched.unused(&self.masks.paths));
        let (mut masks, faults, blank) = matched.masks((root, pair), &self.images, &self.masks);
        warnings.extend(blank);
        let mut merged = Tally::default();
        for (image, own) in self.several {
            let file = |mask| (self.masks.paths.path(mask), self.masks.bytes[mask]);
            masks.add(image, own.skip(1).map(file));
            merged.add(&self.images.paths.path(image));
        }
        warnings.extend(merged.warning(|count, first| Warning::MergedMasks { count, first }));
        Ok(Listing {
            masks: Some(Masks::Files(masks)),
            metadata: known_metadata(root)?,
            faults,
            warnings,
            ignored: self.images.ignored + self.masks.ignored,
            ..Listing::of_files(SourceKind::PairedFolders, root, self.images.paths, self.images.bytes)
        })
    }
}

/// The keys of the files from `start` on, which lie below `folder`.
pub(super) fn keys(paths: &PathTable, start: usize, folder: &[u8]) -> Vec<Vec<u8>> {
    (start..paths.len()).map(|idx| key(paths, idx, folder)).collect()
}

/// Everything below a folder, in torchvision's order.
pub(super) fn walked(root: &Path, folder: &[u8], files: SampleFiles) -> Result<Found, ConvertError> {
    let mut found = Found::default();
    let identity = Directory::scan(root, b"", files)?.identity;
    found.add_class((root, identity), folder, 0, files)?;
    Ok(found)
}

/// A file's path below `folder`, without its extension.
pub(super) fn key(paths: &PathTable, idx: usize, folder: &[u8]) -> Vec<u8> {
    let directory = paths.directory(idx);
    let below = directory.strip_prefix(folder).unwrap_or(directory);
    joined(below.strip_prefix(b"/").unwrap_or(below), stem(paths.name(idx)))
}

/// A key without one of these prefixes or suffixes in its file name.
pub(super) fn bare(key: &[u8], prefixes: &[&[u8]], suffixes: &[&[u8]]) -> Vec<u8> {
    let at = key.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (directory, name) = key.split_at(at);
    let suffix = suffixes.iter().filter_map(|suffix| without_suffix(name, suffix));
    let prefix = prefixes.iter().filter_map(|prefix| without_prefix(name, prefix));
    // Removing the longest prefix or suffix leaves the shortest rest.
    let rest = suffix.chain(prefix).filter(|rest| !rest.is_empty()).min_by_key(|rest| rest.len());
    [directory, rest.unwrap_or(name)].concat()
}

/// A name without this suffix. Case is ignored.
fn without_suffix<'a>(name: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let (rest, end) = name.split_at_checked(name.len().checked_sub(mark.len())?)?;
    end.eq_ignore_ascii_case(mark).then_some(rest)
}

/// A name without this prefix. Case is ignored.
fn without_prefix<'a>(name: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = name.split_at_checked(mark.len())?;
    start.eq_ignore_ascii_case(mark).then_some(rest)
}

/// Which mask belongs to which image.
struct Matched {
    /// The mask of each image.
    of_image: Vec<Option<usize>>,
    /// Whether each mask belongs to an image.
    used: Vec<bool>,
    /// The images of masks whose image has another mask.
    others: BTreeMap<usize, usize>,
}

impl Matched {
    /// Matches equal names first, and then names without the usual prefixes and suffixes of masks and images.
    fn of(
        root: &Path,
        images: &PathTable,
        image_keys: &[Vec<u8>],
        mask_keys: &[Vec<u8>],
    ) -> Result<Self, ConvertError> {
        let (of_image, used) = (vec![None; image_keys.len()], vec![false; mask_keys.len()]);
        let mut matched = Self { of_image, used, others: BTreeMap::new() };
        let mut places: HashMap<Vec<u8>, usize> = HashMap::with_capacity(image_keys.len());
        for (idx, key) in image_keys.iter().enumerate() {
            if let Some(first) = places.insert(key.clone(), idx) {
                let [first, second] = [first, idx].map(|idx| lossy(&images.path(idx)));
                let reason = format!("'{first}' and '{second}' have the same name, so they would share a mask");
                return Err(ConvertError::contradictory(root, "", reason, "rename one of them"));
            }
        }
        matched.add(&places, mask_keys.iter().map(Clone::clone));
        let bare_mask = |key: &Vec<u8>| bare(key, &MASK_PREFIXES, &MASK_SUFFIXES);
        matched.add(&places, mask_keys.iter().map(bare_mask));
        let bare_image = |(idx, key): (usize, &Vec<u8>)| (bare(key, &IMAGE_PREFIXES, &IMAGE_SUFFIXES), idx);
        let places: HashMap<Vec<u8>, usize> = image_keys.iter().enumerate().rev().map(bare_image).collect();
        matched.add(&places, mask_keys.iter().map(bare_mask));
        Ok(matched)
    }

    /// Gives each unmatched mask to the unmatched image with the same key.
    fn add(&mut self, places: &HashMap<Vec<u8>, usize>, keys: impl Iterator<Item = Vec<u8>>) {
        for (mask, key) in keys.enumerate().filter(|(mask, _)| !self.used[*mask]).collect::<Vec<_>>() {
            let Some(image) = places.get(&key) else { continue };
            match self.of_image.get_mut(*image) {
                Some(of_image @ None) => {
                    *of_image = Some(mask);
                    self.used[mask] = true;
                }
                _ => {
                    self.others.insert(mask, *image);
                }
            }
        }
    }

    /// The warnings about other masks of images that have one, and about masks without an image.
    fn unused(&self, masks: &PathTable) -> impl Iterator<Item = Warning> {
        let (mut alone, mut others, mut packed) = (Tally::default(), Tally::default(), None);
        for (mask, _) in self.used.iter().enumerate().filter(|(_, used)| !**used) {
            let own = self.others.get(&mask).and_then(|image| self.of_image.get(*image).copied().flatten());
            packed = packed.or(own);
            if own.is_some() { &mut others } else { &mut alone }.add(&masks.path(mask));
        }
        let packed = packed.map(|mask| masks.path(mask)).unwrap_or_default();
        let others = others.warning(|count, first| Warning::Folders(FolderNote::OtherMasks { count, first, packed }));
        others.into_iter().chain(alone.warning(|count, first| Warning::UnusedMasks { count, first }))
    }

    /// The masks in the images' order. An image without a mask is a bad sample, with the image's path as a placeholder.
    /// If no image of a folder such as `good` has a mask, the masks of this folder are zeros, with a warning.
    fn masks(
        &self,
        (root, pair): (&Path, &Pair),
        images: &Found,
        masks: &Found,
    ) -> (MaskFiles, Faults, Option<Warning>) {
        let (mut table, mut bytes, mut faults) = (FileTable::default(), Vec::new(), Faults::new());
        let (mut blank, mut tally) = (Vec::new(), Tally::default());
        let with_mask = |(image, mask): (usize, &Option<usize>)| mask.map(|_| images.paths.directory_idx(image));
        let with_masks: HashSet<usize> = self.of_image.iter().enumerate().filter_map(with_mask).collect();
        let folder: Arc<str> = lossy(&pair.masks).into();
        for (image, mask) in self.of_image.iter().enumerate() {
            match mask {
                Some(mask) => {
                    table.push(&masks.paths.path(*mask));
                    bytes.push(masks.bytes[*mask]);
                }
                None => {
                    table.push(&images.paths.path(image));
                    bytes.push(images.bytes[image]);
                    let is_bare = !with_masks.contains(&images.paths.directory_idx(image));
                    if is_bare && is_normal(images.paths.directory(image)) {
                        blank.push(image);
                        tally.add(&images.paths.path(image));
                        continue;
                    }
                    let line = is_bare.then(|| zeros((root, pair), &images.paths, image)).flatten();
                    let line = line.map(Into::into);
                    faults.insert(image, Fault::NoMask { masks: Arc::clone(&folder), line });
                }
            }
        }
        let mut files = MaskFiles::new(table.paths, bytes);
        blank.into_iter().for_each(|image| files.set_blank(image));
        (files, faults, tally.warning(|count, first| Warning::BlankMasks { count, first }))
    }
}

/// Whether a folder's name says that its images have nothing to mark, such as `test/good` in MVTec AD.
pub(super) fn is_normal(folder: &[u8]) -> bool {
    const NAMES: [&str; 6] = ["good", "normal", "ok", "negative", "healthy", "nodefect"];
    is_one_of(folder.rsplit(|byte| *byte == b'/').next().unwrap_or_default(), &NAMES)
}

/// The line of Python that writes a mask of zeros for each image in the folder of the given image.
fn zeros((root, pair): (&Path, &Pair), images: &PathTable, image: usize) -> Option<String> {
    let directory = images.directory(image);
    let below = directory.strip_prefix(pair.images.as_slice())?.strip_prefix(b"/").filter(|below| !below.is_empty())?;
    let masks = inside(root, &joined(&pair.masks, below));
    let name = images.name(image);
    let (from, end) = (inside(root, directory), lossy(&name[stem(name).len()..]));
    Some(format!(
        "import pathlib; from PIL import Image; m = pathlib.Path({}); m.mkdir(parents=True, exist_ok=True); [Image.new(\"L\", Image.open(i).size).save(m / (i.stem + \".png\")) for i in pathlib.Path({}).glob(\"*{end}\")]",
        python(&masks),
        python(&from)
    ))
}

/// The possible names of the image for a mask with this name.
fn mask_bases(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    MASK_SUFFIXES.iter().filter_map(|suffix| key.strip_suffix(*suffix))
}

/// Whether enough files are named like masks to be masks. A few such names may be a coincidence.
fn are_enough(n_masks: usize, n_images: usize) -> bool {
    2 * n_masks >= n_images
}

/// Whether files with these names are images with masks next to them.
pub(super) fn are_beside(keys: &BTreeSet<&[u8]>) -> bool {
    let named = |base: &[u8], end: &[u8]| keys.contains([base, end].concat().as_slice());
    let is_image = |base: &[u8]| keys.contains(base) || IMAGE_SUFFIXES.iter().any(|end| named(base, end));
    let n_masks = keys.iter().filter(|key| mask_bases(key).any(is_image)).count();
    n_masks > 0 && are_enough(n_masks, keys.len() - n_masks)
}

/// In a listing of a folder, turns images named like masks, such as `1_mask.png` next to `1.png`, into the masks of the others.
pub(super) fn split_masks(listing: &mut Listing) {
    if let Some(doubles) = Doubles::find(&listing.paths) {
        let masks = doubles.masks(listing);
        listing.warnings.push(doubles.warning(masks));
        if let Some(masks) = masks {
            let masks_of = doubles.files.iter().map(|pair| (pair[1 - masks], vec![pair[masks]])).collect();
            let is_mask: HashSet<usize> = doubles.files.iter().map(|pair| pair[masks]).collect();
            let images: Vec<usize> = (0..listing.len()).filter(|idx| !is_mask.contains(idx)).collect();
            take_masks(listing, &images, &masks_of);
        }
        return;
    }
    // Otherwise, the names of all files need not be kept in memory.
    let is_like_mask =
        |name: &[u8]| mask_bases(name).chain(unnumbered(name).into_iter().flat_map(mask_bases)).count() > 0;
    if !(0..listing.len()).any(|idx| is_like_mask(stem(listing.paths.name(idx)))) {
        listing.warnings.extend(marked(&listing.paths, 0..listing.len()));
        return;
    }
    let keys = keys(&listing.paths, 0, b"");
    let bare_image = |key: &Vec<u8>| bare(key, &IMAGE_PREFIXES, &IMAGE_SUFFIXES);
    let bare_keys: Vec<Vec<u8>> = keys.iter().map(bare_image).collect();
    // A full name takes precedence over the same name without its prefix or suffix.
    let places: HashMap<&[u8], usize> =
        bare_keys.iter().enumerate().chain(keys.iter().enumerate()).map(|(idx, key)| (key.as_slice(), idx)).collect();
    let of_mask = |key: &[u8]| mask_bases(key).find_map(|base| places.get(base).copied());
    let base = |key: &[u8]| of_mask(key).or_else(|| of_mask(unnumbered(key)?));
    let bases: Vec<Option<usize>> = keys.iter().map(|key| base(key)).collect();
    let images: Vec<usize> = (0..keys.len()).filter(|idx| bases[*idx].is_none()).collect();
    let n_masks = keys.len() - images.len();
    if n_masks == 0 {
        listing.warnings.extend(marked(&listing.paths, images.iter().copied()));
        return;
    }
    if !are_enough(n_masks, images.len()) {
        let first = listing.paths.path(bases.iter().position(Option::is_some).unwrap_or(0));
        listing.warnings.push(Warning::FewMasks { count: count(n_masks), first });
        return;
    }
    let mut masks_of: HashMap<usize, Vec<usize>> = HashMap::new();
    for (mask, base) in bases.iter().enumerate() {
        if let Some(image) = base {
            masks_of.entry(*image).or_default().push(mask);
        }
    }
    listing.warnings.extend(marked(&listing.paths, images.iter().copied()));
    take_masks(listing, &images, &masks_of);
}

/// The name of a mask without its number, if an image has several: `1_mask_1` becomes `1_mask`.
fn unnumbered(key: &[u8]) -> Option<&[u8]> {
    let digits = key.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    key[..key.len() - digits].strip_suffix(b"_").filter(|_| digits > 0)
}

/// Whether the names of masks differ only in their numbers, so that each mask is an object.
fn are_numbered(listing: &Listing, masks: &[usize]) -> bool {
    let name = |mask: &usize| stem(listing.paths.name(*mask));
    let bases: HashSet<&[u8]> = masks.iter().map(|mask| unnumbered(name(mask)).unwrap_or(name(mask))).collect();
    bases.len() == 1
}

/// Keeps only these images in a listing, and makes the files in `masks_of` their masks.
fn take_masks(listing: &mut Listing, images: &[usize], masks_of: &HashMap<usize, Vec<usize>>) {
    let mut kept = Found::default();
    let (mut masks, mut mask_bytes) = (FileTable::default(), Vec::new());
    let (mut others, mut merged) = (Vec::new(), Tally::default());
    let mut directory = None;
    for &image in images {
        let idx = listing.paths.directory_idx(image);
        if directory.replace(idx) != Some(idx) {
            kept.paths.push_directory(listing.paths.directory(image));
            if let Labels::ByDirectory(labels) = &listing.labels {
                kept.directory_labels.push(labels[idx]);
            }
        }
        let place = kept.paths.n_directories() - 1;
        kept.paths.push(place, listing.paths.name(image));
        kept.bytes.push(listing.bytes[image]);
        let own = masks_of.get(&image).map_or(&[][..], Vec::as_slice);
        let reason = match own {
            [_] => None,
            [] => Some(
                "no file next to it has its name and '_mask': move this file elsewhere if it is not an image"
                    .to_owned(),
            ),
            several if are_numbered(listing, several) => {
                let file = |mask: &usize| (listing.paths.path(*mask), listing.bytes[*mask]);
                others.push((kept.paths.len() - 1, several[1..].iter().map(file).collect::<Vec<_>>()));
                merged.add(&listing.paths.path(image));
                None
            }
            [one, other, ..] => {
                let [one, other] = [one, other].map(|mask| lossy(listing.paths.name(*mask)));
                let n = own.len();
                Some(format!(
                    "there are {n} masks next to it, such as '{one}' and '{other}': merge them into one file, or keep one of each image"
                ))
            }
        };
        if let Some(reason) = reason {
            listing.faults.insert(kept.paths.len() - 1, Fault::Said(reason.into()));
        }
        let mask = own.first().copied();
        masks.push(&listing.paths.path(mask.unwrap_or(image)));
        mask_bytes.push(listing.bytes[mask.unwrap_or(image)]);
    }
    if matches!(listing.labels, Labels::ByDirectory(_)) {
        listing.labels = Labels::ByDirectory(kept.directory_labels);
    }
    listing.paths = kept.paths;
    listing.bytes = kept.bytes;
    let mut files = MaskFiles::new(masks.paths, mask_bytes);
    others.into_iter().for_each(|(idx, own)| files.add(idx, own.into_iter()));
    listing.masks = Some(Masks::Files(files));
    listing.warnings.extend(merged.warning(|count, first| Warning::MergedMasks { count, first }));
}
