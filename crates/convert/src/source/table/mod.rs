//! Reads the columns of Arrow record batches as images, labels, numbers and texts. Shared by Parquet and Arrow.
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
    gather::{Gather, ROWS_A_BYTE},
    piece::{InFile, Piece, Spot},
    plan::{Columns, TablePlan},
};

use std::path::Path;

use crate::error::ConvertError;

/// Runs a third-party reader. If malicious bytes make it panic, that becomes an error of the file.
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
