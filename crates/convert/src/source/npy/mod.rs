//! STUB.

mod header;

pub(super) use header::{MAX_HEADER, npy_head, npy_item};

use super::ListOptions;
use super::found::Found;
use super::shards::Shards;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// Finds the samples.
pub(super) fn read(part: &Shards, _options: &ListOptions) -> Result<Found, ConvertError> {
    Err(ConvertError::FormatLeftOut {
        path: part.root.clone(),
        format: DataFormat::Npy,
    })
}
