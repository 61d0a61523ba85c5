//! In place of `zarr` where the build leaves it out: says so.

use super::{AsItIs, Batch, Sink, SinkStart};
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// Samples being written.
pub(super) struct ZarrSink;

impl ZarrSink {
    pub(super) fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        Err(ConvertError::FormatLeftOut {
            path: start.target.to_owned(),
            format: DataFormat::Zarr,
        })
    }
}

impl Sink for ZarrSink {
    type Encoder = AsItIs;

    fn encoder(&self) -> AsItIs {
        AsItIs
    }

    fn write(&mut self, _ready: Batch) -> Result<(), ConvertError> {
        Ok(())
    }

    fn finish(self) -> Result<Vec<String>, ConvertError> {
        Ok(Vec::new())
    }
}
