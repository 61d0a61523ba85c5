//! Folders with boxes in separate files: YOLO, Pascal VOC, LabelMe, COCO and Open Images. Finds the layout, and makes one listing for each split.
//!
//! Each layout has its own module, which finds the parts of the folder and reads the file of an image. `parts` pairs images with
//! their files, and `collected` turns boxes into fields.

mod box_table;
mod coco_folder;
mod collected;
mod data_yaml;
mod fractions;
mod labelme;
mod objects;
mod open_images;
mod parts;
mod voc;
mod yolo;
mod yolo_line;

use std::path::{Path, PathBuf};

use packds_format::Keypoints;

use self::collected::{BoxSet, Classes, Remark};
use self::parts::{Images, Part};
use super::candidate::SampleFiles;
use super::directory::Directory;
use super::folder_note::FolderNote;
use super::image_folder::known_metadata;
use super::layout::{MAX_DEPTH, inside};
use super::paths::lossy;
use super::split::{lists, split_names};
use super::warning::Warning;
use super::{ListOptions, Listed, Listing, no_split};
use crate::error::ConvertError;
use crate::formats::Input;

pub(super) use self::objects::find as find_objects;
pub(super) use self::voc::has_annotations;
pub(super) use self::yolo::is_data_yaml;

/// Lists a folder with boxes in separate files. `None` for other folders, and if options determine how the folder is read.
///
/// # Errors
/// If a file of boxes is malformed, or describes an image that does not exist.
pub(super) fn of_folder(source: &Path, input: &Input, options: &ListOptions) -> Result<Option<Listed>, ConvertError> {
    let is_chosen = options.from.is_some() || options.images.is_some() || options.masks.is_some();
    if !matches!(input, Input::Folder) || is_chosen || !source.is_dir() {
        return Ok(None);
    }
    let (mut folder, mut wrapper) = (source.to_owned(), None);
    for _ in 0..=MAX_DEPTH {
        let top = Top::at(&folder)?;
        if known_metadata(&folder)?.is_some() {
            return Ok(None);
        }
        if let Some(mut listed) = of_top(&top, options)? {
            let is_inside = |folder| Warning::Wrapper { folder };
            listed.each(|listing| listing.warnings.extend(wrapper.clone().map(is_inside)));
            return listed.wanted(source, options.split.as_deref()).map(Some);
        }
        let [only] = top.folders.as_slice() else {
            return refuse_several(&top).map(|()| None);
        };
        if top.directory.sample_names().next().is_some() {
            return Ok(None);
        }
        folder = inside(&folder, only);
        wrapper = Some(only.clone());
    }
    Ok(None)
}

/// Refuses folders of Pascal VOC next to each other, such as `VOC2007` and `VOC2012`, because they are not classes.
fn refuse_several(top: &Top) -> Result<(), ConvertError> {
    let mut sets = top.folders.iter().filter(|folder| has_annotations(&inside(&top.path, folder)));
    let (Some(one), Some(other)) = (sets.next(), sets.next()) else { return Ok(()) };
    let [one, other] = [one, other].map(|folder| lossy(folder));
    let reason = format!("'{one}' and '{other}' are data sets with boxes of their own");
    let hint = format!("pass each folder, such as '{one}', and join the packs with packds merge");
    Err(ConvertError::contradictory(&top.path, "", reason, hint))
}

/// A folder, and the names of its visible subfolders, sorted.
pub(super) struct Top {
    path: PathBuf,
    directory: Directory,
    folders: Vec<Vec<u8>>,
}

impl Top {
    fn at(path: &Path) -> Result<Self, ConvertError> {
        let directory = Directory::scan(path, b"", SampleFiles::Images)?;
        let mut folders = directory.subdirectories.clone();
        folders.retain(|name| !name.starts_with(b"."));
        folders.sort_unstable();
        Ok(Self { path: path.to_owned(), directory, folders })
    }

    /// The subfolders that are splits, if there are any.
    fn splits(&self) -> Vec<String> {
        split_names(&self.directory)
    }

    fn find(&self, is_one: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
        self.folders.iter().map(Vec::as_slice).find(|name| is_one(name))
    }
}

/// Lists a folder of one of the layouts.
fn of_top(top: &Top, options: &ListOptions) -> Result<Option<Listed>, ConvertError> {
    if let Some(listed) = coco_folder::list(top, options)? {
        return Ok(Some(listed));
    }
    for find in [open_images::find, yolo::find, voc::find, labelme::find] {
        if let Some(found) = find(top, options)? {
            return found.list(top, options).map(Some);
        }
    }
    Ok(None)
}

/// A data set of one of the layouts.
struct Found {
    parts: Vec<Part>,
    reader: Box<dyn Reader>,
    /// Warnings about the whole folder.
    notes: Vec<FolderNote>,
}

/// Reads the file of an image.
trait Reader: Sync {
    /// The boxes in the file at `path`, which is the file of `image`. `None` if there is no such file.
    fn read(&self, path: &Path, image: &Path) -> Result<Option<BoxSet>, ConvertError>;

    fn classes(&self) -> Classes;

    /// What the boxes and their classes are, for a warning.
    fn about(&self) -> String;

    /// The names of the keypoints.
    fn keypoints(&self) -> Option<Keypoints> {
        None
    }

    /// The extension of the files.
    fn extension(&self) -> &'static str;

    /// Number of other files with this extension that were read.
    fn n_others(&self) -> u64 {
        0
    }

    /// What else was seen in a part, and how often.
    fn remark(&self, _split: Option<&str>, _images: &Images) -> Option<(Remark, u64)> {
        None
    }

    /// A field that is read in place of the boxes unless it is left out.
    fn in_place(&self) -> Option<&'static str> {
        None
    }
}

impl Found {
    /// Reads all files, and makes one listing for each split.
    fn list(self, top: &Top, options: &ListOptions) -> Result<Listed, ConvertError> {
        let Self { parts, reader, notes } = self;
        let mut listings = collected::list(&top.path, parts, reader.as_ref(), options)?;
        for (_, listing) in &mut listings {
            listing.warnings.extend(notes.iter().cloned().map(Warning::Folders));
        }
        if let [(None, listing)] = listings.as_mut_slice() {
            let division = lists::find(&top.path, listing)?;
            let (_, listing) = listings.swap_remove(0);
            return Ok(match division {
                Some(division) => Listed::Splits(division.divide(&listing)),
                None => Listed::one(listing),
            });
        }
        Ok(splits_of(listings))
    }
}

/// The listings of splits, in name order.
fn splits_of(listings: Vec<(Option<String>, Listing)>) -> Listed {
    let named = |(split, listing): (Option<String>, Listing)| (split.unwrap_or_default(), listing);
    let mut splits: Vec<(String, Listing)> = listings.into_iter().map(named).collect();
    splits.sort_by(|(one, _), (other, _)| one.cmp(other));
    Listed::Splits(splits)
}

impl Listed {
    /// Changes every listing.
    fn each(&mut self, mut change: impl FnMut(&mut Listing)) {
        match self {
            Self::One(listing) => change(listing),
            Self::Splits(splits) => splits.iter_mut().for_each(|(_, listing)| change(listing)),
        }
    }

    /// The listing of the wanted split, if a split is wanted.
    fn wanted(self, source: &Path, wanted: Option<&str>) -> Result<Self, ConvertError> {
        let Some(wanted) = wanted else { return Ok(self) };
        let splits = match self {
            Self::One(_) => Vec::new(),
            Self::Splits(splits) => splits,
        };
        let names = splits.iter().map(|(name, _)| name.clone()).collect();
        let found = splits.into_iter().find(|(name, _)| name == wanted);
        found.map(|(_, listing)| Self::one(listing)).ok_or_else(|| no_split(source, wanted, names))
    }
}

/// The box around points: left, top, right and bottom.
fn around(points: &[[f64; 2]]) -> [f64; 4] {
    let side = |axis: fn(&[f64; 2]) -> f64, choose: fn(f64, f64) -> f64| {
        points.iter().map(axis).reduce(choose).unwrap_or_default()
    };
    let (x, y) = (|point: &[f64; 2]| point[0], |point: &[f64; 2]| point[1]);
    [side(x, f64::min), side(y, f64::min), side(x, f64::max), side(y, f64::max)]
}
