//! COCO: a JSON file for each split, in the folder `annotations` or next to the images of the split, as Roboflow writes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use packds_system::to_u64;

use super::parts::has_extension;
use super::{Top, splits_of};
use crate::error::ConvertError;
use crate::source::coco::{ANNOTATIONS, CATEGORIES, Categories, IMAGES};
use crate::source::detect::head_of;
use crate::source::folder_note::FolderNote;
use crate::source::json_rows::with_top_members;
use crate::source::layout::is_one_of;
use crate::source::manifest;
use crate::source::paths::{as_path, joined, lossy, stem};
use crate::source::rows::RowForm;
use crate::source::warning::Warning;
use crate::source::{ListOptions, Listed, no_split, unlisted};

/// The file of Roboflow.
const ROBOFLOW: &str = "_annotations.coco.json";
/// The beginning of a name that a file of boxes has.
const INSTANCES: &str = "instances_";
/// The beginning of the name of a file of boxes with keypoints. It is read if there are no other boxes.
const KEYPOINTS: &str = "person_keypoints_";
/// The beginnings of the names of files of other tasks.
const OTHERS: [&str; 6] = ["captions", "person_keypoints", "panoptic", "stuff", "image_info", "lvis_v1_image_info"];
/// Maximum number of files. If there are more, each may describe one image.
const MAX_FILES: usize = 32;

/// A file, and the split that it describes.
struct SplitFile {
    split: Option<String>,
    file: Vec<u8>,
}

/// Lists a folder with COCO files of boxes. `None` for other folders.
pub(super) fn list(top: &Top, options: &ListOptions) -> Result<Option<Listed>, ConvertError> {
    let wanted = options.split.as_deref();
    let files = match in_annotations(top, wanted)? {
        files if files.is_empty() => in_splits(top),
        files => files,
    };
    if files.is_empty() {
        return Ok(None);
    }
    let n_read = files.len();
    let (files, left_out) = with_images(top, files, wanted);
    check_categories(top, &files)?;
    let options = ListOptions { split: None, ..options.clone() };
    let names: Vec<String> = files.iter().filter_map(|file| file.split.clone()).collect();
    let mut listings = Vec::new();
    for SplitFile { split, file } in files {
        if wanted.is_some() && split.as_deref() != wanted {
            continue;
        }
        let mut listing = manifest::list(&path_of(top, &file), RowForm::Json, &options)?;
        unlisted::note(&mut listing);
        let read = FolderNote::BoxFileRead { others: n_next_to(top, &file)?.saturating_sub(to_u64(n_read)), file };
        listing.warnings.insert(0, Warning::Folders(read));
        listing.warnings.extend(left_out.iter().cloned().map(Warning::Folders));
        listings.push((split, listing));
    }
    if let (Some(wanted), []) = (wanted, listings.as_slice()) {
        return Err(no_split(&top.path, wanted, names));
    }
    if let [(None, _)] = listings.as_slice() {
        return Ok(listings.pop().map(|(_, listing)| Listed::one(listing)));
    }
    Ok(Some(splits_of(listings)))
}

/// Number of JSON files in the folder of a file.
fn n_next_to(top: &Top, file: &[u8]) -> Result<u64, ConvertError> {
    let path = path_of(top, file);
    let folder = Top::at(path.parent().unwrap_or(&top.path))?;
    Ok(to_u64(folder.directory.names().filter(|name| has_extension(name, "json")).count()))
}

fn path_of(top: &Top, file: &[u8]) -> PathBuf {
    top.path.join(as_path(file))
}

/// The files of boxes in the folder `annotations`. Empty if there are none.
fn in_annotations(top: &Top, wanted: Option<&str>) -> Result<Vec<SplitFile>, ConvertError> {
    let Some(folder) = top.find(|name| is_one_of(name, &[ANNOTATIONS])) else { return Ok(Vec::new()) };
    let inner = Top::at(&path_of(top, folder))?;
    let is_other = |name: &[u8]| OTHERS.iter().any(|other| name.starts_with(other.as_bytes()));
    let (mut names, others): (Vec<&[u8]>, Vec<&[u8]>) =
        inner.directory.names().filter(|name| has_extension(name, "json")).partition(|name| !is_other(name));
    if names.is_empty() {
        names.extend(others.into_iter().filter(|name| name.starts_with(KEYPOINTS.as_bytes())));
    }
    if names.iter().any(|name| name.starts_with(INSTANCES.as_bytes())) {
        names.retain(|name| name.starts_with(INSTANCES.as_bytes()));
    }
    names.sort_unstable();
    if names.len() > MAX_FILES {
        return Ok(Vec::new());
    }
    names.retain(|name| may_be_coco(&inner.path.join(as_path(name))));
    let split = |name: &[u8]| {
        let rest = [INSTANCES, KEYPOINTS].into_iter().find_map(|start| name.strip_prefix(start.as_bytes()));
        lossy(stem(rest.unwrap_or(name)))
    };
    // A file alone may be that of a split, or of all images.
    let is_alone = names.len() == 1;
    let is_split = |split: &String| !is_alone || wanted == Some(split.as_str());
    let file = |name: &&[u8]| SplitFile { split: Some(split(name)).filter(is_split), file: joined(folder, name) };
    Ok(names.iter().map(file).collect())
}

/// The files of Roboflow in the folders of splits, or in the folder itself.
fn in_splits(top: &Top) -> Vec<SplitFile> {
    if top.directory.names().any(|name| name == ROBOFLOW.as_bytes()) {
        return vec![SplitFile { split: None, file: ROBOFLOW.into() }];
    }
    let splits = top.splits().into_iter();
    let files =
        splits.map(|split| SplitFile { file: joined(split.as_bytes(), ROBOFLOW.as_bytes()), split: Some(split) });
    files.filter(|file| path_of(top, &file.file).is_file()).collect()
}

/// The files of splits with a folder of images, if there are others without one, and the notes about the others.
fn with_images(top: &Top, files: Vec<SplitFile>, wanted: Option<&str>) -> (Vec<SplitFile>, Vec<FolderNote>) {
    let has_folder = |file: &SplitFile| {
        let split = file.split.as_deref().unwrap_or_default();
        let mut inner = top.folders.iter().map(|folder| path_of(top, folder).join(split));
        top.path.join(split).is_dir() || inner.any(|folder| folder.is_dir())
    };
    if !files.iter().any(has_folder) {
        return (files, Vec::new());
    }
    let is_read = |file: &SplitFile| has_folder(file) || (wanted.is_some() && file.split.as_deref() == wanted);
    let (read, others): (Vec<SplitFile>, Vec<SplitFile>) = files.into_iter().partition(is_read);
    let note = |file: SplitFile| {
        let split = file.split.unwrap_or_default();
        let reason = format!("there is no folder '{split}' with its images");
        FolderNote::SplitLeftOut { split, file: lossy(&file.file), reason }
    };
    (read, others.into_iter().map(note).collect())
}

/// Whether a file begins like one of COCO, or like a JSON object that is too long to tell.
fn may_be_coco(path: &Path) -> bool {
    let head = head_of(path).unwrap_or_default();
    let head = lossy(&head);
    let has = |key: &str| head.contains(&format!("\"{key}\""));
    head.trim_start().starts_with('{') && [IMAGES, ANNOTATIONS, CATEGORIES, "info", "licenses"].into_iter().any(has)
}

/// Refuses files whose categories differ, because class ids would not agree.
fn check_categories(top: &Top, files: &[SplitFile]) -> Result<(), ConvertError> {
    let [first, others @ ..] = files else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let Some(expected) = names_in(top, &first.file)? else { return Ok(()) };
    for other in others {
        if names_in(top, &other.file)?.is_some_and(|found| found != expected) {
            let [one, other] = [first, other].map(|file| lossy(&file.file));
            let reason = format!("'{one}' and '{other}' have different categories, so their class ids would not agree");
            let hint = "give all files the same categories, or pass each file as a source";
            return Err(ConvertError::contradictory(&top.path, "", reason, hint));
        }
    }
    Ok(())
}

/// The names of the categories in the order of their ids.
fn names_in(top: &Top, file: &[u8]) -> Result<Option<Vec<String>>, ConvertError> {
    let names = with_top_members(&path_of(top, file), |file, members| {
        let list = file.list(members, CATEGORIES)?;
        Categories::of(file, list, &mut BTreeSet::new()).map(|categories| categories.names)
    });
    names.transpose()
}
