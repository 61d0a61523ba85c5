//! In place of `zarr` where the build leaves it out: says so.

use super::ListOptions;
use super::found::Found;
use super::shards::Shards;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// The folder as one part.
pub(super) fn parts(source: &std::path::Path) -> Result<Vec<Shards>, ConvertError> {
    Ok(vec![Shards::one(source)])
}

/// Finds the samples.
pub(super) fn read(part: &Shards, _options: &ListOptions) -> Result<Found, ConvertError> {
    Err(ConvertError::FormatLeftOut {
        path: part.root.clone(),
        format: DataFormat::Zarr,
    })
}
