//! Columns of Arrow record batches as what a source holds: images, labels, numbers, texts. Parquet and Arrow share it.
//!
//! Not for reading the files: that is `parquet` and `arrow`.

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
    gather::{Gather, ROWS_A_BYTE},
    piece::{InFile, Piece, Spot},
    plan::{Columns, TablePlan},
};

use std::path::Path;

use crate::error::ConvertError;

/// Runs a reader of another project. Should hostile bytes make it panic, that is an error of the file.
pub(super) fn guarded<T>(
    path: &Path,
    place: &str,
    read: impl FnOnce() -> Result<T, ConvertError>,
) -> Result<T, ConvertError> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    caught.unwrap_or_else(|_| {
        let reason = "the reader gave up on these bytes";
        Err(ConvertError::malformed(path, place, reason))
    })
}
