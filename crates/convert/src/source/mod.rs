//! Lists the samples of a folder, a manifest or a file of another format, with labels, in a fixed order.
//!
//! Images are decoded elsewhere. In a folder, this module opens a file only if its name does not identify it as an image.
//!
//! Each format has its own module. The module finds the samples (`found::Found`) and the location of their bytes (`store::Store`). Bytes
//! are read in place if the format allows random access; otherwise they are unpacked into a temporary file (`spool::Spool`).
//! Archives of files are unpacked into a temporary folder (`archive::Archive`), which is then listed instead of the archive.
//!
//! A folder of class folders is read like torchvision's `ImageFolder`. The classes are the subfolders in name order, including
//! hidden ones and links to folders. A class's id is its position in that order. Within a class, folders are ordered by full path,
//! and files by name within each folder. Names are compared byte by byte. Python sorts UTF-8 names in the same order, but
//! may sort other names differently.
//!
//! Links are followed. A link that leads back to a folder above it is an error.

mod archive;
mod archives;
pub(crate) mod array_record;
mod arrays;
#[cfg(feature = "arrow")]
pub(crate) mod arrow;
mod bands;
mod beside;
pub(crate) mod beton;
mod box_fields;
mod boxed;
mod candidate;
mod caption_list;
mod captions;
mod cell_form;
mod choice;
pub(crate) mod cifar;
mod class_names;
mod clips;
mod coco;
mod coco_boxes;
mod coco_keypoints;
mod coco_outlines;
mod coco_rle;
mod column;
mod column_roles;
mod column_scan;
mod compressed;
mod csv_rows;
mod declared;
mod detect;
mod directory;
mod doubles;
mod encoding;
mod folder_labels;
mod folder_note;
mod folder_tables;
mod foreign;
mod found;
mod gather;
mod given;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod grid;
#[cfg(feature = "hdf5")]
pub(crate) mod hdf5;
mod id_column;
mod image_folder;
mod index_json;
mod indicators;
mod joined;
mod json_files;
mod json_rows;
mod karpathy;
mod key_split;
mod keyed_table;
mod keypoints;
mod label_fields;
mod labelled_table;
mod labels;
mod layout;
mod listed_folders;
mod listing;
mod lists;
pub(crate) mod litdata;
pub(crate) mod lmdb;
mod located;
mod look;
mod manifest;
mod mask_colors;
mod mask_files;
mod masks;
mod masks_beside;
pub(crate) mod matlab;
pub(crate) mod mds;
mod members;
mod mistaken;
pub(crate) mod mnist;
#[cfg(test)]
#[path = "tests/mutation.rs"]
mod mutation;
mod name_words;
mod narrow;
mod near_names;
mod nested;
pub(crate) mod npy;
pub(crate) mod npz;
mod numbered_labels;
mod numbers;
mod numerals;
mod oddities;
mod offers;
mod other_labels;
mod overlooked;
mod packed;
mod pairs;
#[cfg(feature = "arrow")]
pub(crate) mod parquet;
pub(crate) mod part;
pub(crate) mod paths;
mod per_file;
mod pickle;
mod pixel_rows;
mod portable;
mod protobuf;
pub(crate) mod pt;
pub(crate) mod ragged;
mod reading;
mod repeats;
mod rings;
mod roles;
mod root;
mod rows;
mod run_masks;
pub(crate) mod safetensors;
mod sample_table;
mod several;
mod shards;
mod sized_samples;
mod split;
mod spool;
pub(crate) mod store;
mod subset;
mod swapped;
#[cfg(feature = "arrow")]
mod table;
mod table_join;
mod table_note;
mod table_values;
mod taken;
mod tally;
mod tar;
pub(crate) mod tfrecord;
mod there;
pub(crate) mod torchvision;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod tree;
mod twins;
mod unlisted;
mod unpacker;
mod unread;
mod values;
mod versions;
mod walk;
mod warning;
pub(crate) mod webdataset;
mod whole;
mod wording;
#[cfg(feature = "zarr")]
pub(crate) mod zarr;
mod zip_dir;

#[cfg(test)]
mod tests;

pub(crate) use self::arrays::PATHS;
pub(crate) use self::box_fields::{AREA, CROWD};
pub(crate) use self::coco::EXPORTED as COCO_FILE;
pub(crate) use self::detect::Head;
pub(crate) use self::found::Found;
pub(crate) use self::index_json::INDEX;
pub(crate) use self::keyed_table::{ClassWord, KeyedTable};
pub(crate) use self::listing::{SourceField, append_stored};
pub(crate) use self::npy::array_of_npy;
pub(crate) use self::packed::Again;
pub(crate) use self::rings::{Ring, area};
pub(crate) use self::sample_table::SampleTable;
pub(crate) use self::shards::Shards;
pub(crate) use self::store::Store as ItemStore;
pub(crate) use self::table_values::{TableValues, field_of};
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) use self::tree::CLASSES_ATTRIBUTE;
pub(crate) use self::unread::Unread;
pub(crate) use self::whole::ReadWhole;
pub use self::{
    column::{ColumnValues, SourceColumn, TextArena},
    folder_note::FolderNote,
    given::{Given, GivenKind, GivenValue},
    listing::{Listing, Sample, SourceKind},
    reading::{Decision, Reading},
    roles::LABEL_NAMES,
    run_masks::MaskOrder,
    spool::Unpacking,
    table_note::TableNote,
    table_values::ValueType,
    warning::Warning,
};

use std::path::{Path, PathBuf};

use self::archive::Archive;
use self::candidate::SampleFiles;
use self::labelled_table::Tables;
use self::spool::SpoolFolder;
use crate::data_format::DataFormat;
use crate::error::{ConvertError, quoted};
use crate::formats::Input;
use crate::opt::{
    FROM, IMAGE_KEY, IMAGES, LABEL_KEY, LEAVE_OUT, MANY_SAMPLES_PER_FILE, MASK_KEY, MASKS, ONE_SAMPLE_PER_FILE, ROOT,
    SPLIT,
};

/// Options for listing a source.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// The source's format. `None` to detect it from content and name.
    pub from: Option<DataFormat>,
    /// List only this split: a subfolder of the source, the files whose names contain it, or a part of the file. Class ids are the
    /// same for all splits.
    pub split: Option<String>,
    /// The folder that a manifest's paths are relative to. `None` for the manifest's own folder.
    pub root: Option<PathBuf>,
    /// The field of images, or of their paths in a manifest. `None` to find it by name.
    pub image_key: Option<String>,
    /// The field of labels. `None` to find it by name.
    pub label_key: Option<String>,
    /// The field of masks, or of their paths in a manifest. `None` to find it by name.
    pub mask_key: Option<String>,
    /// The order of the pixels in run-length encoded masks. `None` to decide by the name of their column.
    pub mask_order: Option<MaskOrder>,
    /// The image folder inside the source. `None` to find it by name.
    pub images: Option<PathBuf>,
    /// The mask folder inside the source, with names like those of the images. `None` to find it by name.
    pub masks: Option<PathBuf>,
    /// Whether each file of arrays holds one sample rather than one per row. `None` to decide by the folders: true for files in class
    /// folders, false for others.
    pub one_sample_per_file: Option<bool>,
    /// Fields to exclude.
    pub leave_out: Vec<String>,
    /// Number of listing threads; 0 counts as 1. The listing does not depend on it.
    pub jobs: usize,
    /// The folder for temporary files, used for sources that must be unpacked. `None` for the system's folder.
    pub spool: Option<PathBuf>,
    /// Receives the progress of unpacking, and may stop it.
    pub unpacking: Unpacking,
}

impl ListOptions {
    /// Whether the field of this name is excluded.
    fn is_left_out(&self, name: &str) -> bool {
        self.leave_out.iter().any(|left_out| left_out == name)
    }

    /// Whether any option chooses or excludes fields.
    fn choose_fields(&self) -> bool {
        let keys = [&self.image_key, &self.label_key, &self.mask_key];
        keys.iter().any(|key| key.is_some()) || !self.leave_out.is_empty()
    }

    /// Whether a pack needs the field of this name: it has a name commonly used for images or labels, or was chosen by the caller.
    fn needs(&self, name: &str) -> bool {
        let keys = [&self.image_key, &self.label_key, &self.mask_key];
        let is_named = keys.iter().any(|key| key.as_deref() == Some(name));
        is_named || roles::is_image_name(name) || roles::is_label_name(name)
    }

    /// Refuses to exclude fields that `source` does not have.
    fn check_left_out(&self, source: &Path, names: &[String]) -> Result<(), ConvertError> {
        let missing = self.leave_out.iter().find(|name| !names.contains(name));
        missing.map_or(Ok(()), |name| {
            Err(ConvertError::LeftOutMissing { path: source.to_owned(), wanted: name.clone(), found: names.to_vec() })
        })
    }

    /// Checks the caller's keys for a source with fixed field names: `image`, and those in `labels`. Refuses all other keys.
    fn check_own_keys(&self, source: &Path, labels: &[&str]) -> Result<(), ConvertError> {
        let keys = [
            (&self.image_key, "images", &["image"][..]),
            (&self.label_key, "labels", labels),
            (&self.mask_key, "masks", &[]),
        ];
        let is_wrong =
            |key: &Option<String>, own: &[&str]| key.as_ref().is_some_and(|key| !own.contains(&key.as_str()));
        let wrong = keys.into_iter().find(|(key, _, own)| is_wrong(key, own));
        let Some((Some(key), part, _)) = wrong else {
            return Ok(());
        };
        let found = ["image"].iter().chain(labels);
        Err(ConvertError::KeyMissing {
            path: source.to_owned(),
            wanted: format!("'{key}' of {part}"),
            found: found.map(|name| (*name).to_owned()).collect(),
        })
    }

    /// The folder for unpacked sources.
    fn spool_folder(&self) -> SpoolFolder {
        SpoolFolder { path: self.spool.clone().unwrap_or_else(std::env::temp_dir), unpacking: self.unpacking.clone() }
    }
}

/// Lists the samples of a source.
///
/// # Errors
///
/// If the source is missing, empty, unreadable or damaged, lacks images, or has only splits and `options` chooses none. In a
/// manifest, malformed rows and missing files are errors too.
pub fn list(source: &Path, options: &ListOptions) -> Result<Listing, ConvertError> {
    let mut listing = in_archives(source, options, 0, &list_one, &|listing, change| change(listing))?;
    finish(&mut listing, options)?;
    Ok(listing)
}

/// Warns about lossy masks, reads the boxes in a column, and reads TIFF files with bands as arrays. The arrays keep the location of unpacked
/// archives, so this must follow `in_archives`.
fn finish(listing: &mut Listing, options: &ListOptions) -> Result<(), ConvertError> {
    listing.note_lossy_masks();
    boxed::find_objects(listing, options.jobs)?;
    listing.drop_outlines_without_boxes();
    bands::find(listing, options.jobs)
}

/// Applies a change to every listing in a `T`, the result of a function that lists a source.
type Each<'a, T> = &'a dyn Fn(T, &dyn Fn(Listing) -> Listing) -> T;

/// Lists a source with `list`. If a folder contains only one archive or dataset, that one is listed instead. An archive
/// or a folder of archives is unpacked first. The paths of its samples are then those in the source, not those in the
/// temporary folder.
fn in_archives<T>(
    source: &Path,
    options: &ListOptions,
    depth: usize,
    list: &dyn Fn(&Path, &ListOptions) -> Result<T, ConvertError>,
    each: Each<'_, T>,
) -> Result<T, ConvertError> {
    if let Some(inner) = archive::alone_in(source, options) {
        let path = inner.strip_prefix(source).unwrap_or(&inner).as_os_str().as_encoded_bytes().to_vec();
        let listed = in_archives(&inner, options, depth, list, each)?;
        return Ok(each(listed, &|mut listing| {
            listing.warnings.insert(0, Warning::OnlySource { path: path.clone() });
            listing
        }));
    }
    let opened = match Archive::find(source, options, depth)? {
        Some(archive) => archive.open(options)?,
        None => match archives::open(source, options, depth)? {
            Some(opened) => opened,
            None => return list(source, options).map_err(|error| explained_by_format(error, source, options)),
        },
    };
    let listed = in_archives(&opened.source, &opened.options(options), depth + 1, list, each);
    listed.map(|listed| each(listed, &|listing| opened.listing(listing))).map_err(|error| opened.error(error))
}

fn list_one(source: &Path, options: &ListOptions) -> Result<Listing, ConvertError> {
    let (format, input) = input(source, options)?;
    match boxed::of_folder(source, input, options)? {
        Some(Listed::One(listing)) => return Ok(*listing),
        Some(Listed::Splits(splits)) => return chosen_split(source, splits, None),
        None => {}
    }
    match labelled_table::of_folder(source, input, options) {
        Some(Tables::Splits(splits)) => chosen_split(source, splits, options.split.as_deref()),
        Some(Tables::Only(table)) => table.list(options),
        None => match list_input(source, (format, input), options)? {
            Listed::One(listing) => Ok(*listing),
            Listed::Splits(splits) => chosen_split(source, splits, options.split.as_deref()),
        },
    }
}

/// Lists a folder. If lists of images divide it into splits, lists the samples of each split.
fn list_folder(source: &Path, options: &ListOptions) -> Result<Listed, ConvertError> {
    let found = image_folder::list_source(source, options, SampleFiles::Images);
    let mut listing = labelled_table::instead(source, &found, options).unwrap_or(found)?;
    check_keys(&listing, options)?;
    let division = if options.from.is_none() { split::lists::find(source, &mut listing)? } else { None };
    let division = division.or_else(|| table_join::division(&mut listing));
    offers::check(source, std::iter::once(&mut listing), options)?;
    Ok(match division {
        Some(division) => Listed::Splits(division.divide(&listing)),
        None => Listed::one(listing),
    })
}

/// The splits of a folder that lists of images divide. `missing` is the error about missing split folders.
///
/// # Errors
/// `missing` itself, if it is another error than `SplitMissing`, or if no lists divide the folder.
fn listed_splits(
    source: &Path,
    options: &ListOptions,
    missing: ConvertError,
) -> Result<Vec<(String, Listing)>, ConvertError> {
    let options = ListOptions { split: None, ..options.clone() };
    match (missing, list_folder(source, &options)) {
        (ConvertError::SplitMissing { .. }, Ok(Listed::Splits(splits))) => Ok(splits),
        (missing, _) => Err(missing),
    }
}

/// Lists the samples of a source that is not read from tables in its folder.
fn list_input(
    source: &Path,
    (format, input): (DataFormat, &'static Input),
    options: &ListOptions,
) -> Result<Listed, ConvertError> {
    match (input, &options.split) {
        (Input::Folder, None) => list_folder(source, options),
        (Input::Folder, Some(split)) => {
            let mut listing = match split::list_one(source, split, options, SampleFiles::Images) {
                Err(missing) => return listed_splits(source, options, missing).map(Listed::Splits),
                Ok(listing) => listing,
            };
            check_keys(&listing, options)?;
            offers::check(source, std::iter::once(&mut listing), options)?;
            Ok(Listed::one(listing))
        }
        (Input::Manifest, split) => {
            let mut listing = manifest::list(source, manifest_form(source)?, options)?;
            if split.is_none() {
                unlisted::note(&mut listing);
            }
            masks_beside::note(&mut listing, options);
            Ok(Listed::one(listing))
        }
        (Input::Samples { parts, read: of, whole }, split) => {
            if let Some(whole) = whole::Format::meant(format, *whole, source, options)? {
                return match split {
                    None => {
                        let found = whole.list(source, options);
                        labelled_table::instead(source, &found, options).unwrap_or(found)
                    }
                    Some(split) => whole.list_split(source, split, options),
                }
                .map(Listed::one);
            }
            let parts = parts(source, options)?;
            let part = match (split, by_key(&parts, options)) {
                (None, Some(part)) => part,
                (split, _) => choose(source, &parts, split.as_deref())?,
            };
            let others = parts.iter().filter(|other| part.split.is_some() && other.split.is_some());
            let others: Vec<&Shards> = others.filter(|other| other.split != part.split).collect();
            let listing = list_part(source, (part, of, format), &others, options)?;
            Ok(Listed::one(listing))
        }
    }
}

/// The chosen one of several splits.
fn chosen_split(source: &Path, splits: Vec<(String, Listing)>, wanted: Option<&str>) -> Result<Listing, ConvertError> {
    let names: Vec<String> = splits.iter().map(|(name, _)| name.clone()).collect();
    let Some(wanted) = wanted else {
        return Err(ConvertError::SeveralSplits { path: source.to_owned(), splits: names, and: "" });
    };
    let chosen = splits.into_iter().find(|(name, _)| name == wanted);
    chosen.map(|(_, listing)| listing).ok_or_else(|| no_split(source, wanted, names))
}

/// The source's format and its reader.
fn input(source: &Path, options: &ListOptions) -> Result<(DataFormat, &'static Input), ConvertError> {
    let format = source_format(source, options)?;
    if !format.is_source() {
        let hint = format!("leave out {}: folders of this format are read as image folders", FROM.with(format));
        return Err(ConvertError::options(format!("there is no reader for {format} alone"), hint));
    }
    let lacking = || ConvertError::FormatLeftOut { path: source.to_owned(), format };
    Ok((format, format.entry().input.as_ref().ok_or_else(lacking)?))
}

/// Lists every split of a source, in name order. All splits share one class list, the sorted class names of all splits, so that ids
/// agree. A split without class folders is listed without labels.
///
/// # Errors
///
/// The errors of [`list`], and an error if the source has no splits.
pub fn list_splits(source: &Path, options: &ListOptions) -> Result<Vec<(String, Listing)>, ConvertError> {
    let mut splits = in_archives(source, options, 0, &list_each, &each_split)?;
    splits.iter_mut().try_for_each(|(_, listing)| finish(listing, options))?;
    Ok(splits)
}

fn each_split(splits: Vec<(String, Listing)>, change: &dyn Fn(Listing) -> Listing) -> Vec<(String, Listing)> {
    splits.into_iter().map(|(split, listing)| (split, change(listing))).collect()
}

/// What a source contains.
#[derive(Debug)]
pub enum Listed {
    /// One set of samples.
    One(Box<Listing>),
    /// Several splits, in name order.
    Splits(Vec<(String, Listing)>),
}

impl Listed {
    fn one(listing: Listing) -> Self {
        Self::One(Box::new(listing))
    }

    /// The warning that every split is read, and how to read only one.
    #[must_use]
    pub fn choice(&self) -> Option<String> {
        let Self::Splits(splits) = self else { return None };
        let names: Vec<String> = splits.iter().map(|(name, _)| name.clone()).collect();
        Some(format!(
            "found the splits {}: each gets its own pack; {} writes only one",
            quoted(&names),
            SPLIT.with("NAME")
        ))
    }
}

/// Lists a source: each split if the source clearly consists of splits, otherwise its samples.
///
/// # Errors
///
/// The errors of [`list`], and an error if a source with splits also has samples outside them, or a table that may have the labels.
pub fn list_all(source: &Path, options: &ListOptions) -> Result<Listed, ConvertError> {
    let each = |listed, change: &dyn Fn(Listing) -> Listing| match listed {
        Listed::One(listing) => Listed::One(Box::new(change(*listing))),
        Listed::Splits(splits) => Listed::Splits(each_split(splits, change)),
    };
    let mut listed = in_archives(source, options, 0, &list_one_or_each, &each)?;
    match &mut listed {
        Listed::One(listing) => finish(listing, options)?,
        Listed::Splits(splits) => splits.iter_mut().try_for_each(|(_, listing)| finish(listing, options))?,
    }
    Ok(listed)
}

fn list_one_or_each(source: &Path, options: &ListOptions) -> Result<Listed, ConvertError> {
    let (format, input) = input(source, options)?;
    if let Some(listed) = boxed::of_folder(source, input, options)? {
        return Ok(match listed {
            Listed::Splits(splits) => one_or_each(splits),
            listed => listed,
        });
    }
    let listed = match (labelled_table::of_folder(source, input, options), &options.split) {
        (Some(Tables::Splits(splits)), None) => return Ok(Listed::Splits(splits)),
        (Some(Tables::Splits(splits)), wanted) => chosen_split(source, splits, wanted.as_deref()).map(Listed::one),
        (Some(Tables::Only(table)), _) => table.list(options).map(Listed::one),
        (None, Some(wanted)) => match list_input(source, (format, input), options)? {
            Listed::Splits(splits) => chosen_split(source, splits, Some(wanted)).map(Listed::one),
            listed => Ok(listed),
        },
        (None, None) => list_input(source, (format, input), options),
    };
    match listed {
        Err(error) if error.has_only_splits() => {}
        listed => return listed,
    }
    list_each(source, options).map(one_or_each)
}

/// The listing of the only split, or those of all splits.
fn one_or_each(splits: Vec<(String, Listing)>) -> Listed {
    match <[_; 1]>::try_from(splits) {
        Ok([(split, mut listing)]) => {
            listing.warnings.push(Warning::OnlySplit { split });
            Listed::one(listing)
        }
        Err(splits) => Listed::Splits(splits),
    }
}

/// Adds the detected format to the error if `options` choose a different one.
fn explained_by_format(error: ConvertError, source: &Path, options: &ListOptions) -> ConvertError {
    let Some(from) = options.from else {
        return error;
    };
    match detect::detect(source) {
        // Any folder is detected as an image folder.
        Ok(found) if found != from && found != DataFormat::ImageFolder => error.of_other_format(found),
        _ => error,
    }
}

fn list_each(source: &Path, options: &ListOptions) -> Result<Vec<(String, Listing)>, ConvertError> {
    let (format, input) = input(source, options)?;
    match boxed::of_folder(source, input, options)? {
        Some(Listed::Splits(splits)) => return Ok(splits),
        Some(Listed::One(_)) => return Err(no_split(source, "all", Vec::new())),
        None => {}
    }
    match labelled_table::of_folder(source, input, options) {
        Some(Tables::Only(table)) => return table.list_splits(options),
        Some(Tables::Splits(splits)) => return Ok(splits),
        None => {}
    }
    match input {
        Input::Folder => {
            let mut splits = match split::list_all(source, options, SampleFiles::Images) {
                Err(missing) => return listed_splits(source, options, missing),
                Ok(splits) => splits,
            };
            splits.iter().try_for_each(|(_, listing)| check_keys(listing, options))?;
            offers::check(source, splits.iter_mut().map(|(_, listing)| listing), options)?;
            Ok(splits)
        }
        Input::Manifest => {
            let mut splits = manifest::list_splits(source, manifest_form(source)?, options)?;
            splits.iter_mut().for_each(|(_, listing)| masks_beside::note(listing, options));
            Ok(splits)
        }
        Input::Samples { parts, read: of, whole } => {
            if let Some(whole) = whole::Format::meant(format, *whole, source, options)? {
                return whole.list_splits(source, options);
            }
            let parts = parts(source, options)?;
            let mut listings = Vec::new();
            for part in &parts {
                let Some(split) = &part.split else {
                    return Err(match parts.len() {
                        1 => no_split(source, "all", Vec::new()),
                        _ => several_splits(source, &parts),
                    });
                };
                listings.push((split.clone(), list_part(source, (part, of, format), &[], options)?));
            }
            split::unite_classes(&mut listings);
            Ok(listings)
        }
    }
}

/// The format of `source`, from `options` or detected.
///
/// # Errors
/// If the source is missing, its format is unrecognized, or the options do not suit it.
pub fn source_format(source: &Path, options: &ListOptions) -> Result<DataFormat, ConvertError> {
    let format = match options.from {
        Some(format) => format,
        None => detect::detect(source)?,
    };
    let keys = [&options.image_key, &options.label_key, &options.mask_key];
    let is_twice = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
    let [image, label, mask] = keys;
    let has_folders = format == DataFormat::ImageFolder || format.may_hold_one_sample();
    let (reason, hint) = match format {
        _ if is_twice(image, label) || is_twice(image, mask) || is_twice(label, mask) => (
            format!("{IMAGE_KEY}, {LABEL_KEY} and {MASK_KEY} must name different fields"),
            "choose another field, or omit one of these options",
        ),
        DataFormat::ImageFolder if options.from.is_some() && options.choose_fields() => return Err(no_fields()),
        _ if options.one_sample_per_file.is_some() && !format.may_hold_one_sample() => (
            format!(
                "{ONE_SAMPLE_PER_FILE} and {MANY_SAMPLES_PER_FILE} apply only to files of arrays, and this is {format}"
            ),
            "omit them",
        ),
        _ if !has_folders && (options.images.is_some() || options.masks.is_some()) => {
            (format!("{IMAGES} and {MASKS} apply only to folders of image files, and this is {format}"), "omit them")
        }
        DataFormat::Manifest => return Ok(format),
        _ if options.mask_order.is_some() && (format != DataFormat::ImageFolder || options.from.is_some()) => {
            return Err(run_masks::no_column());
        }
        _ if options.root.is_some() => {
            (format!("{ROOT} applies only to manifests"), "omit it, or pass a .csv, .tsv or .jsonl manifest")
        }
        _ => return Ok(format),
    };
    Err(ConvertError::Options { reason, hint: hint.to_owned() })
}

/// Refuses options that choose fields if a folder is not read from a table.
fn check_keys(listing: &Listing, options: &ListOptions) -> Result<(), ConvertError> {
    match listing.kind {
        SourceKind::Manifest => Ok(()),
        _ if options.mask_order.is_some() => Err(run_masks::no_column()),
        _ if options.choose_fields() => Err(no_fields()),
        _ => Ok(()),
    }
}

fn no_fields() -> ConvertError {
    let reason = format!(
        "{IMAGE_KEY}, {LABEL_KEY}, {MASK_KEY} and {LEAVE_OUT} need a source with fields, and a folder has none"
    );
    let hint = "omit them, or pass a manifest or another file as the source".to_owned();
    ConvertError::Options { reason, hint }
}

/// The requested part, or the only one.
fn choose<'a>(source: &Path, parts: &'a [Shards], wanted: Option<&str>) -> Result<&'a Shards, ConvertError> {
    match (parts, wanted) {
        ([part], None) => Ok(part),
        (parts, None) => Err(several_splits(source, parts)),
        (parts, Some(wanted)) => {
            let found = parts.iter().find(|p| p.split.as_deref() == Some(wanted));
            let available = || parts.iter().filter_map(|part| part.split.clone()).collect();
            found.ok_or_else(|| no_split(source, wanted, available()))
        }
    }
}

/// The part of a file of arrays that contains the requested image key.
fn by_key<'a>(parts: &'a [Shards], options: &ListOptions) -> Option<&'a Shards> {
    let key = options.image_key.as_ref()?;
    let split = key_split::split_of_key(key);
    let is_named = |part: &&Shards| part.split == split;
    parts.iter().find(is_named).filter(|_| are_of_one_file(parts))
}

fn are_of_one_file(parts: &[Shards]) -> bool {
    parts.windows(2).all(|pair| matches!(pair, [a, b] if a.files == b.files))
}

/// The error for a source with several parts. At most one part has no split.
fn several_splits(source: &Path, parts: &[Shards]) -> ConvertError {
    let and = match parts.iter().any(|part| part.split.is_none()) {
        true if are_of_one_file(parts) => ", and arrays that belong to no split",
        true => ", and files that belong to no split",
        false => "",
    };
    ConvertError::SeveralSplits {
        path: source.to_owned(),
        splits: parts.iter().filter_map(|part| part.split.clone()).collect(),
        and,
    }
}

/// Lists the samples of one part. Classes without a list have the ids that they have among those of all parts, of which `others` are
/// the others.
fn list_part(
    source: &Path,
    (part, of, format): (&Shards, impl Fn(&Shards, &ListOptions) -> Result<Found, ConvertError>, DataFormat),
    others: &[&Shards],
    options: &ListOptions,
) -> Result<Listing, ConvertError> {
    let found = read(part, of, options)?;
    let class_field = found.class_field();
    let mut listing = found.into_listing(source)?;
    if let Some(field) = class_field.filter(|_| !others.is_empty()) {
        split::class_ids::agree(&mut listing, &field, (others, format.entry().class_names), options);
    }
    listing.warnings.extend(unread::others_in(source, listing.kind));
    // Other formats may keep each field in a file of its own.
    let has_whole_samples = matches!(
        format,
        DataFormat::Npz
            | DataFormat::Hdf5
            | DataFormat::Parquet
            | DataFormat::Arrow
            | DataFormat::Safetensors
            | DataFormat::TfRecord
    );
    listing.warnings.extend(part.note_names().filter(|_| has_whole_samples));
    Ok(listing)
}

/// Finds the samples of one part. Returns an error if the caller chose a mask field, but the part has no masks.
fn read(
    part: &Shards,
    read: impl Fn(&Shards, &ListOptions) -> Result<Found, ConvertError>,
    options: &ListOptions,
) -> Result<Found, ConvertError> {
    let mut found = read(part, options)?;
    if matches!(found.kind, SourceKind::Container(format) if format.may_hold_one_sample()) {
        per_file::refuse_one(&found, part, options)?;
    }
    found.take_label_field(&part.root, options.label_key.as_deref())?;
    match &options.mask_key {
        Some(key) if found.masks.is_none() => Err(ConvertError::unsupported(
            &part.root,
            key,
            "expected masks that are image files or two-dimensional arrays, found none",
            format!("choose another field with {MASK_KEY}, or omit {MASK_KEY}"),
        )),
        _ => Ok(found),
    }
}

fn manifest_form(source: &Path) -> Result<rows::RowForm, ConvertError> {
    rows::RowForm::of_source(source).ok_or_else(|| ConvertError::UnknownFormat {
        path: source.to_owned(),
        found: "the name of a manifest ends in .csv, .tsv, .txt, .json, .jsonl or .ndjson".to_owned(),
    })
}

fn no_split(source: &Path, wanted: &str, available: Vec<String>) -> ConvertError {
    ConvertError::SplitMissing { path: source.to_owned(), wanted: wanted.to_owned(), available }
}
