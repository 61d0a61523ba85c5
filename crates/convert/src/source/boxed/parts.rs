//! The parts of a folder: the images of each split, and the file with the boxes of each image.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use packds_system::{open_regular, to_u64};

use super::{voc, yolo};
use crate::error::ConvertError;
use crate::source::candidate::SampleFiles;
use crate::source::directory::{Directory, Identity};
use crate::source::layout::inside;
use crate::source::paths::{FileTable, PathTable, joined, lossy, stem};
use crate::source::there::{MAX_TEXT, is_there};
use crate::source::walk::Found;
use crate::source::warning::Warning;

/// A split, or the whole folder.
pub(super) struct Part {
    pub(super) split: Option<String>,
    pub(super) from: From,
    pub(super) place: Place,
}

impl Part {
    /// The part in the folder of a split.
    pub(super) fn of_split(self, split: &str) -> Self {
        let inner = |folder: &[u8]| match folder {
            [] => split.as_bytes().to_vec(),
            folder => joined(split.as_bytes(), folder),
        };
        let from = match self.from {
            From::Folders(folders) => From::Folders(folders.iter().map(|folder| inner(folder)).collect()),
            From::Flat(folder) => From::Flat(inner(&folder)),
            From::Files(files) => From::Files(files.into_iter().map(|(path, bytes)| (inner(&path), bytes)).collect()),
        };
        Self { split: Some(split.to_owned()), from, ..self }
    }
}

/// The images of a part, relative to the root.
pub(super) enum From {
    /// All images below these folders.
    Folders(Vec<Vec<u8>>),
    /// The images directly in this folder.
    Flat(Vec<u8>),
    /// These images and their sizes.
    Files(Vec<(Vec<u8>, u64)>),
}

/// Where the file of an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Next to the image.
    Beside,
    /// In the folder with this name, in place of the last folder with that of the images.
    Instead { images: Vec<u8>, files: Vec<u8> },
    /// Nowhere: one file has the boxes of all images.
    Table,
}

/// The images of a part, and where their files are.
pub(super) struct Images {
    pub(super) paths: PathTable,
    pub(super) bytes: Vec<u64>,
    pub(super) warnings: Vec<Warning>,
    pub(super) ignored: u64,
    /// Whether files are next to their images.
    pub(super) is_beside: bool,
    place: Place,
}

impl Images {
    /// Finds the images of a part.
    ///
    /// # Errors
    /// If there are none, or if there is a file without an image.
    pub(super) fn of(root: &Path, part: Part, extension: &str) -> Result<Self, ConvertError> {
        let Part { from, place, .. } = part;
        let mut found = Found::default();
        let is_listed = matches!(from, From::Files(_));
        let folders = match from {
            From::Folders(folders) => folders,
            From::Flat(folder) => {
                found.add_directory(&folder, 0, Directory::scan(root, &folder, SampleFiles::Images)?);
                Vec::new()
            }
            From::Files(files) => {
                let mut table = FileTable::default();
                files.iter().for_each(|(path, _)| table.push(path));
                found.paths = table.paths;
                found.bytes = files.into_iter().map(|(_, bytes)| bytes).collect();
                Vec::new()
            }
        };
        for folder in &folders {
            found.add_class((root, Identity::default()), folder, 0, SampleFiles::Images)?;
        }
        if found.paths.len() == 0 {
            let path = folders.first().map_or_else(|| root.to_owned(), |folder| inside(root, folder));
            let error = found.oddities.unread.error(&path);
            return Err(error.unwrap_or(ConvertError::EmptySource { path, ignored: found.ignored, holds: None }));
        }
        let Found { paths, bytes, oddities, ignored, .. } = found;
        let is_table = place == Place::Table;
        let is_beside = !is_table && place.folder_of(paths.directory(0)) == paths.directory(0);
        let images = Self { paths, bytes, warnings: oddities.into_warnings(), ignored, is_beside, place };
        // Listed images may be only some of those in their folders.
        if !is_listed && !is_table {
            images.check(root, extension)?;
        }
        Ok(images)
    }

    /// The path of the file of an image.
    pub(super) fn file_of(&self, idx: usize, extension: &str) -> Vec<u8> {
        let name = [stem(self.paths.name(idx)), b".", extension.as_bytes()].concat();
        joined(&self.place.folder_of(self.paths.directory(idx)), &name)
    }

    /// Refuses a file without an image, in the folders with the files of images. Text and JSON files next to images may be something
    /// else.
    fn check(&self, root: &Path, extension: &str) -> Result<(), ConvertError> {
        let known: HashSet<Vec<u8>> = (0..self.paths.len()).map(|idx| self.file_of(idx, extension)).collect();
        let mut checked = HashSet::new();
        for idx in 0..self.paths.len() {
            let images = self.paths.directory(idx);
            let folder = self.place.folder_of(images);
            let is_unsure = folder == images && extension != voc::EXTENSION;
            if is_unsure || !checked.insert(folder.clone()) || !inside(root, &folder).is_dir() {
                continue;
            }
            let directory = Directory::scan(root, &folder, SampleFiles::Images)?;
            let is_other = |name: &&[u8]| {
                has_extension(name, extension) && !yolo::is_names_file(name) && !known.contains(&joined(&folder, name))
            };
            if let Some(name) = directory.names().filter(is_other).min() {
                return Err(without_image(&inside(root, &joined(&folder, name)), images));
            }
        }
        Ok(())
    }
}

impl Place {
    /// The place of the files if the images are in the folder `images` and the files in the folder `files` next to it.
    pub(super) fn instead(images: &[u8], files: &[u8]) -> Self {
        Self::Instead { images: images.to_vec(), files: files.to_vec() }
    }

    /// The folder with the files of the images in `folder`.
    fn folder_of(&self, folder: &[u8]) -> Vec<u8> {
        let Self::Instead { images, files } = self else { return folder.to_vec() };
        let mut names: Vec<&[u8]> = folder.split(|byte| *byte == b'/').collect();
        if let Some(name) = names.iter_mut().rfind(|name| **name == images.as_slice()) {
            *name = files;
        }
        names.join(&b'/')
    }
}

/// Whether a visible file has this extension, in any case.
pub(super) fn has_extension(name: &[u8], extension: &str) -> bool {
    let Some((rest, found)) = name.len().checked_sub(extension.len()).and_then(|at| name.split_at_checked(at)) else {
        return false;
    };
    let is_named = rest.len() > 1 && rest.ends_with(b".");
    is_named && !name.starts_with(b".") && found.eq_ignore_ascii_case(extension.as_bytes())
}

/// The error about a file with boxes without an image.
pub(super) fn without_image(file: &Path, folder: &[u8]) -> ConvertError {
    let name = file.file_stem().unwrap_or_default().display();
    let folder = if folder.is_empty() { "next to it".to_owned() } else { format!("in '{}'", lossy(folder)) };
    let reason = format!("the file has the boxes of the image '{name}', which is not {folder}");
    let hint = "add the image, give the file its name (with an extension in lower case), or remove the file";
    ConvertError::contradictory(file, "", reason, hint)
}

/// The content of a file of boxes. `None` if there is no such file.
///
/// # Errors
/// If it is too large or not UTF-8.
pub(super) fn text_of(path: &Path) -> Result<Option<String>, ConvertError> {
    if !is_there(path)? {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(MAX_TEXT + 1).read_to_end(&mut bytes));
    read.map_err(ConvertError::io(path))?;
    if to_u64(bytes.len()) > MAX_TEXT {
        let reason = format!("expected a file of boxes of at most {MAX_TEXT} bytes, found a larger file");
        return Err(ConvertError::contradictory(path, "", reason, "move the file out of the folder"));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| ConvertError::contradictory(path, "", "the file is not UTF-8", "save it as UTF-8"))?;
    Ok(Some(text.trim_start_matches('\u{feff}').to_owned()))
}
