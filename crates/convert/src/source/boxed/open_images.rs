//! Open Images: a CSV file with the boxes of each split, such as `train-annotations-bbox.csv`, next to the folders of images, or in
//! `labels` in the folder of a split, as FiftyOne writes it. `box_table` reads the rows.

use std::collections::HashSet;
use std::path::Path;

use super::box_table::{BoxTable, ClassNames, Content};
use super::collected::{BoxSet, Classes, Remark};
use super::parts::{From, Images, Part, Place, has_extension};
use super::{Found, Reader, Top};
use crate::error::ConvertError;
use crate::source::ListOptions;
use crate::source::folder_note::FolderNote;
use crate::source::layout::{IMAGE_FOLDERS, inside, is_one_of};
use crate::source::paths::{joined, lossy, stem};
use crate::source::split::split_and_rest;

const EXTENSION: &str = "csv";
/// The folders that may have the CSV files, besides those of the splits.
const TABLE_FOLDERS: [&str; 4] = ["annotations", "labels", "metadata", "boxes"];
/// Maximum number of CSV files of a folder to inspect.
const MAX_FILES: usize = 32;
/// The part of its name that tells the file with the names of the classes of boxes from that of all classes.
const BOXABLE: &str = "boxable";

/// A CSV file, and the split that it describes.
#[derive(Clone, PartialEq, Eq)]
struct CsvFile {
    split: Option<String>,
    file: Vec<u8>,
}

/// The data set in a folder with tables of Open Images. `None` for other folders.
pub(super) fn find(top: &Top, options: &ListOptions) -> Result<Option<Found>, ConvertError> {
    let (mut boxes, mut names) = files_in(top)?;
    if boxes.is_empty() {
        return Ok(None);
    }
    let (mut parts, mut notes) = (Vec::new(), Vec::new());
    if let [only] = boxes.as_mut_slice()
        && only.split.as_ref().is_none_or(|split| folders_of(top, split).is_empty())
    {
        only.split = None;
        parts.push(Part { split: None, from: all_images(top), place: Place::Table });
    } else {
        let mut read = Vec::new();
        for CsvFile { split, file } in boxes {
            let split = split.unwrap_or_default();
            let folders = folders_of(top, &split);
            if folders.is_empty() {
                let reason = format!("there is no folder '{split}' with its images");
                notes.push(FolderNote::SplitLeftOut { split, file: lossy(&file), reason });
                continue;
            }
            let split = Some(split);
            if let Some(CsvFile { file: other, .. }) = read.iter().find(|other: &&CsvFile| other.split == split) {
                let reason = format!("'{}' and '{}' both have the boxes of the same split", lossy(other), lossy(&file));
                return Err(ConvertError::contradictory(&top.path, "", reason, "keep one of them"));
            }
            parts.push(Part { split: split.clone(), from: From::Folders(folders), place: Place::Table });
            read.push(CsvFile { split, file });
        }
        boxes = read;
    }
    if parts.is_empty() {
        let reason = "no file of boxes of Open Images has a folder with its images".to_owned();
        let hint = "put the images of each split into a folder with its name, such as 'train'";
        return Err(ConvertError::contradictory(&top.path, "", reason, hint));
    }
    names.sort_by_key(|name| (!lossy(name).contains(BOXABLE), name.clone()));
    let names_file = names.into_iter().next();
    let classes = names_file.as_ref().map(|file| ClassNames::read(&inside(&top.path, file))).transpose()?;
    let (mut table, folder) = (BoxTable::new(), options.spool_folder().path);
    for CsvFile { file, .. } in &boxes {
        table.read(&inside(&top.path, file), &folder, classes.as_ref())?;
    }
    let classes = classes.unwrap_or_else(|| table.classes());
    let splits = boxes.into_iter().map(|file| file.split).collect();
    let reader = Box::new(OpenImages { table, classes, names_file: names_file.map(|file| lossy(&file)), splits });
    Ok(Some(Found { parts, reader, notes }))
}

/// The tables of boxes, and the files of class names.
fn files_in(top: &Top) -> Result<(Vec<CsvFile>, Vec<Vec<u8>>), ConvertError> {
    let mut folders = vec![(None, Vec::new())];
    let tables = |inner: &Top| -> Vec<Vec<u8>> {
        inner.folders.iter().filter(|name| is_one_of(name, &TABLE_FOLDERS)).cloned().collect()
    };
    folders.extend(tables(top).into_iter().map(|folder| (None, folder)));
    for split in top.splits() {
        let inner = tables(&Top::at(&top.path.join(&split))?);
        let inner = inner.into_iter().map(|folder| joined(split.as_bytes(), &folder));
        folders.extend(inner.map(|folder| (Some(split.clone()), folder)));
    }
    let (mut boxes, mut names) = (Vec::new(), Vec::new());
    for (split, folder) in folders {
        let path = inside(&top.path, &folder);
        let inner = Top::at(&path)?;
        let mut files: Vec<&[u8]> = inner.directory.names().filter(|name| has_extension(name, EXTENSION)).collect();
        files.sort_unstable();
        for name in files.into_iter().take(MAX_FILES) {
            let file = if folder.is_empty() { name.to_vec() } else { joined(&folder, name) };
            match Content::of(&inside(&path, name)) {
                Some(Content::Boxes) => {
                    let of_name = || split_and_rest(&lossy(stem(name))).map(|(split, _)| split);
                    boxes.push(CsvFile { split: split.clone().or_else(of_name), file });
                }
                Some(Content::Names) => names.push(file),
                None => {}
            }
        }
    }
    Ok((boxes, names))
}

/// The folders with the images of a split: `train`, or its parts `train_0` to `train_f`, or `images/train`.
fn folders_of(top: &Top, split: &str) -> Vec<Vec<u8>> {
    let is_part = |rest: &[u8]| matches!(rest, [b'_', digit] if digit.is_ascii_hexdigit());
    let is_own = |name: &Vec<u8>| {
        let (start, rest) = name.split_at_checked(split.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(split.as_bytes()) && !start.is_empty() && (rest.is_empty() || is_part(rest))
    };
    let mut found: Vec<Vec<u8>> = top.folders.iter().filter(|name| is_own(name)).cloned().collect();
    if found.is_empty() {
        let images = top.folders.iter().filter(|name| is_one_of(name, &IMAGE_FOLDERS));
        let inner = images.map(|images| joined(images, split.as_bytes()));
        found.extend(inner.filter(|folder| inside(&top.path, folder).is_dir()));
    }
    found
}

/// All images: those in the folder itself, or else those in its folders.
fn all_images(top: &Top) -> From {
    match top.directory.sample_names().next() {
        Some(_) => From::Flat(Vec::new()),
        None => From::Folders(top.folders.clone()),
    }
}

/// Gives each image its boxes from the tables.
struct OpenImages {
    table: BoxTable,
    classes: ClassNames,
    names_file: Option<String>,
    /// The split of each table.
    splits: Vec<Option<String>>,
}

impl Reader for OpenImages {
    fn read(&self, _path: &Path, image: &Path) -> Result<Option<BoxSet>, ConvertError> {
        let id = image.file_stem().unwrap_or_default().to_string_lossy();
        Ok(self.table.set(&id, image, &self.classes))
    }

    fn classes(&self) -> Classes {
        Classes::Given(self.classes.names.clone())
    }

    fn about(&self) -> String {
        let names = match &self.names_file {
            Some(file) => format!("the names in '{file}'"),
            None => {
                "the ids in 'LabelName', because there is no file such as 'class-descriptions-boxable.csv' with names"
                    .to_owned()
            }
        };
        let groups = if self.table.has_groups { "; 'box_crowd' is IsGroupOf" } else { "" };
        format!(
            "they were computed from parts of the width and height of each image (Open Images); their classes are {names}{groups}"
        )
    }

    fn extension(&self) -> &'static str {
        EXTENSION
    }

    fn remark(&self, split: Option<&str>, images: &Images) -> Option<(Remark, u64)> {
        let file = self.splits.iter().position(|own| own.as_deref() == split)?;
        let ids: HashSet<String> = (0..images.paths.len()).map(|idx| lossy(stem(images.paths.name(idx)))).collect();
        Some(self.table.without_image(file, &ids))
    }
}
