//! Optional files next to samples: whether they exist, and the content of short text files.
//!
//! It is an error if the name belongs to a dangling link, or to anything other than a regular file. Otherwise labels could be lost
//! silently.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use packds_system::{is_regular, open_regular};

use crate::error::ConvertError;

/// Maximum size of a text file with metadata or class names, in bytes.
pub(super) const MAX_TEXT: u64 = 64 << 20;

/// Whether a regular file exists.
pub(super) fn is_there(path: &Path) -> Result<bool, ConvertError> {
    is_regular(path).map_err(ConvertError::io(path))
}

/// Whether a regular file exists. A folder with this name is ignored.
pub(super) fn is_there_as_file(path: &Path) -> Result<bool, ConvertError> {
    match is_regular(path) {
        Err(error) if error.kind() == ErrorKind::IsADirectory => Ok(false),
        found => found.map_err(ConvertError::io(path)),
    }
}

/// The first of these paths that is a regular file.
pub(super) fn first_there(paths: impl IntoIterator<Item = PathBuf>) -> Result<Option<PathBuf>, ConvertError> {
    for path in paths {
        if is_there_as_file(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The content of a short text file, if it exists. A longer file is ignored.
pub(super) fn text_file(path: &Path) -> Result<Option<String>, ConvertError> {
    if !is_there(path)? {
        return Ok(None);
    }
    let text = open_regular(path).and_then(short_text);
    text.map_err(ConvertError::io(path))
}

fn short_text(mut file: File) -> io::Result<Option<String>> {
    if file.metadata()?.len() > MAX_TEXT {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
