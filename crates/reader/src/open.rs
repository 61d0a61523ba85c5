//! Opens a path or bytes as a checked pack.

use std::path::Path;

use packds_format::Limits;

use crate::mmap::MappedFile;
use crate::storage::Memory;
use crate::{Pack, ReadError, set};

/// Opens a pack with the default [`Limits`]. This takes milliseconds and does not read any chunk. The path is that of a
/// pack file, of a set (`NAME.packs`), or of one of its versions (`NAME.packs@3`).
///
/// # Errors
/// [`ReadError::Open`] if the file cannot be opened, [`ReadError::Format`] if it is not a pack, is incomplete or is
/// damaged, [`ReadError::Changed`] and [`ReadError::Read`] if it was truncated or could not be read meanwhile.
pub fn open(path: impl AsRef<Path>) -> Result<Pack, ReadError> {
    open_with(path, Limits::default())
}

/// Opens a pack with custom limits.
///
/// # Errors
/// As for [`open`].
pub fn open_with(path: impl AsRef<Path>, limits: Limits) -> Result<Pack, ReadError> {
    let path = path.as_ref();
    if let Some(set) = set::open(path, limits) {
        return set;
    }
    let file = MappedFile::open(path).map_err(|source| ReadError::Open { path: path.to_owned(), source })?;
    Pack::new(file, path, limits)
}

/// Opens a pack in memory with the default [`Limits`]. Error messages use `name` instead of a path.
///
/// # Errors
/// [`ReadError::Format`] if the bytes are not a pack, are incomplete or are damaged.
pub fn open_bytes(name: impl AsRef<Path>, bytes: impl AsRef<[u8]> + Send + 'static) -> Result<Pack, ReadError> {
    Pack::new(Memory::new(bytes), name.as_ref(), Limits::default())
}
