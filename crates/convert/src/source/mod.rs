//! Where samples come from: lists the samples of a folder, a manifest or a file of another format, with labels, in a
//! fixed order, and knows where each lies.
//!
//! Not for decoding images: of a folder an image is opened here only if its name does not say that it is one.
//!
//! Each format has a module of its own, which finds the samples (`found::Found`) and where their bytes are
//! (`store::Store`): read in place where the format lets them be read in any order, unpacked into a temporary file
//! (`spool::Spool`) where it does not.
//!
//! A folder of class folders is read as torchvision's `ImageFolder` reads it: the classes are the
//! subfolders in name order, hidden ones and links to folders included, and a class's id is its
//! place in that order; within a class, folders come in the order of their whole paths and files
//! in name order within each. Names are compared byte by byte, which for UTF-8 is the order in
//! which Python sorts strings; where a name is not UTF-8, Python may order differently.
//!
//! Links are followed. A link from which a walk would come back to a folder it is in is an error.

mod arrays;
#[cfg(feature = "arrow")]
pub(crate) mod arrow;
mod beside;
mod candidate;
pub(crate) mod cifar;
mod column;
mod csv_rows;
mod detect;
mod directory;
mod found;
mod gather;
mod given;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod grid;
#[cfg(feature = "hdf5")]
pub(crate) mod hdf5;
mod image_folder;
mod key_split;
mod labels;
mod listing;
pub(crate) mod lmdb;
mod manifest;
pub(crate) mod mnist;
#[cfg(test)]
mod mutation;
mod narrow;
pub(crate) mod npy;
pub(crate) mod npz;
mod numbers;
mod overlooked;
#[cfg(feature = "arrow")]
pub(crate) mod parquet;
mod paths;
mod pickle;
mod protobuf;
pub(crate) mod pt;
mod roles;
mod root;
mod rows;
pub(crate) mod safetensors;
mod shards;
mod split;
mod spool;
pub(crate) mod store;
mod swapped;
#[cfg(feature = "arrow")]
mod table;
mod tar;
pub(crate) mod tfrecord;
mod there;
pub(crate) mod torchvision;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod tree;
mod values;
mod walk;
mod warning;
pub(crate) mod webdataset;
#[cfg(feature = "zarr")]
pub(crate) mod zarr;
mod zip_dir;

#[cfg(test)]
mod tests;

pub(crate) use self::arrays::PATHS;
pub(crate) use self::detect::Head;
pub(crate) use self::found::Found;
pub(crate) use self::listing::{SourceField, append_stored};
pub(crate) use self::shards::Shards;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) use self::tree::CLASSES_ATTRIBUTE;
pub use self::{
    column::{ColumnValues, SourceColumn, TextArena},
    given::{Given, GivenKind, GivenValue},
    listing::{Listing, Sample, SourceKind},
    roles::LABEL_NAMES,
    spool::Unpacking,
    warning::Warning,
};

use std::path::{Path, PathBuf};

use self::spool::SpoolFolder;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::formats::Input;

/// What to list and how.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// The source's format; found by its content and name if none.
    pub from: Option<DataFormat>,
    /// List only this split: a subfolder of the source, the files whose names start with it, or a part of the file. Class
    /// ids are those of the classes of all splits together.
    pub split: Option<String>,
    /// The folder to which a manifest's paths are relative; the manifest's own folder if none.
    pub root: Option<PathBuf>,
    /// The field of images, or of their paths in a manifest; found by its name if none.
    pub image_key: Option<String>,
    /// The field of labels; found by its name if none.
    pub label_key: Option<String>,
    /// The field of masks, or of their paths in a manifest; found by its name if none.
    pub mask_key: Option<String>,
    /// Fields that are not packed.
    pub leave_out: Vec<String>,
    /// How many threads list; 0 counts as 1. The listing does not depend on it.
    pub jobs: usize,
    /// The folder for a temporary file, where the source has to be unpacked first; the system's if none.
    pub spool: Option<PathBuf>,
    /// Who is told how much was unpacked.
    pub unpacking: Unpacking,
}

impl ListOptions {
    /// Whether a field of this name is not to be packed.
    fn is_left_out(&self, name: &str) -> bool {
        self.leave_out.iter().any(|left_out| left_out == name)
    }

    /// Whether there is no pack without a field of this name: customary images and labels, and what the caller named.
    fn needs(&self, name: &str) -> bool {
        let keys = [&self.image_key, &self.label_key, &self.mask_key];
        let is_named = keys.iter().any(|key| key.as_deref() == Some(name));
        is_named || roles::is_image_name(name) || roles::is_label_name(name)
    }

    /// Refuses fields to be left out that are not among those of `source`.
    fn check_left_out(&self, source: &Path, names: &[String]) -> Result<(), ConvertError> {
        let missing = self.leave_out.iter().find(|name| !names.contains(name));
        missing.map_or(Ok(()), |name| {
            Err(ConvertError::LeftOutMissing {
                path: source.to_owned(),
                wanted: name.clone(),
                found: names.to_vec(),
            })
        })
    }

    /// Refuses keys that name anything but the fields of a source whose fields are always called `image` and as these
    /// labels are.
    fn check_own_keys(&self, source: &Path, labels: &[&str]) -> Result<(), ConvertError> {
        let keys = [
            (&self.image_key, "images", &["image"][..]),
            (&self.label_key, "labels", labels),
            (&self.mask_key, "masks", &[]),
        ];
        let is_wrong = |key: &Option<String>, own: &[&str]| {
            key.as_ref().is_some_and(|key| !own.contains(&key.as_str()))
        };
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

    /// Where sources are unpacked.
    fn spool_folder(&self) -> SpoolFolder {
        SpoolFolder {
            path: self.spool.clone().unwrap_or_else(std::env::temp_dir),
            unpacking: self.unpacking.clone(),
        }
    }
}

/// Lists the samples of a source.
///
/// # Errors
///
/// If the source is missing, empty, unreadable or damaged, has only splits and `options` chooses none, lacks the field of
/// images, or, for a manifest, if any row is malformed or names a file that is not there.
pub fn list(source: &Path, options: &ListOptions) -> Result<Listing, ConvertError> {
    list_one(source, options).map_err(|error| told_by_format(error, source, options))
}

fn list_one(source: &Path, options: &ListOptions) -> Result<Listing, ConvertError> {
    match (input(source, options)?, &options.split) {
        (Input::Folder, None) => image_folder::list_source(source, options.jobs),
        (Input::Folder, Some(split)) => split::list_one(source, split, options.jobs),
        (Input::Manifest, None) => manifest::list(source, manifest_form(source)?, options),
        (Input::Manifest, Some(split)) => Err(no_splits(source, split)),
        (Input::Samples { parts, read: of }, split) => {
            let parts = parts(source, options)?;
            let part = match (split, by_key(&parts, options)) {
                (None, Some(part)) => part,
                (split, _) => choose(source, &parts, split.as_deref())?,
            };
            read(part, of, options)?.into_listing(source)
        }
    }
}

/// How the source is read.
fn input(source: &Path, options: &ListOptions) -> Result<&'static Input, ConvertError> {
    let format = source_format(source, options)?;
    let lacking = || ConvertError::FormatLeftOut {
        path: source.to_owned(),
        format,
    };
    format.entry().input.as_ref().ok_or_else(lacking)
}

/// Lists every split of a source, in name order. The class list is the same in each: the sorted names of the classes of
/// all splits, so that ids agree. A split of a folder without class folders is listed without labels.
///
/// # Errors
///
/// As [`list`], and if the source has no splits.
pub fn list_splits(
    source: &Path,
    options: &ListOptions,
) -> Result<Vec<(String, Listing)>, ConvertError> {
    list_each(source, options).map_err(|error| told_by_format(error, source, options))
}

/// The error, with the format that the source looks like where `options` name another one.
fn told_by_format(error: ConvertError, source: &Path, options: &ListOptions) -> ConvertError {
    let Some(from) = options.from else {
        return error;
    };
    match detect::detect(source) {
        // A folder of whatever is taken for one of images.
        Ok(found) if found != from && found != DataFormat::ImageFolder => {
            error.of_other_format(found)
        }
        _ => error,
    }
}

fn list_each(source: &Path, options: &ListOptions) -> Result<Vec<(String, Listing)>, ConvertError> {
    match input(source, options)? {
        Input::Folder => split::list_all(source, options.jobs),
        Input::Manifest => Err(no_splits(source, "all")),
        Input::Samples { parts, read: of } => {
            let parts = parts(source, options)?;
            let mut listings = Vec::new();
            for part in &parts {
                let Some(split) = &part.split else {
                    return Err(match parts.len() {
                        1 => no_splits(source, "all"),
                        _ => several_splits(source, &parts),
                    });
                };
                let listing = read(part, of, options)?.into_listing(source)?;
                listings.push((split.clone(), listing));
            }
            split::unite_classes(&mut listings);
            Ok(listings)
        }
    }
}

/// The format of `source`, which is what `options` say or what it looks like.
///
/// # Errors
/// If the source is missing or of no known format, or the options do not go with it.
pub fn source_format(source: &Path, options: &ListOptions) -> Result<DataFormat, ConvertError> {
    let format = match options.from {
        Some(format) => format,
        None => detect::detect(source)?,
    };
    let keys = [&options.image_key, &options.label_key, &options.mask_key];
    let keyed = keys.iter().any(|key| key.is_some()) || !options.leave_out.is_empty();
    let is_twice = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
    let [image, label, mask] = keys;
    let (reason, hint) = match format {
        _ if is_twice(image, label) || is_twice(image, mask) || is_twice(label, mask) => (
            "two of --image-key, --label-key and --mask-key name the same field",
            "name another field, or leave one of them out",
        ),
        DataFormat::ImageFolder if keyed => (
            "--image-key, --label-key, --mask-key and --leave-out are for sources with fields, and a folder has none",
            "leave them out, or name a manifest or another file",
        ),
        DataFormat::Manifest => return Ok(format),
        _ if options.root.is_some() => (
            "--root is for manifests",
            "leave it out, or name a .csv, .tsv or .jsonl manifest",
        ),
        _ => return Ok(format),
    };
    Err(ConvertError::Options {
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    })
}

/// The part that is asked for, or the only one.
fn choose<'a>(
    source: &Path,
    parts: &'a [Shards],
    wanted: Option<&str>,
) -> Result<&'a Shards, ConvertError> {
    match (parts, wanted) {
        ([part], None) => Ok(part),
        (parts, None) => Err(several_splits(source, parts)),
        (parts, Some(wanted)) => {
            let found = parts.iter().find(|p| p.split.as_deref() == Some(wanted));
            found.ok_or_else(|| ConvertError::SplitMissing {
                path: source.to_owned(),
                wanted: wanted.to_owned(),
                available: parts.iter().filter_map(|p| p.split.clone()).collect(),
            })
        }
    }
}

/// The part of a file whose arrays are several, where the key for images names an array of it.
fn by_key<'a>(parts: &'a [Shards], options: &ListOptions) -> Option<&'a Shards> {
    let (first, key) = (parts.first()?, options.image_key.as_ref()?);
    let are_of_one_file = parts.iter().all(|part| part.files == first.files);
    let split = key_split::split_of_key(key);
    let is_named = |part: &&Shards| part.split == split;
    parts.iter().find(is_named).filter(|_| are_of_one_file)
}

/// That a source has several parts, of which one may be of no split.
fn several_splits(source: &Path, parts: &[Shards]) -> ConvertError {
    let first = parts.first().map(|part| part.files.as_slice());
    let are_of_one_file = parts
        .iter()
        .all(|part| Some(part.files.as_slice()) == first);
    let and = match parts.iter().any(|part| part.split.is_none()) {
        true if are_of_one_file => ", and arrays of none of them",
        true => ", and files of none of them",
        false => "",
    };
    ConvertError::SeveralSplits {
        path: source.to_owned(),
        splits: parts.iter().filter_map(|part| part.split.clone()).collect(),
        and,
    }
}

/// Finds the samples of one part, with masks if they were named.
fn read(
    part: &Shards,
    read: impl Fn(&Shards, &ListOptions) -> Result<Found, ConvertError>,
    options: &ListOptions,
) -> Result<Found, ConvertError> {
    let found = read(part, options)?;
    match &options.mask_key {
        Some(key) if found.masks.is_none() => Err(ConvertError::unsupported(
            &part.root,
            key,
            "expected masks as image files or u8 arrays of two dimensions, found none",
            "name another field with --mask-key, or leave it out",
        )),
        _ => Ok(found),
    }
}

fn manifest_form(source: &Path) -> Result<rows::RowForm, ConvertError> {
    rows::RowForm::from_path(source).ok_or_else(|| ConvertError::UnknownFormat {
        path: source.to_owned(),
        found: "a manifest's name ends in .csv, .tsv, .jsonl or .ndjson".to_owned(),
    })
}

fn no_splits(source: &Path, wanted: &str) -> ConvertError {
    ConvertError::SplitMissing {
        path: source.to_owned(),
        wanted: wanted.to_owned(),
        available: Vec::new(),
    }
}
