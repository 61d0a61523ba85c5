//! From a path, or bytes, to a checked pack.

use std::path::Path;

use packds_format::Limits;

use crate::storage::{MappedFile, Memory};
use crate::{Pack, ReadError};

/// Opens a pack with the default [`Limits`]: milliseconds, and no chunk is touched.
///
/// # Errors
/// [`ReadError::Open`] where there is no such file, [`ReadError::Format`] where it is not a pack or not a whole one.
pub fn open(path: impl AsRef<Path>) -> Result<Pack, ReadError> {
    open_with(path, Limits::default())
}

/// Opens a pack.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: impl AsRef<Path>, limits: Limits) -> Result<Pack, ReadError> {
    let path = path.as_ref();
    let file = MappedFile::open(path).map_err(|source| ReadError::Open {
        path: path.to_owned(),
        source,
    })?;
    Pack::new(file, path, limits)
}

/// Opens a pack that is in memory, with the default [`Limits`]. Errors call it by `name`, which stands in the place of a path.
///
/// # Errors
/// [`ReadError::Format`] where the bytes are not a pack or not a whole one.
pub fn open_bytes(
    name: impl AsRef<Path>,
    bytes: impl AsRef<[u8]> + Send + 'static,
) -> Result<Pack, ReadError> {
    Pack::new(Memory::new(bytes), name.as_ref(), Limits::default())
}
