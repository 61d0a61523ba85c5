//! Decides where an output is written: rejects invalid targets and resolves links.

use std::io;
use std::path::{Path, PathBuf};

use packds_format::{SET_EXTENSION, version_of_set};

use super::working_path;
use crate::ConvertError;

/// Whether the name of a path is that of a set of packs.
pub(crate) fn is_set_name(path: &Path) -> bool {
    name_of(path).is_some_and(|name| name.ends_with(SET_EXTENSION) && name != SET_EXTENSION)
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(std::ffi::OsStr::to_str)
}

/// Rejects a target that would be read as a version of a set.
///
/// # Errors
/// [`ConvertError::Options`].
pub(crate) fn check_no_version(target: &Path) -> Result<(), ConvertError> {
    let Some((set, _)) = name_of(target).and_then(version_of_set) else { return Ok(()) };
    let reason = format!("{}: this is the name of a version of the set '{set}'", target.display());
    Err(ConvertError::options(reason, "versions are never changed or replaced: choose a name without '@'"))
}

/// Rejects a file with the name of a set or of a version of a set, because it could hide them.
fn check_no_set(target: &Path) -> Result<(), ConvertError> {
    check_no_version(target)?;
    if !is_set_name(target) {
        return Ok(());
    }
    let reason = format!("{}: this is the name of a set of packs, which is a folder", target.display());
    Err(ConvertError::options(reason, "a single pack ends with .pack; `packds append` adds packs to a set"))
}

/// Rejects a target that cannot become a folder. Only empty folders are replaced.
pub(super) fn check_folder(target: &Path) -> Result<(), ConvertError> {
    let path = target.to_owned();
    check_no_version(target)?;
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
/// [`ConvertError::Options`] for the name of a set or of a version of a set, [`ConvertError::OutputFolderMissing`],
/// [`ConvertError::OutputIsFolder`], [`ConvertError::OutputNotRegular`] for
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
    check_no_set(target)?;
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
pub(crate) fn check_name(target: &Path) -> Result<(), ConvertError> {
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
