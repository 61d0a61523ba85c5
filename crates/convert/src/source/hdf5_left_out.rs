//! In place of `hdf5` where the build leaves it out: says so.

use super::ListOptions;
use super::found::Found;
use super::shards::Shards;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// One part for each split.
pub(super) fn parts(shards: Shards) -> Result<Vec<Shards>, ConvertError> {
    Ok(shards.by_split())
}

/// Finds the samples.
pub(super) fn read(part: &Shards, _options: &ListOptions) -> Result<Found, ConvertError> {
    Err(ConvertError::FormatLeftOut {
        path: part.root.clone(),
        format: DataFormat::Hdf5,
    })
}
