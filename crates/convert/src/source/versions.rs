//! Folders with two versions of the same images, such as `low` and `high`: each sample has an image of both.
//!
//! `layout` finds the folders. `twins` refuses such folders if they may be classes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use packds_system::to_u64;

use super::candidate::SampleFiles;
use super::directory::Directory;
use super::folder_note::FolderNote;
use super::found::rename_taken;
use super::layout::{Pair, has_images_below, inside, is_mask_folder};
use super::listing::{Fault, Listing, Masks, SourceField};
use super::look::{MAX_LOOKED, MIN_FILES, are_alike, look_at};
use super::mask_colors;
use super::mask_files::MaskFiles;
use super::mistaken::FEW_FOLDERS;
use super::pairs;
use super::paths::{FileTable, PathTable, joined, lossy, stem};
use super::split::{is_split_name, split_and_rest, words};
use super::store::{Content, ItemFiles, OpenFile, Span, SpanFiles, Spans};
use super::tally::Tally;
use super::warning::Warning;
use crate::error::ConvertError;

/// The names of two folders: of the images, and of their other version. Separators and case are ignored.
pub(super) type Names = [&'static str; 2];

/// Names that classes never have.
const SURE: [Names; 17] = [
    ["input", "target"],
    ["input", "output"],
    ["input", "gt"],
    ["input", "groundtruth"],
    ["source", "target"],
    ["noisy", "clean"],
    ["noisy", "gt"],
    ["degraded", "clean"],
    ["lq", "gt"],
    ["lq", "hq"],
    ["lr", "hr"],
    ["blur", "gt"],
    ["hazy", "gt"],
    ["low", "gt"],
    ["rain", "norain"],
    ["rainy", "clean"],
    ["rgb", "depth"],
];
/// Names that classes may have as well.
const DOUBTFUL: [Names; 8] = [
    ["a", "b"],
    ["left", "right"],
    ["low", "high"],
    ["low", "normal"],
    ["blur", "sharp"],
    ["hazy", "clear"],
    ["photo", "sketch"],
    ["x", "y"],
];

/// Two folders with versions of the same images, and the folder of their masks. All are relative to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Versions {
    pub(super) images: Vec<u8>,
    pub(super) other: Vec<u8>,
    pub(super) masks: Option<Vec<u8>>,
    /// The name of the field with the images in `other`.
    field: String,
    /// The words in the names of the folders that tell them apart.
    names: Names,
}

impl Versions {
    /// The versions in a source that consists of two such folders, and possibly a folder of masks and folders without images.
    pub(super) fn of(root: (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Option<Self>, ConvertError> {
        if folders.len() > FEW_FOLDERS {
            return Ok(None);
        }
        let pairs =
            folders.iter().enumerate().flat_map(|(at, one)| folders[at + 1..].iter().map(move |other| [*one, *other]));
        let named: Vec<[&[u8]; 2]> = pairs.filter(|pair| roles(*pair).is_some()).collect();
        if named.is_empty() {
            return Ok(None);
        }
        let mut filled = Vec::new();
        for folder in folders {
            if has_images_below(root, folder)? {
                filled.push(*folder);
            }
        }
        for pair in named.into_iter().filter(|pair| pair.iter().all(|folder| filled.contains(folder))) {
            let mut rest = filled.iter().filter(|folder| !pair.contains(folder));
            if let (rest, None) = (rest.next(), rest.next())
                && let Some(found) = Self::in_folders(root, pair, rest.copied())?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The versions of each split, if all folders are such pairs, as in `DIV2K_train_HR` with `DIV2K_train_LR_bicubic`, and
    /// `DIV2K_valid_HR` with `DIV2K_valid_LR_bicubic`.
    pub(super) fn of_splits(root: (&Path, SampleFiles), folders: &[&[u8]]) -> Result<Option<Vec<Self>>, ConvertError> {
        let mut splits: Vec<(String, Vec<&[u8]>)> = Vec::new();
        for folder in folders {
            let Some((split, _)) = split_and_rest(&lossy(folder)) else { return Ok(None) };
            match splits.iter_mut().find(|(name, _)| *name == split) {
                Some((_, own)) => own.push(folder),
                None => splits.push((split, vec![folder])),
            }
        }
        if splits.len() < 2 {
            return Ok(None);
        }
        let mut found = Vec::new();
        for (_, own) in splits {
            let [one, other] = *own.as_slice() else { return Ok(None) };
            let Some(versions) = Self::in_folders(root, [one, other], None)? else { return Ok(None) };
            found.push(versions);
        }
        Ok(Some(found))
    }

    /// The versions in two folders. `rest` must be the folder of their masks.
    fn in_folders(
        (root, files): (&Path, SampleFiles),
        folders: [&[u8]; 2],
        rest: Option<&[u8]>,
    ) -> Result<Option<Self>, ConvertError> {
        let Some((names, [images, other])) = roles(folders) else { return Ok(None) };
        if files != SampleFiles::Images || rest.is_some_and(|rest| !is_mask_folder(rest)) {
            return Ok(None);
        }
        let field =
            lossy(other).split(['_', '-', ' ']).find(|word| word.eq_ignore_ascii_case(names[1])).map(str::to_owned);
        let field = field.unwrap_or_else(|| match split_and_rest(&lossy(other)) {
            // `trainB`.
            Some(_) => names[1].to_uppercase(),
            None => lossy(other),
        });
        let [images, other] = [inner(root, images, files)?, inner(root, other, files)?];
        let found = Self { images, other, masks: rest.map(<[u8]>::to_vec), field, names };
        Ok(found.are_versions((root, files))?.then_some(found))
    }

    /// Whether nearly all files have a partner and are not masks. If classes may have these names, and the files are counted, the images
    /// must also be alike.
    fn are_versions(&self, (root, files): (&Path, SampleFiles)) -> Result<bool, ConvertError> {
        let is_sure = are_sure(self.names) || self.masks.is_some();
        let [images, others] =
            [pairs::walked(root, &self.images, files)?.paths, pairs::walked(root, &self.other, files)?.paths];
        let partners = self.partners(&images, &others);
        let pairs: Vec<[usize; 2]> =
            partners.iter().enumerate().filter_map(|(idx, other)| Some([idx, (*other)?])).collect();
        let least = if is_sure { 1 } else { MIN_FILES };
        if pairs.len() < least || 10 * pairs.len() < 9 * images.len().max(others.len()) {
            return Ok(false);
        }
        if let Some(masks) = &self.masks
            && !pairs::matches((root, files), &self.pair(masks))?.are_pairs()
        {
            return Ok(false);
        }
        let paths = pairs.iter().take(MAX_LOOKED);
        let paths: Vec<_> = paths
            .map(|[image, other]| [inside(root, &images.path(*image)), inside(root, &others.path(*other))])
            .collect();
        let is_mask = |[image, other]: &[std::path::PathBuf; 2]| {
            look_at(other).is_some_and(|look| look.is_mask) && !look_at(image).is_some_and(|look| look.is_mask)
        };
        if paths.iter().all(is_mask) {
            return Ok(false);
        }
        if is_mask_folder(&self.other) {
            let is_color = |path: &Path| look_at(path).is_some_and(|look| look.is_color);
            let [_, first] = &paths[0];
            return Ok(is_color(first) && !mask_colors::are_classes(first, root)?);
        }
        let names = pairs.iter().map(|[image, _]| images.name(*image));
        Ok(is_sure || !are_counted(names) || are_alike(&paths))
    }

    /// Those of these folders that have the same subfolders as the folder `like`, if these hold two versions of each image.
    pub(super) fn of_same(
        (root, files): (&Path, SampleFiles),
        like: &str,
        folders: &[Vec<u8>],
    ) -> Result<Vec<String>, ConvertError> {
        let inner = |folder: &[u8]| {
            let is_there = inside(root, folder).is_dir();
            let mut inner = if is_there { Directory::scan(root, folder, files)?.subdirectories } else { Vec::new() };
            inner.sort_unstable();
            Ok::<_, ConvertError>(inner)
        };
        let own = inner(like.as_bytes())?;
        let own_names: Vec<&[u8]> = own.iter().map(Vec::as_slice).collect();
        let (mut same, mut are_versions) = (Vec::new(), false);
        for folder in folders {
            if inner(folder)? == own {
                are_versions = are_versions || Self::of((&inside(root, folder), files), &own_names)?.is_some();
                same.push(lossy(folder));
            }
        }
        same.retain(|folder| are_versions && folder != like);
        Ok(same)
    }

    /// The folder of the images and that of their masks.
    pub(super) fn pair(&self, masks: &[u8]) -> Pair {
        Pair { images: self.images.clone(), masks: masks.to_vec() }
    }

    /// Whether a folder with these subfolders has the same layout.
    pub(super) fn are_in(&self, folders: &[Vec<u8>]) -> bool {
        let own = [Some(&self.images), Some(&self.other), self.masks.as_ref()];
        own.into_iter().flatten().all(|folder| folders.contains(folder))
    }

    /// The name of the split that these are the versions of, if each split has folders of its own.
    pub(super) fn split(&self) -> &[u8] {
        self.images.split(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// The folders that are read.
    pub(super) fn folders(&self) -> Vec<&[u8]> {
        [Some(&self.images), Some(&self.other), self.masks.as_ref()].into_iter().flatten().map(Vec::as_slice).collect()
    }

    /// Lists the images, with their other version as a field, and their masks.
    pub(super) fn list(&self, root: &Path, files: SampleFiles) -> Result<Listing, ConvertError> {
        let mut listing = match &self.masks {
            Some(masks) => pairs::list(root, &self.pair(masks), files)?,
            None => pairs::images_of(root, pairs::walked(root, &self.images, files)?),
        };
        let others = pairs::walked(root, &self.other, files)?;
        let partners = self.partners(&listing.paths, &others.paths);
        let (mut table, mut spans) = (FileTable::default(), Vec::new());
        let mut is_used = vec![false; others.paths.len()];
        for (idx, partner) in partners.into_iter().enumerate() {
            let (path, bytes) = match partner {
                Some(other) => (others.paths.path(other), others.bytes[other]),
                None => (listing.paths.path(idx), 0),
            };
            let reason = match partner {
                Some(_) if bytes == 0 => Some(format!("'{}' is empty", lossy(&path))),
                Some(_) => None,
                None => Some(format!("'{}' has no image with the same name", lossy(&self.other))),
            };
            if let Some(reason) = reason {
                listing.faults.entry(idx).or_insert(Fault::Said(reason.into()));
            }
            if let Some(used) = partner.and_then(|other| is_used.get_mut(other)) {
                *used = true;
            }
            table.push(&path);
            spans.push(bytes);
        }
        let mut unused = Tally::default();
        let idle = is_used.iter().enumerate().filter(|(_, used)| !**used);
        idle.for_each(|(other, _)| unused.add(&others.paths.path(other)));
        listing.ignored += others.ignored + unused.count;
        add_field(&mut listing, self.field.clone(), table.paths, spans)?;
        rename_taken(&mut listing);
        let folder = self.images.clone();
        let note =
            FolderNote::Versions { images: folder.clone(), other: self.other.clone(), field: self.field.clone() };
        listing.warnings.push(Warning::Folders(note));
        let idle = unused.warning(|count, first| Warning::Folders(FolderNote::NoVersion { count, first, folder }));
        listing.warnings.extend(idle);
        Ok(listing)
    }

    /// The index of the other version of each image. Two files match if their names are equal without the words that tell the
    /// versions apart, as in `1_low.png` and `1_high.png`. `None` if no file matches, or if the match is not clear.
    fn partners(&self, images: &PathTable, others: &PathTable) -> Vec<Option<usize>> {
        let [image_keys, other_keys] =
            [(images, &self.images), (others, &self.other)].map(|(paths, folder)| pairs::keys(paths, 0, folder));
        let [one, two] = self.names;
        let mut places: HashMap<Vec<u8>, Option<usize>> = HashMap::new();
        for (idx, key) in other_keys.iter().enumerate() {
            let other = Some(bare(key, two)).filter(|bare| bare != key);
            for key in std::iter::once(key.clone()).chain(other) {
                // Of several images with the same name, none is the partner.
                places.entry(key).and_modify(|place| *place = None).or_insert(Some(idx));
            }
        }
        let place = |key: &[u8]| places.get(key).copied().flatten();
        let mut is_used = vec![false; others.len()];
        let partner = |key: &Vec<u8>| {
            let found = place(key).or_else(|| place(&bare(key, one)))?;
            // Two images never share a partner.
            let used = is_used.get_mut(found)?;
            (!std::mem::replace(used, true)).then_some(found)
        };
        image_keys.iter().map(partner).collect()
    }
}

/// Adds a field with the files of these paths and sizes.
fn add_field(listing: &mut Listing, name: String, paths: PathTable, bytes: Vec<u64>) -> Result<(), ConvertError> {
    let root = listing.root().to_owned();
    let spool = OpenFile::empty().map_err(ConvertError::io(&root))?;
    let files = SpanFiles::PerItem(Arc::new(ItemFiles { root, paths, spool }));
    let spans = bytes.into_iter().map(|bytes| Span { file: ItemFiles::OWN, offset: 0, bytes }).collect();
    let store = Arc::new(Spans { files, spans, contents: Content::File.into() });
    listing.fields.push(SourceField { name, store, role: None });
    Ok(())
}

/// Turns the masks of a table into a field with their files, because they are another version of each image.
pub(super) fn take_masks(listing: &mut Listing, field: String) -> Result<(), ConvertError> {
    let Some(Masks::Files(MaskFiles { paths, bytes, .. })) = listing.masks.take() else { return Ok(()) };
    for (idx, bytes) in bytes.iter().enumerate() {
        let file = lossy(&paths.path(idx));
        let reason = match listing.faults.get(&idx) {
            Some(Fault::File { is_mask: true, .. }) => format!("'{file}' in column '{field}': no such file"),
            Some(Fault::NoMaskCell { column, place }) => format!("{place}: column '{column}': the path is missing"),
            None if *bytes == 0 => format!("'{file}' is empty"),
            _ => continue,
        };
        listing.faults.insert(idx, Fault::from(reason));
    }
    add_field(listing, field, paths, bytes)
}

/// The names of two folders that are called like two versions, and the folders in the order of these names.
pub(super) fn roles(folders: [&[u8]; 2]) -> Option<(Names, [&[u8]; 2])> {
    let words = folders.map(|folder| words(&lossy(folder)));
    let is_whole = |at: usize, name: &str| super::layout::is_one_of(folders[at], &[name]);
    // Both names have one of the words, and otherwise the same words: `train_A` and `train_B`. LR also has the scale and the filter.
    let has_word = |[one, two]: [usize; 2], names: Names, is_sure: bool| {
        let rest = |at: usize, name: &str| -> Option<Vec<&String>> {
            let is_name = |word: &&String| {
                *word == name || word.trim_end_matches(|c: char| c == 'x' || c.is_ascii_digit()) == name
            };
            let n = words[at].iter().filter(is_name).count();
            (n == 1).then(|| words[at].iter().filter(|word| !is_name(word)).collect())
        };
        let (Some(of_image), Some(of_other)) = (rest(one, names[0]), rest(two, names[1])) else { return false };
        let are_same = of_image == of_other || (names == ["lr", "hr"] && of_image.starts_with(&of_other));
        are_same && (is_sure || of_other.iter().any(|word| is_split_name(word.as_bytes())))
    };
    let known = SURE.iter().map(|names| (names, true)).chain(DOUBTFUL.iter().map(|names| (names, false)));
    for (names, is_sure) in known {
        for [one, two] in [[0, 1], [1, 0]] {
            let is_pair = is_whole(one, names[0]) && is_whole(two, names[1]);
            if is_pair || has_word([one, two], *names, is_sure) {
                return Some((*names, [folders[one], folders[two]]));
            }
        }
    }
    None
}

/// Whether classes never have these names.
pub(super) fn are_sure(names: Names) -> bool {
    SURE.contains(&names)
}

/// Whether files are named by numbers with few gaps. Such names are the same in many folders.
fn are_counted<'a>(names: impl Iterator<Item = &'a [u8]>) -> bool {
    let number = |name: &[u8]| std::str::from_utf8(stem(name)).ok()?.parse::<u64>().ok();
    let Some(mut numbers) = names.map(number).collect::<Option<Vec<u64>>>() else { return false };
    numbers.sort_unstable();
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return true };
    (last - first).saturating_mul(2) < 3 * to_u64(numbers.len())
}

/// A key without the word of its folder at the start or the end of its file name, as in `low00692` or `1_hazy`, and without the scale of
/// images with low resolution, as in `0801x4`.
fn bare(key: &[u8], word: &str) -> Vec<u8> {
    let marks = ["_", "-", ""].map(|separator| (format!("{word}{separator}"), format!("{separator}{word}")));
    let prefixes: Vec<&[u8]> = marks.iter().map(|(prefix, _)| prefix.as_bytes()).collect();
    let mut suffixes: Vec<&[u8]> = marks.iter().map(|(_, suffix)| suffix.as_bytes()).collect();
    if word == "lr" {
        suffixes.extend([&b"x2"[..], b"x3", b"x4", b"x8"]);
    }
    pairs::bare(key, &prefixes, &suffixes)
}

/// The folder with the images: the folder itself, or the only folder in it, such as `DIV2K_train_LR_bicubic/X4`.
fn inner(root: &Path, folder: &[u8], files: SampleFiles) -> Result<Vec<u8>, ConvertError> {
    let directory = Directory::scan(root, folder, files)?;
    let inner: Vec<&Vec<u8>> = directory.subdirectories.iter().filter(|name| !name.starts_with(b".")).collect();
    Ok(match (inner.as_slice(), directory.sample_names().next()) {
        ([only], None) => joined(folder, only),
        _ => folder.to_vec(),
    })
}
