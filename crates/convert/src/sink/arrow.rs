//! Arrow IPC files, also called Feather version 2. Each batch becomes one record batch. Every array starts at a
//! multiple of 64 bytes, so it can be memory-mapped and used in place.
//!
//! `table` builds the columns.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::{CompressionType, MetadataVersion};
use arrow_schema::ArrowError;

use super::table::TableLayout;
use super::{Batch, Encode, Sink, SinkStart};
use crate::error::ConvertError;
use crate::export::ExportCodec;

const ALIGNMENT: usize = 64;

pub(crate) struct ArrowSink {
    target: PathBuf,
    layout: Arc<TableLayout>,
    writer: FileWriter<BufWriter<File>>,
}

impl Sink for ArrowSink {
    type Encoder = Arc<TableLayout>;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let layout = Arc::new(TableLayout::of(start, false)?);
        let file = File::create(start.path).map_err(ConvertError::io(start.path))?;
        let writer = write_options(start.options.codec)
            .and_then(|options| FileWriter::try_new_with_options(BufWriter::new(file), &layout.schema, options));
        Ok(Self { target: start.target.to_owned(), layout, writer: writer.map_err(|e| failed(start.target, e))? })
    }

    fn encoder(&self) -> Arc<TableLayout> {
        Arc::clone(&self.layout)
    }

    fn write(&mut self, ready: RecordBatch) -> Result<(), ConvertError> {
        let written = self.writer.write(&ready);
        written.map_err(|e| failed(&self.target, e))
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        let finished = self.writer.finish().and_then(|()| self.writer.flush());
        finished.map_err(|e| failed(&self.target, e))?;
        Ok(self.layout.lost())
    }
}

impl Encode for Arc<TableLayout> {
    type Ready = RecordBatch;

    fn encode(&self, batch: Batch) -> Result<RecordBatch, ConvertError> {
        self.record_batch(batch)
    }
}

fn write_options(codec: Option<ExportCodec>) -> Result<IpcWriteOptions, ArrowError> {
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
    match codec {
        Some(ExportCodec::Zstd(level)) => {
            options.try_with_compression(Some(CompressionType::ZSTD))?.try_with_compression_level(Some(level))
        }
        Some(ExportCodec::Lz4) => options.try_with_compression(Some(CompressionType::LZ4_FRAME)),
        _ => Ok(options),
    }
}

fn failed(target: &Path, error: ArrowError) -> ConvertError {
    let error = match error {
        ArrowError::IoError(_, error) => error,
        error => std::io::Error::other(error),
    };
    ConvertError::io(target)(error)
}
