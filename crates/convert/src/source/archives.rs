//! Reads a folder of downloaded archives: `train.zip` and `test.zip`, or `images.zip` and a table of labels. All
//! archives are unpacked into one temporary folder, which also gets links to the other files. The temporary folder is
//! then listed.

use std::collections::BTreeSet;
use std::path::Path;

use tempfile::TempDir;

use super::ListOptions;
use super::archive::{Archive, Opened, is_packed, only_in};
use super::candidate::is_image_name;
use super::compressed::without_extension;
use super::detect::{detect, names_in};
use super::image_folder::is_archive;
use super::split::split_and_rest;
use super::spool::{SpoolFolder, spool_error};
use super::unread::is_note;
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// An archive that was unpacked into its own temporary folder.
struct Part {
    name: String,
    folder: TempDir,
}

/// Unpacks the archives of a folder. `depth` counts the enclosing archives. `None` if the folder has no archives, or if
/// it has images, subfolders, samples in tar files or files of another format.
pub(super) fn open(folder: &Path, options: &ListOptions, depth: usize) -> Result<Option<Opened>, ConvertError> {
    let is_chosen = options.from.is_some_and(|from| !from.entry().is_set);
    if is_chosen || options.root.is_some() || !folder.is_dir() {
        return Ok(None);
    }
    let is_other = |name: &String| !name.starts_with('.') && !is_note(name.as_bytes());
    let mut names: Vec<String> = names_in(folder).into_iter().filter(is_other).collect();
    names.sort_unstable();
    let is_data = |name: &String| is_image_name(name.as_bytes()) || !folder.join(name).is_file();
    let is_archive = |name: &String| is_archive(&name.to_ascii_lowercase());
    if !names.iter().any(is_archive)
        || names.iter().any(is_data)
        || !matches!(detect(folder), Ok(DataFormat::ImageFolder | DataFormat::WebDataset))
    {
        return Ok(None);
    }
    let (mut archives, mut others) = (Vec::new(), Vec::new());
    for name in names {
        match Archive::find(&folder.join(&name), options, depth)? {
            // Files of some programs, such as `labels.xlsx`, are also archives. They are not unpacked.
            Some(archive) if is_archive(&name) => archives.push((name, archive)),
            // A tar file of samples is read in place.
            None if name.ends_with(".tar") => return Ok(None),
            None if is_archive(&name) && !is_of_other_program(&name) && !is_packed(&folder.join(&name))? => {
                let reason = "it has the extension of a compressed file, but it is not compressed";
                return Err(ConvertError::malformed(&folder.join(&name), "", reason));
            }
            _ => others.push(name),
        }
    }
    if archives.is_empty() {
        return Ok(None);
    }
    let spool = options.spool_folder();
    let mut warnings =
        vec![Warning::ArchivesUnpacked { names: archives.iter().map(|(name, _)| name.clone()).collect() }];
    let mut parts = Vec::new();
    for (name, archive) in archives {
        let (folder, told) = archive.unpack(&spool)?;
        warnings.extend(told);
        parts.push(Part { name, folder });
    }
    let unpacked = together(folder, parts, &others, &spool)?;
    Ok(Some(Opened::of_folder(folder, unpacked, warnings)))
}

/// Whether the file has the extension of an archive format that packds cannot unpack.
fn is_of_other_program(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".rar") || name.ends_with(".7z")
}

/// Moves the unpacked archives into one folder, and adds links to the other files.
///
/// # Errors
/// If two of them would have the same name.
fn together(source: &Path, parts: Vec<Part>, others: &[String], spool: &SpoolFolder) -> Result<TempDir, ConvertError> {
    let failed = |error| spool_error(&spool.path, error);
    let unpacked = tempfile::Builder::new().prefix("packds-").tempdir_in(&spool.path).map_err(failed)?;
    let source = source.canonicalize().map_err(ConvertError::io(source))?;
    let mut taken = BTreeSet::new();
    for other in others {
        std::os::unix::fs::symlink(source.join(other), unpacked.path().join(other)).map_err(failed)?;
        taken.insert(other.clone());
    }
    let tops: Vec<Option<String>> = parts.iter().map(Part::top).collect();
    for (part, top) in parts.iter().zip(&tops) {
        let is_unique = tops.iter().filter(|other| *other == top).count() == 1;
        let top = top.as_ref().filter(|top| is_unique && part.may_lose_its_name(top) && !taken.contains(*top));
        let (from, name) = match top {
            Some(top) => (part.folder.path().join(top), top.clone()),
            None => (part.folder.path().to_owned(), part.stem()),
        };
        if !taken.insert(name.clone()) {
            let reason = format!("the archive '{}' unpacks to '{name}', but another file has this name", part.name);
            return Err(ConvertError::contradictory(&source, "", reason, "rename the archive"));
        }
        std::fs::rename(from, unpacked.path().join(name)).map_err(failed)?;
    }
    Ok(unpacked)
}

impl Part {
    /// The only file or folder in the archive, apart from notes. `None` if there are several, or if the name is not
    /// UTF-8.
    fn top(&self) -> Option<String> {
        only_in(self.folder.path())?.into_string().ok()
    }

    /// The archive's name without its extensions.
    fn stem(&self) -> String {
        let stem = Path::new(without_extension(&self.name)).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Whether `top` may replace the name of the archive. The name must be kept if it names a split and `top` does not.
    fn may_lose_its_name(&self, top: &str) -> bool {
        split_and_rest(&self.stem()).is_none() || split_and_rest(top).is_some()
    }
}
