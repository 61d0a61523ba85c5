//! Files that may lie beside samples: whether they are there, and what a short text says.
//!
//! What is there and is no regular file is an error that names it, and so is a link that leads nowhere: else labels would
//! be missing without a word.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use packds_system::{is_regular, open_regular};

use crate::error::ConvertError;

/// The most bytes of a text with metadata or class names.
pub(super) const MAX_TEXT: u64 = 64 << 20;

/// Whether there is a regular file.
pub(super) fn is_there(path: &Path) -> Result<bool, ConvertError> {
    is_regular(path).map_err(ConvertError::io(path))
}

/// Whether there is a regular file; a folder may have the name and is something else.
pub(super) fn is_there_as_file(path: &Path) -> Result<bool, ConvertError> {
    match is_regular(path) {
        Err(error) if error.kind() == ErrorKind::IsADirectory => Ok(false),
        found => found.map_err(ConvertError::io(path)),
    }
}

/// The first of these that is there as a file.
pub(super) fn first_there(
    paths: impl IntoIterator<Item = PathBuf>,
) -> Result<Option<PathBuf>, ConvertError> {
    for path in paths {
        if is_there_as_file(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// A short text file, if it is there; a longer one is something else.
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
