//! Decides where an output is written: rejects invalid targets and resolves links.

use std::io;
use std::path::{Path, PathBuf};

use super::working_path;
use crate::ConvertError;

/// Rejects a target that cannot become a folder. Only empty folders are replaced.
pub(super) fn check_folder(target: &Path) -> Result<(), ConvertError> {
    let path = target.to_owned();
    check_name(target)?;
    match std::fs::read_dir(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(ConvertError::OutputIsFile { path }),
        Err(error) => Err(ConvertError::io(target)(error)),
        Ok(mut entries) => match entries.next() {
            Some(_) => Err(ConvertError::OutputFolderFull { path }),
            None => Ok(()),
        },
    }
}

/// Rejects a target that cannot become the output, before any work is done.
///
/// # Errors
/// [`ConvertError::OutputFolderMissing`], [`ConvertError::OutputIsFolder`], [`ConvertError::OutputNotRegular`] for
/// devices, pipes and broken links, [`ConvertError::OutputNotWritable`] if the name is too long, or
/// [`ConvertError::OutputExists`] without `force`.
pub fn check_output(target: &Path, force: bool) -> Result<(), ConvertError> {
    place_output(target, force).map(drop)
}

/// Like [`check_output`], but returns the file to write: the target, or the file that it links to.
///
/// # Errors
/// As for [`check_output`].
pub fn place_output(target: &Path, force: bool) -> Result<PathBuf, ConvertError> {
    let path = target.to_owned();
    let there = std::fs::metadata(target);
    // This comes before the check of the name, because some folders have no name: `.`, `..` and `/`.
    if there.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
        return Err(ConvertError::OutputIsFolder { path });
    }
    check_name(target)?;
    match there {
        Ok(there) if !there.is_file() => {
            Err(ConvertError::OutputNotRegular { path, found: "a pipe, socket or device" })
        }
        Ok(_) if !force => Err(ConvertError::OutputExists { path }),
        _ => resolved(target),
    }
}

/// Rejects a target in a missing folder, and a target whose working name would be too long for the file system.
fn check_name(target: &Path) -> Result<(), ConvertError> {
    let folder = parent(target);
    if target.file_name().is_none() || !folder.is_dir() {
        return Err(ConvertError::OutputFolderMissing { path: target.to_owned(), folder });
    }
    match std::fs::symlink_metadata(working_path(target)) {
        Err(source) if source.kind() == io::ErrorKind::InvalidFilename => {
            Err(ConvertError::OutputNotWritable { path: target.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// The destination of a link. Any other path is returned unchanged.
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
                false => "a link to a file that does not exist",
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
