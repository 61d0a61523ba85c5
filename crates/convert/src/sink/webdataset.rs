//! STUB.

use super::{AsItIs, Batch, Sink, SinkStart};
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// Samples being written.
pub(super) struct WebDatasetSink;

impl WebDatasetSink {
    pub(super) fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        Err(ConvertError::FormatLeftOut {
            path: start.target.to_owned(),
            format: DataFormat::WebDataset,
        })
    }
}

impl Sink for WebDatasetSink {
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
