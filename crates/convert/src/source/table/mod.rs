//! Reads the columns of Arrow record batches as images, labels, numbers and strings. Shared by Parquet and Arrow.
//!
//! `parquet` and `arrow` read the files.

mod features;
mod gather;
mod kind;
mod nested;
mod piece;
mod plan;
mod text;

#[cfg(test)]
mod tests;

pub(super) use self::{
    gather::{Gather, PieceOf, ROWS_A_BYTE},
    kind::{is_null_at, plain_type},
    nested::{Levels, leaf_of, numbers, shape_of},
    piece::{InFile, Piece, Spot},
    plan::{Column, Columns, TablePlan},
    text::{for_each_text, is_scalar, json_of, json_refusal},
};

use std::path::{Path, PathBuf};

use crate::error::ConvertError;

/// Maximum number of threads. More would only wait for the disk, or for the thread that writes the spool.
pub(super) const MAX_THREADS: usize = 16;

/// Runs a third-party reader. If malicious bytes make it panic, the panic becomes an error about the file.
pub(super) fn guarded<T>(
    path: &Path,
    place: &str,
    read: impl FnOnce() -> Result<T, ConvertError>,
) -> Result<T, ConvertError> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    caught.unwrap_or_else(|_| {
        let reason = "the reader crashed on these bytes";
        Err(ConvertError::malformed(path, place, reason))
    })
}

/// Returns a function that returns the next task of all files on each call. It opens files when needed, and calls
/// `next` for the next task of a file.
pub(super) fn tasks<T, K>(
    files: &[PathBuf],
    mut open: impl FnMut(u32, &Path) -> Result<T, ConvertError>,
    mut next: impl FnMut(&mut T) -> Result<Option<K>, ConvertError>,
) -> impl FnMut() -> Result<Option<K>, ConvertError> {
    let mut files = (0_u32..).zip(files);
    let mut current = None;
    move || {
        loop {
            if let Some(table) = &mut current
                && let Some(task) = next(table)?
            {
                return Ok(Some(task));
            }
            let Some((number, path)) = files.next() else { return Ok(None) };
            current = Some(open(number, path)?);
        }
    }
}

/// The error for a table without rows.
pub(super) fn no_rows(source: &Path) -> ConvertError {
    let hint = "pass a table that has rows; nothing was written";
    ConvertError::contradictory(source, "", "it has no rows", hint)
}
