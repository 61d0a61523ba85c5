//! Where an output goes: which targets are refused, and what a link leads to.

use std::io;
use std::path::{Path, PathBuf};

use super::working_path;
use crate::ConvertError;

/// Refuses a target that cannot become a folder: folders with something in them are never replaced.
pub(super) fn check_folder(target: &Path) -> Result<(), ConvertError> {
    let path = target.to_owned();
    let folder = parent(target);
    if target.file_name().is_none() || !folder.is_dir() {
        return Err(ConvertError::OutputFolderMissing { path, folder });
    }
    check_length(target)?;
    match std::fs::read_dir(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(ConvertError::OutputIsFile { path })
        }
        Err(error) => Err(ConvertError::io(target)(error)),
        Ok(mut entries) => match entries.next() {
            Some(_) => Err(ConvertError::OutputFolderFull { path }),
            None => Ok(()),
        },
    }
}

/// Refuses a target that cannot become the output, before any work is done.
///
/// # Errors
/// [`ConvertError::OutputFolderMissing`], [`ConvertError::OutputIsFolder`], [`ConvertError::OutputNotRegular`] for
/// devices, pipes and links to nothing, or [`ConvertError::OutputExists`] unless `force` says that it may be replaced.
pub fn check_output(target: &Path, force: bool) -> Result<(), ConvertError> {
    place_output(target, force).map(drop)
}

/// As [`check_output`]; the file that is written: the target, or what it links to.
///
/// # Errors
/// As [`check_output`].
pub fn place_output(target: &Path, force: bool) -> Result<PathBuf, ConvertError> {
    let path = target.to_owned();
    let there = std::fs::metadata(target);
    // Some folders have no name of their own: `.`, `..` and `/`.
    if there.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
        return Err(ConvertError::OutputIsFolder { path });
    }
    let folder = parent(target);
    if target.file_name().is_none() || !folder.is_dir() {
        return Err(ConvertError::OutputFolderMissing { path, folder });
    }
    check_length(target)?;
    match there {
        Ok(there) if !there.is_file() => Err(ConvertError::OutputNotRegular {
            path,
            found: "a pipe, socket or device",
        }),
        Ok(_) if !force => Err(ConvertError::OutputExists { path }),
        _ => resolved(target),
    }
}

/// Refuses a name that is too long for the system with what the working name has more.
fn check_length(target: &Path) -> Result<(), ConvertError> {
    match std::fs::symlink_metadata(working_path(target)) {
        Err(source) if source.kind() == io::ErrorKind::InvalidFilename => {
            Err(ConvertError::OutputNotWritable {
                path: target.to_owned(),
                source,
            })
        }
        _ => Ok(()),
    }
}

/// What a link leads to; all else is itself.
pub(super) fn resolved(target: &Path) -> Result<PathBuf, ConvertError> {
    if !target.is_symlink() {
        return Ok(target.to_owned());
    }
    target.canonicalize().map_err(|error| {
        let is_loop = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        ConvertError::OutputNotRegular {
            path: target.to_owned(),
            found: match is_loop {
                true => "a link that leads back to itself",
                false => "a link to a file that is not there",
            },
        }
    })
}

pub(super) fn parent(target: &Path) -> PathBuf {
    match target.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
